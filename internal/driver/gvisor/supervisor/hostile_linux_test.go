package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/lisafs"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/pkg/unet"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/util"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/filter"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
)

// A brief lists the targets for a hostile process.
type brief struct {
	Secrets    map[string]string // by path: content of files of the host that no box shows
	Work       string            // path of a workspace on the host
	Mount      string            // its path in the box
	Keep       []string          // names in it that must not be changed
	Make       []string          // names in it that must not be made
	Read       []string          // names in it that must not be read
	Abstract   string            // an abstract socket of the host
	Port       int               // a TCP port of the host
	Stage      string            // prefix of the name of a technique
	Rooms      []int             // descriptors of directories
	Bare       bool              // without restrictions: restore what each technique has spoiled
	Acquainted []int             // descriptors of sockets to the box's init process or the host
}

// An attempt is the result of one technique.
type attempt struct {
	Name    string
	Reached bool
	Detail  string
}

var (
	// hostileSocket is where the process in the sentry's place connects to the box's init
	// process, before its restrictions.
	hostileSocket = filepath.Join(boxinit.State, "hostile")
	briefFile     = boxinit.Root + reports + "/brief.json"
)

// errOccupied ends the sentry's start when its process is complete except for the guest and
// for gVisor's own filter, which is installed last.
var errOccupied = errors.New("somebody else is in the sentry's place")

// occupied starts gVisor's processes unchanged. When the box is in the state in which
// commands run, another process acts in the sentry's place, with the same restrictions.
// Only gVisor's own filter is missing, which restricts a compromised sentry too.
type occupied struct {
	supervisor
	conns map[string]net.Conn // to the processes in the place of gofer and boot
}

func (o *occupied) Start(c *boxinit.Config, f boxinit.GuestKernelFiles) error {
	if _, err := os.Lstat(briefFile); err != nil {
		return o.supervisor.Start(c, f) // a trial, which reports nothing
	}
	l, err := net.Listen("unix", hostileSocket)
	if err != nil {
		return err
	}
	seal := f.Seal
	f.Seal = func() error {
		if err := seal(); err != nil {
			return err
		}
		return errOccupied
	}
	if err := o.supervisor.Start(c, f); !errors.Is(err, errOccupied) {
		return fmt.Errorf("start: %w", err)
	}
	o.conns = map[string]net.Conn{}
	for range o.Processes() {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		who := make([]byte, len("boot\n"))
		if _, err := io.ReadFull(conn, who); err != nil {
			return err
		}
		o.conns[string(who)] = conn
	}
	_ = l.Close()
	task, err := os.ReadFile(briefFile)
	if err != nil {
		return err
	}
	go func() {
		for processes()[0].Caps != 1<<unix.CAP_SYS_PTRACE { // the state of this process while commands run
			time.Sleep(time.Millisecond)
		}
		var list []attempt
		for _, who := range []string{"gofr\n", "boot\n"} { // the second ends the first
			var part []attempt
			if err := visit(o.conns[who], task, &part); err != nil {
				list = append(list, attempt{"tell what " + who + " reached", true, err.Error()})
			}
			list = append(list, part...)
		}
		_ = report(list)
	}()
	return nil
}

// visit makes the hostile process try, and waits for its report.
func visit(conn net.Conn, task []byte, into *[]attempt) error {
	if _, err := conn.Write(task); err != nil {
		return err
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	return json.NewDecoder(conn).Decode(into)
}

// Connect stands in for the agent, which does not exist.
func (o *occupied) Connect(ctx context.Context) (net.Conn, error) {
	if o.conns == nil {
		return o.supervisor.Connect(ctx)
	}
	ours, theirs := net.Pipe()
	go func() {
		buf := make([]byte, 1<<20)
		_, _ = theirs.Read(buf)                                                    // the greeting
		if err := json.NewEncoder(theirs).Encode(guestinit.Answer{}); err != nil { // all is well
			return
		}
		_, _ = io.Copy(io.Discard, theirs)
	}()
	return ours, nil
}

// occupy makes this process, which is about to become the sentry, act as the hostile
// process later.
func occupy() {
	conn := introduce("boot\n")
	raw, err := conn.(*net.UnixConn).SyscallConn()
	own := -1
	if err == nil {
		err = raw.Control(func(fd uintptr) { own = int(fd) })
	}
	if err != nil {
		fail("hostile", err)
		os.Exit(1)
	}
	// There is no program to execute in its later root.
	program, err := syscall.Open("/proc/self/exe", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		fail("hostile", err)
		os.Exit(1)
	}
	selfExecutable = fmt.Sprintf("/proc/self/fd/%d", program)
	args := os.Args
	go func() {
		runtime.LockOSThread()
		var b brief
		if err := json.NewDecoder(conn).Decode(&b); err != nil {
			return
		}
		var list []attempt
		var served []gofer
		for _, arg := range args {
			v, ok := strings.CutPrefix(arg, "--io-fds=")
			fd, err := strconv.Atoi(v)
			if !ok || err != nil {
				continue
			}
			g, err := meet(fd)
			if err != nil {
				list = append(list, attempt{"meet a gofer", false, err.Error()})
				continue
			}
			served = append(served, g)
			if g.host >= 0 {
				b.Rooms = append(b.Rooms, g.host)
			}
		}
		b.Acquainted = sockets()
		list = append(list, attempts(&b)...)
		for _, g := range served {
			list = append(list, byGofer(&b, g)...)
		}
		// The gofer ends with its last client. Then what it served is mounted nowhere and
		// has no name.
		for _, g := range served {
			g.client.Close()
		}
		time.Sleep(100 * time.Millisecond)
		b.Stage = "after the gofer's end: "
		list = append(list, onFiles(&b)...)
		// If the supervisor can still receive the report, it has survived this.
		garbage(slices.DeleteFunc(b.Acquainted, func(fd int) bool { return fd == own }))
		if err := json.NewEncoder(conn).Encode(list); err != nil {
			os.Exit(1) // the supervisor has ended
		}
	}()
}

// A gofer is a connection to the gofer, which serves one directory or one file.
type gofer struct {
	client *lisafs.Client
	root   lisafs.Inode
	host   int // descriptor of what it serves
}

// meet asks a gofer for what it serves, as the sentry does.
func meet(fd int) (g gofer, err error) {
	sock, err := unet.NewSocket(fd)
	if err != nil {
		return g, err
	}
	g.client, g.root, g.host, err = lisafs.NewClient(sock)
	return g, err
}

// introduce connects to the supervisor while it can be reached.
func introduce(who string) net.Conn {
	conn, err := net.Dial("unix", hostileSocket)
	if err == nil {
		_, err = io.WriteString(conn, who)
	}
	if err != nil {
		fail("hostile", err)
		os.Exit(1)
	}
	return conn
}

//go:linkname goferPrograms gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var goferPrograms map[string]precompiledseccomp.Program

// occupyGofer is occupy for the gofer. It does the gofer's setup, with a filter that allows
// everything. It does not return.
func occupyGofer() {
	conn := introduce("gofr\n")
	go func() {
		runtime.LockOSThread()
		var b brief
		if err := json.NewDecoder(conn).Decode(&b); err != nil {
			return
		}
		// The setup is complete when the root is the tree of the commands.
		for end := time.Now().Add(3 * time.Minute); !exists(b.Mount+"/.git/HEAD") && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		b.Stage = "in the gofer's place: "
		for _, name := range []string{"/", b.Mount} {
			if fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
				b.Rooms = append(b.Rooms, fd)
			}
		}
		b.Acquainted = sockets()
		if err := json.NewEncoder(conn).Encode(attempts(&b)); err != nil {
			os.Exit(1)
		}
	}()
	err := errors.Join(bounded(goferCaps), prepare(func() error {
		err := filter.InstallGofer()
		for name, p := range goferPrograms {
			const ret, allow = 0x06, 0x7fff0000
			p.Bytecode32 = []uint32{ret, allow}
			for v := range p.VarOffsets {
				p.VarOffsets[v] = nil
			}
			goferPrograms[name] = p
		}
		return err
	}), boxinit.Enlist())
	if err != nil {
		fail("hostile gofer", err)
		os.Exit(1)
	}
	cli.Run(nil, map[util.SubCommand]string{new(cmd.Gofer): ""}, nil)
	os.Exit(0)
}

// sockets returns all descriptors that are sockets.
func sockets() []int {
	var list []int
	for fd := range 1024 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			list = append(list, fd)
		}
	}
	return list
}

// withoutWalls is the same for a process without restrictions.
func withoutWalls() {
	var b brief
	if err := json.NewDecoder(os.Stdin).Decode(&b); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fd, err := unix.Open(b.Work, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	b.Rooms, b.Mount, b.Bare = []int{fd}, b.Work, true
	b.Acquainted = sockets()
	if err := json.NewEncoder(os.Stdout).Encode(attempts(&b)); err != nil {
		os.Exit(1)
	}
}

// stage restores the workspace.
func (b *brief) stage() {
	if !b.Bare {
		return
	}
	entries, _ := os.ReadDir(b.Work)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(b.Work, e.Name()))
	}
	_ = furnish(b.Work)
}
