package boxinit

import (
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
	"time"

	"github.com/paddock-sandbox/paddock/internal/gitconfigcheck"
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
func (b *broker) land(dir int, base string, content []byte, mode uint32) error {
	st, err := sys.StatAt(dir, "")
	if err != nil {
		return err
	}
	// Nobody may write to it who may not write to the directory.
	mode &^= 0o022 &^ st.Mode
	after, err := b.replaced(dir, base)
	if err != nil {
		return err
	}
	return after(staged(dir, func(at int, name string) error {
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
	}))
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
		if errors.Is(sys.RmdirAt(dir, stage), syscall.ENOTEMPTY) { // another box is using it, or was killed
			sweep(at)
			_ = sys.RmdirAt(dir, stage)
		}
		sys.Close(at)
	}()
	return do(at, rand.Text())
}

// leftAfter is how old a staged file is that a killed box has left: it takes milliseconds to use one.
const leftAfter = 10 * time.Minute

// sweep removes from a stage what was left there.
func sweep(stage int) {
	names, _ := namesIn(stage, entriesMax) // of too many, all stay
	for _, name := range names {
		if st, err := sys.StatAt(stage, name); err == nil && time.Since(time.Unix(0, st.ModTime)) > leftAfter {
			_ = sys.UnlinkAt(stage, name)
		}
	}
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
	old, _, err := readPlain(dir, path.Base(full), gitconfigcheck.MaxSize)
	if err != nil {
		return nil, &gitconfigcheck.Refused{Why: "what is there is no plain file"}
	}
	where := gitconfigcheck.Place{Dir: path.Dir(full)}
	if i := strings.Index(full, "/.git/modules/"); i >= len(t.path) {
		where.Top = full[:i]
	}
	if where.Worktree = path.Base(full) == "config.worktree"; where.Worktree { // which has no remotes
		return settled(old, content), gitconfigcheck.Judge(old, content, where)
	}
	st, err := sys.StatAt(dir, "")
	if err != nil {
		return nil, err
	}
	at := inode{st.Dev, st.Ino}
	r := b.known[at]
	switch sum := sumOf(old); {
	case r == nil && len(b.known) >= landedMax:
		return nil, &gitconfigcheck.Refused{Why: "this sandbox has changed the configurations of too many repositories"}
	case r == nil:
		r = &repository{made: old == nil, hosts: gitconfigcheck.Destinations(old)}
	case r.left != sum: // somebody else wrote it: the host, or another sandbox
		r.made = false
		maps.Copy(r.hosts, gitconfigcheck.Destinations(old))
	}
	r.left = sumOf(old)
	if old != nil || content != nil {
		b.known[at] = r
	}
	where.New, where.Hosts = r.made, r.hosts
	if err := gitconfigcheck.Judge(old, content, where); err != nil {
		return nil, err
	}
	content = settled(old, content)
	r.left = sumOf(content)
	return content, nil
}

// settled is gitconfigcheck.Settle, where nil stands for no file.
func settled(old, content []byte) []byte {
	if content == nil {
		return nil
	}
	return append([]byte{}, gitconfigcheck.Settle(old, content)...)
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
	content, _, err := readPlain(dir, "config", gitconfigcheck.MaxSize)
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

// namesIn returns the names in an open directory. It fails if there are more than most. ReadDir would not do:
// where a file system does not say of what type an entry is, it looks for that by a path from the working directory,
// and leaves out what is not there.
func namesIn(dir, most int) ([]string, error) {
	fd, err := sys.OpenAt(dir, ".", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	names, err := f.Readdirnames(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > most {
		return nil, syscall.EFBIG
	}
	return names, nil
}

// linkless reports whether a directory has no link, and not too many entries to look for one.
func linkless(dir int) bool {
	names, err := namesIn(dir, entriesMax)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool {
		st, err := sys.StatAt(dir, name)
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
	content, mode, err := readPlain(a.dir, a.base, gitconfigcheck.MaxSize)
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
	if err := c.land(to.dir, to.base, content, mode); err != nil {
		return fails(err)
	}
	if err := c.before(ChangeRemoved, a); err != nil {
		return fails(err)
	}
	return result(c.undone(a, sys.UnlinkAt(a.dir, a.base)))
}

// refuseContent is refuse for a name that its content does not let through.
func (b *broker) refuseContent(op, full, rule string, err error) {
	var r *gitconfigcheck.Refused
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
	content, _, err := readPlain(at, "config", gitconfigcheck.MaxSize)
	if err != nil {
		return ".git/config", err
	}
	if st, err := sys.StatAt(at, ""); err == nil && b.known[inode{st.Dev, st.Ino}] == nil && len(b.known) < landedMax {
		b.known[inode{st.Dev, st.Ino}] = &repository{made: true, hosts: map[string]string{}, left: sumOf(content)}
	}
	return "", nil
}

func (b *broker) settleConfig(at int, dir, name string) error {
	content, mode, err := readPlain(at, name, gitconfigcheck.MaxSize)
	if err != nil || content == nil {
		return err
	}
	if err := gitconfigcheck.Judge(nil, content, gitconfigcheck.Place{Dir: dir, New: true, Worktree: name == "config.worktree"}); err != nil {
		return err
	}
	return b.land(at, name, content, mode)
}

// emptyIn reports whether a name is missing, or a directory that has only regular files of certain names.
func (b *broker) emptyIn(dir int, name string, may func(string) bool) bool {
	at, err := sys.OpenDirAt(dir, name)
	if errors.Is(err, syscall.ENOENT) {
		return true
	}
	if err != nil {
		return false
	}
	defer sys.Close(at)
	names, err := namesIn(at, sampleMax)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool {
		st, err := sys.StatAt(at, name)
		return err != nil || may == nil || !may(name) || st.Mode&sys.TypeMask != sys.TypeRegular
	})
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
