package hostwatch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/fspath"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/gofer"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/kernel/auth"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
	"gvisor.dev/gvisor/pkg/sentry/uniqueid"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// Sink is the name of the sink of [Register] in the configuration of a trace session. Its file is the end of
// a [boxinit.HostWatch].
const Sink = "paddock-hostwatch"

// Point returns the trace point at which a command has added a watch.
func Point() seccheck.PointConfig {
	return seccheck.PointConfig{Name: fmt.Sprintf("syscall/sysno/%d/exit", syscall.SYS_INOTIFY_ADD_WATCH)}
}

// Register registers the sink in the process that becomes the sentry.
func Register() {
	seccheck.RegisterSink(seccheck.SinkDesc{Name: Sink, New: func(config map[string]any, end *fd.FD) (seccheck.Sink, error) {
		if end == nil {
			return nil, errors.New("a sink without a socket")
		}
		s := &sink{end: end, mounts: mounts(config), entries: map[uint32]*entry{}, byDentry: map[*vfs.Dentry]*entry{}, reports: make(chan arrival, 1024)}
		s.requests = newOutbox(end.FD())
		go s.receive() // ends with the socket
		go s.work()    // ends with receive
		return s, nil
	}})
}

// grace is how long a report of the host waits. Meanwhile the event of the command that may have made the
// change is made: the sentry makes it when the host has made the change.
const grace = 20 * time.Millisecond

// An arrival is a report, and when it came.
type arrival struct {
	boxinit.WatchReport
	at time.Time
}

// A sink tells watches of commands what the host changes.
type sink struct {
	seccheck.SinkDefaults

	end      *fd.FD
	mounts   []string // of a kernel that goes on from saved memory
	restored sync.Once
	reports  chan arrival
	requests *outbox
	log      record // of what commands change

	mu       sync.Mutex
	kernel   *kernel.Kernel         // nil until the first watch
	entries  map[uint32]*entry      // by ID
	byDentry map[*vfs.Dentry]*entry // the same
	last     uint32                 // ID
	quiet    bool                   // nothing may be done with files, because the memory is saved
	late     []*entry               // added while nothing may be done
	added    int                    // since the last sweep
	futile   bool                   // the last sweep dropped little

	// Of work only. The host's cookie of the last rename, and that of its events here.
	theirCookie, cookie uint32
}

// An entry is a file or directory that commands watch.
type entry struct {
	id     uint32
	path   string      // in the sandbox, when the watch was added
	dentry *vfs.Dentry // without a reference, which would keep a removed file alive; its watches may be used without
	dir    bool
	ready  chan struct{} // closed when the host has answered
	ended  atomic.Bool   // the file was removed inside
	moved  bool          // of work only: the host has renamed it, so that path is another file
}

func (*sink) Name() string { return Sink }

func (s *sink) Stop() { _ = s.end.Close() }

// RawSyscall implements seccheck.Sink. It is called in the thread that has added a watch, before the call
// returns there.
func (s *sink) RawSyscall(ctx context.Context, _ seccheck.FieldSet, call *pb.Syscall) error {
	if call.GetSysno() != syscall.SYS_INOTIFY_ADD_WATCH || call.GetExit() == nil || call.GetExit().GetErrorno() != 0 {
		return nil
	}
	task, ok := ctx.(*kernel.Task)
	if !ok {
		return nil
	}
	// The memory may hold another path than the call had. Then that is watched for nothing.
	name, err := task.CopyInString(hostarch.Addr(call.GetArg2()), linux.PATH_MAX)
	if err != nil || name == "" {
		return nil
	}
	path := fspath.Parse(name)
	at := vfs.PathOperation{Path: path, FollowFinalSymlink: call.GetArg3()&linux.IN_DONT_FOLLOW == 0}
	at.Root = task.FSContext().RootDirectory()
	defer at.Root.DecRef(task)
	at.Start = at.Root
	if !path.Absolute {
		at.Start = task.FSContext().WorkingDirectory()
		defer at.Start.DecRef(task)
	}
	vd, err := task.Kernel().VFS().GetDentryAt(task, task.Credentials(), &at, &vfs.GetDentryOptions{})
	if err != nil {
		return nil
	}
	defer vd.DecRef(task)
	// Mounts of the host are file systems of their own, and all else is below the private layer.
	if vd.Mount().Filesystem().FilesystemType().Name() != gofer.Name {
		return nil
	}
	root := task.MountNamespace().Root(task)
	defer root.DecRef(task)
	full, err := task.Kernel().VFS().PathnameReachable(task, root, vd)
	if err != nil {
		return nil
	}
	s.watch(task.Kernel(), vd.Dentry(), full)
	return nil
}

// watch has the host watch a file that the caller has a reference on, and waits until it does. The host would hear
// no more of a sink that asks for what cannot be watched: a removed file, or one deeper than any path.
func (s *sink) watch(k *kernel.Kernel, d *vfs.Dentry, path string) {
	if !boxinit.Watchable(path) || d.IsDead() {
		return
	}
	dir := false
	_ = at(k, path, func(ctx context.Context, creds *auth.Credentials, at *vfs.PathOperation) error {
		st, err := k.VFS().StatAt(ctx, creds, at, &vfs.StatOptions{Mask: linux.STATX_TYPE})
		dir = st.Mode&linux.S_IFMT == linux.S_IFDIR
		return err
	})
	s.mu.Lock()
	s.kernel = k
	e := s.byDentry[d]
	if e != nil && e.ended.Load() {
		s.forget(e)
		e = nil
	}
	if e == nil {
		s.makeRoom()
		if s.last++; s.last == 0 {
			s.last++
		}
		e = &entry{id: s.last, path: path, dentry: d, dir: dir, ready: make(chan struct{})}
		s.entries[e.id], s.byDentry[d] = e, e
		switch {
		case s.quiet:
			s.late = append(s.late, e)
			close(e.ready)
		case !s.requests.put(boxinit.WatchRequest{Kind: boxinit.WatchAdd, ID: e.id, Path: path}):
			s.forget(e)
			close(e.ready)
		}
	}
	s.mu.Unlock()
	<-e.ready // at the end too, if the host does not answer

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[e.id] == e && !s.quiet {
		s.log.watch(s.kernel, e)
	}
}

// sweepAfter is the number of new watches after which those are dropped that no command has any more.
const sweepAfter = 1024

// makeRoom sweeps now and then, and when the host takes no more watches. A sweep looks at every watch. So a command
// that watches too much does not cause one with each further watch. s.mu is held.
func (s *sink) makeRoom() {
	if s.added++; s.added >= sweepAfter || len(s.entries) >= boxinit.HostWatchMax && !s.futile {
		s.sweep()
	}
}

// sweep drops what only the sink itself still watches. s.mu is held.
func (s *sink) sweep() {
	before := len(s.entries)
	for _, e := range s.entries {
		if s.idle(e) {
			s.drop(e)
		}
	}
	s.added, s.futile = 0, before-len(s.entries) < sweepAfter
}

// idle reports whether no command watches a file any more. s.mu is held, so that no new watch is overlooked:
// a command that has added one calls watch afterwards.
func (s *sink) idle(e *entry) bool {
	select {
	case <-e.ready:
	default:
		return false
	}
	return e.ended.Load() || e.dentry.Watches().Size() <= s.log.own(e)
}

// drop ends the watch of a file here and on the host. s.mu is held.
func (s *sink) drop(e *entry) {
	s.forget(e)
	s.log.drop(s.kernel, e)
	s.requests.put(boxinit.WatchRequest{Kind: boxinit.WatchDrop, ID: e.id})
}

// forget removes an entry. s.mu is held.
func (s *sink) forget(e *entry) {
	delete(s.entries, e.id)
	if s.byDentry[e.dentry] == e {
		delete(s.byDentry, e.dentry)
	}
}

// receive takes reports. Answers are passed on at once.
func (s *sink) receive() {
	defer close(s.reports)
	buf := make([]byte, 1024)
	for {
		n, err := syscall.Read(s.end.FD(), buf)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			break
		}
		r, err := boxinit.ParseWatchReport(buf[:n])
		if err != nil {
			break
		}
		if r.Kind == boxinit.WatchAdded || r.Kind == boxinit.WatchRefused {
			s.answered(r)
			continue
		}
		s.reports <- arrival{r, time.Now()}
	}
	// Nobody answers any more.
	s.requests.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet, s.late = false, nil
	for _, e := range s.entries {
		s.answer(e)
	}
}

func (s *sink) answered(r boxinit.WatchReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[r.ID]
	if e == nil {
		return
	}
	if r.Kind == boxinit.WatchRefused {
		s.forget(e) // tried again with the next watch
	}
	s.answer(e)
}

// answer lets those go on who wait for a watch. s.mu is held.
func (s *sink) answer(e *entry) {
	select {
	case <-e.ready:
	default:
		close(e.ready)
	}
}

// work carries out reports, in their order.
func (s *sink) work() {
	var held []arrival
	quiet := false
	for r := range s.reports {
		switch {
		case r.Kind == boxinit.WatchBeQuiet:
			quiet = true
			s.rest(true)
			s.requests.put(boxinit.WatchRequest{Kind: boxinit.WatchQuiet, ID: r.ID})
		case r.Kind == boxinit.WatchWake:
			quiet = false
			s.rest(false)
			for _, r := range held {
				s.carryOut(r)
			}
			held = nil
		case quiet:
			held = append(held, r) // those that were on their way
		default:
			time.Sleep(time.Until(r.at.Add(grace)))
			s.carryOut(r)
		}
	}
}

// rest takes the sink's own watches away from the files, because they must not be saved, or adds them again.
func (s *sink) rest(quiet bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = quiet
	if s.kernel == nil {
		return
	}
	s.log.end(s.kernel)
	if quiet {
		return
	}
	for _, e := range s.late {
		if s.entries[e.id] != e {
			continue // dropped again
		}
		s.requests.put(boxinit.WatchRequest{Kind: boxinit.WatchAdd, ID: e.id, Path: e.path})
	}
	s.late = nil
	for _, e := range s.entries {
		_ = look(s.kernel, e.path, func(d *vfs.Dentry) { // with a reference on it
			if d == e.dentry {
				s.log.watch(s.kernel, e)
			}
		})
	}
}

// carryOut makes the events of a report.
func (s *sink) carryOut(r arrival) {
	s.mu.Lock()
	k := s.kernel
	if k == nil {
		s.mu.Unlock()
		return
	}
	if r.Kind == boxinit.WatchLost {
		all := make([]*entry, 0, len(s.entries))
		for _, e := range s.entries {
			all = append(all, e)
		}
		s.mu.Unlock()
		s.lost(k, all)
		return
	}
	e := s.entries[r.ID]
	switch {
	case e == nil:
		s.mu.Unlock()
		return
	case r.Mask&(linux.IN_IGNORED|linux.IN_UNMOUNT) != 0, s.idle(e):
		s.drop(e)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.tell(k, e, r)
}

// tell makes the events of a change, unless a command has made it.
func (s *sink) tell(k *kernel.Kernel, e *entry, r arrival) {
	if s.log.made(e, r, func() (time.Time, bool) { return changed(k, e, r.Name) }) {
		return
	}
	ctx := k.SupervisorContext()
	switch {
	case r.Mask&linux.IN_DELETE_SELF != 0:
		s.gone(ctx, e)
		return
	case !e.dir && !e.moved && r.Mask&linux.IN_ATTRIB != 0 && !s.still(k, e):
		// The host has replaced or removed the file, but gVisor holds it open.
		s.notify(ctx, e, "", r.Mask, 0)
		s.gone(ctx, e)
		return
	}
	cookie := uint32(0)
	if r.Cookie != 0 {
		if r.Cookie != s.theirCookie {
			s.theirCookie, s.cookie = r.Cookie, uniqueid.InotifyCookie(ctx)
		}
		cookie = s.cookie
	}
	s.notify(ctx, e, r.Name, r.Mask, cookie)
	switch {
	case r.Mask&linux.IN_MOVE_SELF != 0:
		e.moved = true
	case e.dir && r.Name != "" && r.Mask&(linux.IN_DELETE|linux.IN_MOVED_FROM|linux.IN_MOVED_TO) != 0:
		// Let gVisor close what it holds open of a removed file. Until then the host does not report its end.
		_ = look(k, e.path+"/"+r.Name, func(*vfs.Dentry) {})
	}
}

// notify makes an event for all watches of a file.
func (s *sink) notify(ctx context.Context, e *entry, name string, mask, cookie uint32) {
	kind := vfs.EventType(vfs.InodeEvent)
	if mask&content != 0 {
		kind = vfs.PathEvent
	}
	defer s.log.expect(e, name, mask)()
	e.dentry.Watches().Notify(ctx, name, mask, cookie, kind, false)
}

// gone ends all watches of a file that is no more.
func (s *sink) gone(ctx context.Context, e *entry) {
	e.dentry.Watches().HandleDeletion(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[e.id] == e {
		s.drop(e)
	}
}

// lost tells everybody that changes were lost.
func (s *sink) lost(k *kernel.Kernel, all []*entry) {
	for _, e := range all {
		mask := uint32(linux.IN_Q_OVERFLOW | linux.IN_ATTRIB | linux.IN_MODIFY)
		if e.dir {
			mask |= linux.IN_ISDIR
		}
		s.notify(k.SupervisorContext(), e, "", mask, 0)
	}
}

// at calls do with the place of a path in the sandbox.
func at(k *kernel.Kernel, path string, do func(ctx context.Context, creds *auth.Credentials, at *vfs.PathOperation) error) error {
	ctx := k.SupervisorContext()
	namespace := k.GlobalInit().Leader().MountNamespace()
	if namespace == nil || !namespace.TryIncRef() {
		return errors.New("the first process has ended")
	}
	defer namespace.DecRef(ctx)
	root := namespace.Root(ctx)
	defer root.DecRef(ctx)
	return do(ctx, auth.CredentialsFromContext(ctx), &vfs.PathOperation{Root: root, Start: root, Path: fspath.Parse(path)})
}

// changed returns when a file in a directory was last changed, by the host's clock.
func changed(k *kernel.Kernel, e *entry, name string) (when time.Time, ok bool) {
	path := e.path
	if name != "" {
		path += "/" + name
	}
	err := at(k, path, func(ctx context.Context, creds *auth.Credentials, at *vfs.PathOperation) error {
		st, err := k.VFS().StatAt(ctx, creds, at, &vfs.StatOptions{Mask: linux.STATX_CTIME})
		when = time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec))
		return err
	})
	return when, err == nil
}

// still reports whether a file is still the one at its path.
func (s *sink) still(k *kernel.Kernel, e *entry) (same bool) {
	_ = look(k, e.path, func(d *vfs.Dentry) { same = d == e.dentry })
	return same
}

// look has gVisor look at a path anew.
func look(k *kernel.Kernel, path string, found func(*vfs.Dentry)) error {
	return at(k, path, func(ctx context.Context, creds *auth.Credentials, at *vfs.PathOperation) error {
		vd, err := k.VFS().GetDentryAt(ctx, creds, at, &vfs.GetDentryOptions{})
		if err == nil {
			found(vd.Dentry())
			vd.DecRef(ctx)
		}
		return err
	})
}
