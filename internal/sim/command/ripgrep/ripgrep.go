// Package ripgrep is rg: it searches directories for patterns and skips hidden
// files, binary files and what .gitignore and similar files name. Results are
// sorted by path.
package ripgrep

import (
	"errors"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command { return []command.Command{{Name: "rg", Run: run}} }

// Statuses besides 0, which is that there was a match.
const (
	nothing = 1
	trouble = 2
)

// A meter charges a task; what it cannot pay ends the task.
type meter struct{ t *kernel.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}

// A finder is the state of rg.
type finder struct {
	filter
	searcher
	re  *regex.Regexp
	out *command.Writer

	matched, failed bool
	total           stats

	paths []candidate // where they are to be sorted
}

func run(t *kernel.Task) int {
	o, status, ok := parse(t)
	if !ok {
		return status
	}
	f := &finder{filter: filter{t: t, o: o}, out: command.StdoutStatus(t, trouble)}
	defer f.close()
	if err := f.prepare(); err != nil {
		t.Errorf("%s", err)
		return trouble
	}
	switch {
	case o.typeList:
		f.listTypes(f.out)
		return 0
	case !o.listing:
		re, err := compile(t, o)
		if err != nil {
			t.Errorf("%s", err)
			return trouble
		}
		f.re = re
	}
	if o.max == 0 && !o.listing {
		return nothing
	}
	return f.all()
}

// all searches everything that was named and gives the status.
func (f *finder) all() int {
	o := f.o
	paths := o.paths
	implicit := len(paths) == 0
	if implicit {
		paths = []string{"./"}
		if !o.listing && f.readable() {
			paths = []string{"-"}
		}
	}
	o.named = o.names > 0 || o.names == 0 && (len(paths) > 1 || o.vimgrep || f.several(paths[0]))
	for _, path := range paths {
		f.root(path, implicit)
		if o.quiet && f.matched && !o.stats {
			break
		}
	}
	f.sorted()
	if o.json {
		f.summary()
	} else if o.stats {
		f.total.print(f.out) //nolint:forbidigo // a method
	}
	switch {
	case f.matched && (o.quiet || !f.failed):
		return 0
	case f.failed:
		return trouble
	case f.matched:
		return 0
	}
	return nothing
}

func (f *finder) several(path string) bool {
	if path == "-" {
		return false
	}
	i, err := f.t.View.Stat(path)
	return err == nil && i.IsDir()
}

// readable says whether standard input is what people mean who name no file:
// a pipe or a file, and not a terminal or a device.
func (f *finder) readable() bool {
	d := f.t.FD(0)
	if d == nil {
		return false
	}
	if _, ok := d.File.(kernel.Terminal); ok {
		return false
	}
	i, err := d.File.Info()
	if err != nil {
		return false
	}
	switch i.Mode & linux.S_IFMT {
	case linux.S_IFREG, linux.S_IFIFO, linux.S_IFSOCK:
		return true
	}
	return false
}

func (f *finder) fail(name string, err error) {
	f.failed = true
	if f.o.silent {
		return
	}
	var e linux.Errno
	if errors.As(err, &e) {
		f.t.Errorf("%s: %s (os error %d)", name, vfs.Message(err), int(e))
		return
	}
	f.t.Errorf("%s: %s", name, err)
}
