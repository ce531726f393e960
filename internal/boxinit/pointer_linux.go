package boxinit

import (
	"bytes"
	"path"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/gitconfigcheck"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// This file lets the files come to be by which git finds the repository of a submodule or of a linked working tree, and
// the way back. The broker writes them itself, as they have to be, and drops what the guest writes.

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
		if err != nil || string(has) != want || want != "" && !c.again(p) {
			return reply{}, false
		}
	} else if flags&syscall.O_CREAT == 0 {
		return reply{err: syscall.ENOENT}, true
	} else if err := c.land(p.dir, p.base, []byte(want), 0o644); err != nil {
		return fails(err), true
	} else if len(c.landed) < landedMax {
		c.landed[p.full] = true
	}
	if back != nil {
		delete(c.pending, back.full)
		err := c.land(back.dir, path.Base(back.full), []byte(back.says+"\n"), 0o644)
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
		if err := c.land(p.dir, p.base, nil, 0o644); err != nil {
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
//
// In a cache it is empty where no repository is around it. uv makes one, so that git takes the cache for no part of a
// repository.
func (c *call) pointerOf(p *place) (string, *pending, bool) {
	work := path.Dir(p.full)
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
	return "", nil, p.tree.cache
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
	if content, _, err := readPlain(dir, ".gitmodules", gitconfigcheck.MaxSize); err == nil {
		entries, err := gitconfigcheck.Parse(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")))
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
