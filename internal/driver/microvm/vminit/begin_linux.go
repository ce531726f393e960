package vminit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/framing"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// begin makes this machine a box's, and starts what runs in it.
func (m *machine) begin(ctx context.Context, b *protocol.Begin) error {
	if err := m.identify(b); err != nil {
		return err
	}
	if b.Again {
		if !m.begun {
			return fmt.Errorf("a machine that has not begun cannot go on: %w", paddock.Conflict)
		}
		// Both sessions belong to the saved machine. If the host reconnected before their
		// end is seen here, it would never be seen.
		return errors.Join(m.link(b), m.pump.waitEnd(ctx), m.sessions.waitEnd(ctx))
	}
	if m.begun {
		return fmt.Errorf("the machine has begun already: %w", paddock.Conflict)
	}
	for _, step := range []struct {
		what string
		do   func(*protocol.Begin) error
	}{
		{"make the private layer", m.takeLayer},
		{"mount the file tree", m.mountTree},
		{"bring up the link", m.link},
		{"bound the memory", func(b *protocol.Begin) error { return m.groups.begin(b.Memory) }},
		{"give the agent the tree", m.orderAgent},
	} {
		if err := step.do(b); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	m.begun = true
	return nil
}

// identify sets what must be unique to the machine.
func (m *machine) identify(b *protocol.Begin) error {
	if len(b.Machine) != numberSize || strings.Trim(b.Machine, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is not a machine ID: %w", b.Machine, paddock.Invalid)
	}
	_, err := m.number.WriteAt([]byte(b.Machine+"\n"), 0)
	return errors.Join(
		sys.AddEntropy(b.Entropy),
		sys.SetClock(time.Unix(0, b.Time)),
		sys.SetHostname(b.Hostname),
		err,
	)
}

// mountLower mounts the host's files. Until there is a host, the machine answers the
// requests itself.
func (m *machine) mountLower() error {
	device, err := sys.OpenFUSE()
	if err != nil {
		return err
	}
	fd, err := sys.Descriptor(device)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,max_read=%d", fd, maxWrite)
	if err := sys.MountAt("fuse", lower, sys.NoSUID|sys.NoDev, options); err != nil {
		return err
	}
	if device, err = sys.Polled(device); err != nil { // possible after the mount
		return err
	}
	m.pump = newPump(device, m.files)
	m.pump.alone.Store(true)
	m.job(func() error { return m.pump.down(m.running) })
	m.job(func() error { return m.pump.up(m.running) })
	m.job(func() error { return m.pump.closer(m.running) })
	return nil
}

// Bounds of file systems before the box's limits are known.
const (
	layerOptions = "mode=755,size=1048576,nr_inodes=1024"
	shmOptions   = "mode=1777,size=4096"
)

// makeLayer makes the private layer before the box is known. It has the mount points of
// every tree.
func (m *machine) makeLayer() (err error) {
	if err := sys.MountAt("tmpfs", layer, sys.NoSUID|sys.NoDev, layerOptions); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(filepath.Join(layer, "work"), 0o755)); err != nil {
		return err
	}
	for _, dir := range made() {
		if err := os.Mkdir(upper+dir, 0o755); err != nil {
			return err
		}
	}
	m.upper, err = os.Open(upper)
	return err
}

// made returns the mount points of every tree.
func made() []string { return []string{"/proc", "/sys", "/dev", guestinit.Dir} }

// mountMerged mounts the commands' tree. That reads nothing of the lower layer.
func mountMerged() error {
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s/work,index=off,metacopy=off,redirect_dir=on,xino=auto", lower, upper, layer)
	return sys.MountAt("overlay", merged, sys.NoSUID|sys.NoDev, options)
}

// takeLayer makes the private layer the box's. It begins empty or with an archive.
func (m *machine) takeLayer(b *protocol.Begin) error {
	m.pump.alone.Store(false)
	if b.Disk < pageSize {
		return fmt.Errorf("%d bytes of disk: %w", b.Disk, paddock.Invalid)
	}
	// A name takes memory that the size limit does not count.
	options := fmt.Sprintf("size=%d,nr_inodes=%d", b.Disk, max(b.Disk/pageSize, 64<<10))
	if err := sys.RemountAt(layer, sys.NoSUID|sys.NoDev, options); err != nil {
		return err
	}
	if err := sys.RemountAt(shm, sys.NoSUID|sys.NoDev|sys.NoExec, fmt.Sprintf("size=%d", b.Disk)); err != nil {
		return err
	}
	// The root of the tree has the attributes of the host's.
	st, err := sys.StatAt(sys.AtCWD, lower)
	if err != nil {
		return fmt.Errorf("the host's files: %w", err)
	}
	if st.UID != 0 || st.GID != 0 || st.Mode&0o777 != 0o755 {
		if err := errors.Join(os.Chown(merged, int(st.UID), int(st.GID)), os.Chmod(merged, os.FileMode(st.Mode&0o777))); err != nil {
			return err
		}
	}
	if !b.Layer {
		return nil
	}
	// A mounted overlay does not see changes below it.
	if err := sys.Detach(merged); err != nil {
		return err
	}
	for _, dir := range made() { // the archive has them too
		if err := os.Remove(upper + dir); err != nil {
			return err
		}
	}
	if err := unpack(&chunks{r: m.control}, m.upper); err != nil {
		return err
	}
	return mountMerged()
}

// mountTree mounts the file systems in the commands' tree.
func (m *machine) mountTree(b *protocol.Begin) error {
	const own = sys.NoSUID | sys.NoDev
	root, err := os.Open(merged)
	if err != nil {
		return err
	}
	defer root.Close()
	host, err := os.Open(lower)
	if err != nil {
		return err
	}
	defer host.Close()
	for _, bind := range b.Binds {
		from, err := sys.OpenPath(host, strings.TrimPrefix(filepath.Join("/", bind.Target), "/"), true)
		if err != nil {
			return err
		}
		attrs := uint64(own)
		if !bind.Write {
			attrs |= sys.ReadOnly
		}
		err = mountAt(from, root, bind, attrs)
		from.Close()
		if err != nil {
			return err
		}
	}
	// The agent mounts its own /proc there.
	proc, err := place(root, "/proc", false)
	if err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	proc.Close()
	if err := moveTo(root, system, "/sys", own|sys.NoExec|sys.ReadOnly); err != nil {
		return err
	}
	if err := moveTo(root, devices, "/dev", sys.NoSUID|sys.NoExec|sys.ReadOnly); err != nil {
		return err
	}
	// An empty directory, as on tiers where the agent is executed from there.
	if err := moveTo(root, empty, guestinit.Dir, own|sys.NoExec|sys.ReadOnly); err != nil {
		return err
	}
	if b.Sudo {
		if err := showSudo(root); err != nil {
			return fmt.Errorf("give commands sudo: %w", err)
		}
	}
	// If the tree has this file, its content is replaced by this machine's.
	at, err := sys.OpenPath(root, "etc/machine-id", true)
	if err != nil {
		return nil
	}
	defer at.Close()
	return attach(machineID, at, own|sys.NoExec|sys.ReadOnly)
}

// showSudo mounts this program where commands look for sudo. If the tree has no such file,
// it makes an empty one in the private layer.
func showSudo(root *os.File) error {
	at, err := place(root, sudo.Path, true)
	if err != nil {
		return fmt.Errorf("%s: %w", sudo.Path, err)
	}
	defer at.Close()
	return attach(Argv0, at, sys.NoSUID|sys.NoDev|sys.ReadOnly)
}

// mountAt mounts an open location at another one in the tree.
func mountAt(from, root *os.File, bind boxinit.Bind, attrs uint64) error {
	fd, err := sys.Descriptor(from)
	if err != nil {
		return err
	}
	mount, err := sys.CloneTree(fd, "", false)
	if err != nil {
		return err
	}
	defer mount.Close()
	at, err := place(root, bind.Target, bind.IsFile)
	if err != nil {
		return err
	}
	defer at.Close()
	return errors.Join(sys.SetMountAttr(mount, attrs, false), sys.Attach(mount, at))
}

// moveTo mounts what is mounted at a path, with its submounts, at a location of the tree.
func moveTo(root *os.File, from, to string, attrs uint64) error {
	at, err := place(root, to, false)
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	defer at.Close()
	return attach(from, at, attrs)
}

func attach(from string, at *os.File, attrs uint64) error {
	mount, err := sys.CloneTree(sys.AtCWD, from, true)
	if err != nil {
		return err
	}
	defer mount.Close()
	return errors.Join(sys.SetMountAttr(mount, attrs, false), sys.Attach(mount, at))
}

// link configures the interface for this machine's network. A restored machine may have had
// another one.
func (m *machine) link(b *protocol.Begin) error {
	if b.Link == m.linked {
		return nil
	}
	l := sys.Link{Name: boxinit.LinkName, MTU: boxinit.LinkMTU}
	for _, text := range []string{boxinit.Address4, boxinit.Address6} {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		l.Addresses = append(l.Addresses, a)
	}
	do := l.Use
	if !b.Link {
		do = l.Down
	}
	err := do()
	if err == nil {
		m.linked = b.Link
	}
	return err
}

// agentEnv is the agent's own environment, which no command sees. As in this process,
// goroutines are not preempted by signals, because in emulation the code of kernel and
// runtime for that would run for the first time.
func agentEnv() []string {
	return []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,containermaxprocs=0,updatemaxprocs=0,decoratemappings=0"}
}

// mostFiles is the maximum of open files of the agent, and of commands: the kernel's own
// limit.
const mostFiles = 1 << 20

// orderAgent makes the agent begin. The agent then answers on its port, or ends the
// machine.
func (m *machine) orderAgent(b *protocol.Begin) error {
	defer m.order.Close()
	return framing.Write(m.order, &guestinit.Order{Tree: merged, UID: b.UID, GID: b.GID, Sudo: b.Sudo})
}

// startAgent starts the agent, which waits for an order. When the agent ends, the machine
// ends.
func (m *machine) startAgent() error {
	port, err := m.agent.File()
	if err != nil {
		return err
	}
	defer port.Close()
	// Otherwise the other descriptor would stay open as long as this process.
	if err := m.agent.Close(); err != nil {
		return err
	}
	tell, state, err := os.Pipe()
	if err != nil {
		return err
	}
	defer state.Close()
	order, orders, err := os.Pipe()
	if err != nil {
		return err
	}
	defer order.Close()
	m.order = orders
	m.sessions = &sessions{ready: make(chan struct{})}
	m.sessions.followed.Go(func() { m.sessions.follow(tell) })
	if err := sys.ShareMounts(); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		console, err = null, nil
	}
	if err != nil {
		return err
	}
	defer console.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: mostFiles, Max: mostFiles}); err != nil {
		return fmt.Errorf("setrlimit: %w", err)
	}
	type started struct {
		process *os.Process
		err     error
	}
	done := make(chan started)
	go func() {
		runtime.LockOSThread() // permanently, because this thread drops rights
		if err := errors.Join(sys.TimerSlack(slack), sys.KeepBounding(sys.AgentCaps()), sys.KeepOverUsers()); err != nil {
			done <- started{err: err}
			return
		}
		p, err := os.StartProcess(Argv0, []string{guestinit.Argv0, guestinit.OnPort}, &os.ProcAttr{
			Dir: "/", Env: agentEnv(), Files: []*os.File{null, null, console, port, state, order},
			Sys: &syscall.SysProcAttr{Cloneflags: sys.ClonePID | sys.CloneMount},
		})
		done <- started{p, err}
	}()
	s := <-done
	if s.err != nil {
		return s.err
	}
	m.job(func() error {
		defer m.sessions.followed.Wait() // the listener sees the agent's end
		state, err := s.process.Wait()
		if err == nil {
			err = fmt.Errorf("the agent ended: %s", state)
		}
		return err
	})
	// Never kill this process when memory is short. This comes after the start of the
	// agent, which would inherit it.
	return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
}

// sessions tracks the agent's sessions, of which there is one at a time.
type sessions struct {
	ready    chan struct{}  // closed when the agent waits for an order
	followed sync.WaitGroup // done when the listener has ended

	mu   sync.Mutex
	now  bool          // guarded by mu; there is a session
	ends chan struct{} // guarded by mu; closed at the end of the session and then nil; nil if nothing waits
}

// follow listens to the agent's reports.
func (s *sessions) follow(tell *os.File) {
	defer tell.Close()
	one := make([]byte, 1)
	for {
		if _, err := tell.Read(one); err != nil {
			return // the agent has ended
		}
		if one[0] == guestinit.AgentReady {
			close(s.ready)
			continue
		}
		s.mu.Lock()
		s.now = one[0] == guestinit.SessionBegins
		if !s.now && s.ends != nil {
			close(s.ends)
			s.ends = nil
		}
		s.mu.Unlock()
	}
}

// waitReady waits until the agent waits for its order.
func (s *sessions) waitReady(most time.Duration) error {
	select {
	case <-s.ready:
		return nil
	case <-time.After(most):
		return fmt.Errorf("the agent does not begin: %w", paddock.Timeout)
	}
}

// waitEnd waits until there is no session.
func (s *sessions) waitEnd(ctx context.Context) error {
	s.mu.Lock()
	if !s.now {
		s.mu.Unlock()
		return nil
	}
	if s.ends == nil {
		s.ends = make(chan struct{})
	}
	ends := s.ends
	s.mu.Unlock()
	select {
	case <-ends:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the agent's session does not end: %w", paddock.Unavailable)
	}
}
