package hostwatch

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
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
		s := &sink{end: end, mounts: mounts(config), entries: map[uint32]*entry{}, byWatches: map[*vfs.Watches]*entry{}, late: map[*entry]bool{}, reports: make(chan arrival, 1024)}
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

	mu        sync.Mutex
	kernel    *kernel.Kernel          // nil until the first watch
	entries   map[uint32]*entry       // by ID
	byWatches map[*vfs.Watches]*entry // the same; hard links share their watches
	last      uint32                  // ID
	quiet     bool                    // nothing may be done with files, because the memory is saved
	left      bool                    // nobody answers any more
	late      map[*entry]bool         // added while nothing may be done, and not yet answered
	added     int                     // since the last sweep
	futile    bool                    // the last sweep dropped little

	// Of work only. The host's cookie of the last rename, and that of its events here.
	theirCookie, cookie uint32
}

// An entry is a file or directory that commands watch.
type entry struct {
	id      uint32
	mount   string      // path of the mount, which stays
	dentry  *vfs.Dentry // without a reference, which would keep a removed file alive
	watches *vfs.Watches
	dir     bool
	ready   chan struct{} // closed when the host has answered
	ended   atomic.Bool   // the file was removed inside
	moved   bool          // of work only: the host has renamed it, so that the path is that of another file
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
	if !ofHost(vd) {
		return nil
	}
	root := task.MountNamespace().Root(task)
	defer root.DecRef(task)
	k := task.Kernel()
	mount, err := k.VFS().PathnameReachable(task, root, vfs.MakeVirtualDentry(vd.Mount(), vd.Mount().Root()))
	if err != nil {
		return nil
	}
	full, err := k.VFS().PathnameReachable(task, root, vd)
	if err != nil {
		return nil
	}
	s.watch(k, vd.Dentry(), mount, full, isDir(k, vd))
	return nil
}

// ofHost reports whether a file is one of a mount of the host. These are file systems of their own, and all else is below
// the private layer.
func ofHost(vd vfs.VirtualDentry) bool {
	return vd.Mount().Filesystem().FilesystemType().Name() == gofer.Name
}

func isDir(k *kernel.Kernel, vd vfs.VirtualDentry) bool {
	ctx := k.SupervisorContext()
	st, err := k.VFS().StatAt(ctx, auth.CredentialsFromContext(ctx), &vfs.PathOperation{Root: vd, Start: vd}, &vfs.StatOptions{Mask: linux.STATX_TYPE})
	return err == nil && st.Mode&linux.S_IFMT == linux.S_IFDIR
}

// watch has the host watch a file that the caller has a reference on, and waits until it does. It returns nil if it
// does not. The box's init cuts off a sink that asks for what cannot be watched: a removed file, or one deeper
// than any path.
func (s *sink) watch(k *kernel.Kernel, d *vfs.Dentry, mount, path string, dir bool) *entry {
	if !boxinit.Watchable(path) || d.IsDead() {
		return nil
	}
	s.mu.Lock()
	s.kernel = k
	e := s.byWatches[d.Watches()]
	switch {
	case e != nil && e.ended.Load():
		s.forget(e)
		e = nil
	case e != nil && e.dentry.IsDead() && s.hasAnswer(e): // the host has renamed the file, which is found elsewhere
		s.drop(e)
		e = nil
	}
	if e == nil {
		s.makeRoom()
		if s.last++; s.last == 0 {
			s.last++
		}
		e = &entry{id: s.last, mount: mount, dentry: d, watches: d.Watches(), dir: dir, ready: make(chan struct{})}
		s.entries[e.id], s.byWatches[e.watches] = e, e
		switch {
		case s.quiet:
			s.late[e] = true
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
	if s.entries[e.id] != e {
		return nil
	}
	if !s.quiet {
		s.log.watch(s.kernel, e)
	}
	return e
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
	return s.hasAnswer(e) && (e.ended.Load() || e.watches.Size() <= s.log.own(e))
}

func (*sink) hasAnswer(e *entry) bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
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
	delete(s.late, e)
	if s.byWatches[e.watches] == e {
		delete(s.byWatches, e.watches)
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
			if s.answered(r) {
				s.reports <- arrival{r, time.Now()}
			}
			continue
		}
		s.reports <- arrival{r, time.Now()}
	}
	s.requests.end()
	s.leave()
}

// leave ends all watches when nobody answers any more. The memory could not be saved with the sink's own.
func (s *sink) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.quiet = true, false
	for _, e := range s.entries {
		s.answer(e)
		s.forget(e)
	}
	if s.kernel != nil {
		s.log.end(s.kernel)
	}
}

// answered takes an answer, and reports whether changes may have been missed before.
func (s *sink) answered(r boxinit.WatchReport) (missed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[r.ID]
	if e == nil {
		return false
	}
	missed = s.late[e] && r.Kind == boxinit.WatchAdded
	delete(s.late, e)
	if r.Kind == boxinit.WatchRefused {
		s.forget(e) // tried again with the next watch
	}
	s.answer(e)
	return missed
}

// answer lets those go on who wait for a watch. s.mu is held.
func (s *sink) answer(e *entry) {
	if !s.hasAnswer(e) {
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
			<-time.After(time.Until(r.at.Add(grace)))
			s.carryOut(r)
		}
	}
}

// rest takes the sink's own watches away from the files, because they must not be saved, or adds them again.
func (s *sink) rest(quiet bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = quiet && !s.left
	if s.kernel == nil {
		return
	}
	s.log.end(s.kernel)
	if quiet {
		return
	}
	for _, e := range s.entries {
		asked := !s.late[e]
		s.hold(s.kernel, e, func(path string, _ vfs.VirtualDentry) {
			s.log.watch(s.kernel, e)
			asked = asked || boxinit.Watchable(path) && s.requests.put(boxinit.WatchRequest{Kind: boxinit.WatchAdd, ID: e.id, Path: path})
		})
		if !asked {
			s.drop(e) // it is gone meanwhile
		}
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
		s.log.clear() // reports of these changes may be among the lost ones
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
	if r.Kind == boxinit.WatchAdded {
		s.lost(k, []*entry{e})
		return
	}
	s.tell(k, e, r)
}

// tell makes the events of a change, unless a command has made it.
func (s *sink) tell(k *kernel.Kernel, e *entry, r arrival) {
	if s.log.made(e, r, func() (time.Time, bool) { return s.changed(k, e, r.Name) }) {
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
		s.hold(k, e, func(_ string, vd vfs.VirtualDentry) { _, _ = s.below(k, vd, r.Name) })
	}
}

// notify makes an event for all watches of a file.
func (s *sink) notify(ctx context.Context, e *entry, name string, mask, cookie uint32) {
	kind := vfs.InodeEvent
	if mask&content != 0 {
		kind = vfs.PathEvent
	}
	defer s.log.expect(e, name, mask)()
	e.watches.Notify(ctx, name, mask, cookie, kind, false)
}

// gone ends all watches of a file that is no more.
func (s *sink) gone(ctx context.Context, e *entry) {
	e.watches.HandleDeletion(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[e.id] == e {
		s.drop(e)
	}
}

// lostMask has bits that commands watch for, because gVisor makes no event for a watch without such a bit. No watch ends
// with it.
const lostMask = linux.IN_Q_OVERFLOW | content | linux.IN_CREATE | linux.IN_MOVED_TO | linux.IN_DELETE

// lost tells those who watch files that changes were lost.
func (s *sink) lost(k *kernel.Kernel, all []*entry) {
	for _, e := range all {
		mask := uint32(lostMask)
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

// pathOf returns where a file of a mount is in gVisor's memory now. Commands may have renamed it, or a directory above.
func pathOf(k *kernel.Kernel, e *entry) (path string, err error) {
	err = at(k, e.mount, func(ctx context.Context, creds *auth.Credentials, at *vfs.PathOperation) error {
		root, err := k.VFS().GetDentryAt(ctx, creds, at, &vfs.GetDentryOptions{})
		if err != nil {
			return err
		}
		defer root.DecRef(ctx)
		if !ofHost(root) {
			return errors.New("another mount covers it")
		}
		path, err = k.VFS().PathnameReachable(ctx, at.Root, vfs.MakeVirtualDentry(root.Mount(), e.dentry))
		if err == nil && (path == "" || e.dentry.IsDead()) {
			err = errors.New("it is gone")
		}
		return err
	})
	return path, err
}

// hold calls do with the path of a file and a reference on it, if it is where it is in gVisor's memory.
func (*sink) hold(k *kernel.Kernel, e *entry, do func(path string, vd vfs.VirtualDentry)) {
	path, err := pathOf(k, e)
	if err != nil {
		return
	}
	look(k, path, func(vd vfs.VirtualDentry) {
		if vd.Dentry() == e.dentry {
			do(path, vd)
		}
	})
}

// below has gVisor look anew at a name in a directory. Without a reference the dentry only tells which one it is.
func (*sink) below(k *kernel.Kernel, dir vfs.VirtualDentry, name string) (*vfs.Dentry, error) {
	ctx := k.SupervisorContext()
	at := &vfs.PathOperation{Root: dir, Start: dir, Path: fspath.Parse(name)}
	vd, err := k.VFS().GetDentryAt(ctx, auth.CredentialsFromContext(ctx), at, &vfs.GetDentryOptions{})
	if err != nil {
		return nil, err
	}
	vd.DecRef(ctx)
	return vd.Dentry(), nil
}

// changed returns when a file, or a name in a directory, was last changed, by the host's clock. A name that is gone
// has not changed since: its end is told by itself.
func (s *sink) changed(k *kernel.Kernel, e *entry, name string) (when time.Time, ok bool) {
	s.hold(k, e, func(_ string, vd vfs.VirtualDentry) {
		ctx := k.SupervisorContext()
		at := &vfs.PathOperation{Root: vd, Start: vd, Path: fspath.Parse(name)}
		st, err := k.VFS().StatAt(ctx, auth.CredentialsFromContext(ctx), at, &vfs.StatOptions{Mask: linux.STATX_CTIME})
		switch {
		case err == nil:
			when, ok = time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec)), true
		case name != "" && linuxerr.Equals(linuxerr.ENOENT, err):
			ok = true
		}
	})
	return when, ok
}

// still reports whether a file is still the one at its path, also if there is no such path any more: the host has
// moved a directory above it.
func (s *sink) still(k *kernel.Kernel, e *entry) bool {
	path, err := pathOf(k, e)
	if err != nil {
		return true
	}
	cut := strings.LastIndexByte(path, '/')
	if cut < len(e.mount) {
		return true // a mount
	}
	same := true
	look(k, path[:cut], func(dir vfs.VirtualDentry) {
		if !ofHost(dir) || !dir.Mount().Filesystem().Impl().IsDescendant(dir, vfs.MakeVirtualDentry(dir.Mount(), e.dentry)) {
			return // another directory has taken its place, or a mount of a command covers it
		}
		d, err := s.below(k, dir, path[cut+1:])
		same = d == e.dentry || err != nil && !linuxerr.Equals(linuxerr.ENOENT, err)
	})
	if !same {
		now, err := pathOf(k, e)
		same = err == nil && now != path // a command has just renamed it
	}
	return same
}

// look has gVisor look at a path anew, and calls found with a reference on what is there.
func look(k *kernel.Kernel, path string, found func(vfs.VirtualDentry)) {
	_ = at(k, path, func(ctx context.Context, creds *auth.Credentials, at *vfs.PathOperation) error {
		vd, err := k.VFS().GetDentryAt(ctx, creds, at, &vfs.GetDentryOptions{})
		if err == nil {
			found(vd)
			vd.DecRef(ctx)
		}
		return err
	})
}
