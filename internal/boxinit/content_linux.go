package boxinit

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/gitconfig"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// This file lets protected names of git come to be by what they hold. The guest never gets such a name for a file of
// its own, which it could change afterwards: the broker reads the guest's file once, judges those bytes and writes them
// to a new file.

// A sort is what a protected place is to the judgement of its content.
type sort uint8

const (
	sortNone sort = iota
	sortConfig
	sortHooks  // the directory
	sortSample // a file in it
	sortEmpty
	sortCommon
	sortBack
)

const (
	stage      = ".paddock" // a protected name: no guest, of this or another box, can write to a file in it
	sampleMax  = 64         // samples in a directory of hooks
	entriesMax = 1000       // entries of one that may be made bigger
	keyMax     = 200        // bytes of a key in a message
	pointerMax = 2 * pathMax
)

// sortOf returns how the content of a path is judged, and by which protected name.
func (b *broker) sortOf(t *tree, full string) (sort, string) {
	rule, hit := b.judge(t, full, nowhere)
	if hit != protect.Protected || t.protected == nil {
		return sortNone, rule
	}
	content := t.protected.Content(rule)
	if content == protect.None {
		return sortNone, rule
	}
	dir, base := path.Split(full)
	dir = strings.TrimSuffix(dir, "/")
	inside := false // the directory is protected itself
	if dir != t.path {
		_, h := b.judge(t, dir, nowhere)
		inside = h == protect.Protected
	}
	switch {
	case content == protect.Hooks && inside:
		if up := path.Dir(dir); protect.Sample(base) && path.Base(dir) == "hooks" && b.mayHold(t, up) {
			return sortSample, rule
		}
	case inside:
	case content == protect.Config && (base == "config" || base == "config.worktree"):
		return sortConfig, rule
	case content == protect.Hooks && base == "hooks":
		return sortHooks, rule
	case content == protect.Empty:
		return sortEmpty, rule
	case content == protect.Common && base == "commondir":
		return sortCommon, rule
	case content == protect.Back && base == "gitdir":
		return sortBack, rule
	}
	return sortNone, rule
}

// mayHold reports whether a directory is not protected itself.
func (b *broker) mayHold(t *tree, dir string) bool {
	if dir == t.path {
		return true
	}
	_, hit := b.judge(t, dir, nowhere)
	return hit != protect.Protected
}

// readPlain reads a regular file, without following a link. If nothing is there, it returns nil.
func readPlain(dir int, base string, most int64) (content []byte, mode uint32, err error) {
	fd, err := sys.OpenAt(dir, base, syscall.O_RDONLY, 0)
	if errors.Is(err, syscall.ENOENT) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	st, err := sys.StatAt(fd, "")
	if err != nil || st.Mode&sys.TypeMask != sys.TypeRegular {
		sys.Close(fd)
		return nil, 0, errors.Join(err, syscall.EPERM)
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = syscall.EFBIG
	}
	if content == nil {
		content = []byte{}
	}
	return content, st.Mode & 0o777, err
}

// land writes a file of the broker's own and renames it to base in dir.
func land(dir int, base string, content []byte, mode uint32) error {
	st, err := sys.StatAt(dir, "")
	if err != nil {
		return err
	}
	// Nobody may write to it who may not write to the directory.
	mode &^= 0o022 &^ st.Mode
	return staged(dir, func(at int, name string) error {
		fd, err := sys.OpenAt(at, name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), base)
		_, err = f.Write(content)
		if err = errors.Join(err, sys.ChmodFile(fd, mode), f.Close()); err == nil {
			err = sys.RenameAt(at, name, dir, base)
		}
		if err != nil {
			_ = sys.UnlinkAt(at, name)
		}
		return err
	})
}

// staged calls do with a directory in dir in which no guest can write, and a name that is free there.
func staged(dir int, do func(at int, name string) error) error {
	if err := sys.MkdirAt(dir, stage, 0o700); err != nil && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	at, err := sys.OpenDirAt(dir, stage)
	if err != nil {
		return err
	}
	defer func() {
		sys.Close(at)
		_ = sys.RmdirAt(dir, stage) // another box may be using it
	}()
	return do(at, rand.Text())
}

// scratch returns a regular file without a name, for bytes that are dropped. It holds what the guest finds under the
// name, because a guest kernel also reads from a file that it has open.
func scratch(dir, flags int, content string) (fd int, err error) {
	err = staged(dir, func(at int, name string) error {
		all, err := sys.OpenAt(at, name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer sys.Close(all)
		if flags&syscall.O_TRUNC == 0 {
			if _, err := syscall.Pwrite(all, []byte(content), 0); err != nil {
				return errors.Join(err, sys.UnlinkAt(at, name))
			}
		}
		fd, err = sys.ReopenFor(all, flags&(syscall.O_ACCMODE|syscall.O_APPEND|syscall.O_NONBLOCK))
		return errors.Join(err, sys.UnlinkAt(at, name))
	})
	return fd, err
}

// judgeConfig judges what a configuration would hold, and returns what is to be written. Nil for content is its removal.
func (b *broker) judgeConfig(dir int, full string, t *tree, content []byte) ([]byte, error) {
	old, _, err := readPlain(dir, path.Base(full), gitconfig.MaxSize)
	if err != nil {
		return nil, &gitconfig.Refused{Why: "what is there is no plain file"}
	}
	where := gitconfig.Place{Dir: path.Dir(full)}
	if i := strings.Index(full, "/.git/modules/"); i >= len(t.path) {
		where.Top = full[:i]
	}
	if where.Worktree = path.Base(full) == "config.worktree"; where.Worktree { // which has no remotes
		return settled(old, content), gitconfig.Judge(old, content, where)
	}
	st, err := sys.StatAt(dir, "")
	if err != nil {
		return nil, err
	}
	at := inode{st.Dev, st.Ino}
	r := b.known[at]
	switch sum := sumOf(old); {
	case r == nil:
		r = &repository{made: old == nil, hosts: gitconfig.Destinations(old)}
	case r.left != sum: // somebody else wrote it: the host, or another sandbox
		r.made = false
		maps.Copy(r.hosts, gitconfig.Destinations(old))
	}
	r.left = sumOf(old)
	if old != nil || content != nil {
		b.known[at] = r
	}
	where.New, where.Hosts = r.made, r.hosts
	if err := gitconfig.Judge(old, content, where); err != nil {
		return nil, err
	}
	content = settled(old, content)
	r.left = sumOf(content)
	return content, nil
}

// settled is gitconfig.Settle, where nil stands for no file.
func settled(old, content []byte) []byte {
	if content == nil {
		return nil
	}
	return append([]byte{}, gitconfig.Settle(old, content)...)
}

// A repository is what a broker remembers of one. What the host wrote into its configuration stays the host's when it
// has been removed. So does what anybody else wrote while this box lives, also in a directory that has the number of one
// that the guest made and removed.
type repository struct {
	made  bool              // in this box
	hosts map[string]string // where it led without this box
	left  [sha256.Size]byte // the configuration as this broker left it
}

func sumOf(content []byte) (sum [sha256.Size]byte) {
	if content == nil {
		return sum
	}
	return sha256.Sum256(content)
}

// isMade reports whether the repository in a directory was made in this box, and nobody else has changed its
// configuration since.
func (b *broker) isMade(dir int) bool {
	st, err := sys.StatAt(dir, "")
	if err != nil {
		return false
	}
	r := b.known[inode{st.Dev, st.Ino}]
	if r == nil || !r.made {
		return false
	}
	content, _, err := readPlain(dir, "config", gitconfig.MaxSize)
	return err == nil && r.left == sumOf(content)
}

// An inode identifies a file while it has a name.
type inode struct{ dev, ino uint64 }

// maySample reports whether a sample of a hook may be opened for writing: a new one, or one that was made in this box. No
// link may lead to it, with which the host would run it.
func (b *broker) maySample(p *place, st sys.FileStat, there bool) bool {
	if there {
		return st.Links == 1 && b.samples[inode{st.Dev, st.Ino}]
	}
	return len(b.samples) < landedMax && linkless(p.dir)
}

// sampled remembers a sample that was made.
func (b *broker) sampled(fd int) {
	if st, err := sys.StatAt(fd, ""); err == nil {
		b.samples[inode{st.Dev, st.Ino}] = true
	}
}

// linkless reports whether a directory has no link, and not too many entries to look for one.
func linkless(dir int) bool {
	fd, err := sys.OpenAt(dir, ".", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	names, err := f.Readdirnames(entriesMax + 1)
	if err != nil && !errors.Is(err, io.EOF) || len(names) > entriesMax {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		st, err := sys.StatAt(fd, name)
		return mayExist(err) && st.Mode&sys.TypeMask == sys.TypeLink
	})
}

// replace lets a rename over a configuration happen, if its content may be there.
func (c *call) replace(a, to *place, flags uint) reply {
	rule := func() string { _, r := c.sortOf(to.tree, to.full); return r }
	if flags&^sys.RenameNoReplace != 0 || a.slash || to.slash || !c.mayAt("rename", a, false) {
		c.refuse("rename", to.full, rule())
		return reply{err: syscall.EACCES}
	}
	content, mode, err := readPlain(a.dir, a.base, gitconfig.MaxSize)
	if err == nil && content == nil {
		return reply{err: syscall.ENOENT}
	}
	if err != nil {
		c.refuse("rename", to.full, rule())
		return reply{err: syscall.EACCES}
	}
	if flags&sys.RenameNoReplace != 0 {
		if _, err := sys.StatAt(to.dir, to.base); err == nil {
			return reply{err: syscall.EEXIST}
		}
	}
	if c.unmakes(a) {
		c.refuse("rename", a.full, rule())
		return reply{err: syscall.EACCES}
	}
	content, err = c.judgeConfig(to.dir, to.full, to.tree, content)
	if err != nil {
		c.refuseContent("write", to.full, rule(), err)
		return reply{err: syscall.EACCES}
	}
	if err := land(to.dir, to.base, content, mode); err != nil {
		return fails(err)
	}
	return result(sys.UnlinkAt(a.dir, a.base))
}

// refuseContent is refuse for a name that its content does not let through.
func (b *broker) refuseContent(op, full, rule string, err error) {
	var r *gitconfig.Refused
	if errors.As(err, &r) && r.Key != "" {
		rule += ": " + r.Key[:min(len(r.Key), keyMax)]
	}
	b.refuseFor(op, full, rule, err.Error())
}

// removable reports whether a place that is judged by content may be removed.
func (c *call) removable(p *place, dir bool) (ok, decided bool) {
	if p.base == ".git" && !dir {
		_, hit := c.judge(p.tree, p.full, p.dir)
		_, ok := c.pointerAt(p)
		return true, hit == protect.Prefix && ok
	}
	kind, rule := c.sortOf(p.tree, p.full)
	switch kind {
	case sortHooks, sortEmpty:
		return dir, dir
	case sortSample:
		ok := !dir && linkless(p.dir)
		return ok, ok
	case sortCommon, sortBack:
		return !dir && c.abandoned(p), !dir && c.abandoned(p)
	case sortConfig:
		if dir {
			return false, false
		}
		if st, err := sys.StatAt(p.dir, p.base); err != nil || st.Mode&sys.TypeMask != sys.TypeRegular {
			return false, false
		}
		if _, err := c.judgeConfig(p.dir, p.full, p.tree, nil); err != nil {
			c.refuseContent("remove", p.full, rule, err)
			return false, true
		}
		return true, true
	}
	return false, false
}

// abandoned reports whether a directory in .git/worktrees leads to no working tree any more, or to none yet.
func (c *call) abandoned(p *place) bool {
	content, _, err := readPlain(p.dir, "gitdir", pointerMax)
	if err != nil {
		return false
	}
	to := strings.TrimRight(string(content), "\n")
	if to == "" {
		return true
	}
	own := path.Dir(p.full)
	if !path.IsAbs(to) {
		to = path.Join(c.inside(own), to)
	}
	to = c.root + path.Clean(to)
	return below(to, p.tree.path) && !mayBe(to)
}

// mayBe is mayExist of a path.
func mayBe(path string) bool {
	_, err := sys.StatAt(sys.AtCWD, path)
	return mayExist(err)
}

// openContent opens a place that is judged by content, if it is one.
func (c *call) openContent(p *place, st sys.FileStat, there bool, flags int) (r reply, decided bool) {
	if p.tree.protected == nil || flags&syscall.O_ACCMODE == syscall.O_RDONLY && flags&(syscall.O_CREAT|syscall.O_TRUNC) == 0 || there && st.Mode&sys.TypeMask != sys.TypeRegular {
		return reply{}, false
	}
	exclusive := flags&(syscall.O_CREAT|syscall.O_EXCL) == syscall.O_CREAT|syscall.O_EXCL
	var want string
	var back *pending
	if p.base == ".git" {
		if rule, hit := c.judge(p.tree, p.full, p.dir); hit != protect.Prefix || strings.HasPrefix(rule, "deny ") || strings.HasPrefix(rule, "the mount ") {
			return reply{}, false
		}
		// A guest kernel opens a file once more, with more rights, when it is also read.
		var ok bool
		if want, ok = c.pointerAt(p); !ok || !c.again(p) {
			if want, back, ok = c.pointerOf(p); !ok {
				return reply{}, false
			}
		}
	} else {
		kind, _ := c.sortOf(p.tree, p.full)
		switch kind {
		case sortCommon:
			want = "../..\n"
		case sortBack:
			if there && st.Size > 0 {
				return reply{}, false
			}
			return c.openBack(p, flags), true
		default:
			return reply{}, false
		}
	}
	if there {
		has, _, err := readPlain(p.dir, p.base, pointerMax)
		if exclusive {
			return reply{err: syscall.EEXIST}, true
		}
		if err != nil || !c.again(p) || string(has) != want {
			return reply{}, false
		}
	} else if flags&syscall.O_CREAT == 0 {
		return reply{err: syscall.ENOENT}, true
	} else if err := land(p.dir, p.base, []byte(want), 0o644); err != nil {
		return fails(err), true
	} else if len(c.landed) < landedMax {
		c.landed[p.full] = true
	}
	if back != nil {
		delete(c.pending, back.full)
		err := land(back.dir, path.Base(back.full), []byte(back.says+"\n"), 0o644)
		back.close()
		if err != nil {
			return fails(err), true
		}
	}
	fd, err := scratch(p.dir, flags, want)
	if err != nil {
		return fails(err), true
	}
	return reply{open: true, fd: fd, keep: flags&syscall.O_CLOEXEC == 0}, true
}

// again reports whether a file that the broker wrote may be opened once more. git itself also writes the file .git of a
// submodule twice.
func (c *call) again(p *place) bool {
	return c.landed[p.full] && (c.sealed.Load() || p.base == ".git")
}

// A pending is what the guest wrote for a file that leads back to a working tree. Whether it may be there is known when
// the working tree's file .git is made, which git does next.
type pending struct {
	full    string
	dir     int    // of the file; open
	scratch int    // what the guest wrote; open
	says    string // what was found there and may land; the guest can change the scratch
}

// Bounds of what the broker remembers.
const (
	pendingMax = 16
	landedMax  = 10_000
)

func (p *pending) close() {
	sys.Close(p.dir)
	sys.Close(p.scratch)
}

// content returns what the guest wrote.
func (p *pending) content() string {
	buf := make([]byte, pathMax)
	n, err := syscall.Pread(p.scratch, buf, 0)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(buf[:max(n, 0)]), "\n")
}

func (c *call) openBack(p *place, flags int) reply {
	if !p.there() {
		if flags&syscall.O_CREAT == 0 {
			return reply{err: syscall.ENOENT}
		}
		// Until then it is empty, because a guest kernel looks whether the name is there.
		if err := land(p.dir, p.base, nil, 0o644); err != nil {
			return fails(err)
		}
	}
	if old := c.pending[p.full]; old != nil {
		old.close()
		delete(c.pending, p.full)
	}
	if len(c.pending) >= pendingMax {
		return reply{err: syscall.EACCES}
	}
	// The broker reads it, too.
	mine, err := scratch(p.dir, syscall.O_RDWR, "")
	if err != nil {
		return fails(err)
	}
	fd, err := sys.ReopenFor(mine, flags&(syscall.O_ACCMODE|syscall.O_APPEND|syscall.O_NONBLOCK))
	if err != nil {
		sys.Close(mine)
		return fails(err)
	}
	dir, err := sys.DuplicateFD(p.dir)
	if err != nil {
		sys.Close(mine)
		sys.Close(fd)
		return fails(err)
	}
	c.pending[p.full] = &pending{full: p.full, dir: dir, scratch: mine}
	return reply{open: true, fd: fd, keep: flags&syscall.O_CLOEXEC == 0}
}

// pointerOf returns what a file .git at a place holds, if the repository around it has a linked working tree or a
// submodule there. The path is relative, goes upward and then through ".git" only, so that no link can be put into it.
func (c *call) pointerOf(p *place) (string, *pending, bool) {
	work := path.Dir(p.full)
	if work == p.tree.path {
		return "", nil, false
	}
	ups := ""
	for at := work; at != p.tree.path; {
		at = path.Dir(at)
		ups += "../"
		dir, err := sys.ResolvePlain(at)
		if err != nil {
			return "", nil, false
		}
		down, nearest := c.repository(dir, at, p.tree)
		sys.Close(dir)
		if !nearest {
			continue
		}
		to := ups + down
		if strings.HasSuffix(down, "/.git") || down == ".git" {
			if back := c.pendingOf(p, path.Join(at, down)); back != nil {
				return "gitdir: " + to + "/worktrees/" + path.Base(path.Dir(back.full)) + "\n", back, true
			}
		}
		name, ok := c.moduleAt(at, strings.TrimPrefix(work, at+"/"))
		if !ok || !present(path.Join(at, down, "modules")) {
			return "", nil, false
		}
		return "gitdir: " + to + "/modules/" + name + "\n", nil, true
	}
	return "", nil, false
}

// pointerAt returns what a file .git holds that the broker could have written.
func (c *call) pointerAt(p *place) (string, bool) {
	content, _, err := readPlain(p.dir, p.base, pointerMax)
	if err != nil {
		return "", false
	}
	ups, _, ok := pointer(string(content))
	return string(content), ok && c.within(p, ups)
}

// repository returns the way from a directory to its repository, if it has a .git.
func (c *call) repository(dir int, at string, t *tree) (down string, ok bool) {
	st, err := sys.StatAt(dir, ".git")
	switch {
	case err != nil:
		return "", false
	case st.Mode&sys.TypeMask == sys.TypeDir:
		return ".git", true
	}
	content, _, err := readPlain(dir, ".git", pointerMax)
	if err != nil {
		return "", false
	}
	ups, down, ok := pointer(string(content))
	if !ok || !c.within(&place{full: at + "/.git", tree: t}, ups) {
		return "", false
	}
	return strings.Repeat("../", ups) + down, true
}

// within reports whether a way upward stays in the tree.
func (c *call) within(p *place, ups int) bool {
	at := path.Dir(p.full)
	for range ups {
		if at == p.tree.path || at == "/" {
			return false
		}
		at = path.Dir(at)
	}
	return true
}

// pointer reads the text of a file .git that the broker could have written.
func pointer(text string) (ups int, down string, ok bool) {
	down, ok = strings.CutPrefix(strings.TrimRight(text, "\n"), "gitdir: ")
	for ok && strings.HasPrefix(down, "../") {
		down = down[3:]
		ups++
	}
	name, ok := strings.CutPrefix(down, ".git/modules/")
	if !ok {
		name, ok = strings.CutPrefix(down, ".git/worktrees/")
		ok = ok && !strings.Contains(name, "/")
	}
	return ups, down, ok && ups > 0 && path.Clean(name) == name && protect.ModuleName(name) && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' })
}

// pendingOf returns the file in a repository that leads back to a working tree.
func (c *call) pendingOf(p *place, repository string) *pending {
	for full, back := range c.pending {
		if path.Dir(path.Dir(full)) != repository+"/worktrees" {
			continue
		}
		text := back.content()
		to := text
		if !path.IsAbs(to) {
			down := to
			for strings.HasPrefix(down, "../") {
				down = down[3:]
			}
			if strings.Contains("/"+down+"/", "/../") { // which a link could lead elsewhere
				continue
			}
			to = path.Join(c.inside(path.Dir(full)), to)
		}
		if to == c.inside(p.full) {
			back.says = text
			return back
		}
	}
	return nil
}

// inside returns a path as commands see it.
func (b *broker) inside(full string) string { return strings.TrimPrefix(full, b.root) }

// moduleAt returns the name of the submodule at a path of a working tree: what .gitmodules says, or else the path.
func (c *call) moduleAt(top, at string) (string, bool) {
	dir, err := sys.ResolvePlain(top)
	if err != nil {
		return "", false
	}
	defer sys.Close(dir)
	name := at
	if content, _, err := readPlain(dir, ".gitmodules", gitconfig.MaxSize); err == nil {
		entries, err := gitconfig.Parse(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")))
		if err != nil {
			return "", false
		}
		for _, e := range entries {
			if e.Section == "submodule" && e.HasSub && e.Key == "path" && strings.TrimSuffix(e.Value, "/") == at {
				name = e.Sub
			}
		}
	}
	_, _, ok := pointer("gitdir: ../.git/modules/" + name)
	return name, ok
}

// settle judges a directory that is about to become a repository under a name that does not tell: everything that git
// would obey in it. It writes the configuration anew.
func (b *broker) settle(p *place) (rule string, err error) {
	t, at, dir := p.tree, p.dir, path.Dir(p.full)
	for _, name := range t.protected.GitNames() {
		rule, hit := t.protected.Match(".git/" + name)
		if name == "modules" { // nothing may be in it yet
			hit = protect.Protected
		}
		if hit == protect.Miss {
			continue
		}
		switch kind := t.protected.Content(rule); {
		case kind == protect.Config && (name == "config" || name == "config.worktree"):
			if err := b.settleConfig(at, dir, name); err != nil {
				return rule, err
			}
		case kind == protect.Hooks && name == "hooks":
			if !b.emptyIn(at, name, protect.Sample) {
				return rule, syscall.EPERM
			}
		case kind == protect.Empty || name == "modules" || name == "worktrees":
			if !b.emptyIn(at, name, nil) {
				return rule, syscall.EPERM
			}
		default:
			if _, err := sys.StatAt(at, name); mayExist(err) {
				return rule, syscall.EPERM
			}
		}
	}
	content, _, err := readPlain(at, "config", gitconfig.MaxSize)
	if err != nil {
		return ".git/config", err
	}
	if st, err := sys.StatAt(at, ""); err == nil && b.known[inode{st.Dev, st.Ino}] == nil {
		b.known[inode{st.Dev, st.Ino}] = &repository{made: true, hosts: map[string]string{}, left: sumOf(content)}
	}
	return "", nil
}

func (b *broker) settleConfig(at int, dir, name string) error {
	content, mode, err := readPlain(at, name, gitconfig.MaxSize)
	if err != nil || content == nil {
		return err
	}
	if err := gitconfig.Judge(nil, content, gitconfig.Place{Dir: dir, New: true, Worktree: name == "config.worktree"}); err != nil {
		return err
	}
	return land(at, name, content, mode)
}

// emptyIn reports whether a name is missing, or a directory that has only regular files of certain names.
func (b *broker) emptyIn(dir int, name string, may func(string) bool) bool {
	fd, err := sys.OpenAt(dir, name, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, syscall.ENOENT) {
		return true
	}
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	entries, err := f.ReadDir(sampleMax + 1)
	if err != nil && !errors.Is(err, io.EOF) || len(entries) > sampleMax {
		return false
	}
	for _, e := range entries {
		st, err := sys.StatAt(fd, e.Name())
		if err != nil || may == nil || !may(e.Name()) || st.Mode&sys.TypeMask != sys.TypeRegular {
			return false
		}
	}
	return true
}

// unmakes reports whether the removal of a name would make a bare repository of the host a directory like others, in which
// nothing is protected. Afterwards it could be made a repository again, without the hooks and the configuration of the
// host.
func (c *call) unmakes(p *place) bool {
	if p.tree.protected == nil || !protect.IsBarePart(p.base) {
		return false
	}
	if c.isMade(p.dir) {
		return false
	}
	look, end := entries{path.Dir(p.full), p.dir, 0}.look()
	defer end()
	if _, hit := p.tree.named(path.Join(path.Dir(p.rel()), "config")); hit == protect.Protected {
		return false // it has a name that protects what is in it
	}
	return isBare(look, "", exists)
}
