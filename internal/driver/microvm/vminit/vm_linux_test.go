package vminit_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/bootfiles"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/fileserver"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
)

// dataEnv names the directory that boot.Setup was given.
const dataEnv = "PADDOCK_TEST_KERNEL"

// A vm is a machine of a test.
type vm struct {
	ports   map[string]string // paths of their sockets
	console *console
	control net.Conn
	files   net.Conn
	served  chan struct{} // closed when serving has ended
	token   []byte
	yamux   *yamux.Session
	done    chan struct{} // closed when QEMU has ended
}

// A console collects the machine's output.
type console struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.String()
}

// start starts a machine, or skips the test if none can be made.
func start(t *testing.T) *vm {
	t.Helper()
	data := os.Getenv(dataEnv)
	if data == "" {
		t.Skip(dataEnv + " names no directory with a kernel")
	}
	engine, err := bootfiles.FindEngine("")
	if err != nil {
		t.Skip("no QEMU: ", err)
	}
	k, err := bootfiles.Find(bootfiles.Options{Data: data})
	if err != nil {
		t.Skip("no kernel: ", err)
	}
	mods, err := k.Modules()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "guest")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "github.com/paddock-sandbox/paddock/cmd/paddock-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	initrd := filepath.Join(dir, "initrd")
	f, err := os.Create(initrd)
	if err != nil {
		t.Fatal(err)
	}
	if err := bootfiles.Initrd(f, code, mods); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	khz, err := bootfiles.KHz()
	if err != nil {
		t.Fatal(err)
	}
	v := &vm{ports: map[string]string{}, console: &console{}, token: make([]byte, guestinit.TokenSize), done: make(chan struct{})}
	_, _ = rand.Read(v.token)
	args := []string{"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-M", "microvm,acpi=on,x-option-roms=off,auto-kernel-cmdline=off", "-accel", "tcg,tb-size=128", "-cpu", "Nehalem", "-m", "512",
		"-global", "virtio-mmio.force-legacy=false",
		"-kernel", k.Path, "-initrd", initrd, "-append", bootfiles.Arguments(protocol.TCG, khz),
		"-serial", "stdio", "-device", "virtio-serial-device,max_ports=4"}
	for i, name := range []string{protocol.ControlPort, protocol.FilesPort, protocol.AgentPort} {
		v.ports[name] = filepath.Join(dir, name)
		args = append(args, "-chardev", fmt.Sprintf("socket,id=port%d,path=%s,server=on,wait=off", i+1, v.ports[name]),
			"-device", fmt.Sprintf("virtserialport,nr=%d,chardev=port%d,name=%s", i+1, i+1, name))
	}
	qemu := exec.Command(engine.Path, args...)
	qemu.Stdout, qemu.Stderr = v.console, v.console
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(v.done)
		_ = qemu.Wait()
	}()
	t.Cleanup(func() {
		_ = qemu.Process.Kill()
		<-v.done
		if t.Failed() {
			t.Logf("console: %s", v.console)
		}
	})
	v.control = v.dial(t, protocol.ControlPort)
	return v
}

// patience bounds every wait, because a machine is slow on a busy host.
const patience = 3 * time.Minute

// dial connects to a port, for which QEMU may not listen yet.
func (v *vm) dial(t *testing.T, port string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		conn, err := net.Dial("unix", v.ports[port])
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-v.done:
			t.Fatal("QEMU has ended")
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

// ask makes a request to the machine's init.
func (v *vm) ask(t *testing.T, r protocol.Request) (protocol.Answer, error) {
	t.Helper()
	_ = v.control.SetDeadline(time.Now().Add(patience))
	if err := protocol.Write(v.control, &r); err != nil {
		t.Fatal(err)
	}
	return v.answer(t)
}

func (v *vm) answer(t *testing.T) (protocol.Answer, error) {
	t.Helper()
	var a protocol.Answer
	if err := protocol.Read(v.control, &a); err != nil {
		t.Fatal(err)
	}
	return a, a.Err()
}

// must is ask that has to succeed.
func (v *vm) must(t *testing.T, r protocol.Request) protocol.Answer {
	t.Helper()
	a, err := v.ask(t, r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return a
}

// A place has the host's files for a machine of these tests.
type place struct {
	work string // a writable directory
	srv  *fileserver.Server
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{work: t.TempDir()}
	if err := os.Chmod(p.work, 0o777); err != nil {
		t.Fatal(err)
	}
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	if p.srv, err = fileserver.New(fileserver.Options{Root: root, UID: os.Getuid(), GID: os.Getgid(), Begun: true, Binds: p.binds()}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) binds() []boxinit.Bind { return []boxinit.Bind{{Target: p.work, Write: true}} }

// begin sends Begin to a machine.
func (v *vm) begin(t *testing.T, p place, layer []byte) {
	t.Helper()
	v.serve(t, p)
	entropy := make([]byte, 64)
	_, _ = rand.Read(entropy)
	_ = v.control.SetDeadline(time.Now().Add(patience))
	if err := protocol.Write(v.control, &protocol.Request{Begin: &protocol.Begin{
		Entropy: entropy, Time: time.Now().UnixNano(), Hostname: "box", Machine: strings.Repeat("5a", 16),
		Binds: p.binds(), Disk: 64 << 20, Memory: 128 << 20, UID: os.Getuid(), GID: os.Getgid(), Layer: layer != nil,
	}}); err != nil {
		t.Fatal(err)
	}
	if layer != nil {
		for part := layer; len(part) > 0; {
			n := min(len(part), protocol.MaxChunk)
			if err := protocol.WriteChunk(v.control, part[:n]); err != nil {
				t.Fatal(err)
			}
			part = part[n:]
		}
		if err := protocol.WriteChunk(v.control, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.answer(t); err != nil {
		t.Fatal("begin: ", err)
	}
	v.connect(t)
}

// serve starts a session for files.
func (v *vm) serve(t *testing.T, p place) {
	t.Helper()
	v.files, v.served = v.dial(t, protocol.FilesPort), make(chan struct{})
	conn, served := v.files, v.served
	go func() {
		defer close(served)
		_ = p.srv.Serve(conn)
	}()
}

// connect starts a session with the agent.
func (v *vm) connect(t *testing.T) {
	t.Helper()
	conf := yamux.DefaultConfig()
	conf.EnableKeepAlive, conf.LogOutput, conf.ConnectionWriteTimeout = false, io.Discard, patience
	s, err := yamux.Client(v.dial(t, protocol.AgentPort), conf)
	if err != nil {
		t.Fatal(err)
	}
	v.yamux = s
	t.Cleanup(func() { s.Close() })
}

// settle sends the host's decisions to the agent.
func (v *vm) settle(t *testing.T) {
	t.Helper()
	conn, err := v.yamux.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	settings := &guestinit.Settings{
		User: guest.User{Name: "user", UID: os.Getuid(), GID: os.Getgid(), Home: "/tmp"}, Env: map[string]string{"PATH": "/usr/bin:/bin"}, Dir: "/tmp", Files: 1024, PIDs: 100,
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, err = conn.Write(append([]byte{guestinit.Settle}, v.token...))
	if err = errors.Join(err, guestinit.OfMachine.Write(conn, settings)); err != nil {
		t.Fatal(err)
	}
	var answer guestinit.Answer
	if err := guestinit.OfMachine.Read(conn, &answer); err != nil || answer.Error != "" {
		t.Fatal("settle: ", err, answer)
	}
}

// guest connects to the agent.
func (v *vm) guest(t *testing.T) *guestclient.Guest {
	t.Helper()
	conn, err := v.yamux.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(append([]byte{guestinit.Serve}, v.token...)); err != nil {
		t.Fatal(err)
	}
	g, err := guestclient.New(conn, guestclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// run runs a script, and returns its output and status.
func run(t *testing.T, g *guestclient.Guest, script string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	p, err := g.Start(t.Context(), paddock.Cmd{Args: []string{"/bin/sh", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	exit, err := p.Wait(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(out.String()), exit.Code
}

func TestACommandRunsInAMachine(t *testing.T) {
	v := start(t)
	p := newPlace(t)
	if _, err := v.ask(t, protocol.Request{Hold: true}); err == nil {
		t.Error("a machine that has not begun is held")
	}
	v.begin(t, p, nil)
	v.settle(t)
	g := v.guest(t)
	for _, c := range []struct{ script, want string }{
		{"id -u; id -g; hostname; pwd", fmt.Sprintf("%d\n%d\nbox\n/tmp", os.Getuid(), os.Getgid())},
		{"echo hello >" + p.work + "/file; cat " + p.work + "/file", "hello"},
		{"echo private >/tmp/private; cat /tmp/private", "private"},
		{"grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs' /proc/self/status", "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1"},
		{"echo $$ >/dev/null; ls /dev", "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero"},
		{"set -- /proc/[0-9]*; echo $#", "2"}, // the agent and the shell
		{"unshare -U true 2>/dev/null; echo $?", "1"},
		{"echo x >/proc/sys/kernel/core_pattern; echo $?", "/bin/sh: 1: cannot create /proc/sys/kernel/core_pattern: Read-only file system\n2"},
		{"cat /etc/machine-id 2>/dev/null || echo " + strings.Repeat("5a", 16), strings.Repeat("5a", 16)},
		{"ls /.paddock", ""},
		{"readlink /proc/1/exe; cat /proc/1/environ", "cat: /proc/1/environ: Permission denied"},
	} {
		if got, _ := run(t, g, c.script); got != c.want {
			t.Errorf("%s: %q, want %q", c.script, got, c.want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(p.work, "file")); err != nil || string(data) != "hello\n" {
		t.Errorf("the host sees %q, %v", data, err)
	}
	if _, err := os.Stat("/tmp/private"); err == nil {
		t.Error("a private file reached the host")
	}
}

func TestAMachineIsHeldAndGoesOn(t *testing.T) {
	v := start(t)
	p := newPlace(t)
	v.begin(t, p, nil)
	v.settle(t)
	g := v.guest(t)
	out, ended := make(chan string, 1), make(chan struct{})
	r, w := io.Pipe()
	ticker, err := g.Start(t.Context(), paddock.Cmd{Args: []string{"/bin/sh", "-c", "while :; do echo tick; test -e " + p.work + "/stop && exit; done"}, Output: paddock.Output{Stdout: w}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			if err != nil {
				return
			}
			select {
			case out <- string(buf[:n]):
			default:
			}
		}
	}()
	<-out
	v.must(t, protocol.Request{Hold: true})

	// A restored machine has neither session.
	v.files.Close()
	<-v.served
	v.yamux.Close()
	entropy := make([]byte, 64)
	_, _ = rand.Read(entropy)
	now := time.Now().Add(1000 * time.Hour)
	v.must(t, protocol.Request{Begin: &protocol.Begin{Again: true, Entropy: entropy, Time: now.UnixNano(), Hostname: "other", Machine: strings.Repeat("a5", 16)}})
	v.serve(t, p)
	v.connect(t)
	v.must(t, protocol.Request{Go: true})
	v.settle(t)
	g = v.guest(t)
	if got, _ := run(t, g, "hostname; date +%Y; echo changed >"+p.work+"/stop; cat "+p.work+"/stop"); got != fmt.Sprintf("other\n%d\nchanged", now.Year()) {
		t.Errorf("%q", got)
	}
	if exit, err := ticker.Wait(t.Context()); err != nil || exit.Cause != paddock.SandboxGone {
		t.Errorf("what was followed in a session that ended: %+v, %v", exit, err)
	}
	w.Close()
	<-ended
}

func TestTheMemoryOfCommandsIsBounded(t *testing.T) {
	v := start(t)
	v.begin(t, newPlace(t), nil)
	v.settle(t)
	g := v.guest(t)
	before := v.must(t, protocol.Request{Inspect: true})
	if before.Kills != 0 || before.Memory <= 0 || before.Peak < before.Memory {
		t.Errorf("%+v", before)
	}
	const take = "head -c 60000000 /dev/zero | tail -c 60000000 | wc -c"
	if got, _ := run(t, g, take); got != "60000000" {
		t.Errorf("%q", got)
	}
	v.must(t, protocol.Request{Memory: 32 << 20})
	run(t, g, take)
	if after := v.must(t, protocol.Request{Inspect: true}); after.Kills == 0 {
		t.Errorf("nothing was ended: %+v", after)
	}
	if _, err := v.ask(t, protocol.Request{Memory: -1}); !errors.Is(err, paddock.Invalid) {
		t.Error(err)
	}
	if got, _ := run(t, g, "echo alive"); got != "alive" {
		t.Errorf("%q", got)
	}
}

func TestTheNextMachineBeginsWithThePrivateLayer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root changes the system's files, in the private layer too")
	}
	v := start(t)
	p := newPlace(t)
	v.begin(t, p, nil)
	v.settle(t)
	run(t, v.guest(t), "echo kept >/tmp/kept; rm -f /etc/passwd; mv /etc/apt /etc/other; truncate -s 20m /tmp/holes")
	if _, err := v.ask(t, protocol.Request{Archive: &protocol.Archive{All: 1 << 30, Content: 1 << 30, File: 10 << 20}}); !errors.Is(err, paddock.Exhausted) {
		t.Error(err)
	}
	v.must(t, protocol.Request{Archive: &protocol.Archive{All: 1 << 30, Content: 1 << 30, File: 1 << 30}})
	var layer []byte
	for {
		part, err := protocol.ReadChunk(v.control)
		if err != nil {
			t.Fatal(err)
		}
		if len(part) == 0 {
			break
		}
		layer = append(layer, part...)
	}
	if got, _ := run(t, v.guest(t), "cat /tmp/kept"); got != "kept" {
		t.Errorf("afterwards: %q", got)
	}
	next := start(t)
	next.begin(t, newPlace(t), layer)
	next.settle(t)
	if got, _ := run(t, next.guest(t), "cat /tmp/kept; test -e /etc/passwd; echo $?; test -d /etc/apt; echo $?; ls /etc/other | wc -l; stat -c %s /tmp/holes"); !strings.HasPrefix(got, "kept\n1\n1\n") || !strings.HasSuffix(got, "\n20971520") {
		t.Errorf("%q", got)
	}
}
