package cgroup

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// helping is set where the test binary is started again as a child to be
// bounded; its value says what the child does.
const helping = "PADDOCK_CGROUP_TEST"

func TestMain(m *testing.M) {
	if task := os.Getenv(helping); task != "" {
		help(task)
	}
	os.Exit(m.Run())
}

func help(task string) {
	switch task {
	case "grow": // until somebody ends it
		var held [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 512 {
				b[i] = 1
			}
			held = append(held, b)
			runtime.KeepAlive(held)
		}
	case "hold": // 48 MiB, and says so
		b := make([]byte, 48<<20)
		for i := 0; i < len(b); i += 512 {
			b[i] = 1
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		runtime.KeepAlive(b)
	case "share": // maps a file whole, and says so
		f, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		b, err := syscall.Mmap(int(f.Fd()), 0, 100<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for i := 0; i < len(b); i += 512 {
			b[i] = 1
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		runtime.KeepAlive(b)
	case "headless": // ends its main thread, and goes on
		var search func()
		search = func() {
			runtime.LockOSThread()
			if syscall.Gettid() == syscall.Getpid() {
				_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
			}
			go search()
			fmt.Fprintln(os.Stderr, "searching")
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		search()
	case "send": // 64 MiB into datagram sockets that nobody reads from, and says how much they hold
		if err := send(64 << 20); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "make": // a group, and dies with it
		h := Probe()
		if _, err := h.Create(os.Args[1], moderate); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	os.Exit(0)
}

// send sends datagrams to its own sockets, reads them all, and prints how many bytes it got.
func send(bytes int) error {
	var sockets []*net.UDPConn
	packet, most := make([]byte, 8<<10), 2000
	for left := bytes; left > 0 && len(sockets) < most; {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		sockets = append(sockets, c)
		for range 10 { // which fit into the usual buffer
			if _, err := c.WriteTo(packet, c.LocalAddr()); err != nil {
				break
			}
			left -= len(packet)
		}
	}
	got := 0
	for _, c := range sockets {
		for {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			n, err := c.Read(packet)
			if err != nil {
				break
			}
			got += n
		}
	}
	_, err := fmt.Println(got)
	return err
}

func executable(tb testing.TB) string {
	tb.Helper()
	name, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return name
}

func helper(tb testing.TB, task string, args ...string) *exec.Cmd {
	tb.Helper()
	cmd := exec.Command(executable(tb), args...)
	cmd.Env = append(os.Environ(), helping+"="+task)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd
}

var moderate = paddock.Limits{Memory: 256 << 20, CPUs: 1, PIDs: 64}

// host gives a host on which groups with limits can really be made, or skips.
func host(tb testing.TB) *Host {
	tb.Helper()
	h := Probe()
	for _, f := range h.Findings() {
		if f.Strength == paddock.Absent && f.Control != paddock.ControlIO {
			tb.Skipf("no control groups to test with: %s: %s (remedy: %s)", f.Control, f.Cause, f.Remedy)
		}
	}
	return h
}

// hosts gives what this machine is, and what it would be with less: promises
// hold on each.
func hosts(t *testing.T, each func(t *testing.T, h *Host, l paddock.Limits)) {
	t.Run("as it is", func(t *testing.T) { each(t, host(t), moderate) })
	t.Run("version 1 alone", func(t *testing.T) {
		h := host(t)
		h.hierarchies = slices.DeleteFunc(h.hierarchies, func(y *hierarchy) bool { return y.v2 })
		if len(h.hierarchies) == 0 {
			t.Skip("nothing of version 1 is mounted here")
		}
		each(t, h, moderate)
	})
	t.Run("version 2 alone", func(t *testing.T) {
		h := Probe()
		h.hierarchies = slices.DeleteFunc(h.hierarchies, func(y *hierarchy) bool { return !y.v2 || y.err != nil })
		if len(h.hierarchies) == 0 {
			t.Skip("no usable version 2 hierarchy is mounted here")
		}
		l := moderate
		for _, c := range []struct {
			name string
			off  func()
		}{
			{memory, func() { l.Memory = 0 }},
			{cpu, func() { l.CPUs = 0 }},
			{pids, func() { l.PIDs = 0 }},
		} {
			if _, err := h.find(c.name); err != nil {
				c.off() // beside version 1 it has no controllers
			}
		}
		each(t, h, l)
	})
}

func create(tb testing.TB, h *Host, name string, l paddock.Limits) *Group {
	tb.Helper()
	g, err := h.Create(name, l)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Remove(context.Background()); err != nil {
			tb.Error(err)
		}
		for _, d := range g.Dirs() {
			if exists(d) {
				tb.Errorf("%s is left", d)
			}
		}
	})
	return g
}

// begin starts a command in a group.
func begin(tb testing.TB, g *Group, cmd *exec.Cmd) {
	tb.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if err := g.Start(cmd.SysProcAttr, cmd.Start); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

// inside checks the text of a /proc/PID/cgroup against a group.
func inside(t *testing.T, g *Group, text string) {
	t.Helper()
	want := path.Base(g.Dirs()[0])
	for _, p := range g.parts {
		ok := false
		for line := range strings.Lines(text) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			here := p.v2 && f[0] == "0" || !p.v2 && slices.Contains(strings.Split(f[1], ","), p.controllers[0])
			ok = ok || here && path.Base(f[2]) == want
		}
		if !ok {
			t.Errorf("not in %s:\n%s", p.path, text)
		}
	}
}

// nobody checks that no thread of this process is in a group.
func nobody(t *testing.T, g *Group) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		b, err := os.ReadFile("/proc/self/task/" + th.Name() + "/cgroup")
		if err == nil && strings.Contains(string(b), path.Base(g.Dirs()[0])) {
			t.Errorf("thread %s is still inside:\n%s", th.Name(), b)
		}
	}
}
