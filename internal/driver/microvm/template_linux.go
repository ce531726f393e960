package microvm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/guestkernel"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// errNoRoom says that nothing can be kept here.
var errNoRoom = errors.New("there is no place for it")

// errNotWhole says that a template is not what was saved. It is made again.
var errNotWhole = errors.New("not what was saved")

// Of a template two files are kept, and how long they are.
const (
	templatesName = "templates"
	templateState = "state"
	templateIndex = "index" // of files, of which there are none yet
	templateRAM   = "memory"
	templateSizes = "sizes"
	maxTemplates  = 8
)

// openTemplate gives the files of one. Only its owner could have changed them;
// what a disk that was full or a host that stopped left of one is errNotWhole.
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
	was, _ := os.ReadFile(filepath.Join(dir, templateSizes)) // one that cannot be read is no size
	if is, err := sizes(files); err != nil || is != string(was) {
		box.CloseAll(files)
		return nil, nil, errors.Join(errNotWhole, err)
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // when it was used last, for who makes room
	return files[0], files[1], nil
}

// absent tells of an error of openTemplate that there is none, or none that is whole.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotWhole) }

// sizes says how long files are.
func sizes(files []*os.File) (string, error) {
	var list []int64
	for _, f := range files {
		st, err := f.Stat()
		if err != nil {
			return "", err
		}
		list = append(list, st.Size())
	}
	return fmt.Sprintln(list), nil
}

// A nascent template is one that a machine is started for. Nobody else makes one
// meanwhile.
//
// The machine is a box's that somebody waits for: it is saved when it has started and
// knows of no box yet, and goes on. What it takes to have the template on the disk is
// nobody's to wait for but of who wants it, and of Close.
type nascent struct {
	theirs  boxinit.Files   // what the box gets: boxinit.FileTemplate and FileWritten
	written <-chan struct{} // closed when it is, or never will be
	over    <-chan struct{} // closed when the template is there, or never will be
}

// newTemplate begins one, where nobody has made it meanwhile.
func newTemplate(ctx context.Context, site *box.Site, dir string, room boxinit.Room) (n *nascent, state, memory *os.File, err error) {
	all := filepath.Dir(dir)
	if err := box.OwnDirectory(all); err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	lock, err := kernel.LockDir(ctx, all)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	defer func() {
		if n == nil {
			lock.Close()
		}
	}()
	if state, memory, err = openTemplate(dir); !absent(err) {
		return nil, state, memory, err // somebody else has made it
	}
	tmp := dir + ".new" // what a maker has left that was killed goes first
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(tmp), os.Mkdir(tmp, 0o700)); err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	var ours []*os.File
	var theirs boxinit.Files
	fail := func(err error) (*nascent, *os.File, *os.File, error) {
		box.CloseAll(ours)
		theirs.Close()
		return nil, nil, nil, errors.Join(fmt.Errorf("%w: %w", errNoRoom, err), os.RemoveAll(tmp))
	}
	for _, name := range []string{templateState, templateIndex, templateRAM} { // as guest kernels are saved
		f, err := os.OpenFile(filepath.Join(tmp, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return fail(err)
		}
		ours = append(ours, f)
		if f, err = kernel.Duplicate(f); err != nil {
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
	finish := func(context.Context) { // not cut short: what is written is of use
		defer close(over)
		defer lock.Close()
		defer func() { _ = os.RemoveAll(tmp) }() // which is gone where it became the template
		defer box.CloseAll(ours)
		// It ends without a word when the last has closed it that could write.
		_, err := told.Read(make([]byte, 1))
		told.Close()
		close(written)
		if err == nil {
			_ = settleTemplate(tmp, dir, ours, room) // the next machine of the shape is for one, too
		}
	}
	if !site.Go(finish) {
		told.Close()
		return fail(fmt.Errorf("the driver is closed: %w", paddock.Unavailable))
	}
	return &nascent{theirs: theirs, written: written, over: over}, nil, nil, nil
}

// settleTemplate makes one of what was written in tmp. It is there when it is on the disk.
func settleTemplate(tmp, dir string, files []*os.File, room boxinit.Room) error {
	// The box's init has seen to it, before anything of the box's ran.
	if err := guestkernel.Bounded(files, room.All); err != nil {
		return err
	}
	kept := []*os.File{files[0], files[2]}
	for _, f := range kept {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	long, err := sizes(kept)
	if err = errors.Join(err, os.WriteFile(filepath.Join(tmp, templateSizes), []byte(long), 0o600)); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(filepath.Join(tmp, templateIndex)), os.Rename(tmp, dir)); err != nil {
		return err
	}
	makeRoom(filepath.Dir(dir))
	return nil
}

// slow tells of a box whose limits would have others wait for its machine: it has a
// part of a processor, or writes so fast and no faster.
func slow(l paddock.Limits) bool { return l.CPUs > 0 && l.CPUs < 1 || l.IO > 0 }

// apart starts a machine for a template in a box that nobody uses and that has no such
// limits.
func (d *machinist) apart(ctx context.Context, what need, n *nascent) error {
	if err := d.startApart(ctx, what, n); err != nil {
		return err
	}
	select {
	case <-n.over:
		return nil
	case <-ctx.Done(): // it goes on to the disk, and is for the next
		return fmt.Errorf("wait for it to be on the disk: %w: %w", box.EndKind(ctx.Err()), ctx.Err())
	}
}

func (d *machinist) startApart(ctx context.Context, what need, n *nascent) error {
	starting, stop := context.WithCancel(ctx)
	defer stop()
	var watch sync.WaitGroup
	defer watch.Wait()
	defer n.theirs.Close() // also where there is no box; then nothing more is written
	p, err := d.site.Bare(starting, d.tier, d.bare(what), what.limits)
	if err != nil {
		return err
	}
	defer p.Files.Close()
	p.First.Append(&n.theirs)
	watch.Go(func() {
		<-n.written
		stop() // nobody needs more of it
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

// makeRoom removes the templates that were not used for longest.
func makeRoom(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type kept struct {
		name string
		used time.Time
	}
	var list []kept
	for _, e := range entries {
		if st, err := e.Info(); err == nil && e.IsDir() {
			list = append(list, kept{e.Name(), st.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b kept) int { return b.used.Compare(a.used) })
	for _, t := range list[min(len(list), maxTemplates):] {
		_ = os.RemoveAll(filepath.Join(dir, t.name)) // what uses it has it open
	}
}
