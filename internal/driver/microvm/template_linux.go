package microvm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/guestkernel"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// errNoRoom reports that no template can be kept.
var errNoRoom = errors.New("there is no room for it")

// errBusy reports that another maker is making the template.
var errBusy = fmt.Errorf("another machine is becoming it: %w", errNoRoom)

// errNotWhole reports that a template differs from what was saved. It is made again.
var errNotWhole = errors.New("not what was saved")

// Files of a template, and the file with their stamps.
const (
	templatesName = "templates"
	templateState = "state"
	templateIndex = "index" // of the file server; empty in a template
	templateRAM   = "memory"
	templateStamp = "stamps"
	newSuffix     = ".new" // of the directory of a template that is being made
)

// A class of templates has places of its own. Callers choose the memory of a sandbox, and each other memory
// is another shape. So one caller could otherwise take the places of everybody's templates.
type class string

const (
	classDefault class = "default" // the shape of a sandbox whose caller sets no limit
	classRound   class = "round"   // memory of 2^n bytes, with the default number of processors
	classOther   class = "other"
)

// places returns how many templates of a class are kept.
func (c class) places() int {
	switch c {
	case classDefault:
		return 2 // that of this version, and of another one that is used beside it
	case classRound:
		return 4
	default:
		return 2
	}
}

// keeps returns how long a template has its place after its last use. Callers cannot choose a new default shape, so
// the newest one has a place at once.
func (c class) keeps() time.Duration {
	if c == classDefault {
		return 0
	}
	return 10 * time.Minute
}

// name returns the name of a template of the class.
func (c class) name(template string) string { return string(c) + "-" + template }

// classOf returns the class of the template in a directory of this name. The names of older versions have none.
func classOf(name string) class {
	prefix, _, _ := strings.Cut(name, "-")
	if c := class(prefix); c == classDefault || c == classRound {
		return c
	}
	return classOther
}

// classFor returns the class of a machine of this many processors, for commands with these limits.
func classFor(l, defaults paddock.Limits, cpus, defaultCPUs int) class {
	switch {
	case l.Memory == defaults.Memory && cpus == defaultCPUs:
		return classDefault
	case l.Memory > 0 && l.Memory&(l.Memory-1) == 0 && cpus == defaultCPUs:
		return classRound
	}
	return classOther
}

// openTemplate opens the files of a template. It returns errNotWhole for one that is incomplete, after a full disk or
// a crash of the host, and for one that was changed since it was written.
//
// Boxes of others go on from a template. For an ordinary caller the box's processes have the user of the files. So a
// box gets the memory only through a read-only mount, and a copy of the state: see showFiles. The stamps are a second
// wall. No box has a path to their file.
func openTemplate(dir string) (state, memory *os.File, err error) {
	if err := errors.Join(box.CheckOwn(filepath.Dir(dir)), box.CheckOwn(dir)); err != nil {
		return nil, nil, err
	}
	var files []*os.File
	for _, name := range []string{templateState, templateRAM} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s: %w", name, errNotWhole)
		}
		if err != nil {
			box.CloseAll(files)
			return nil, nil, err
		}
		files = append(files, f)
	}
	was, _ := os.ReadFile(filepath.Join(dir, templateStamp)) // an unreadable file has no stamps
	if is, err := stamps(files); err != nil || is != string(was) {
		box.CloseAll(files)
		return nil, nil, errors.Join(errNotWhole, err)
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // time of the last use, for makePlace
	return files[0], files[1], nil
}

// absent reports whether the error of openTemplate means that there is no complete
// template.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotWhole) }

// stamps returns the stamps of files as text, a line for each.
func stamps(files []*os.File) (string, error) {
	var text strings.Builder
	for _, f := range files {
		stamp, err := protocol.Stamp(f)
		if err != nil {
			return "", err
		}
		text.WriteString(stamp + "\n")
	}
	return text.String(), nil
}

// A nascent template is one that a machine is started for. A lock keeps others from making
// the same. Templates of other shapes are made meanwhile.
//
// The machine belongs to a box whose creator waits. It is saved after its boot, before it
// knows of a box, and then continues. The box does not wait until the template is on disk.
// Only users of the template wait, and Close.
type nascent struct {
	theirs  boxinit.Files   // for the box: boxinit.FileTemplate and FileWritten
	written <-chan struct{} // closed when the template is written, or never will be
	over    <-chan struct{} // closed when the template can be used, or never will be
}

// newTemplate starts one, unless another process has made it meanwhile. If another is making it, newTemplate waits for
// that, and returns errBusy when patience ends. A nil patience has no end.
func newTemplate(ctx context.Context, site *box.Site, dir string, room boxinit.Room, patience <-chan time.Time) (n *nascent, state, memory *os.File, err error) {
	if err := box.OwnDirectory(filepath.Dir(dir)); err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	lock, state, memory, err := reserve(ctx, dir)
	for errors.Is(err, errBusy) {
		select {
		case <-ctx.Done():
			return nil, nil, nil, fmt.Errorf("wait for the process that makes it: %w: %w", box.EndKind(ctx.Err()), ctx.Err())
		case <-patience:
			return nil, nil, nil, err
		case <-time.After(20 * time.Millisecond):
			lock, state, memory, err = reserve(ctx, dir)
		}
	}
	if lock == nil {
		return nil, state, memory, err
	}
	defer func() {
		if n == nil {
			lock.Close()
		}
	}()
	tmp := dir + newSuffix
	var ours []*os.File
	var theirs boxinit.Files
	fail := func(err error) (*nascent, *os.File, *os.File, error) {
		box.CloseAll(ours)
		theirs.Close()
		return nil, nil, nil, errors.Join(fmt.Errorf("%w: %w", errNoRoom, err), os.RemoveAll(tmp))
	}
	for _, name := range []string{templateState, templateIndex, templateRAM} { // the files of a saved guest kernel
		f, err := os.OpenFile(filepath.Join(tmp, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return fail(err)
		}
		ours = append(ours, f)
		if f, err = sys.Duplicate(f); err != nil {
			return fail(err)
		}
		theirs.Add(boxinit.FileTemplate, f)
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	theirs.Add(boxinit.FileWritten, tell)
	written, over := make(chan struct{}), make(chan struct{})
	finish := func(context.Context) { // not canceled, because the template is useful to others
		defer close(over)
		defer lock.Close()
		defer box.CloseAll(ours)
		// The pipe ends when the last possible writer has closed it.
		_, err := told.Read(make([]byte, 1))
		told.Close()
		close(written)
		if err == nil {
			err = settleTemplate(tmp, dir, ours, room)
		}
		if err != nil {
			_ = os.RemoveAll(tmp) // the next machine of the shape tries again
		}
	}
	if !site.Go(finish) {
		told.Close()
		return fail(fmt.Errorf("the driver is closed: %w", paddock.Unavailable))
	}
	return &nascent{theirs: theirs, written: written, over: over}, nil, nil, nil
}

// settleTemplate makes a template from the files in tmp. It can be used when it is on disk.
func settleTemplate(tmp, dir string, files []*os.File, room boxinit.Room) error {
	// The box's init has checked this before any code of the box ran.
	if err := guestkernel.Bounded(files, room.All); err != nil {
		return err
	}
	kept := []*os.File{files[0], files[2]}
	for _, f := range kept {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	now, err := stamps(kept)
	if err = errors.Join(err, os.WriteFile(filepath.Join(tmp, templateStamp), []byte(now), 0o600)); err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(tmp, templateIndex)), os.Rename(tmp, dir))
}

// bootTime is how long a box waits for a template of its shape before its machine boots by itself. Most templates are
// there by then. A burst of boots, each slower for the others, would take longer than one boot and a restore for each
// of the others. Boxes of other shapes do not wait.
const bootTime = 5 * time.Second

// patience returns the end of the wait for a template of its shape. A box that would boot slowly waits without end.
func patience(l paddock.Limits) <-chan time.Time {
	if slow(l) {
		return nil
	}
	return time.After(bootTime)
}

// slow reports whether limits would delay a machine so much that others must not wait for
// it: a fraction of a processor, or a limit of I/O.
func slow(l paddock.Limits) bool { return l.CPUs > 0 && l.CPUs < 1 || l.IO > 0 }

// apart starts a machine only for the template, in a box without such limits.
func (d *machinist) apart(ctx context.Context, what need, n *nascent) error {
	if err := d.startApart(ctx, what, n); err != nil {
		return err
	}
	select {
	case <-n.over:
		return nil
	case <-ctx.Done(): // writing continues, for the next box
		return fmt.Errorf("wait until it is on disk: %w: %w", box.EndKind(ctx.Err()), ctx.Err())
	}
}

func (d *machinist) startApart(ctx context.Context, what need, n *nascent) error {
	starting, stop := context.WithCancel(ctx)
	defer stop()
	var watch sync.WaitGroup
	defer watch.Wait()
	defer n.theirs.Close() // also without a box; then nothing more is written
	p, err := d.site.Bare(starting, d.tier, d.bare(what), what.limits)
	if err != nil {
		return err
	}
	defer p.Files.Close()
	p.First.Append(&n.theirs)
	watch.Go(func() {
		<-n.written
		stop() // the box is no longer needed
	})
	b, conn, err := box.Make(starting, *p)
	if err == nil {
		conn.Close()
		return b.Remove(context.WithoutCancel(ctx))
	}
	if ctx.Err() == nil && starting.Err() != nil {
		return nil // it was stopped
	}
	return err
}

// reserveTime bounds the wait for the list of templates. No one holds its lock for long.
const reserveTime = 5 * time.Second

// reserve makes the directory in which a template will be written, and locks it. It returns the files of the template
// if that exists, errBusy if another maker has the lock, and errNoRoom if every place has a template that is in use.
//
// The lock of the list of all templates is held for a moment only, and never while a machine boots or is written.
func reserve(ctx context.Context, dir string) (lock, state, memory *os.File, err error) {
	all, tmp := filepath.Dir(dir), dir+newSuffix
	soon, cancel := context.WithTimeout(ctx, reserveTime)
	defer cancel()
	list, err := sys.LockDir(soon, all)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	defer list.Close()
	if state, memory, err = openTemplate(dir); !absent(err) {
		return nil, state, memory, err // another process has made it
	}
	if held(tmp) {
		return nil, nil, nil, errBusy
	}
	if !makePlace(all, filepath.Base(dir), time.Now()) {
		return nil, nil, nil, fmt.Errorf("every place for templates is in use: %w", errNoRoom)
	}
	// First remove the remains of a killed maker.
	err = errors.Join(os.RemoveAll(dir), os.RemoveAll(tmp), os.Mkdir(tmp, 0o700))
	if err == nil {
		lock, err = sys.TryLockDir(tmp)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return lock, nil, nil, nil
}

// held reports whether a template is being made in a directory.
func held(tmp string) bool {
	lock, err := sys.TryLockDir(tmp)
	if err == nil {
		lock.Close()
	}
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}

// makePlace makes a place for a template of this name, by removing templates of its class whose time is over. It
// returns false if there is no place. The list of templates is locked.
func makePlace(dir, name string, now time.Time) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	type kept struct {
		path string
		used time.Time
	}
	var list []kept
	c, taken := classOf(name), 0
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		st, err := e.Info()
		switch {
		case err != nil || !e.IsDir() || e.Name() == name || e.Name() == name+newSuffix || classOf(e.Name()) != c:
		case !strings.HasSuffix(path, newSuffix):
			list = append(list, kept{path, st.ModTime()})
		case held(path):
			taken++
		default:
			_ = os.RemoveAll(path) // its maker was killed
		}
	}
	slices.SortFunc(list, func(a, b kept) int { return b.used.Compare(a.used) })
	for len(list)+taken >= c.places() {
		if len(list) == 0 {
			return false
		}
		last := list[len(list)-1]
		if unused := now.Sub(last.used); unused >= 0 && unused < c.keeps() {
			return false
		}
		_ = os.RemoveAll(last.path) // a process that uses it has it open
		list = list[:len(list)-1]
	}
	return true
}
