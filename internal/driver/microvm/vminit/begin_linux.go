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
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// begin makes this machine one of its own, and starts what runs in it.
func (m *machine) begin(ctx context.Context, b *protocol.Begin) error {
	if err := m.identify(b); err != nil {
		return err
	}
	if b.Again {
		if !m.begun {
			return fmt.Errorf("a machine that has not begun cannot go on: %w", paddock.Conflict)
		}
		// Both sessions were the saved machine's. Where the host connects anew
		// before that is seen here, it is never seen.
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

// identify gives the machine what is to be its alone.
func (m *machine) identify(b *protocol.Begin) error {
	if len(b.Machine) != numberSize || strings.Trim(b.Machine, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is no number of a machine: %w", b.Machine, paddock.Invalid)
	}
	_, err := m.number.WriteAt([]byte(b.Machine+"\n"), 0)
	return errors.Join(
		kernel.AddEntropy(b.Entropy),
		kernel.SetClock(time.Unix(0, b.Time)),
		kernel.SetHostname(b.Hostname),
		err,
	)
}

// mountLower mounts what the host will serve, of which nothing is asked yet but what
// the machine answers itself.
func (m *machine) mountLower() error {
	device, err := kernel.OpenFUSE()
	if err != nil {
		return err
	}
	fd, err := kernel.Descriptor(device)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,max_read=%d", fd, maxWrite)
	if err := kernel.MountAt("fuse", lower, kernel.NoSUID|kernel.NoDev, options); err != nil {
		return err
	}
	if device, err = kernel.Polled(device); err != nil { // which it can be when it is mounted
		return err
	}
	m.pump = newPump(device, m.files)
	m.pump.alone.Store(true)
	m.job(func() error { return m.pump.down(m.running) })
	m.job(func() error { return m.pump.up(m.running) })
	return nil
}

// Bounds of file systems before it is known what the box may have.
const (
	layerOptions = "mode=755,size=1048576,nr_inodes=1024"
	shmOptions   = "mode=1777,size=4096"
)

// makeLayer makes the private layer of a box that is not known yet. What mounts go
// onto in every tree is there already.
func (m *machine) makeLayer() (err error) {
	if err := kernel.MountAt("tmpfs", layer, kernel.NoSUID|kernel.NoDev, layerOptions); err != nil {
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

// made are the directories that mounts go onto in every tree.
func made() []string { return []string{"/proc", "/sys", "/dev", guestinit.Dir} }

// mountMerged mounts the commands' tree. Of what is below the private layer nothing is
// looked at for that.
func mountMerged() error {
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s/work,index=off,metacopy=off,redirect_dir=on,xino=auto", lower, upper, layer)
	return kernel.MountAt("overlay", merged, kernel.NoSUID|kernel.NoDev, options)
}

// takeLayer makes the private layer the box's, which begins with an archive or with
// nothing.
func (m *machine) takeLayer(b *protocol.Begin) error {
	m.pump.alone.Store(false)
	if b.Disk < pageSize {
		return fmt.Errorf("%d bytes of disk: %w", b.Disk, paddock.Invalid)
	}
	// A name takes memory that no file's content does.
	options := fmt.Sprintf("size=%d,nr_inodes=%d", b.Disk, max(b.Disk/pageSize, 64<<10))
	if err := kernel.RemountAt(layer, kernel.NoSUID|kernel.NoDev, options); err != nil {
		return err
	}
	if err := kernel.RemountAt(shm, kernel.NoSUID|kernel.NoDev|kernel.NoExec, fmt.Sprintf("size=%d", b.Disk)); err != nil {
		return err
	}
	// The tree's root is as the host's.
	st, err := kernel.StatAt(kernel.AtCWD, lower)
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
	// What is mounted does not see what changes below it.
	if err := kernel.Detach(merged); err != nil {
		return err
	}
	for _, dir := range made() { // which the archive has, too
		if err := os.Remove(upper + dir); err != nil {
			return err
		}
	}
	if err := unpack(&chunks{r: m.control}, m.upper); err != nil {
		return err
	}
	return mountMerged()
}

// mountTree mounts what is in the commands' tree.
func (m *machine) mountTree(b *protocol.Begin) error {
	const own = kernel.NoSUID | kernel.NoDev
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
		from, err := kernel.OpenPath(host, strings.TrimPrefix(filepath.Join("/", bind.Target), "/"), true)
		if err != nil {
			return err
		}
		attrs := uint64(own)
		if !bind.Write {
			attrs |= kernel.ReadOnly
		}
		err = mountAt(from, root, bind, attrs)
		from.Close()
		if err != nil {
			return err
		}
	}
	// The agent puts its own /proc there.
	proc, err := place(root, "/proc", false)
	if err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	proc.Close()
	if err := moveTo(root, system, "/sys", own|kernel.NoExec|kernel.ReadOnly); err != nil {
		return err
	}
	if err := moveTo(root, devices, "/dev", kernel.NoSUID|kernel.NoExec|kernel.ReadOnly); err != nil {
		return err
	}
	// As where the agent is executed from there: nothing, and nobody puts it there.
	if err := moveTo(root, empty, guestinit.Dir, own|kernel.NoExec|kernel.ReadOnly); err != nil {
		return err
	}
	if b.Sudo {
		if err := showSudo(root); err != nil {
			return fmt.Errorf("give commands sudo: %w", err)
		}
	}
	// Where the tree has such a file, it is this machine's.
	at, err := kernel.OpenPath(root, "etc/machine-id", true)
	if err != nil {
		return nil
	}
	defer at.Close()
	return attach(machineID, at, own|kernel.NoExec|kernel.ReadOnly)
}

// showSudo mounts this program where commands look for sudo. Below it an empty file
// is in the private layer, where the tree had none.
func showSudo(root *os.File) error {
	at, err := place(root, sudo.Path, true)
	if err != nil {
		return fmt.Errorf("%s: %w", sudo.Path, err)
	}
	defer at.Close()
	return attach(Argv0, at, kernel.NoSUID|kernel.NoDev|kernel.ReadOnly)
}

// mountAt mounts what is open as a place at another one in the tree.
func mountAt(from, root *os.File, bind boxinit.Bind, attrs uint64) error {
	fd, err := kernel.Descriptor(from)
	if err != nil {
		return err
	}
	mount, err := kernel.CloneTree(fd, "", false)
	if err != nil {
		return err
	}
	defer mount.Close()
	at, err := place(root, bind.Target, bind.IsFile)
	if err != nil {
		return err
	}
	defer at.Close()
	return errors.Join(kernel.SetMountAttr(mount, attrs, false), kernel.Attach(mount, at))
}

// moveTo mounts what is mounted at a path, with what is mounted in it, at a place
// of the tree.
func moveTo(root *os.File, from, to string, attrs uint64) error {
	at, err := place(root, to, false)
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	defer at.Close()
	return attach(from, at, attrs)
}

func attach(from string, at *os.File, attrs uint64) error {
	mount, err := kernel.CloneTree(kernel.AtCWD, from, true)
	if err != nil {
		return err
	}
	defer mount.Close()
	return errors.Join(kernel.SetMountAttr(mount, attrs, false), kernel.Attach(mount, at))
}

// link has the interface as this machine's network is: one that goes on from memory
// may have had another.
func (m *machine) link(b *protocol.Begin) error {
	if b.Link == m.linked {
		return nil
	}
	l := kernel.Link{Name: boxinit.LinkName, MTU: boxinit.LinkMTU}
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

// agentEnv is the agent's own environment, which no command sees. As in this process no
// goroutine is interrupted by a signal for another one's turn: where a machine is
// emulated all of the kernel's and the runtime's code for that would run once.
func agentEnv() []string {
	return []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,containermaxprocs=0,updatemaxprocs=0,decoratemappings=0"}
}

// mostFiles is how many files the agent may have open, and how many commands at
// most: the kernel's own limit.
const mostFiles = 1 << 20

// orderAgent has the agent begin, which then ends the machine or answers on its
// port.
func (m *machine) orderAgent(b *protocol.Begin) error {
	defer m.order.Close()
	return framing.Write(m.order, &guestinit.Order{Tree: merged, UID: b.UID, GID: b.GID, Sudo: b.Sudo})
}

// startAgent starts the agent, which waits for an order. When it ends, so does the
// machine.
func (m *machine) startAgent() error {
	port, err := m.agent.File()
	if err != nil {
		return err
	}
	defer port.Close()
	// The other one would be open as long as this process is.
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
	if err := kernel.ShareMounts(); err != nil {
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
		runtime.LockOSThread() // for good: what this thread gives up, it has not any more
		if err := errors.Join(kernel.TimerSlack(slack), kernel.KeepBounding(kernel.AgentCaps()), kernel.KeepOverUsers()); err != nil {
			done <- started{err: err}
			return
		}
		p, err := os.StartProcess(Argv0, []string{guestinit.Argv0, guestinit.OnPort}, &os.ProcAttr{
			Dir: "/", Env: agentEnv(), Files: []*os.File{null, null, console, port, state, order},
			Sys: &syscall.SysProcAttr{Cloneflags: kernel.ClonePID | kernel.CloneMount},
		})
		done <- started{p, err}
	}()
	s := <-done
	if s.err != nil {
		return s.err
	}
	m.job(func() error {
		defer m.sessions.followed.Wait() // who listens to the agent hears its end
		state, err := s.process.Wait()
		if err == nil {
			err = fmt.Errorf("the agent ended: %s", state)
		}
		return err
	})
	// Nothing of this process is given up for lack of memory: not before the agent
	// was started, who would not be either.
	return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
}

// sessions are the agent's, of which there is one at a time.
type sessions struct {
	ready    chan struct{}  // closed when the agent waits for an order
	followed sync.WaitGroup // done when nobody listens to the agent any more

	mu   sync.Mutex
	now  bool          // guarded by mu: there is one
	ends chan struct{} // guarded by mu: closed when it has ended, and then nil; nil where nobody waits
}

// follow listens to the agent.
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

// waitReady waits until the agent has done all that it does before its order.
func (s *sessions) waitReady(most time.Duration) error {
	select {
	case <-s.ready:
		return nil
	case <-time.After(most):
		return fmt.Errorf("the agent does not begin: %w", paddock.Timeout)
	}
}

// waitEnd waits until there is none.
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
