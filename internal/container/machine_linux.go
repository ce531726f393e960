package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/container/inner"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A Machine is a machine for a kernel of the box's own. What runs it stands in
// the box; it needs programs of the host's, and files.
//
// A machine that starts takes long. So the first one of a shape is saved when it
// has started and knows of no box yet, and every box goes on from that template.
type Machine interface {
	// Lack tells what is missing on this host; nil is nothing.
	Lack() *paddock.Finding

	// About says in words what runs machines here; empty where nothing can.
	About() string

	// Supply gives what a box is to be made with.
	Supply(n Need) (*Supply, error)
}

// A Need says what a machine is for.
type Need struct {
	Limits paddock.Limits
	Data   string   // a directory of the caller's alone, for what is made once
	Agent  *os.File // the guest program

	Again         bool     // it goes on from memory of its own, and needs nothing to begin with
	Hold          bool     // to be saved as a template
	State, Memory *os.File // a template to go on from; nil is none
}

// A Supply is what a box with a machine is made with.
type Supply struct {
	Config   json.RawMessage // inner.KernelConfig.Machine
	Files    []*os.File      // inner.KernelFiles.Supplies
	Trees    []inner.Mount   // the host's, to be read only: targets are below inner.Engine
	Made     int64           // bytes that commands can have at most
	Overhead int64           // bytes of memory beside the limit
	Shape    string          // a file name that stands for all that memory of the machine depends on
	About    string          // the same in words
}

// supply gives what a machine with these limits is made with, from a template
// where there is one or one can be made; again is one that goes on from memory of
// its own. Nil is for a kernel without a machine.
func (d *Driver) supply(ctx context.Context, limits paddock.Limits, again bool) (*Supply, error) {
	m := d.machine()
	if m == nil {
		return nil, nil
	}
	if f := m.Lack(); f != nil {
		return nil, &paddock.MissingError{Finding: *f}
	}
	agent, err := d.agent()
	if err != nil {
		return nil, err
	}
	need := Need{Limits: limits, Data: d.hidden, Agent: agent, Again: again}
	cold, err := m.Supply(need)
	if err != nil || again {
		return cold, err
	}
	switch need.State, need.Memory, err = d.template(ctx, need, cold.Shape); {
	case errors.Is(err, errNoRoom) && ctx.Err() == nil:
		return cold, nil // every machine starts by itself
	case err != nil:
		closeAll(cold.Files)
		return nil, fmt.Errorf("make a template: %w", err)
	}
	closeAll(cold.Files)
	return m.Supply(need)
}

// template gives the files of the template of a shape, which is made if need be.
func (d *Driver) template(ctx context.Context, need Need, shape string) (state, memory *os.File, err error) {
	dir := filepath.Join(d.data, templatesName, shape)
	if state, memory, err = openTemplate(dir); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotWhole) {
		return state, memory, err
	}
	if err := d.makeTemplate(ctx, need, dir); err != nil {
		return nil, nil, err
	}
	return openTemplate(dir)
}

// resupply gives what the machine of a saved box goes on with.
func (d *Driver) resupply(ctx context.Context, o *order) ([]*os.File, error) {
	k := o.Layout.Config.Kernel
	u, err := d.supply(ctx, asMade(k, o.Limits), true)
	if u == nil || err != nil {
		return nil, err
	}
	if err := alike(k, &inner.KernelConfig{Shape: u.Shape, About: u.About}); err != nil {
		closeAll(u.Files)
		return nil, err
	}
	k.Machine, k.Supplied = u.Config, len(u.Files)
	return u.Files, nil
}

// errNoRoom says that nothing can be kept here.
var errNoRoom = errors.New("there is no place for it")

// errNotWhole says that a template is not what was saved. It is made again.
var errNotWhole = errors.New("not what was saved")

// Of a template two files are kept, and how long they are.
const (
	templatesName = "templates"
	templateState = "state"
	templateRAM   = "memory"
	templateSizes = "sizes"
	maxTemplates  = 8
)

// openTemplate gives the files of one. Only its owner could have changed them;
// what a disk that was full or a host that stopped left of one is errNotWhole.
func openTemplate(dir string) (state, memory *os.File, err error) {
	if err := errors.Join(checkOwn(filepath.Dir(dir)), checkOwn(dir)); err != nil {
		return nil, nil, err
	}
	var files []*os.File
	for _, name := range []string{templateState, templateRAM} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s: %w", name, errNotWhole)
		}
		if err != nil {
			closeAll(files)
			return nil, nil, err
		}
		files = append(files, f)
	}
	was, _ := os.ReadFile(filepath.Join(dir, templateSizes)) // one that cannot be read is no size
	if is, err := sizes(files); err != nil || is != string(was) {
		closeAll(files)
		return nil, nil, errors.Join(errNotWhole, err)
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // when it was used last, for who makes room
	return files[0], files[1], nil
}

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

// makeTemplate starts a machine in a box that nobody uses, and saves it.
func (d *Driver) makeTemplate(ctx context.Context, need Need, dir string) error {
	all := filepath.Dir(dir)
	if err := ownDirectory(all); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	lock, err := kernel.LockDir(ctx, all)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	defer lock.Close()
	switch state, memory, err := openTemplate(dir); {
	case err == nil:
		closeAll([]*os.File{state, memory})
		return nil // somebody else has made it
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotWhole):
		return err
	}
	tmp := dir + ".new"
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(tmp), os.Mkdir(tmp, 0o700)); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // which is gone where it became the template
	var files []*os.File
	defer func() { closeAll(files) }()
	for _, name := range []string{templateState, "index", templateRAM} { // as memoryParts
		f, err := os.OpenFile(filepath.Join(tmp, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("%w: %w", errNoRoom, err)
		}
		files = append(files, f)
	}
	if err := d.saveHeld(ctx, need, files); err != nil {
		return err
	}
	kept := []*os.File{files[0], files[2]}
	for _, f := range kept { // a template that is there was written
		if err := f.Sync(); err != nil {
			return fmt.Errorf("%w: %w", errNoRoom, err)
		}
	}
	long, err := sizes(kept)
	if err = errors.Join(err, os.WriteFile(filepath.Join(tmp, templateSizes), []byte(long), 0o600)); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	if err := errors.Join(os.Remove(filepath.Join(tmp, "index")), os.Rename(tmp, dir)); err != nil {
		return err
	}
	makeRoom(all)
	return nil
}

// saveHeld starts a machine that waits for its box, and writes it to files.
func (d *Driver) saveHeld(ctx context.Context, need Need, files []*os.File) error {
	need.Hold = true
	s, err := d.plain(need)
	if err != nil {
		return err
	}
	defer closeAll(s.supplies)
	b, conn, err := newBox(ctx, s)
	if err != nil {
		return err
	}
	conn.Close()
	room := b.room(true)
	err = b.save(ctx, inner.OpSave, room, files)
	if err == nil {
		err = bounded(files, room.All)
	}
	return errors.Join(err, b.remove(context.WithoutCancel(ctx)))
}

// plain is how a box is made that nobody asked for: for a trial, or a template.
func (d *Driver) plain(need Need) (start, error) {
	spec := paddock.Spec{ID: newID(), Ephemeral: true}
	id, err := identify(&spec, d.env)
	if err != nil {
		return start{}, err
	}
	l, err := plan(&spec, need.Limits, id, d)
	if err != nil {
		return start{}, err
	}
	exe, err := d.exe()
	if err != nil {
		return start{}, err
	}
	s := start{name: string(spec.ID), argv0: inner.Argv0, layout: l, limits: need.Limits, exe: exe, host: d.host()}
	if d.kernel != nil {
		s.argv0, s.kernel = d.kernel.Argv0, d.kernel
		if s.agent, err = d.agent(); err != nil {
			return start{}, err
		}
	}
	if m := d.machine(); m != nil {
		u, err := m.Supply(need)
		if err != nil {
			return start{}, err
		}
		l.supply, l.hold, s.supplies = u, need.Hold, u.Files
	}
	if err := l.finish(&spec, need.Limits, nil); err != nil {
		closeAll(s.supplies)
		return start{}, err
	}
	l.config.Landlock = landlockFinding().Strength == paddock.Full
	return s, nil
}

// alike refuses to go on from memory of another machine.
func alike(was, now *inner.KernelConfig) error {
	if was.Shape == now.Shape {
		return nil
	}
	return fmt.Errorf("its memory is of another machine, %s; this is %s: %w", was.About, now.About, paddock.Unsupported)
}

// lastWords are why a kernel of the box's own ended, as the box's init tells it:
// its packets stay when it has gone.
func (b *box) lastWords() string {
	if !b.stood.Load() {
		return "" // whoever waits for the box reads them
	}
	data, files, err := b.control.Receive()
	if err != nil {
		// The init ended with something unread, of which the kernel tells first,
		// and once.
		data, files, err = b.control.Receive()
	}
	closeAll(files)
	var r inner.Report
	if err != nil || json.Unmarshal(data, &r) != nil || r.Error == "" {
		return ""
	}
	return ": " + inner.Words(r.Error, inner.MaxWords)
}

// inMachine are the ways of controls that are not those of other kernels.
func inMachine(c paddock.Control) string {
	switch c {
	case paddock.ControlNetNS:
		return "the machine's own; what runs the machine is in a namespace without any interface"
	case paddock.ControlReadOnly:
		return "recursive, by mount_setattr; the system is below a private layer in the machine's memory"
	case paddock.ControlSeccomp:
		return "the emulator's own filter, and the box's deny list around it; a deny list for commands, in the machine"
	case paddock.ControlKeyring:
		return "the machine's own, of which keyctl is refused; what runs the machine is refused every call about the host's"
	case paddock.ControlDisk:
		return "a layer in the machine's memory of that size holds everything private; a writable mount is bounded by its own file system only"
	case paddock.ControlFiles:
		return "RLIMIT_NOFILE, in the machine"
	}
	return ""
}

// makeRoom removes the templates that were not used for longest.
func makeRoom(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type template struct {
		name string
		used time.Time
	}
	var list []template
	for _, e := range entries {
		if st, err := e.Info(); err == nil && e.IsDir() {
			list = append(list, template{e.Name(), st.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b template) int { return b.used.Compare(a.used) })
	for _, t := range list[min(len(list), maxTemplates):] {
		_ = os.RemoveAll(filepath.Join(dir, t.name)) // what uses it has it open
	}
}

// furnish puts what a machine needs into a layout that is for a kernel of the
// box's own.
func (l *layout) furnish() {
	u := l.supply
	if u == nil {
		return
	}
	k := l.config.Kernel
	k.Machine, k.Supplied, k.Overhead, k.Shape = u.Config, len(u.Files), u.Overhead, u.Shape
	k.About, k.Hold, k.Made = u.About, l.hold, u.Made
	l.add(inner.Mount{Kind: inner.MountDir, Target: inner.Engine, Mode: 0o555})
	for _, m := range u.Trees {
		m.Target = inner.Engine + m.Target
		l.add(m)
	}
}
