package qemu

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/bootfiles"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// A lab has the parts of machines.
type lab struct {
	t              *testing.T
	engine         string
	kernel, initrd string
	arguments      string
	ctx            context.Context
	network        int // type of the network's socket
}

// newLab skips the test if no machine can be made.
func newLab(t *testing.T) *lab {
	t.Helper()
	engine, err := bootfiles.FindEngine("")
	if err != nil {
		t.Skip(err)
	}
	data, ok := os.LookupEnv("PADDOCK_TEST_KERNEL")
	if !ok {
		data = t.TempDir()
	}
	linux, err := bootfiles.Find(bootfiles.Options{Data: data})
	if err != nil {
		t.Skip(err)
	}
	modules, err := linux.Modules()
	if err != nil {
		t.Fatal(err)
	}
	khz, err := bootfiles.KHz()
	if err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			t.Skip("this program cannot be an init: it is linked dynamically")
		}
	}
	l := &lab{
		t: t, engine: engine.Path, kernel: linux.Path, initrd: filepath.Join(t.TempDir(), "initrd"),
		arguments: bootfiles.Arguments(protocol.TCG, khz), network: syscall.SOCK_SEQPACKET,
	}
	guest, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	var initrd bytes.Buffer
	if err := bootfiles.Initrd(&initrd, guest, modules); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.initrd, initrd.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithTimeout(t.Context(), 10*time.Minute) // for a busy host
	t.Cleanup(cancel)
	return l
}

// A rig is a machine with its connections.
type rig struct {
	*lab
	*VM
	dir   string // for its ports
	lines *bufio.Reader
	conn  net.Conn

	net     *os.File
	console []byte
}

func (l *lab) spec() *Spec {
	return &Spec{Machine: protocol.Machine{
		Accel: protocol.TCG, CPU: "Nehalem-v1", CPUs: 1, Memory: 256 << 20,
		Arguments: l.arguments,
	}}
}

// cold starts a machine from a kernel.
func (l *lab) cold(s *Spec) *rig {
	s.Kernel, s.Initrd = l.kernel, l.initrd
	return l.start(s)
}

// start starts a machine, which does not run yet.
func (l *lab) start(s *Spec) *rig {
	l.t.Helper()
	r := &rig{lab: l, dir: l.t.TempDir()}
	for _, name := range []string{"control", "other"} {
		s.Ports = append(s.Ports, Port{Name: name, Listener: listener(l.t, filepath.Join(r.dir, name))})
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, l.network|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	r.net, s.Net = os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer s.Net.Close()
	console, ours, err := os.Pipe()
	if err != nil {
		l.t.Fatal(err)
	}
	defer ours.Close()
	s.Console = ours
	var wg sync.WaitGroup
	wg.Go(func() {
		defer console.Close()
		r.console, _ = io.ReadAll(console)
	})
	r.VM, err = Start(l.ctx, s, l.starter())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		r.Kill()
		_ = r.Wait()
		r.net.Close()
		wg.Wait()
		if l.t.Failed() {
			l.t.Logf("console: %s", r.console)
		}
	})
	return r
}

// starter starts QEMU as a child.
func (l *lab) starter() Starter {
	return func(args []string, files []*os.File) (*os.Process, error) {
		cmd := exec.Command(l.engine, args...)
		cmd.ExtraFiles, cmd.Stderr = files, l.t.Output()
		err := cmd.Start()
		return cmd.Process, err
	}
}

// listener listens on a path.
func listener(t *testing.T, path string) *os.File {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ln.SetUnlinkOnClose(false)
	f, err := ln.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// run runs the machine, and connects to its control port.
func (r *rig) run() {
	r.t.Helper()
	if err := r.Cont(r.ctx); err != nil {
		r.t.Fatal(err)
	}
	r.conn = r.connect("control")
	r.lines = bufio.NewReader(r.conn)
}

// connect connects to a port.
func (r *rig) connect(name string) net.Conn {
	r.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	end, _ := r.ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// echo makes the guest send a text on the other port.
func (r *rig) echo(conn net.Conn, text string) {
	r.t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		r.t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		r.t.Fatalf("echo of %q: %q, %v", text, got, err)
	}
}

// ask sends a request to the guest.
func (r *rig) ask(question string) string {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.conn, question); err != nil {
		r.t.Fatal(err)
	}
	line, err := r.lines.ReadString('\n')
	if err != nil {
		r.t.Fatal(question, ": ", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// say is ask with a known answer.
func (r *rig) say(question, answer string) {
	r.t.Helper()
	if got := r.ask(question); got != answer {
		r.t.Fatalf("%s: %q, not %q", question, got, answer)
	}
}

// A picture is a saved machine.
type picture struct{ ram, devices string }

// save saves a stopped machine.
func (r *rig) save() picture {
	r.t.Helper()
	dir := r.t.TempDir()
	p := picture{filepath.Join(dir, "ram"), filepath.Join(dir, "devices")}
	devices, err := os.Create(p.devices)
	if err != nil {
		r.t.Fatal(err)
	}
	defer devices.Close()
	start := time.Now()
	if err := r.SaveDevices(r.ctx, devices, 1<<20); err != nil {
		r.t.Fatal(err)
	}
	saved := time.Now()
	ram, err := os.Create(p.ram)
	if err != nil {
		r.t.Fatal(err)
	}
	defer ram.Close()
	if err := r.SaveMemory(r.ctx, ram, 256<<20); err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("devices saved in %v, memory in %v", saved.Sub(start), time.Since(saved))
	return p
}

// copied returns a private copy of a file. Without the filter of a box, QEMU punches holes
// into the file of its memory for pages that the machine returns.
func (l *lab) copied(path string) string {
	l.t.Helper()
	from, err := os.Open(path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(l.t.TempDir(), "ram"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer to.Close()
	st, err := from.Stat()
	if err == nil {
		err = to.Truncate(st.Size())
	}
	for off := int64(0); err == nil && off < st.Size(); {
		start, end := nextData(from, off, st.Size())
		_, err = io.Copy(io.NewOffsetWriter(to, start), io.NewSectionReader(from, start, end-start))
		off = end
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return to.Name()
}

// goOn starts a restored machine, which does not run yet.
func (l *lab) goOn(p picture) *rig {
	l.t.Helper()
	s := l.spec()
	devices, err := os.Open(p.devices)
	if err != nil {
		l.t.Fatal(err)
	}
	defer devices.Close()
	s.RAM, s.Devices = l.copied(p.ram), devices
	if s.Template, err = os.Open(s.RAM); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { s.Template.Close() })
	return l.start(s)
}

// stop stops the machine.
func (r *rig) stop() {
	r.t.Helper()
	start := time.Now()
	if err := r.Stop(r.ctx); err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("stopped in %v", time.Since(start))
}

// TestMachine boots a machine from its kernel once, because that is slow, and saves it. All
// other tests restore it.
func TestMachine(t *testing.T) {
	l := newLab(t)
	start := time.Now()
	first := l.cold(l.spec())
	first.run()
	first.say("ping", "pong 1")
	t.Logf("cold start to the first answer in %v", time.Since(start))
	first.say("read /sys/class/net/eth0/mtu", strconv.Itoa(MTU))
	first.say("write /sys/class/net/eth0/flags 0x1003", "<nil>") // interface up
	first.ask("keep 2")
	other := first.connect("other")
	first.echo(other, "first")
	first.stop()
	p := first.save()
	t.Run("goes on where it was saved", func(t *testing.T) {
		if err := first.Cont(first.ctx); err != nil {
			t.Fatal(err)
		}
		// It has no more files of the host than before.
		dir := fmt.Sprintf("/proc/%d/fd", first.PID())
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.Contains(to, "memfd:devices") {
				t.Errorf("QEMU still has %s", to)
			}
		}
		first.say("ping", "pong 2")
		first.echo(other, "second")
	})
	first.Kill()
	for _, c := range []struct {
		name string
		test func(*testing.T, *lab, picture)
	}{
		{"goes on in another process", goesOn},
		{"what it changed is saved over its template", changes},
		{"carries frames", frames},
		{"carries frames by datagrams", datagrams},
		{"tells why it ended", ends},
		{"is saved within bounds", bounds},
		{"moves nothing when it stands", standsStill},
		{"does not go on from what is no state", noState},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := *l
			l.t = t
			c.test(t, &l, p)
		})
	}
}

func goesOn(t *testing.T, l *lab, p picture) {
	sums := map[string]bool{}
	for range 2 {
		start := time.Now()
		r := l.goOn(p)
		started := time.Now()
		r.run()
		r.say("ping", "pong 2")
		t.Logf("started in %v, first answer in %v", started.Sub(start), time.Since(start))
		r.say("closed 1", "1")
		r.echo(r.connect("other"), "anew")
		sums[r.ask("sum")] = true
	}
	if len(sums) != 1 {
		t.Error("memory differs")
	}
}

func changes(t *testing.T, l *lab, p picture) {
	for i := range 2 { // from a restored machine again
		r := l.goOn(p)
		r.run()
		r.say("ping", fmt.Sprint("pong ", 2+i))
		sum := r.ask("change 3")
		r.stop()
		p = r.save()
		r.Kill()
		r = l.goOn(p)
		r.run()
		r.say("sum", sum)
	}
}

func frames(_ *testing.T, l *lab, p picture) {
	r := l.goOn(p)
	r.run()
	for _, size := range []int{60, MTU + 14} {
		var wg sync.WaitGroup
		wg.Go(r.mirror)
		r.say(fmt.Sprint("frame ", size), fmt.Sprint("frame ", size))
		wg.Wait()
	}
}

func datagrams(t *testing.T, l *lab, p picture) {
	l.network = syscall.SOCK_DGRAM
	frames(t, l, p)
}

// mirror sends back a frame of this test.
func (r *rig) mirror() {
	buf := make([]byte, 1<<17)
	for {
		n, err := r.net.Read(buf)
		if err != nil || n == 0 {
			return
		}
		if n > 14 && buf[12] == ethernet&0xff && buf[13] == ethernet>>8 {
			_, _ = r.net.Write(buf[:n])
			return
		}
	}
}

func ends(t *testing.T, l *lab, p picture) {
	for _, c := range []struct{ question, why string }{
		{"off", "guest-shutdown"}, {"reboot", "guest-reset"}, {"panic", "guest-reset"},
	} {
		r := l.goOn(p)
		r.run()
		fmt.Fprintln(r.conn, c.question)
		if err := r.Wait(); !errors.Is(err, paddock.Unavailable) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.question, err)
		}
		if err := r.Stop(l.ctx); err == nil {
			t.Error("one that ended stopped")
		}
	}
	r := l.goOn(p)
	r.Kill()
	r.Kill()
	if err := r.Wait(); !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
}

func bounds(t *testing.T, l *lab, p picture) {
	r := l.goOn(p)
	var devices bytes.Buffer
	if err := r.SaveDevices(l.ctx, &devices, 1000); !errors.Is(err, paddock.Exhausted) || devices.Len() > 0 {
		t.Errorf("%d bytes of devices: %v", devices.Len(), err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "ram"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := r.SaveMemory(l.ctx, f, 1<<20); !errors.Is(err, paddock.Exhausted) {
		t.Error(err)
	}
	r.run() // it can still continue
	r.say("ping", "pong 2")
}

// standsStill writes more to a port than its queue and its socket can hold, and stops the
// machine meanwhile.
func standsStill(t *testing.T, l *lab, p picture) {
	r := l.goOn(p)
	r.run()
	r.say("closed 1", "1")
	sum := r.ask("sum")
	other := r.connect("other")
	sent := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	got := make(chan []byte, 1)
	go func() {
		b := make([]byte, len(sent))
		_, _ = io.ReadFull(other, b)
		got <- b
	}()
	part := 0
	for ; part < len(sent)/2; part += 32 << 10 {
		if _, err := other.Write(sent[part : part+32<<10]); err != nil {
			t.Fatal(err)
		}
	}
	r.stop()
	one, two := r.save(), r.save()
	for _, f := range [][2]string{{one.ram, two.ram}, {one.devices, two.devices}} {
		a, err := os.ReadFile(f[0])
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(f[1])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s changed", filepath.Base(f[0]))
		}
	}
	if err := r.Cont(l.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Write(sent[part:]); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(<-got, sent) {
		t.Error("bytes were lost")
	}
	r.Kill()
	r = l.goOn(two)
	r.run()
	r.say("closed 2", "2")
	r.say("sum", sum)
}

func noState(t *testing.T, l *lab, p picture) {
	state, err := os.ReadFile(p.devices)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(p.ram)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, data := range map[string][]byte{
		"nothing": nil, "garbage": bytes.Repeat([]byte("garbage"), 10_000), "a part": state[:len(state)/2],
	} {
		s := l.spec()
		s.RAM, s.Template, s.Devices = l.copied(p.ram), f, bytes.NewReader(data)
		if v, err := Start(l.ctx, s, l.starter()); err == nil {
			t.Errorf("it goes on from %s", name)
			v.Kill()
			_ = v.Wait()
		} else {
			t.Log(err)
		}
	}
}

func TestMachineThatCannotStart(t *testing.T) {
	l := newLab(t)
	s := l.spec()
	s.Kernel = "/nowhere"
	if _, err := Start(l.ctx, s, l.starter()); err == nil {
		t.Error("without a kernel")
	}
	s = l.spec()
	s.Kernel = l.kernel
	ctx, cancel := context.WithCancel(l.ctx)
	_, err := Start(ctx, s, func(args []string, files []*os.File) (*os.Process, error) {
		cancel()
		return l.starter()(args, files)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("although it was given up: %v", err)
	}
	if _, err := Start(l.ctx, s, func([]string, []*os.File) (*os.Process, error) { return nil, paddock.Denied }); !errors.Is(err, paddock.Denied) {
		t.Error(err)
	}
}
