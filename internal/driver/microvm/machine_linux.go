package microvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/guestkernel"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A need describes a machine to supply.
type need struct {
	limits paddock.Limits
	data   string   // private directory of the caller, for what is made once
	agent  *os.File // the guest program

	again         bool     // restored from its own memory, so it needs no boot files
	state, memory *os.File // template to restore from, or nil
}

// A supply is what a box with a machine is made with.
type supply struct {
	config   json.RawMessage // boxinit.GuestKernelConfig.Machine
	files    boxinit.Files   // boxinit.GuestKernelFiles.Supplies
	trees    []boxinit.Mount // read-only parts of the host's tree, with targets below boxinit.Engine
	made     int64           // maximum bytes of memory for commands
	overhead int64           // bytes of memory beyond the limit
	shape    string          // identifies what a restored machine's memory depends on
	about    string          // the shape as text
	template string          // file name for the shape, the build of the engine and the processor

	first boxinit.Files // files to save this machine as template (boxinit.FileTemplate, FileWritten); empty if not
}

// close closes the files of an unused supply.
func (u *supply) close() {
	u.files.Close()
	u.first.Close()
}

// A machinist prepares boxes with machines.
//
// A machine takes long to boot. So the first machine of a shape is saved as a template when
// it has booted, before it belongs to a box. Later boxes restore that template.
type machinist struct {
	*supplier
	site  *box.Site
	store *guestkernel.Store
	tier  *box.Tier
}

// Draft implements box.Drafter.
func (d *machinist) Draft(spec *paddock.Spec) (box.Draft, error) {
	if err := guestkernel.Refuse(spec, false); err != nil {
		return box.Draft{}, err
	}
	var u *supply
	return d.store.Draft(spec, func(ctx context.Context, p *box.Plan, from *guestkernel.Beginning) (err error) {
		was := from.Memory()
		// Do this last, because others of its shape may wait for the template that it
		// becomes.
		if u, err = d.prepare(ctx, asMade(was, p.Limits), was != nil); err != nil {
			return err
		}
		u.join(p)
		return nil
	}, func(l *box.Layout) { u.furnish(l) })
}

// trialMemory is the memory of a trial machine in bytes.
const trialMemory = 128 << 20

// Trial implements box.Drafter.
func (d *machinist) Trial() (box.Draft, paddock.Limits, *box.Failure) {
	limits := box.Defaults()
	limits.Memory = trialMemory
	if f := d.Lack(); f != nil {
		return box.Draft{}, limits, &box.Failure{Cause: f.Cause, Remedy: f.Remedy}
	}
	agent, err := d.store.Agent()
	if err != nil {
		return box.Draft{}, limits, &box.Failure{Cause: err.Error()}
	}
	return d.bare(need{limits: limits, data: d.site.Hidden, agent: agent}), limits, nil
}

// bare drafts a box for the driver's own use.
func (d *machinist) bare(n need) box.Draft {
	var u *supply
	return d.store.Bare(&paddock.Spec{}, func(_ context.Context, p *box.Plan) (err error) {
		if u, err = d.supply(n); err != nil {
			return err
		}
		u.join(p)
		return nil
	}, func(l *box.Layout) { u.furnish(l) })
}

// prepare returns the supply of a machine with these limits. The machine is restored from a
// template, becomes the template, or boots by itself. again means that it is restored from
// its own memory.
func (d *machinist) prepare(ctx context.Context, limits paddock.Limits, again bool) (*supply, error) {
	if f := d.Lack(); f != nil {
		return nil, &paddock.MissingError{Finding: *f}
	}
	agent, err := d.store.Agent()
	if err != nil {
		return nil, err
	}
	n := need{limits: limits, data: d.site.Hidden, agent: agent, again: again}
	cold, err := d.supply(n)
	if err != nil || again {
		return cold, err
	}
	room := boxinit.Room{All: limits.Memory + cold.overhead + guestkernel.Overhead} // as for a box
	dir := filepath.Join(d.site.Data, templatesName, cold.template)
	for made := false; ; made = true {
		n.state, n.memory, err = openTemplate(dir)
		var t *nascent
		if absent(err) && !made {
			t, n.state, n.memory, err = newTemplate(ctx, d.site, dir, room, patience(limits))
		}
		switch {
		case t != nil && !slow(limits):
			cold.first = t.theirs
			return cold, nil
		case t != nil:
			if err := d.apart(ctx, n, t); err != nil {
				cold.close()
				return nil, fmt.Errorf("make a template: %w", err)
			}
		case err == nil:
			cold.close()
			return d.supply(n)
		case (absent(err) || errors.Is(err, errNoRoom)) && ctx.Err() == nil:
			return cold, nil // this machine boots by itself
		default:
			cold.close()
			return nil, fmt.Errorf("make a template: %w", err)
		}
	}
}

// resupply returns the files for restoring a saved box, and completes the order.
func (d *machinist) resupply(ctx context.Context, o *box.Order) (boxinit.Files, error) {
	k := o.Layout.Config.GuestKernel
	u, err := d.prepare(ctx, asMade(k, o.Limits), true)
	if err != nil {
		return boxinit.Files{}, err
	}
	if err := guestkernel.Alike(k, &boxinit.GuestKernelConfig{Shape: u.shape, About: u.about}); err != nil {
		u.close()
		return boxinit.Files{}, err
	}
	k.Machine = u.config
	return u.files, nil
}

// join adds the files to a plan, which closes them.
func (u *supply) join(p *box.Plan) {
	p.Files.Append(&u.files)
	p.First.Append(&u.first)
	p.Layout.Reserve = u.overhead
}

// furnish adds what a machine needs to the layout of a box.
func (u *supply) furnish(l *box.Layout) {
	k := l.Config.GuestKernel
	k.Machine, k.Overhead, k.Shape, k.About, k.Made = u.config, u.overhead, u.shape, u.about, u.made
	l.Add(boxinit.Mount{Kind: boxinit.MountDir, Target: boxinit.Engine, Mode: 0o555})
	for _, m := range u.trees {
		m.Target = boxinit.Engine + m.Target
		l.Add(m)
	}
}

// configure makes the box's init save the machine as template if it is the first of its
// shape. The initrd of the machine has the agent.
func configure(b *box.Box, c *box.Configuration) error {
	if b.Plan().First.One(boxinit.FileWritten) != nil {
		c.Layout.Config.GuestKernel.Room = boxinit.Room{All: memoryOf(b) + guestkernel.Overhead}
	}
	return b.Impossible(showFiles(c))
}

// showFiles mounts the machine's files read-only in a box whose user owns them, and does not send their descriptors.
// Whoever takes over the box's init could open those again, for writing, by their names in /proc. A copy in memory is
// sealed and is sent, and so is every file to a box of a root caller, whose user owns none.
func showFiles(c *box.Configuration) error {
	if c.Layout.ID.Root {
		return nil
	}
	var sent boxinit.Files
	for i, f := range c.Files.All() {
		name := c.Files.Names()[i]
		place := protocol.Place(name)
		if place != "" && c.Layout.Config.GuestKernel.Memory {
			continue // the machine of before began from it; this one goes on from its own memory
		}
		if place == "" || inMemory(f) {
			sent.Add(name, f)
			continue
		}
		switch shown, err := guestkernel.ShowFile(c, f, boxinit.Engine+place); {
		case err != nil:
			return err
		case shown:
		default:
			return fmt.Errorf("a file of the machine (%s) was removed while the sandbox was made; make it again: %w", name, paddock.Unavailable)
		}
	}
	c.Files = sent
	return nil
}

// inMemory reports whether a file is a copy in memory.
func inMemory(f *os.File) bool {
	fd, err := sys.Descriptor(f)
	if err != nil {
		return false
	}
	path, err := sys.PathOf(fd)
	return err == nil && strings.HasPrefix(path, "/memfd:")
}

// memoryOf returns the host's memory limit of a box at its creation, whatever its present
// limit.
func memoryOf(b *box.Box) int64 {
	l := b.Limits()
	l.Memory = made(b)
	return b.Plan().Runtime.Limiter.HostLimits(b.Plan().Layout, l).Memory
}

// made returns the maximum memory of a box's commands in bytes.
func made(b *box.Box) int64 {
	p := b.Plan()
	return asMade(p.Layout.Config.GuestKernel, p.Limits).Memory
}

// words returns the descriptions of controls that differ from those of other guest kernels.
func words() map[paddock.Control]string {
	return map[paddock.Control]string{
		paddock.ControlNetNS:    "the machine's own; what runs the machine is in a namespace without any interface",
		paddock.ControlReadOnly: "recursive, by mount_setattr; the system is below a private layer in the machine's memory",
		paddock.ControlSeccomp:  "the emulator's own filter, and the box's deny list around it; a deny list for commands, in the machine",
		paddock.ControlKeyring:  "the machine's own, of which keyctl is refused; what runs the machine is refused every call about the host's",
		paddock.ControlDisk:     "a layer in the machine's memory of that size holds everything private; a writable mount is bounded by its own file system only",
		paddock.ControlFiles:    "RLIMIT_NOFILE, in the machine",
	}
}
