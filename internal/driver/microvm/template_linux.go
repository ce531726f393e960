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
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/guestkernel"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// errNoRoom reports that no template can be kept.
var errNoRoom = errors.New("there is no room for it")

// errNotWhole reports that a template differs from what was saved. It is made again.
var errNotWhole = errors.New("not what was saved")

// Files of a template, and the file with their stamps.
const (
	templatesName = "templates"
	templateState = "state"
	templateIndex = "index" // of the file server; empty in a template
	templateRAM   = "memory"
	templateStamp = "stamps"
	maxTemplates  = 8
)

// openTemplate opens the files of a template. It returns errNotWhole for one that is incomplete, after a full disk or
// a crash of the host, and for one that was changed since it was written.
//
// Boxes of others go on from a template, and each has it open for reading. For an ordinary caller the box's processes
// have the user of the files, so a supervisor that was taken over can open them again for writing. It has no path to
// the file of stamps.
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
	_ = os.Chtimes(dir, now, now) // time of the last use, for makeRoom
	return files[0], files[1], nil
}

// absent reports whether the error of openTemplate means that there is no complete
// template.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotWhole) }

// stamps returns, as text, which files these are, their sizes, and when they were changed last. Nobody can choose that
// time.
func stamps(files []*os.File) (string, error) {
	var text strings.Builder
	for _, f := range files {
		st, err := f.Stat()
		if err != nil {
			return "", err
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok {
			return "", fmt.Errorf("attributes of %s: %w", f.Name(), paddock.Internal)
		}
		fmt.Fprintf(&text, "%d %d %d.%09d\n", st.Size(), sys.Ino, sys.Ctim.Sec, sys.Ctim.Nsec)
	}
	return text.String(), nil
}

// A nascent template is one that a machine is started for. A lock keeps others from making
// the same.
//
// The machine belongs to a box whose creator waits. It is saved after its boot, before it
// knows of a box, and then continues. The box does not wait until the template is on disk.
// Only users of the template wait, and Close.
type nascent struct {
	theirs  boxinit.Files   // for the box: boxinit.FileTemplate and FileWritten
	written <-chan struct{} // closed when the template is written, or never will be
	over    <-chan struct{} // closed when the template can be used, or never will be
}

// newTemplate starts one, unless another process has made it meanwhile.
func newTemplate(ctx context.Context, site *box.Site, dir string, room boxinit.Room) (n *nascent, state, memory *os.File, err error) {
	all := filepath.Dir(dir)
	if err := box.OwnDirectory(all); err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	lock, err := sys.LockDir(ctx, all)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	defer func() {
		if n == nil {
			lock.Close()
		}
	}()
	if state, memory, err = openTemplate(dir); !absent(err) {
		return nil, state, memory, err // another process has made it
	}
	tmp := dir + ".new" // first remove the remains of a killed maker
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
		defer func() { _ = os.RemoveAll(tmp) }() // does not exist if it became the template
		defer box.CloseAll(ours)
		// The pipe ends when the last possible writer has closed it.
		_, err := told.Read(make([]byte, 1))
		told.Close()
		close(written)
		if err == nil {
			_ = settleTemplate(tmp, dir, ours, room) // on an error, the next machine of the shape tries again
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
	if err := errors.Join(os.Remove(filepath.Join(tmp, templateIndex)), os.Rename(tmp, dir)); err != nil {
		return err
	}
	makeRoom(filepath.Dir(dir))
	return nil
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

// makeRoom removes the templates that were unused for longest.
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
		_ = os.RemoveAll(filepath.Join(dir, t.name)) // a process that uses it has it open
	}
}
