package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A box is one simulated computer.
type box struct {
	d        *Driver
	id       paddock.ID
	created  time.Time
	kernel   *kernel.Kernel
	fs       *vfs.FS
	mounts   []mounted
	accounts []account
	user     account
	dir      string
	from     paddock.SnapshotID // that it began with, or empty
	env      map[string]string
	enforced []paddock.Finding
	rules    atomic.Pointer[decide.Rules] // of the network; nil is none

	// gate is held for reading by every call into the box, and for writing to
	// pause and to end it.
	gate   sync.RWMutex
	paused bool // guarded by gate
	gone   bool // guarded by gate

	ending sync.Mutex // held by whoever removes it
	empty  bool       // guarded by ending: nothing runs, and nothing is held

	mu        sync.Mutex
	spec      paddock.Spec             // guarded by mu: as asked for, with later changes
	limits    paddock.Limits           // guarded by mu
	asked     paddock.Limits           // guarded by mu: limits, without the defaults
	labels    map[string]string        // guarded by mu
	processes map[paddock.PID]*process // guarded by mu
	ended     []*process               // guarded by mu: oldest first
	refused   []paddock.Refusal        // guarded by mu
	traffic   traffic
	watchers  map[*watcher]bool // guarded by mu
	cpu       time.Duration     // guarded by mu: of processes that are forgotten
}

// keptProcesses is how many ended processes are remembered at most, with their output.
const keptProcesses = 100

// make builds the computer that a checked spec asks for.
func (d *Driver) make(spec paddock.Spec) (_ *box, err error) {
	b := &box{
		d: d, id: spec.ID, spec: spec, created: time.Now(), labels: maps.Clone(spec.Labels),
		processes: map[paddock.PID]*process{}, watchers: map[*watcher]bool{}, enforced: description.Controls(d.o.Walls), accounts: accounts(), from: spec.Root.Snapshot,
	}
	if b.user, err = find(b.accounts, spec.User); err != nil {
		return nil, err
	}
	told, counted := description.Limits(d.bounds(), spec.Limits)
	b.limits, b.asked = told, spec.Limits
	tree, roots, err := d.root(spec, fileBounds(counted))
	if err != nil {
		return nil, err
	}
	b.mounts = roots
	b.fs = tree.FS(fileBounds(counted))
	hostname := spec.Hostname
	if hostname == "" {
		hostname = "paddock"
	}
	dial, err := b.network(spec.Policy.Network)
	if err != nil {
		return nil, err
	}
	b.kernel = kernel.New(kernel.Options{
		FS: b.fs, Limits: counted, Programs: d.programs.find, Hostname: hostname, Refused: b.refuse, CPUs: told.CPUs, Dial: dial,
		ProcessorTime: processorTime, Patience: d.o.Patience,
	})
	defer func() {
		if err != nil {
			err = errors.Join(err, b.end())
		}
	}()
	if err := b.furnish(hostname); err != nil {
		return nil, fmt.Errorf("prepare the files: %w", err)
	}
	for _, m := range spec.Mounts {
		if err := b.mount(m); err != nil {
			return nil, err
		}
	}
	if err := b.policy(spec.Policy.Files); err != nil {
		return nil, err
	}
	if err := b.place(spec); err != nil {
		return nil, err
	}
	b.env = map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": b.user.home, "USER": b.user.name, "LOGNAME": b.user.name,
		"SHELL": "/bin/bash", "TERM": "xterm-256color", "LANG": "C.UTF-8", "TMPDIR": "/tmp",
	}
	maps.Copy(b.env, spec.Env)
	return b, nil
}

// place finds the working directory.
func (b *box) place(spec paddock.Spec) error {
	b.dir = spec.Dir
	if b.dir == "" {
		for _, m := range b.mounts {
			if m.dir {
				b.dir = m.target
				break
			}
		}
	}
	if b.dir == "" {
		b.dir = b.user.home
	}
	b.dir = path.Clean(b.dir)
	v := b.view(b.user)
	if err := v.Chdir(b.dir); err != nil {
		return fmt.Errorf("directory %s: %s: %w", b.dir, vfs.Message(err), paddock.NotFound)
	}
	return nil
}

func (b *box) view(a account) vfs.View {
	return vfs.View{FS: b.fs, Dir: vfs.Root, UID: a.uid, GID: a.gid, Umask: 0o022}
}

// enter begins a call; the caller ends it with b.gate.RUnlock if there is no
// error.
func (b *box) enter() error {
	b.gate.RLock()
	switch {
	case b.gone:
		b.gate.RUnlock()
		return fmt.Errorf("sandbox %s was removed: %w", b.id, paddock.Unavailable)
	case b.paused:
		b.gate.RUnlock()
		return fmt.Errorf("sandbox %s is paused: %w", b.id, paddock.Conflict)
	}
	return nil
}

func (b *box) ID() paddock.ID { return b.id }

// Spec implements [paddock.Specified].
func (b *box) Spec(context.Context) (paddock.Spec, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	spec := b.spec
	spec.Limits = b.asked
	return spec, nil
}

// Born is false: Create and Open return the same sandbox, and asking it costs nothing.
func (*box) Born() (paddock.Status, bool) { return paddock.Status{}, false }

func (b *box) Status(context.Context) (paddock.Status, error) {
	b.gate.RLock()
	defer b.gate.RUnlock()
	if b.gone {
		return paddock.Status{}, fmt.Errorf("sandbox %s was removed: %w", b.id, paddock.Unavailable)
	}
	state := paddock.Ready
	if b.paused {
		state = paddock.Paused
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	used, _, _, _ := b.fs.Usage()
	heap := b.kernel.Heap()
	cpu := b.cpu
	for _, p := range b.processes {
		cpu += p.run.Busy()
	}
	return paddock.Status{
		ID: b.id, Tier: paddock.Sim, State: state, Created: b.created, User: b.user.name, Dir: b.dir, Limits: b.limits,
		Labels: maps.Clone(b.labels), Enforced: slices.Clone(b.enforced), Refused: slices.Clone(b.refused),
		Usage: paddock.Usage{
			Wall: time.Since(b.created), CPU: cpu, Memory: heap.Used() + used, MemoryPeak: max(heap.Peak(), heap.Used()) + used,
			PIDs: len(b.kernel.Tasks()),
		},
		Traffic: b.traffic.now(),
	}, nil
}

func (b *box) FS() paddock.FS { return &files{b: b} }

func (b *box) Dial(context.Context, int) (net.Conn, error) {
	return nil, fmt.Errorf("nothing on a simulated computer listens: %w", paddock.Unsupported)
}

func (b *box) Pause(context.Context) error {
	b.gate.Lock()
	defer b.gate.Unlock()
	if b.gone {
		return fmt.Errorf("sandbox %s was removed: %w", b.id, paddock.Unavailable)
	}
	b.paused = true
	b.kernel.Pause()
	return nil
}

func (b *box) Resume(context.Context) error {
	b.gate.Lock()
	defer b.gate.Unlock()
	if b.gone {
		return fmt.Errorf("sandbox %s was removed: %w", b.id, paddock.Unavailable)
	}
	b.paused = false
	b.kernel.Resume()
	return nil
}

// Update changes the limits first, because what is in use can forbid that.
func (b *box) Update(_ context.Context, u paddock.Update) error {
	if err := b.enter(); err != nil {
		return err
	}
	defer b.gate.RUnlock()
	var rules *decide.Rules
	if u.Policy != nil {
		if err := b.d.checkPolicy(*u.Policy); err != nil {
			return err
		}
		var err error
		if rules, err = b.newRules(u.Policy.Network); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if u.Limits != nil {
		if err := b.relimit(*u.Limits); err != nil {
			return err
		}
	}
	if u.Policy != nil {
		if err := b.policy(u.Policy.Files); err != nil {
			return err
		}
		b.rules.Store(rules)
		b.spec.Policy = *u.Policy
	}
	if u.Labels != nil {
		b.labels = maps.Clone(u.Labels)
	}
	return nil
}

// relimit changes the limits, unless more memory or disk is in use than the new ones permit. Otherwise
// admission reserves less memory than the sandbox holds. The caller holds mu.
func (b *box) relimit(l paddock.Limits) error {
	if err := description.CheckLimits(l); err != nil {
		return err
	}
	return b.replace(description.Changed(b.asked, l))
}

// Replace changes the limits like Update, but a limit that is zero gets its default, and is not kept.
func (b *box) Replace(l paddock.Limits) error {
	if err := b.enter(); err != nil {
		return err
	}
	defer b.gate.RUnlock()
	if err := description.CheckLimits(l); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.replace(l)
}

// replace makes limits, which were checked, those of the sandbox. The caller holds mu.
func (b *box) replace(l paddock.Limits) error {
	told, counted := description.Limits(b.d.bounds(), l)
	if files, ok := b.fs.Fit(fileBounds(counted)); !ok {
		return fmt.Errorf("change limits: the files take %d bytes, and the new disk limit is %d; remove files first: %w", files, counted.Disk, paddock.Conflict)
	}
	if heap := b.kernel.Heap(); !heap.Fit(counted.Heap) {
		_, before := description.Limits(b.d.bounds(), b.asked)
		b.fs.Relimit(fileBounds(before))
		return fmt.Errorf("change limits: %d bytes of memory are in use, and the new limit is %d; end processes first: %w", heap.Used(), counted.Heap, paddock.Conflict)
	}
	b.kernel.Relimit(counted, told.CPUs)
	b.limits, b.asked = told, l
	return nil
}

// Remove ends everything on the computer. It fails where a command cannot be
// ended, and may then be called again.
func (b *box) Remove(context.Context) error {
	b.gate.Lock()
	gone := b.gone
	b.gone = true
	b.gate.Unlock()
	b.ending.Lock()
	defer b.ending.Unlock()
	if gone && b.empty {
		return nil
	}
	if err := b.end(); err != nil {
		return fmt.Errorf("remove sandbox %s: %w: end this process: %w", b.id, err, paddock.Unavailable)
	}
	b.empty = true
	b.d.boxes.Forget(b.id)
	return nil
}

// end stops everything and lets go of the host's directories. If something
// cannot be stopped, it keeps those.
func (b *box) end() error {
	b.mu.Lock()
	list := slices.Collect(maps.Values(b.processes))
	b.mu.Unlock()
	b.kernel.Stop(errGone{}) // also scripts of sessions, and what commands left behind
	stuck := b.kernel.Close()
	for _, p := range list {
		p.out.Close()
		p.closeInput()
	}
	b.mu.Lock()
	watching := slices.Collect(maps.Keys(b.watchers))
	b.mu.Unlock()
	for _, w := range watching {
		_ = w.Close()
	}
	if stuck != nil {
		return stuck
	}
	for _, m := range b.mounts {
		m.root.drop()
	}
	return nil
}

// An errGone stops the runs of a sandbox that is removed.
type errGone struct{}

func (errGone) Error() string { return "the sandbox was removed" }

// maxRefused is how many refusals Status tells.
const maxRefused = 1000

// refuse notes what a task tried and may not.
func (b *box) refuse(what, target, rule string) {
	b.note(paddock.Refusal{What: what, Target: target, Rule: rule})
}

// note keeps a refusal, with others that are alike.
func (b *box) note(n paddock.Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n.Time, n.Count = time.Now(), 1
	for i := len(b.refused) - 1; i >= 0; i-- {
		r := &b.refused[i]
		if r.What == n.What && r.Target == n.Target && r.Rule == n.Rule {
			r.Count++
			r.Time = n.Time
			return
		}
	}
	if len(b.refused) >= maxRefused {
		b.refused = slices.Delete(b.refused, 0, 1)
	}
	b.refused = append(b.refused, n)
}
