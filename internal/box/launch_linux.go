package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// launch starts the box's init. The thread that starts it must stay, because the kernel
// kills the box when that thread ends.
func (b *Box) launch(control, link *os.File) error {
	s := &b.plan
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{
		Dir: "/", Env: []string{"GOGC=off", "GOMAXPROCS=2"}, // the init enables its garbage collector when it is ready
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), control.Fd(), link.Fd()},
		Sys:   b.attributes(s.Layout),
	}
	if s.Layout.env["PADDOCK_DEBUG"] != "" { // output of the box's init itself when it crashes
		attr.Files[2] = os.Stderr.Fd()
	}
	exe := s.Programs.One(FileInit)
	path := fmt.Sprintf("/proc/self/fd/%d", exe.Fd())
	started := make(chan error)
	b.wg.Go(offLeader(func() {
		err := sys.OrdinarySchedule() // of this thread alone, which the box's init inherits
		if err == nil {
			err = b.within(attr.Sys, func() error {
				if err := program.Intact(exe); err != nil {
					return err
				}
				return s.Layout.ID.asCreator(func() (err error) {
					b.pid, err = syscall.ForkExec(path, []string{s.Runtime.Argv0}, attr)
					return err
				})
			})
		}
		started <- err
		if b.pid > 0 {
			b.reap()
		}
	}))
	return <-started
}

// offLeader returns a function that calls f on a thread of its own, which is not the process's first
// one. The user of a process, as /proc shows it, and its signal at its parent's death are those of its
// first thread.
func offLeader(f func()) func() {
	return func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with f
		if !sys.Leader() {
			f()
			return
		}
		var other sync.WaitGroup // cannot run on this thread
		other.Go(offLeader(f))
		other.Wait()
		runtime.UnlockOSThread()
	}
}

// asCreator calls f, which makes a user namespace, as the sandbox's own user of the host. The kernel
// counts what is used in a namespace also as its creator's. If that were root, each sandbox could use up
// what the kernel gives to root's programs and to all other sandboxes.
func (id Identity) asCreator(f func() error) error {
	if !id.Root {
		return f()
	}
	return sys.AsCreator(id.KUID, f)
}

// within runs a start in the control group, if there is one.
func (b *Box) within(sys *syscall.SysProcAttr, start func() error) error {
	if b.Group == nil {
		return start()
	}
	return b.Group.Start(sys, start)
}

func (b *Box) attributes(l *Layout) *syscall.SysProcAttr {
	flags := uintptr(sys.CloneUser | sys.CloneMount | sys.ClonePID | sys.CloneIPC | sys.CloneUTS | sys.CloneCgroup | sys.CloneTime)
	if !l.Config.HostNet {
		flags |= sys.CloneNet
	}
	u := l.ID.User
	sys := &syscall.SysProcAttr{
		Cloneflags:  flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: u.UID, HostID: l.ID.KUID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: u.GID, HostID: l.ID.KGID, Size: 1}},
		Setsid:      true,
		AmbientCaps: sys.BuildCaps(),
	}
	sys.AmbientCaps = append(sys.AmbientCaps, b.plan.Runtime.Capabilities...)
	if l.ID.Root {
		sys.GidMappingsEnableSetgroups = true
		sys.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
	}
	return sys
}

func (b *Box) reap() {
	var status syscall.WaitStatus
	if f, err := sys.OpenProcess(b.pid); err == nil {
		if f, p, err := sys.NewPoller(f); err == nil {
			_ = p.Wait() // cheaper than waiting in the system call below
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
	if b.why == "" {
		b.why = b.ending(status)
	}
	if b.ledger != nil {
		b.last = boxinit.ReadLedger(io.NewSectionReader(b.ledger, 0, boxinit.LedgerSize)) // the other copy has its own position
		b.ledger.Close()
	}
	if b.sizes != nil {
		b.sizes.Close()
		b.sizes = nil
	}
	if b.private != nil {
		b.private.Close() // otherwise its files would stay in memory
		b.private = nil
	}
	close(b.ended)
	b.mu.Unlock()
	if b.plan.Gateway != nil {
		b.plan.Gateway.Stop()
	}
}

// keepLedger keeps a copy of the ledger until the box's end.
func (b *Box) keepLedger(ledger *os.File) error {
	f, err := sys.Duplicate(ledger)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.ended:
		f.Close()
	default:
		b.ledger = f
	}
	return nil
}

// refused returns what was refused until the end of the box; nil before.
func (b *Box) refused() []paddock.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.last)
}

// refusedSoFar returns what the box's init has refused, each thing once, the oldest first, as far as that is known.
func (b *Box) refusedSoFar() []paddock.Refusal {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.ended:
		return slices.Clone(b.last)
	default:
	}
	if b.ledger == nil {
		return nil
	}
	return boxinit.ReadLedger(io.NewSectionReader(b.ledger, 0, boxinit.LedgerSize))
}

// ending returns why the box's init ended with a status. The caller holds mu.
func (b *Box) ending(status syscall.WaitStatus) string {
	switch {
	case status.Signaled():
		return fmt.Sprintf("the sandbox's init was killed by signal %d (%s)%s", int(status.Signal()), status.Signal(), b.reached())
	case status.ExitStatus() == boxinit.GuestKernelEnded:
		return "the sandbox's kernel ended, and the sandbox with it" + b.lastWords() + b.reached()
	case status.ExitStatus() == boxinit.BrokerFailed:
		return "the sandbox's broker ended, and the sandbox with it" + b.lastWords() + b.reached()
	case status.ExitStatus() == boxinit.Crashed:
		return boxinit.Ended(status.ExitStatus()) + b.reached()
	}
	return boxinit.Ended(status.ExitStatus())
}

// reached names the limits that were reached, which may be why the box's init or its kernel
// ended.
func (b *Box) reached() string {
	if b.meter == nil {
		return ""
	}
	said := ""
	if kills, _, err := b.meter.OOM(); err == nil && kills > 0 {
		said = fmt.Sprintf(", after the memory limit of %d bytes was reached", b.limits.Memory)
	}
	if hits, err := b.meter.PIDsHit(); err == nil && hits > 0 {
		most := b.plan.Runtime.Limiter.HostLimits(b.plan.Layout, b.limits).PIDs
		said += fmt.Sprintf(", after the host's limit of %d processes and threads for a sandbox with %d was reached", most, b.limits.PIDs)
	}
	return said
}

func (b *Box) oom() (kills, peak int64, err error) {
	if b.meter == nil {
		return 0, -1, nil
	}
	return b.meter.OOM()
}

// ready waits for the box's report that a command has run.
func (b *Box) ready(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { b.kill() }) // we read its end below
	defer stop()
	defer b.afterEnd(func() { _ = b.control.Within(lastTime) })()
	var r boxinit.Report
	for linked := false; ; linked = linked || r.Link {
		var err error
		if r, err = b.hear(ctx); err != nil {
			return err
		}
		if r.Private {
			continue
		}
		if !r.Link {
			if r.Ready && b.plan.Gateway != nil && !linked {
				return fmt.Errorf("the box is ready without its link: %w", paddock.Internal)
			}
			break
		}
	}
	if !r.Ready {
		return &ToldError{boxinit.Words(r.Step+": "+r.Error, boxinit.MaxWords), kindOfNew(r.Kind)}
	}
	b.stood.Store(true)
	return nil
}

// lastTime bounds the time to read what a box has left when it has ended.
const lastTime = time.Second

// afterEnd has f called when the box's init has ended. The returned function cancels that, and waits
// for f. The box's end of a socket can live on in another socket over which the box sent it, so the
// end of a connection must not be the only sign of the end of the box.
func (b *Box) afterEnd(f func()) (stop func()) {
	over := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-b.ended:
			f()
		case <-over:
		}
	})
	return func() {
		close(over)
		waiting.Wait()
	}
}

// hear waits for one report of the box. A link that comes with it goes to the gateway, and the box keeps the directory of
// its private files.
func (b *Box) hear(ctx context.Context) (r boxinit.Report, err error) {
	data, fds, err := b.control.Receive()
	defer CloseAll(fds)
	if e := ctx.Err(); e != nil {
		return r, fmt.Errorf("the box was not ready in time: %w: %w", e, EndKind(e))
	}
	if err != nil {
		return r, b.explain(errors.New("it ended before it was ready"))
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("the box's report: %w", err)
	}
	if r.Private {
		return r, b.takePrivate(fds)
	}
	if !r.Link {
		return r, nil
	}
	if b.plan.Gateway == nil || len(fds) != 1 {
		return r, fmt.Errorf("the box has a link of %d descriptors that nobody asked for: %w", len(fds), paddock.Internal)
	}
	return r, b.plan.Gateway.Link(fds[0])
}

// starved returns err or, if the memory limit was reached while the box was made, that as
// the error.
func (b *Box) starved(err error) error {
	kills, _, e := b.oom()
	if e != nil || kills == 0 {
		return err
	}
	return fmt.Errorf("the memory limit of %d MiB was reached before the sandbox was ready; ask for more: %w", b.limits.Memory>>20, paddock.Invalid)
}

// lastWords returns why a guest kernel or the broker ended, as the box's init reports it. The init's
// packets can still be read after its end. If there is none, the channel does not need to have ended: see
// afterEnd.
func (b *Box) lastWords() string {
	if !b.stood.Load() {
		return "" // the process that waits for the box reads them
	}
	_ = b.control.Within(lastTime)
	data, files, err := b.control.Receive()
	if err != nil {
		// The init ended with unread data. The kernel reports that first, once.
		data, files, err = b.control.Receive()
	}
	CloseAll(files)
	var r boxinit.Report
	if err != nil || json.Unmarshal(data, &r) != nil || r.Error == "" {
		return ""
	}
	return ": " + boxinit.Words(r.Error, boxinit.MaxWords)
}
