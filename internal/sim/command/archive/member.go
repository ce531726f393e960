package archive

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// safeName takes away from a member's name what leads out of the directory it
// is unpacked in: slashes at its start, and all up to the last "..". It gives
// what was taken, too.
func safeName(name string) (safe, prefix string) {
	cut := 0
	for i := 0; i < len(name); {
		end := strings.IndexByte(name[i:], '/')
		if end < 0 {
			end = len(name) - i
		}
		if name[i:i+end] == ".." {
			cut = i + end
		}
		for i += end; i < len(name) && name[i] == '/'; i++ {
		}
	}
	for cut < len(name) && name[cut] == '/' {
		cut++
	}
	return name[cut:], name[:cut]
}

// A guardian keeps members from going through links that the archive itself
// made and that lead out of the directory.
type guardian struct {
	t     *kernel.Task
	links map[link]bool
}

type link struct {
	dev uint64
	ino vfs.Ino
}

// made notes a link that was made of an archive.
func (g *guardian) made(name, target string) {
	if !strings.HasPrefix(target, "/") && !strings.Contains("/"+target+"/", "/../") {
		return
	}
	if i, err := g.t.View.Lstat(name); err == nil {
		if g.links == nil {
			g.links = map[link]bool{}
		}
		g.t.Grow(32)
		g.links[link{i.Dev, i.Ino}] = true
	}
}

// through reports whether a name leads through such a link. The last part does
// not count unless whole.
func (g *guardian) through(name string, whole bool) bool {
	if len(g.links) == 0 {
		return false
	}
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' || i == len(name) && !whole {
			continue
		}
		g.t.Step(1)
		l, err := g.t.View.Lstat(name[:i])
		if err != nil {
			return false
		}
		if l.IsLink() && g.links[link{l.Dev, l.Ino}] {
			return true
		}
	}
	return false
}

// parents makes the directories that lead to a member.
func (g *guardian) parents(name string) error {
	i := strings.LastIndexByte(strings.TrimRight(name, "/"), '/')
	if i <= 0 {
		return nil
	}
	return g.t.View.MkdirAll(name[:i], 0o777)
}

// clear removes what stands at a member's place, if that is no directory.
func (g *guardian) clear(name string) error {
	err := g.t.View.Unlink(name)
	if err == linux.ENOENT || err == linux.ENOTDIR {
		return nil
	}
	return err
}
