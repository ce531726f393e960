package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// A Machine is a machine for a kernel of the box's own. What runs it stands in
// the box; it needs programs of the host's, and files.
//
// A machine that starts takes long. So the first one of a shape is saved when it
// has started and knows of no box yet, and every later box goes on from that template.
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
	State, Memory *os.File // a template to go on from; nil is none
}

// A Supply is what a box with a machine is made with.
type Supply struct {
	Config   json.RawMessage // boxinit.KernelConfig.Machine
	Files    []*os.File      // boxinit.KernelFiles.Supplies
	Trees    []boxinit.Mount // the host's, to be read only: targets are below boxinit.Engine
	Made     int64           // bytes that commands can have at most
	Overhead int64           // bytes of memory beside the limit
	Shape    string          // stands for what memory of the machine is compared by when it goes on
	About    string          // the same in words
	Template string          // a file name that stands for the shape, the build of the engine, and the processor that it gives

	template []*os.File // takes the first one of its shape (boxinit.TemplateFiles); nil is not it
}

// supply gives what a machine with these limits is made with, from a template
// where there is one, or is to become one; again is one that goes on from memory of
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
	room := boxinit.Room{All: limits.Memory + cold.Overhead + overhead} // as box.room
	dir := filepath.Join(d.data, templatesName, cold.Template)
	for made := false; ; made = true {
		need.State, need.Memory, err = openTemplate(dir)
		var n *nascent
		if absent(err) && !made {
			n, need.State, need.Memory, err = d.newTemplate(ctx, dir, room)
		}
		switch {
		case n != nil && !slow(limits):
			cold.template = n.theirs
			return cold, nil
		case n != nil:
			if err := d.apart(ctx, need, n); err != nil {
				closeAll(cold.Files)
				return nil, fmt.Errorf("make a template: %w", err)
			}
		case err == nil:
			closeAll(cold.Files)
			return m.Supply(need)
		case (absent(err) || errors.Is(err, errNoRoom)) && ctx.Err() == nil:
			return cold, nil // this machine starts by itself
		default:
			closeAll(cold.Files)
			return nil, fmt.Errorf("make a template: %w", err)
		}
	}
}

// resupply gives what the machine of a saved box goes on with.
func (d *Driver) resupply(ctx context.Context, o *order) ([]*os.File, error) {
	k := o.Layout.Config.Kernel
	u, err := d.supply(ctx, asMade(k, o.Limits), true)
	if u == nil || err != nil {
		return nil, err
	}
	if err := alike(k, &boxinit.KernelConfig{Shape: u.Shape, About: u.About}); err != nil {
		closeAll(u.Files)
		return nil, err
	}
	k.Machine, k.Supplied = u.Config, len(u.Files)
	return u.Files, nil
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
	s := start{name: string(spec.ID), argv0: boxinit.Argv0, layout: l, limits: need.Limits, exe: exe, host: d.host()}
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
		l.supply, s.supplies = u, u.Files
	}
	if err := l.finish(&spec, need.Limits, nil); err != nil {
		closeAll(s.supplies)
		return start{}, err
	}
	l.config.Landlock = landlockFinding().Strength == paddock.Full
	return s, nil
}

// alike refuses to go on from memory of another machine.
func alike(was, now *boxinit.KernelConfig) error {
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
	var r boxinit.Report
	if err != nil || json.Unmarshal(data, &r) != nil || r.Error == "" {
		return ""
	}
	return ": " + boxinit.Words(r.Error, boxinit.MaxWords)
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

// furnish puts what a machine needs into a layout that is for a kernel of the
// box's own.
func (l *layout) furnish() {
	u := l.supply
	if u == nil {
		return
	}
	k := l.config.Kernel
	k.Machine, k.Supplied, k.Overhead, k.Shape = u.Config, len(u.Files), u.Overhead, u.Shape
	k.About, k.Made = u.About, u.Made
	l.add(boxinit.Mount{Kind: boxinit.MountDir, Target: boxinit.Engine, Mode: 0o555})
	for _, m := range u.Trees {
		m.Target = boxinit.Engine + m.Target
		l.add(m)
	}
}
