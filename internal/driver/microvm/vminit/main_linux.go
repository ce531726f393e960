package vminit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Directories of the machine that commands do not see.
const (
	modules   = "/modules"    // of the kernel, loaded in the order of their names
	lower     = "/lower"      // the host's files
	layer     = "/layer"      // the private layer: upper and work
	merged    = "/merged"     // the commands' tree
	empty     = "/empty"      // a directory that is never written
	devices   = "/devices"    // the commands' /dev
	system    = "/system"     // the commands' /sys
	groupsDir = "/groups"     // control groups
	machineID = "/machine-id" // content of the commands' /etc/machine-id

	upper = layer + "/upper"
	shm   = devices + "/shm"
)

// Main runs as the machine's first process and does not return. On an error it writes a
// line to the console and ends the machine.
func Main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "paddock: the first process of a machine is started by its kernel")
		os.Exit(2)
	}
	end(run())
}

// end writes the error to the console and ends the machine.
func end(err error) {
	line := fmt.Sprintf("paddock: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	if console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0); err == nil {
		_, _ = console.WriteString(line)
	}
	_ = sys.PowerOff()
	select {} // the kernel crashes if its first process ends
}

// run serves until an error.
func run() error {
	// One thread may wait for files of the host that the other one fetches. Each further
	// thread would cost time in the scheduler.
	runtime.GOMAXPROCS(2)
	if err := sys.InitSignals(); err != nil {
		return err
	}
	m := &machine{failed: make(chan error, jobs)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // the following power-off ends pending system calls
	m.running = ctx
	m.job(func() error {
		if err := m.prepare(); err != nil {
			return err
		}
		return m.serve(ctx)
	})
	return <-m.failed
}

// jobs is the number of goroutines with the machine's lifetime: requests, files in both
// directions and those to be closed, and the agent.
const jobs = 5

// job starts one of them. The first to end ends the machine; run gets its error.
func (m *machine) job(do func() error) {
	go func() { m.failed <- do() }()
}

// A machine is the state of this machine.
type machine struct {
	running context.Context // ends with the machine
	failed  chan error      // receives the result of each job; has room for all

	groups groups
	pump   *pump
	agent  *sys.Port
	files  *sys.Port

	// control is opened last. The host sees that and knows that the machine is ready. At
	// this moment the machine can be saved as a template, because it does not depend on a
	// box.
	control reopening

	upper    *os.File // the private layer
	number   *os.File // machineID
	sessions *sessions
	order    *os.File // receives a guestinit.Order
	begun    bool     // it belongs to a box
	held     bool     // by Hold
	linked   bool     // the interface is up
}

// prepare does what is the same in every machine.
func (m *machine) prepare() error {
	const quiet = sys.NoSUID | sys.NoExec
	for _, dir := range []string{"/dev", "/proc", "/sys", lower, layer, merged, empty, devices, system, groupsDir, guestinit.OwnProc, guestinit.OwnGroups} {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, step := range []func() error{
		func() error { return sys.MountAt("devtmpfs", "/dev", quiet, "mode=755") },
		func() error { return sys.MountAt("proc", "/proc", quiet|sys.NoDev, "") },
		func() error { return sys.MountAt("sysfs", "/sys", quiet|sys.NoDev, "") },
		func() error { return sys.RelaxTimers(slack) },
		loadModules,
		settle,
		func() error { return sys.MountAt("sysfs", system, quiet|sys.NoDev|sys.ReadOnly, "") },
		func() (err error) { m.groups, err = makeGroups(groupsDir); return err },
		makeDevices,
		sys.LoopbackUp,
		func() (err error) { m.files, err = openPort(protocol.FilesPort); return err },
		func() (err error) { m.agent, err = openPort(protocol.AgentPort); return err },
		m.startAgent,
		m.mountLower,
		m.makeLayer,
		mountMerged,
		func() error { return sys.MountEmpty(empty) },
		m.makeNumber,
		func() error { return m.sessions.waitReady(portTime) },
		func() error { runtime.GC(); return nil }, // so that no collection is due soon
		func() error {
			p, err := openPort(protocol.ControlPort)
			m.control = p
			return err
		},
	} {
		if err := step(); err != nil {
			return fmt.Errorf("prepare the machine: %w", err)
		}
	}
	return nil
}

// numberSize is the length of a machine's number in hexadecimal digits.
const numberSize = 32

// makeNumber makes the file for the machine's number, still empty.
func (m *machine) makeNumber() (err error) {
	if m.number, err = os.OpenFile(machineID, os.O_CREATE|os.O_WRONLY, 0o444); err != nil {
		return err
	}
	_, err = m.number.WriteString(strings.Repeat("0", numberSize) + "\n")
	return err
}

// slack is the timer slack of this process and the agent. A thread of the Go runtime wakes
// every 20 µs while there is work. In emulation each wake-up takes longer than that.
const slack = 5 * time.Millisecond

func loadModules() error {
	entries, err := os.ReadDir(modules)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := sys.LoadModule(filepath.Join(modules, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// settle drops the kernel features that nothing needs from then on, not even this process.
// Commands have no capability to use them, but they may be user 0.
func settle() error {
	for name, value := range map[string]string{
		"kernel/modules_disabled":          "1",
		"kernel/kexec_load_disabled":       "1",
		"kernel/core_pattern":              "core",
		"user/max_user_namespaces":         "0",
		"kernel/unprivileged_bpf_disabled": "1",
	} {
		err := os.WriteFile("/proc/sys/"+name, []byte(value), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// makeDevices makes the commands' /dev.
func makeDevices() error {
	if err := sys.MountAt("tmpfs", devices, sys.NoSUID|sys.NoExec, "mode=755,size=65536"); err != nil {
		return err
	}
	for _, d := range []struct {
		name         string
		major, minor uint32
	}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}} {
		if err := sys.MakeDevice(filepath.Join(devices, d.name), 0o666, d.major, d.minor); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, filepath.Join(devices, name)); err != nil {
			return err
		}
	}
	pts := filepath.Join(devices, "pts")
	if err := errors.Join(os.Mkdir(pts, 0o755), os.Mkdir(shm, 0o755)); err != nil {
		return err
	}
	if err := sys.MountAt("tmpfs", shm, sys.NoSUID|sys.NoDev|sys.NoExec, shmOptions); err != nil {
		return err
	}
	return sys.MountAt("devpts", pts, sys.NoSUID|sys.NoExec, "newinstance,ptmxmode=0666,mode=620")
}

// openPort waits for a port, because its driver detects it shortly after loading.
func openPort(name string) (*sys.Port, error) {
	ctx, cancel := context.WithTimeout(context.Background(), portTime)
	defer cancel()
	for {
		p, err := sys.OpenPort(name)
		if !gone(err) {
			return p, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

const (
	portTime = 60 * time.Second
	// restTime bounds the time for processes to come to rest, and for the host to answer
	// pending requests.
	restTime = 20 * time.Second
)

// serve answers the supervisor's requests, in one session after another.
func (m *machine) serve(ctx context.Context) error {
	for {
		if err := m.control.WaitOpen(ctx); err != nil {
			return err
		}
		if m.session() {
			continue // unread bytes may belong to the next session
		}
		if _, err := io.Copy(io.Discard, m.control); err != nil {
			return err
		}
	}
}

// session serves until the supervisor closes its end, or sends an invalid request. It
// reports whether everything sent was read.
func (m *machine) session() (read bool) {
	for {
		var r protocol.Request
		if err := protocol.Read(m.control, &r); err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
		answer, err := m.do(&r)
		if err != nil {
			answer = protocol.Answer{Error: err.Error(), Kind: paddock.KindOf(err)}
		}
		if protocol.Write(m.control, &answer) != nil {
			return false
		}
		if r.Archive != nil && err == nil && m.sendArchive() != nil {
			return false
		}
	}
}

func (m *machine) do(r *protocol.Request) (answer protocol.Answer, err error) {
	if r.Begin == nil && !m.begun {
		return answer, fmt.Errorf("the machine has not begun: %w", paddock.Conflict)
	}
	ctx, cancel := context.WithTimeout(context.Background(), restTime)
	defer cancel()
	switch {
	case r.Begin != nil:
		err = m.begin(ctx, r.Begin)
	case r.Hold:
		err = m.hold(ctx)
	case r.Go:
		err = m.release()
	case r.Archive != nil:
		err = m.count(ctx, r.Archive)
	case r.Memory != 0:
		err = m.groups.bound(r.Memory)
	case r.Inspect:
		answer.Memory, answer.Peak, answer.Kills, err = m.groups.usage()
	default:
		err = fmt.Errorf("a request that this machine does not know: %w", paddock.Unsupported)
	}
	return answer, err
}

// hold stops the commands and the file requests in progress. In a restored machine,
// commands then run only after the time and the random generator were set.
func (m *machine) hold(ctx context.Context) error {
	if m.held {
		return nil
	}
	if err := m.groups.freeze(ctx, m.groups.commands()); err != nil {
		return err
	}
	err := sys.SyncFS(lower) // writes to mapped memory
	if err == nil {
		err = m.pump.hold(ctx)
	}
	if err != nil {
		return errors.Join(err, m.groups.thaw(m.groups.commands()))
	}
	m.held = true
	return nil
}

func (m *machine) release() error {
	if !m.held {
		return nil
	}
	m.held = false
	m.pump.release()
	return m.groups.thaw(m.groups.commands())
}

// count stops everything that can change the private layer, and checks that there is room
// for its archive. If so, sendArchive follows.
func (m *machine) count(ctx context.Context, room *protocol.Archive) error {
	if err := m.groups.freeze(ctx, m.groups.agent(), m.groups.commands()); err != nil {
		return err
	}
	err := count(m.upper, room)
	if err != nil {
		err = errors.Join(err, m.thaw())
	}
	return err
}

// thaw undoes count.
func (m *machine) thaw() error {
	err := m.groups.thaw(m.groups.agent())
	if !m.held {
		err = errors.Join(err, m.groups.thaw(m.groups.commands()))
	}
	return err
}

func (m *machine) sendArchive() error {
	c := newChunker(m.control)
	err := archive(m.upper, c)
	if err != nil {
		err = c.spoil()
	}
	return errors.Join(err, c.end(), m.thaw())
}
