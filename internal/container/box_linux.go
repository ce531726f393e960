package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/container/inner"
	"github.com/paddock-sandbox/paddock/internal/egress/way"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A meter bounds and measures a box: a control group, or where there is none
// a watchdog.
type meter interface {
	Usage() (paddock.Usage, error)
	OOM() (kills, peak int64, err error)
	PIDsHit() (int64, error)
	Update(l paddock.Limits, paths ...string) error
	Remove(ctx context.Context) error
}

// A box is the processes of one sandbox, as their owner has them.
type box struct {
	created time.Time
	id      identity
	control *kernel.Channel // to the box's init; its end is the box's end
	pid     int
	first   int                                 // the limit of processes that it was made with
	nested  bool                                // commands run on a kernel of its own
	machine bool                                // and that in a machine of its own
	hosted  func(paddock.Limits) paddock.Limits // limits as the host has to bound them
	made    int64                               // memory that it was made with, bytes
	group   *cgroup.Group                       // nil where the meter is a watchdog
	meter   meter
	stood   atomic.Bool   // it was ready once
	ended   chan struct{} // closed when init was waited for
	events  *os.File      // what the kernel of its own tells; nil without one
	heard   chan struct{} // closed when all that it told was recorded
	gateway *way.Way      // its way out; nil is none
	wg      sync.WaitGroup

	mu     sync.Mutex
	why    string         // guarded by mu: how init ended
	paused bool           // guarded by mu
	limits paddock.Limits // guarded by mu

	mostCPUs float64 // guarded by mu: the highest limit of those before, if any
}

// A start is what it takes to make a box.
type start struct {
	name     string
	argv0    string
	root     paddock.Root   // as the spec has it
	user     string         // likewise
	policy   paddock.Policy // likewise, of the network only the mode
	layout   *layout
	limits   paddock.Limits
	gateway  *way.Way   // the way out; nil is none
	out      *os.File   // its program; nil without one
	exe      *os.File   // the program of the box's init
	agent    *os.File   // what a kernel of the box's own executes; nil without one
	image    []*os.File // a saved box that is to go on; nil is none
	supplies []*os.File // what a machine of the box's own is made with; nil is none
	kernel   *Kernel    // nil is the host's
	audit    audit.Sink // takes what the kernel tells; nil has nothing told
	host     *cgroup.Host
	groups   bool // limits by control groups; else by a watchdog

	// unrecorded is closed when events cannot be written any more, which is the
	// end of the box; nil is never.
	unrecorded <-chan struct{}

	// finish works out the rest of the layout, if it is not whole yet, while
	// the guest program starts.
	finish func() error
	// made is told of the box when its first process is there; connected gets
	// the connection, on which nothing is answered before the box is ready.
	// Both may be nil.
	made      func(*box)
	connected func(net.Conn)
}

// programs lists the files that a start needs, for take.
func (s *start) programs() []*os.File {
	files := []*os.File{s.exe}
	if s.gateway != nil {
		files = append(files, s.out)
	}
	if s.agent != nil {
		files = slices.Concat(files, []*os.File{s.agent}, s.supplies, s.image)
	}
	return files
}

// places tells where the programs are files, which descriptors do not tell, in
// the order of programs, for the box's own; nil without a kernel of its own.
func (s *start) places() []string {
	if s.agent == nil {
		return nil
	}
	return []string{s.exe.Name(), s.agent.Name()}
}

// take is the other side of programs and places.
func (s *start) take(files []*os.File, places []string) {
	s.exe, files = files[0], files[1:]
	if s.gateway != nil && len(files) > 0 {
		s.out, files = files[0], files[1:]
	}
	if len(files) > 0 {
		s.agent, files = files[0], files[1:]
		n := 0
		if k := s.layout.config.Kernel; k != nil {
			n = min(k.Supplied, len(files))
		}
		s.supplies, s.image = files[:n], files[n:]
	}
	if len(places) == 2 && s.agent != nil {
		s.exe, s.agent = kernel.Named(s.exe, places[0]), kernel.Named(s.agent, places[1])
	}
}

// newBox makes a box and answers when a command has run in it, with the first
// connection to its agent. After an error nothing is left.
func newBox(ctx context.Context, s start) (b *box, conn net.Conn, err error) {
	b = &box{created: time.Now(), id: s.layout.id, limits: s.limits, first: s.limits.PIDs, nested: s.layout.nested, made: s.limits.Memory, hosted: s.layout.hosted, ended: make(chan struct{})}
	b.machine = s.kernel != nil && s.kernel.Machine != nil
	if s.gateway != nil { // at the same time as the box
		if err := s.gateway.Start(ctx, s.out); err != nil {
			return nil, nil, err
		}
		b.gateway = s.gateway
	}
	var own closers
	defer own.close()
	if s.groups {
		paths := s.layout.paths
		if s.limits.IO > 0 && len(paths) == 0 {
			paths = []string{"/"}
		}
		if b.group, err = s.host.Create(s.name, s.layout.hosted(s.limits), paths...); err != nil {
			return nil, nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
		}
		b.meter = b.group
	}
	control, theirs, err := kernel.NewChannelPair()
	if err != nil {
		return nil, nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	own.add(theirs)
	b.control = control
	mine, link, err := kernel.Pair()
	if err != nil {
		return nil, nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	own.add(mine, link)
	fail := func(err error) (*box, net.Conn, error) {
		if conn != nil {
			conn.Close()
		}
		own.close() // or the box's end of the events would stay open
		return nil, nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	if err := b.launch(s, theirs, link); err != nil {
		return fail(impossible(fmt.Errorf("start the box: %w", err), b.nested))
	}
	if s.made != nil {
		s.made(b)
	}
	if s.unrecorded != nil {
		b.wg.Go(func() {
			select {
			case <-s.unrecorded:
				b.unheard(nil)
			case <-b.ended:
			}
		})
	}
	// Only the box has its ends now: when it dies, ours tell.
	theirs.Close()
	link.Close()
	if !s.groups {
		if b.meter, err = cgroup.Watch(b.pid, s.layout.hosted(s.limits).Memory); err != nil {
			return fail(err)
		}
	}
	if conn, err = net.FileConn(mine); err != nil {
		return fail(err)
	}
	if s.connected != nil {
		s.connected(conn)
	}
	if s.finish != nil {
		if err := s.finish(); err != nil {
			return fail(err)
		}
	}
	// A start may be used again, with another box saved meanwhile.
	l := s.layout.clone()
	fds, err := openForeign(l, &own)
	if err != nil {
		return fail(impossible(err, b.nested))
	}
	if l.config.Link && !l.nested && l.id.root {
		// Its init is nobody, who may not be let to open it.
		tun, err := kernel.OpenTUNOf(b.pid)
		if err != nil {
			return fail(fmt.Errorf("make the link: %w", err))
		}
		own.add(tun)
		fds = append(fds, tun)
		l.config.TUN = len(fds)
	}
	if k := l.config.Kernel; k != nil {
		show := l.showKernel(s.exe, &fds, &own)
		if k.Machine == nil { // which brings the agent itself
			show = errors.Join(show, l.showAgent(s.agent, &fds, &own))
		}
		if err := show; err != nil {
			return fail(impossible(err, b.nested))
		}
		if s.kernel.Receive != nil {
			events, err := b.listen(s)
			if err != nil {
				return fail(err)
			}
			own.add(events)
			fds = append(fds, events)
			k.Events = len(fds)
		}
		if s.audit == nil {
			k.Audit = nil
		}
		if k.Supplies = 0; k.Supplied > 0 {
			k.Supplies = len(fds) + 1
			fds = append(fds, s.supplies...)
		}
		k.Memory = len(s.image) == len(memoryParts)
		k.Layered = k.Layered || len(s.image) == len(fileParts)
		if k.Image = 0; len(s.image) > 0 {
			k.Image = len(fds) + 1
			fds = append(fds, s.image...)
		}
	}
	config, err := json.Marshal(l.config)
	if err != nil {
		return fail(err)
	}
	if len(config) > kernel.PacketMax {
		return fail(fmt.Errorf("environment and mounts take %d KiB, at most %d: %w", len(config)>>10, kernel.PacketMax>>10, paddock.Invalid))
	}
	if err := b.control.Send(config, fds...); err != nil {
		return fail(fmt.Errorf("configure the box: %w", b.explain(err)))
	}
	if err := b.ready(ctx); err != nil {
		return fail(b.starved(impossible(err, b.nested)))
	}
	if s.gateway != nil {
		if err := s.gateway.Ready(ctx); err != nil {
			return fail(err)
		}
	}
	return b, conn, nil
}

// hostPIDs is how many processes and threads of the host's make a box whose
// commands may have n. A kernel of the box's own has threads of its own, and
// would end if it could not have one; it bounds commands itself.
func hostPIDs(n int, nested bool) int {
	if nested {
		return 3*n + 512
	}
	return n + inner.AgentThreads + inner.SpareThreads
}

// listen gives the end of a socket on which the kernel tells events. A box that
// is no longer heard, or whose events cannot be written, ends.
func (b *box) listen(s start) (theirs *os.File, err error) {
	ours, theirs, err := kernel.EventPair()
	if err != nil {
		return nil, err
	}
	sink := s.audit
	if sink == nil {
		sink = nothing{} // there is only what a kernel tells that nobody asked
	}
	b.events, b.heard = ours, make(chan struct{})
	b.wg.Go(func() {
		err := s.kernel.Receive(ours, s.name, sink)
		close(b.heard)
		select {
		case <-b.ended:
		case <-time.After(endTime):
			b.unheard(err)
		}
	})
	return theirs, nil
}

// endTime is how long a box whose kernel tells no more may take to end.
const endTime = 5 * time.Second

// unheard ends a box that nobody watches any more.
func (b *box) unheard(err error) {
	b.mu.Lock()
	if b.why == "" {
		b.why = "what its commands do could not be recorded any more, and the sandbox was ended"
		if err != nil {
			b.why += ": " + err.Error()
		}
	}
	b.mu.Unlock()
	b.kill()
}

type nothing struct{}

func (nothing) Record(audit.Event) {}

// closers are files that go when a function ends, however it ends.
type closers struct{ files []*os.File }

func (c *closers) add(f ...*os.File) { c.files = append(c.files, f...) }

func (c *closers) close() {
	for _, f := range c.files {
		f.Close()
	}
}

// openForeign opens what the box's user could not reach: for a root caller the
// spec's mounts, with owners mapped so that what the host's owner has is the
// box's user's. It numbers the mounts that are sent along.
func openForeign(l *layout, own *closers) ([]*os.File, error) {
	if !l.id.root {
		return nil, nil
	}
	maps := map[[2]int]*os.File{}
	var fds []*os.File
	for i := range l.config.Mounts {
		m := &l.config.Mounts[i]
		if m.Layer || m.Kind != inner.MountBind && m.Kind != inner.MountOverlay || m.Source == "" || strings.HasPrefix(m.Source, "/dev/") {
			continue
		}
		system := false
		for _, dir := range image.SystemDirs() {
			system = system || m.Source == dir
		}
		if system || m.Source == "/sys/devices/system/cpu" {
			continue
		}
		f, err := kernel.CloneReal(m.Source)
		if err != nil {
			if m.Maybe {
				continue
			}
			if errors.Is(err, syscall.EPERM) { // not the file's matter: nothing can be shared
				return nil, fmt.Errorf("mount %s: %w", m.Source, err)
			}
			return nil, fmt.Errorf("mount %s: %w", m.Source, notThere(err))
		}
		own.add(f)
		if m.Owned {
			if err := l.mapOwners(m, f, maps, own); err != nil {
				return nil, err
			}
		}
		fds = append(fds, f)
		m.FD = len(fds)
		if len(fds) > 200 {
			return nil, fmt.Errorf("more than 200 mounts: %w", paddock.Invalid)
		}
	}
	return fds, nil
}

// mapOwners makes files of the mount's owner appear as the box's user's, and
// what the box makes belong to that owner on disk.
func (l *layout) mapOwners(m *inner.Mount, f *os.File, maps map[[2]int]*os.File, own *closers) error {
	st, err := kernel.StatAt(int(f.Fd()), "")
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.Source, notThere(err))
	}
	owner := [2]int{int(st.UID), int(st.GID)}
	if m.Kind == inner.MountOverlay || m.InRoot {
		owner = [2]int{l.id.inside.UID, l.id.inside.GID}
	}
	ns := maps[owner]
	if ns == nil {
		if ns, err = userNamespace(owner[0], owner[1], l.id.kuid, l.id.kgid); err != nil {
			return err
		}
		own.add(ns)
		maps[owner] = ns
	}
	if err := kernel.IDMap(f, ns, true); err != nil {
		if !m.Write && m.Kind == inner.MountBind {
			return nil // to be read as anybody may
		}
		return fmt.Errorf("mount %s: its file system cannot map owners (id-mapped mounts), so a root caller cannot share it for writing; "+
			"run paddock as the directory's owner instead: %w: %w", m.Source, err, paddock.Unsupported)
	}
	return nil
}

// userNamespace makes a user namespace in which the owner uid is the host's
// kuid, for mapping a mount. It is held by nothing but the file.
func userNamespace(uid, gid, kuid, kgid int) (*os.File, error) {
	exe, err := kernel.SealedFile("map", kernel.Pause())
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	pid, err := syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", exe.Fd()), []string{"map"}, &syscall.ProcAttr{
		Dir: "/",
		Sys: &syscall.SysProcAttr{
			Cloneflags:  kernel.CloneUser,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: kuid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: kgid, Size: 1}},
			Setsid:      true,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for {
		if _, e := syscall.Wait4(pid, nil, 0, nil); !errors.Is(e, syscall.EINTR) {
			break
		}
	}
	return f, err
}

// launch starts the box's init. The thread that starts it stays, because the
// kernel ends the box with that thread.
func (b *box) launch(s start, control, link *os.File) error {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{
		Dir: "/", Env: []string{"GOGC=off", "GOMAXPROCS=2"}, // the init has its collector on when it is ready
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), control.Fd(), link.Fd()},
		Sys:   b.attributes(s.layout),
	}
	if s.layout.env["PADDOCK_DEBUG"] != "" { // what the box's init itself says, when it crashes
		attr.Files[2] = os.Stderr.Fd()
	}
	path := fmt.Sprintf("/proc/self/fd/%d", s.exe.Fd())
	started := make(chan error)
	b.wg.Go(func() {
		runtime.LockOSThread() // for good: see above
		err := b.within(attr.Sys, func() (err error) {
			b.pid, err = syscall.ForkExec(path, []string{s.argv0}, attr)
			return err
		})
		started <- err
		if b.pid > 0 {
			b.reap()
		}
	})
	return <-started
}

// within runs a start in the control group, if there is one.
func (b *box) within(sys *syscall.SysProcAttr, start func() error) error {
	if b.group == nil {
		return start()
	}
	return b.group.Start(sys, start)
}

func (b *box) attributes(l *layout) *syscall.SysProcAttr {
	flags := uintptr(kernel.CloneUser | kernel.CloneMount | kernel.ClonePID | kernel.CloneIPC | kernel.CloneUTS | kernel.CloneCgroup | kernel.CloneTime)
	if !l.config.HostNet {
		flags |= kernel.CloneNet
	}
	u := b.id.inside
	sys := &syscall.SysProcAttr{
		Cloneflags:  flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: u.UID, HostID: b.id.kuid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: u.GID, HostID: b.id.kgid, Size: 1}},
		Setsid:      true,
		AmbientCaps: kernel.BuildCaps(),
	}
	if l.nested {
		sys.AmbientCaps = append(sys.AmbientCaps, kernel.StartCaps()...)
	}
	if b.id.root {
		sys.GidMappingsEnableSetgroups = true
		sys.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
	}
	return sys
}

func (b *box) reap() {
	var status syscall.WaitStatus
	if f, err := kernel.OpenProcess(b.pid); err == nil {
		if f, p, err := kernel.NewPoller(f); err == nil {
			_ = p.Wait() // cheaper than to wait in the system call below
			f.Close()
		}
	}
	for {
		_, err := syscall.Wait4(b.pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	b.mu.Lock()
	switch {
	case b.why != "":
	case status.Signaled():
		b.why = fmt.Sprintf("the sandbox's init was killed by signal %d (%s)", int(status.Signal()), status.Signal())
		if kills, _, err := b.oom(); err == nil && kills > 0 {
			b.why += fmt.Sprintf(" after the memory limit of %d bytes was reached", b.limits.Memory)
		}
	case status.ExitStatus() == inner.KernelEnded:
		b.why = "the sandbox's kernel ended, and the sandbox with it" + b.lastWords()
		if kills, _, err := b.oom(); err == nil && kills > 0 {
			b.why += fmt.Sprintf(", after the memory limit of %d bytes was reached", b.limits.Memory)
		}
	case status.ExitStatus() == inner.BrokerFailed:
		b.why = "the sandbox's broker ended, and the sandbox with it"
	default:
		b.why = fmt.Sprintf("the sandbox's init ended with status %d", status.ExitStatus())
	}
	b.mu.Unlock()
	close(b.ended)
	if b.gateway != nil {
		b.gateway.Stop()
	}
}

func (b *box) oom() (kills, peak int64, err error) {
	if b.meter == nil {
		return 0, -1, nil
	}
	return b.meter.OOM()
}

// ready waits for the box's report that a command has run.
func (b *box) ready(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { b.kill() }) // its end is ours to read
	defer stop()
	var r inner.Report
	for linked := false; ; linked = true {
		var err error
		if r, err = b.hear(ctx); err != nil {
			return err
		}
		if !r.Link {
			if r.Ready && b.gateway != nil && !linked {
				return fmt.Errorf("the box is ready without its link: %w", paddock.Internal)
			}
			break
		}
	}
	if !r.Ready {
		kind := r.Kind
		if kind == paddock.Internal {
			kind = paddock.Unsupported
		}
		return &toldError{inner.Words(r.Step+": "+r.Error, inner.MaxWords), kind}
	}
	b.stood.Store(true)
	return nil
}

// hear waits for one report of the box's. The link that comes with one is the
// gateway's.
func (b *box) hear(ctx context.Context) (r inner.Report, err error) {
	data, fds, err := b.control.Receive()
	defer closeAll(fds)
	if e := ctx.Err(); e != nil {
		return r, fmt.Errorf("the box was not ready in time: %w: %w", e, kindOf(e))
	}
	if err != nil {
		return r, b.explain(errors.New("it ended before it was ready"))
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("the box's report: %w", err)
	}
	if !r.Link {
		return r, nil
	}
	if b.gateway == nil || len(fds) != 1 {
		return r, fmt.Errorf("the box has a link of %d descriptors that nobody asked for: %w", len(fds), paddock.Internal)
	}
	return r, b.gateway.Link(fds[0])
}

func kindOf(err error) paddock.Kind {
	if errors.Is(err, context.DeadlineExceeded) {
		return paddock.Timeout
	}
	return paddock.Canceled
}

// starved is err, or where the memory limit was reached while the box was made,
// that.
func (b *box) starved(err error) error {
	kills, _, e := b.oom()
	if e != nil || kills == 0 {
		return err
	}
	return fmt.Errorf("the memory limit of %d MiB was reached before the sandbox was ready; ask for more: %w", b.limits.Memory>>20, paddock.Invalid)
}

// explain adds how init ended to an error about it.
func (b *box) explain(err error) error {
	b.kill()
	<-b.ended
	return fmt.Errorf("%w: %s: %w", err, b.reason(), paddock.Unavailable)
}

func (b *box) reason() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// kill ends every process in the box: the kernel takes all with the init.
func (b *box) kill() {
	if b.pid > 0 {
		select {
		case <-b.ended:
		default:
			_ = syscall.Kill(b.pid, syscall.SIGKILL) // not reaped yet, so the number is its own
		}
	}
}

// connect gives a new connection to the agent.
func (b *box) connect() (*os.File, error) {
	return b.ask(inner.OpConnect, nil)
}

// ask asks the box for something; the answer comes on the file.
func (b *box) ask(op inner.Op, arg []byte, files ...*os.File) (*os.File, error) {
	mine, theirs, err := kernel.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if err := b.control.Send(append([]byte{byte(op)}, arg...), append([]*os.File{theirs}, files...)...); err != nil {
		mine.Close()
		return nil, fmt.Errorf("connect to the box: %w: %w", err, paddock.Unavailable)
	}
	return mine, nil
}

// pause stops everything. It needs a control group, because nothing else stops
// a process that is just being made.
func (b *box) pause(ctx context.Context) error {
	if b.group == nil {
		return fmt.Errorf("pause: no control group: %w", paddock.Unsupported)
	}
	if err := b.group.Freeze(ctx); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	b.mu.Lock()
	b.paused = true
	b.mu.Unlock()
	return nil
}

func (b *box) resume() error {
	if b.group == nil {
		return nil
	}
	if err := b.group.Thaw(); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	b.mu.Lock()
	b.paused = false
	b.mu.Unlock()
	return nil
}

// update changes limits of the living box.
func (b *box) update(l paddock.Limits) error {
	if b.nested && l.PIDs > 0 {
		if err := b.bound(l.PIDs); err != nil {
			return err
		}
	}
	if b.machine && l.Memory > 0 {
		if err := b.boundMemory(l.Memory); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.group == nil {
		return fmt.Errorf("change limits: no control group: %w", paddock.Unsupported)
	}
	if l.PIDs > b.first && !b.nested {
		return fmt.Errorf("change limits: commands inherit the limit of %d processes that the sandbox was made with, so it cannot be raised above: %w", b.first, paddock.Unsupported)
	}
	if err := b.group.Update(b.hosted(l)); err != nil {
		return err
	}
	if l.Memory > 0 {
		b.limits.Memory = l.Memory
	}
	if l.CPUs > 0 {
		b.mostCPUs = max(b.mostCPUs, b.limits.CPUs)
		b.limits.CPUs = l.CPUs
	}
	if l.PIDs > 0 {
		b.limits.PIDs = l.PIDs
	}
	if l.IO > 0 {
		b.limits.IO = l.IO
	}
	return nil
}

// bounds are the limits that hold now.
func (b *box) bounds() paddock.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits
}

// A measure is what the owner knows of a box at a moment.
type measure struct {
	State  paddock.State  `json:"state"`
	Reason string         `json:"reason,omitempty"`
	Usage  paddock.Usage  `json:"usage"`
	Limits paddock.Limits `json:"limits"`
	Kills  int64          `json:"kills"` // for lack of memory
	Peak   int64          `json:"peak"`
	CPUs   float64        `json:"cpus,omitempty"` // processors that the host has given it at most; 0 is no bound
}

func (b *box) measure() measure {
	m := measure{State: paddock.Ready, Usage: paddock.Usage{CPU: -1, Memory: -1, MemoryPeak: -1, PIDs: -1}, Peak: -1}
	if b.meter != nil {
		if u, err := b.meter.Usage(); err == nil {
			m.Usage = u
			if u.PIDs >= 0 { // not the agent's own, which may be some more for a while
				m.Usage.PIDs = min(max(u.PIDs-inner.AgentThreads, 0), b.most())
			}
		}
		if kills, peak, err := b.meter.OOM(); err == nil {
			m.Kills, m.Peak = kills, peak
		}
	}
	m.Usage.Wall = time.Since(b.created)
	b.mu.Lock()
	defer b.mu.Unlock()
	m.Limits = b.limits
	if b.group != nil {
		m.CPUs = max(b.mostCPUs, b.limits.CPUs)
	}
	if b.paused {
		m.State = paddock.Paused
	}
	select {
	case <-b.ended:
		m.State, m.Reason = paddock.Dead, b.why
	default:
	}
	return m
}

// most is how many processes and threads commands may have.
func (b *box) most() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits.PIDs
}

// remove ends the box. Twice is fine.
func (b *box) remove(ctx context.Context) error {
	b.mu.Lock()
	if b.why == "" {
		b.why = "the sandbox was removed"
	}
	b.mu.Unlock()
	b.kill()
	if b.group != nil {
		_ = b.group.Thaw() // what is frozen does not die on version 1
	}
	if b.pid > 0 {
		select {
		case <-b.ended:
		case <-ctx.Done():
			return fmt.Errorf("remove: the box's init does not end: %w", kindOf(ctx.Err()))
		}
	}
	if b.control != nil {
		_ = b.control.Close() // its end is what matters
	}
	if b.events != nil {
		select { // what was told before the end is still to be recorded
		case <-b.heard:
		case <-time.After(endTime):
		case <-ctx.Done():
		}
		_ = b.events.Close() // its end is what matters
	}
	b.wg.Wait()
	if b.gateway != nil { // of a box that never began
		b.gateway.Stop()
	}
	if b.meter != nil {
		if err := b.meter.Remove(ctx); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}
