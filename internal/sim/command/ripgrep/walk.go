package ripgrep

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A candidate is a file that waits to be sorted.
type candidate struct {
	name string
	key  time.Time
}

// candidateSize is about what one takes besides its name.
const candidateSize = 64

// root searches what was named, or the working directory.
func (f *finder) root(name string, implicit bool) {
	if name == "-" {
		if !f.o.listing {
			f.stdin()
		}
		return
	}
	shown := name
	info, err := f.t.View.Stat(name)
	if err != nil {
		f.fail(name, err)
		return
	}
	if !info.IsDir() {
		f.visit(shown, info, true, func() (io.ReadCloser, error) { return command.Open(f.t, name) })
		return
	}
	o := command.WalkOptions{Follow: command.FollowRoots, OneDev: f.o.oneDev}
	if f.o.follow {
		o.Follow = command.FollowAll
	}
	if f.o.depth >= 0 {
		o.Bounded, o.MaxDepth = true, f.o.depth
	}
	top := f.absolute(name)
	levels := []*level{f.outside(top)}
	command.Walk(f.t, name, o, func(e *command.WalkEntry) command.WalkOrder {
		return f.entry(e, top, implicit, &levels)
	})
}

// entry is what is met on the way. levels are those of the directories that
// lead here, with what is above them all first.
func (f *finder) entry(e *command.WalkEntry, top string, implicit bool, levels *[]*level) command.WalkOrder {
	shown := e.Path
	if implicit {
		shown = strings.TrimPrefix(shown, "./")
	}
	if e.What == command.VisitLoop {
		f.fail(shown, errors.New("file system loop found"))
		return command.WalkNext
	}
	if e.What != command.VisitBefore {
		f.fail(shown, e.Err)
		return command.WalkNext
	}
	*levels = (*levels)[:e.Depth+1]
	above := (*levels)[e.Depth]
	abs := top
	if e.Depth > 0 {
		abs = strings.TrimSuffix(above.dir, "/") + "/" + e.Name
		if e.Info.IsLink() || f.leaves(above, e.Name, abs, e.Info.IsDir()) {
			return command.WalkSkip
		}
	}
	if e.Info.IsDir() {
		abs = strings.TrimSuffix(abs, "/")
		*levels = append(*levels, f.enter(e.In, strings.TrimSuffix(e.Name, "/"), abs, above))
		return command.WalkNext
	}
	if !e.Info.IsRegular() {
		return command.WalkNext
	}
	f.visit(shown, e.Info, false, func() (io.ReadCloser, error) { return e.In.Open(e.Name, linux.O_RDONLY, 0) })
	if f.o.quiet && f.matched && !f.o.stats {
		return command.WalkStop
	}
	return command.WalkNext
}

// visit lists or searches a file, or keeps it to be sorted.
func (f *finder) visit(shown string, info vfs.Info, named bool, open func() (io.ReadCloser, error)) {
	o := f.o
	if o.size >= 0 && info.Size > o.size && info.IsRegular() {
		return
	}
	if o.sort != "" {
		c := candidate{name: shown}
		switch o.sort {
		case "modified":
			c.key = info.Mtime
		case "accessed":
			c.key = info.Atime
		case "created":
			c.key = info.Ctime
		}
		f.t.Grow(len(shown) + candidateSize)
		f.paths = append(f.paths, c)
		return
	}
	if o.listing {
		f.list(shown)
		return
	}
	in, err := open()
	if err != nil {
		f.fail(shown, err)
		return
	}
	defer in.Close()
	f.search(shown, in, named)
}

func (f *finder) list(name string) {
	f.matched = true
	if f.o.quiet {
		return
	}
	f.out.String(name)
	f.endName()
}

func (f *finder) endName() {
	if f.o.nulNames {
		f.out.Byte(0)
	} else {
		f.out.Byte('\n')
	}
}

// sorted searches what waited.
func (f *finder) sorted() {
	o := f.o
	if o.sort == "" {
		return
	}
	slices.SortStableFunc(f.paths, func(a, b candidate) int {
		c := a.key.Compare(b.key)
		if o.sort == "path" {
			c = comparePaths(a.name, b.name)
		}
		if o.down {
			return -c
		}
		return c
	})
	o.sort = ""
	for _, c := range f.paths {
		f.t.Step(1)
		info, err := f.t.View.Stat(c.name)
		if err != nil {
			f.fail(c.name, err)
			continue
		}
		f.visit(c.name, info, slices.Contains(o.paths, c.name), func() (io.ReadCloser, error) { return command.Open(f.t, c.name) })
	}
}

// comparePaths compares names by their parts, as a walk meets them.
func comparePaths(a, b string) int {
	return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}

func (f *finder) stdin() {
	in, err := command.Open(f.t, "-")
	if err != nil {
		f.fail("-", err)
		return
	}
	defer in.Close()
	f.search("<stdin>", in, true)
}
