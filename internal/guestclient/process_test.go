//go:build linux

package guestclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// limit bounds a test that would otherwise wait for ever.
func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// run runs a command to its end.
func run(t *testing.T, g *guestclient.Guest, cmd paddock.Cmd) (exit paddock.Exit, stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd.Output = paddock.Output{Stdout: &o, Stderr: &e}
	p := start(t, g, cmd)
	return wait(t, p), o.String(), e.String()
}

func start(t *testing.T, g *guestclient.Guest, cmd paddock.Cmd) paddock.Process {
	t.Helper()
	p, err := g.Start(limit(t), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wait(t *testing.T, p paddock.Process) paddock.Exit {
	t.Helper()
	exit, err := p.Wait(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func sh(script string) paddock.Cmd { return paddock.Cmd{Args: []string{"/bin/sh", "-c", script}} }

// hear fails the test unless out has what the test waits for.
func hear(t *testing.T, out *mailbox, want string) {
	t.Helper()
	if !out.waitFor(limit(t), want) {
		t.Fatalf("output %q never held %q", out.String(), want)
	}
}

// A mailbox is a writer that a test can wait for.
type mailbox struct {
	box   chan []byte
	heard []byte
}

func newMailbox() *mailbox { return &mailbox{box: make(chan []byte, 1024)} }

func (m *mailbox) Write(p []byte) (int, error) {
	m.box <- bytes.Clone(p)
	return len(p), nil
}

func (m *mailbox) waitFor(ctx context.Context, want string) bool {
	for !strings.Contains(string(m.heard), want) {
		select {
		case p := <-m.box:
			m.heard = append(m.heard, p...)
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (m *mailbox) String() string { return string(m.heard) }

func TestACommandTellsItsOutputAndItsCode(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	exit, stdout, stderr := run(t, g, sh("echo out; echo err >&2; exit 7"))
	if stdout != "out\n" || stderr != "err\n" || exit.Code != 7 || exit.Cause != paddock.Exited || exit.Reason != "" {
		t.Errorf("got %q, %q, %+v", stdout, stderr, exit)
	}
	if exit.Usage.Wall <= 0 || exit.Usage.MemoryPeak <= 0 {
		t.Errorf("usage is not told: %+v", exit.Usage)
	}
}

// A sum counts and checks bytes that all are 'y' and line feeds in turn.
type sum struct {
	n     int
	wrong bool
	peak  uint64
}

func (s *sum) Write(p []byte) (int, error) {
	for i, c := range p {
		s.wrong = s.wrong || c != "y\n"[(s.n+i)%2]
	}
	if s.n>>24 != (s.n+len(p))>>24 {
		s.peak = max(s.peak, live())
	}
	s.n += len(p)
	return len(p), nil
}

// live returns the bytes of the heap that are in use. What can be collected does not count.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAHundredMegabytesArriveWholeInLittleMemory(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	before := live() // other tests may have left something
	var s sum
	cmd := sh("yes | head -c 100000000")
	cmd.Output.Stdout = &s
	exit := wait(t, start(t, g, cmd))
	if s.n != 100_000_000 || s.wrong || exit.Code != 0 || exit.Dropped != 0 {
		t.Errorf("%d bytes arrived, wrong: %v, %+v", s.n, s.wrong, exit)
	}
	if s.peak == 0 || s.peak > before+32<<20 {
		t.Errorf("the heap grew from %d bytes to %d", before, s.peak)
	}
}

func TestInputArrivesAndItsEndIsTold(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	var out bytes.Buffer
	p := start(t, g, paddock.Cmd{Args: []string{"cat"}, Input: true, Output: paddock.Output{Stdout: &out}})
	want := bytes.Repeat([]byte("0123456789abcde\n"), 1<<18) // 4 MiB
	if n, err := p.Input().Write(want); n != len(want) || err != nil {
		t.Fatal(n, err)
	}
	for range 2 {
		if err := p.Input().Close(); err != nil {
			t.Fatal(err)
		}
	}
	if exit := wait(t, p); exit.Code != 0 || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%d of %d bytes came back, %+v", out.Len(), len(want), exit)
	}
	if _, err := p.Input().Write([]byte("more")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a write after Close answers %v", err)
	}
}

func TestWithoutInputThereIsAnEmptyFile(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	p := start(t, g, paddock.Cmd{Args: []string{"cat"}})
	if _, err := p.Input().Write([]byte("x")); !errors.Is(err, paddock.Conflict) {
		t.Errorf("a write answers %v", err)
	}
	if err := p.Input().Close(); !errors.Is(err, paddock.Conflict) {
		t.Errorf("a close answers %v", err)
	}
	if exit := wait(t, p); exit.Code != 0 {
		t.Error(exit)
	}
}

func TestAWriteThatWaitsIsGivenUpByCloseAndRelease(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	for name, giveUp := range map[string]func(paddock.Process){
		"close":   func(p paddock.Process) { _ = p.Input().Close() },
		"release": paddock.Process.Release,
	} {
		t.Run(name, func(t *testing.T) {
			out := newMailbox()
			cmd := sh("echo ready; read line; exec sleep 1000")
			cmd.Input, cmd.Output.Stdout = true, out
			p := start(t, g, cmd)
			defer func() { _ = p.Signal(limit(t), syscall.SIGKILL) }()
			hear(t, out, "ready")
			written := make(chan error)
			go func() {
				_, err := p.Input().Write(make([]byte, 1<<20))
				written <- err
			}()
			giveUp(p)
			select {
			case err := <-written:
				if err == nil {
					t.Error("a megabyte went into a process that reads nothing")
				}
			case <-limit(t).Done():
				t.Error("the write goes on waiting")
			}
		})
	}
}

func TestACommandHasTheEnvironmentAndDirectoryThatWereAsked(t *testing.T) {
	dir := t.TempDir()
	g := guesttest.New(t, guest.Options{Env: map[string]string{"PATH": "/usr/bin:/bin", "A": "tier", "B": "tier"}, Dir: dir})
	_, out, _ := run(t, g, paddock.Cmd{Args: []string{"/usr/bin/env"}, Env: map[string]string{"B": "\xff=x\n", "C": ""}})
	if want := "A=tier\nB=\xff=x\n\nC=\nPATH=/usr/bin:/bin\n"; out != want {
		t.Errorf("environment %q, want %q", out, want)
	}
	for asked, want := range map[string]string{"": dir, "/usr": "/usr"} {
		cmd := paddock.Cmd{Args: []string{"/bin/pwd"}, Dir: asked}
		if _, out, _ := run(t, g, cmd); out != want+"\n" {
			t.Errorf("asked for %q it runs in %q", asked, out)
		}
	}
}

func TestAProgramIsFoundInTheCommandsOwnPath(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/bin/hello", "#!/bin/sh\necho found", 0o755)
	g := guesttest.New(t, guest.Options{Dir: dir})
	if _, out, _ := run(t, g, paddock.Cmd{Args: []string{"hello"}, Env: map[string]string{"PATH": "/nowhere:" + dir + "/bin"}}); out != "found\n" {
		t.Errorf("got %q", out)
	}
	_, err := g.Start(limit(t), paddock.Cmd{Args: []string{"hello"}, Env: map[string]string{"PATH": "bin::./bin"}})
	var start *paddock.StartError
	if !errors.As(err, &start) || start.Code != 127 {
		t.Errorf("with relative entries it answers %v", err)
	}
	if _, out, _ := run(t, g, paddock.Cmd{Args: []string{"bin/hello"}}); out != "found\n" {
		t.Errorf("a name with a slash is relative to the directory; got %q", out)
	}
}

func writeFile(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestACommandThatCannotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	foreign, here := "\xb7\x00", "x86-64" // EM_AARCH64
	if runtime.GOARCH == "arm64" {
		foreign, here = "\x3e\x00", "ARM aarch64"
	}
	writeFile(t, dir+"/foreign", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 9)+"\x02\x00"+foreign+strings.Repeat("\x00", 100), 0o755)
	writeFile(t, dir+"/script", "#!/no/such/python -u\n", 0o755)
	writeFile(t, dir+"/text", "just words\n", 0o755)
	writeFile(t, dir+"/plain", "#!/bin/sh\n", 0o644)
	g := guesttest.New(t, guest.Options{Dir: dir})
	for _, tt := range []struct {
		cmd  paddock.Cmd
		code int
		kind paddock.Kind
		says string
	}{
		{paddock.Cmd{Args: []string{"no-such-program"}}, 127, paddock.NotFound, "no such program"},
		{paddock.Cmd{Args: []string{"/no/such/program"}}, 127, paddock.NotFound, "no such program"},
		{paddock.Cmd{Args: []string{dir + "/plain/x"}}, 127, paddock.NotFound, "no such program"},
		{paddock.Cmd{Args: []string{dir}}, 126, paddock.Invalid, "directory"},
		{paddock.Cmd{Args: []string{dir + "/plain"}}, 126, paddock.Denied, "not executable"},
		{paddock.Cmd{Args: []string{"plain"}, Env: map[string]string{"PATH": dir}}, 126, paddock.Denied, "not executable"},
		{paddock.Cmd{Args: []string{dir + "/foreign"}}, 126, paddock.Unsupported, "this machine is " + here},
		{paddock.Cmd{Args: []string{dir + "/script"}}, 126, paddock.NotFound, "/no/such/python"},
		{paddock.Cmd{Args: []string{dir + "/text"}}, 126, paddock.Invalid, "exec format error"},
		{paddock.Cmd{Args: []string{"true"}, Dir: "/no/such/dir"}, 126, paddock.NotFound, "/no/such/dir"},
		{paddock.Cmd{Args: []string{"true"}, Dir: dir + "/text"}, 126, paddock.Invalid, "not a directory"},
		{paddock.Cmd{Args: []string{"true", strings.Repeat("x", 1<<20)}}, 126, paddock.Invalid, "too long"},
	} {
		_, err := g.Start(limit(t), tt.cmd)
		var start *paddock.StartError
		if !errors.As(err, &start) || start.Code != tt.code || start.Path != tt.cmd.Args[0] ||
			!errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.60v: %.200v, want %d, %v, %q", tt.cmd, err, tt.code, tt.kind, tt.says)
		}
	}
	if exit, _, _ := run(t, g, sh("exit 3")); exit.Code != 3 {
		t.Errorf("afterwards a command ends with %+v", exit)
	}
}

func TestAWrongRequestIsRefused(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	for _, tt := range []struct {
		cmd  paddock.Cmd
		kind paddock.Kind
	}{
		{paddock.Cmd{}, paddock.Invalid},
		{paddock.Cmd{Args: []string{""}}, paddock.Invalid},
		{paddock.Cmd{Args: []string{"true", "a\x00b"}}, paddock.Invalid},
		{paddock.Cmd{Args: []string{"true"}, Dir: "relative"}, paddock.Invalid},
		{paddock.Cmd{Args: []string{"true"}, Env: map[string]string{"A=B": ""}}, paddock.Invalid},
		{paddock.Cmd{Args: []string{"true"}, Env: map[string]string{"A": "\x00"}}, paddock.Invalid},
		{paddock.Cmd{Args: []string{"true"}, Env: map[string]string{"\xff": ""}}, paddock.Invalid},
		{paddock.Cmd{Args: []string{"true"}, Timeout: -1}, paddock.Invalid},
		{paddock.Cmd{Args: []string{"true"}, Output: paddock.Output{From: -1}}, paddock.Invalid},
		{paddock.Cmd{Args: []string{"true"}, User: "someone-else"}, paddock.Unsupported},
	} {
		if _, err := g.Start(limit(t), tt.cmd); !errors.Is(err, tt.kind) {
			t.Errorf("%+v: %v, want %v", tt.cmd, err, tt.kind)
		}
	}
}

func TestASignalReachesTheWholeGroup(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	out := newMailbox()
	cmd := sh("sleep 1000 & echo ready; wait; echo not reached")
	cmd.Output.Stdout = out
	p := start(t, g, cmd)
	hear(t, out, "ready")
	if err := p.Signal(limit(t), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	exit := wait(t, p)
	if exit.Cause != paddock.Signaled || exit.Signal != syscall.SIGTERM || exit.Code != 143 || exit.Reason == "" {
		t.Errorf("%+v", exit)
	}
	if err := p.Signal(limit(t), syscall.SIGTERM); !errors.Is(err, paddock.NotFound) {
		t.Errorf("a signal after the end answers %v", err)
	}
	if err := p.Signal(limit(t), 0); !errors.Is(err, paddock.Invalid) {
		t.Errorf("signal 0 answers %v", err)
	}
}

func TestAForbiddenSystemCallIsToldAsSuch(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	if exit, _, _ := run(t, g, sh("kill -SYS $$")); exit.Cause != paddock.KilledByPolicy || exit.Signal != syscall.SIGSYS || exit.Reason == "" {
		t.Errorf("%+v", exit)
	}
}

func TestATimeoutKillsWhatTheCommandStarted(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	dir := t.TempDir()
	// One in the group, one in a session of its own, one that ignores signals.
	// Each holds a lock that is free when it is dead.
	cmd := sh(`for i in 1 2 3; do : > lock$i; done
		flock lock1 sleep 1000 &
		setsid -w flock lock2 sleep 1000 &
		(trap "" TERM HUP INT; flock lock3 sleep 1000) &
		for i in 1 2 3; do while flock -n lock$i true; do :; done; done
		echo ready; wait`)
	cmd.Dir, cmd.Timeout = dir, 2*time.Second
	out := newMailbox()
	cmd.Output.Stdout = out
	p := start(t, g, cmd)
	hear(t, out, "ready")
	exit := wait(t, p)
	if exit.Cause != paddock.TimedOut || exit.Signal != syscall.SIGKILL || exit.Code != 137 || !strings.Contains(exit.Reason, "2s") {
		t.Errorf("%+v", exit)
	}
	for _, lock := range []string{"lock1", "lock2", "lock3"} {
		if exit, _, _ := run(t, g, paddock.Cmd{Args: []string{"flock", "-w", "20", lock, "true"}, Dir: dir}); exit.Code != 0 {
			t.Errorf("who holds %s lives on", lock)
		}
	}
}

func TestALifetimeBoundsEveryCommand(t *testing.T) {
	g, _ := guesttest.Both(t, guest.Options{}, guestclient.Options{Lifetime: 200 * time.Millisecond})
	for _, timeout := range []time.Duration{0, time.Hour} {
		if exit := wait(t, start(t, g, paddock.Cmd{Args: []string{"sleep", "1000"}, Timeout: timeout})); exit.Cause != paddock.TimedOut {
			t.Errorf("%+v", exit)
		}
	}
}

func TestWhatIsLeftInTheBackgroundDoesNotHoldUpTheExit(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	dir := t.TempDir()
	if err := syscall.Mkfifo(dir+"/go", 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := sh("(cat go; echo late) & echo early; exit 5")
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Output.Stdout = &out
	p := start(t, g, cmd)
	if exit := wait(t, p); exit.Code != 5 || out.String() != "early\n" {
		t.Errorf("%+v, %q", exit, out.String())
	}
	// What it says later is kept, and a later Attach has it.
	if exit, _, _ := run(t, g, paddock.Cmd{Args: []string{"/bin/sh", "-c", "echo now > go"}, Dir: dir}); exit.Code != 0 {
		t.Fatal(exit)
	}
	for limit := limit(t); !strings.Contains(out.String(), "late"); {
		out.Reset()
		again, err := g.Attach(limit, p.ID(), paddock.Output{Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, again); exit.Code != 5 {
			t.Fatal(exit)
		}
	}
	if out.String() != "early\nnow\nlate\n" {
		t.Errorf("%q", out.String())
	}
}

func TestWaitAnswersTheSameEachTime(t *testing.T) {
	var amended int
	g, _ := guesttest.Both(t, guest.Options{}, guestclient.Options{Amend: func(_ guestclient.Start, exit *paddock.Exit) {
		amended++
		exit.Cause, exit.Limit = paddock.OutOfMemory, 42
	}})
	p := start(t, g, sh("exit 9"))
	first := wait(t, p)
	if second := wait(t, p); first != second || first.Limit != 42 || amended != 1 {
		t.Errorf("%+v, %+v, amended %d times", first, second, amended)
	}
}

func TestWaitIsBoundedByItsContextAndEndedByRelease(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	p := start(t, g, paddock.Cmd{Args: []string{"sleep", "1000"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Wait(ctx); !errors.Is(err, paddock.Canceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended it answers %v", err)
	}
	waited := make(chan error)
	go func() {
		_, err := p.Wait(limit(t))
		waited <- err
	}()
	p.Release()
	p.Release()
	if err := <-waited; !errors.Is(err, paddock.Canceled) {
		t.Errorf("after Release it answers %v", err)
	}
	again, err := g.Attach(limit(t), p.ID(), paddock.Output{})
	if err != nil {
		t.Fatalf("the process did not go on: %v", err)
	}
	if err := again.Signal(limit(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, again); exit.Signal != syscall.SIGKILL {
		t.Error(exit)
	}
}

func TestAContextBoundsTheCallAndNotTheProcess(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	cmd := sh("read line; echo $line")
	cmd.Input, cmd.Output.Stdout = true, &out
	p, err := g.Start(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Input().Write([]byte("alive\n")); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, p); exit.Code != 0 || out.String() != "alive\n" {
		t.Errorf("%+v, %q", exit, out.String())
	}
}

func TestTwoHundredProcessesAtOnce(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	type one struct {
		p   paddock.Process
		out *bytes.Buffer
	}
	var all []one
	for i := range 200 {
		cmd := sh(fmt.Sprintf("read line; echo %d $line", i))
		out := &bytes.Buffer{}
		cmd.Input, cmd.Output.Stdout = true, out
		all = append(all, one{start(t, g, cmd), out})
	}
	list, err := g.Processes(limit(t))
	if err != nil || len(list) != len(all) {
		t.Errorf("%d processes are listed, %v", len(list), err)
	}
	for _, o := range all {
		if _, err := o.p.Input().Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
	}
	for i, o := range all {
		if exit := wait(t, o.p); exit.Code != 0 || o.out.String() != fmt.Sprintf("%d go\n", i) {
			t.Errorf("process %d: %+v, %q", i, exit, o.out)
		}
	}
}

func TestProcessesAreListedWithWhatTheyAre(t *testing.T) {
	g := guesttest.New(t, guest.Options{Dir: "/usr"})
	before := time.Now().Add(-time.Second)
	done := start(t, g, sh("echo hello; exit 4"))
	wait(t, done)
	lives := start(t, g, paddock.Cmd{Args: []string{"sh", "-c", "read -r _", strings.Repeat("x", 3<<15)}, Input: true})
	defer func() { _ = lives.Signal(limit(t), syscall.SIGKILL) }()
	list, err := g.Processes(limit(t))
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	a, b := list[0], list[1]
	if a.PID != done.ID() || a.Args[2] != "echo hello; exit 4" || a.Dir != "/usr" || a.User != "user" ||
		a.Exit == nil || a.Exit.Code != 4 || a.First != 0 || a.Next != 6 || a.Started.Before(before) {
		t.Errorf("%+v", a)
	}
	if b.PID != lives.ID() || b.Exit != nil || len(b.Args[3]) != 3<<15 {
		t.Errorf("%+v", b)
	}
}

func TestALackOfResourcesIsToldAsSuch(t *testing.T) {
	for errno, says := range map[syscall.Errno]string{
		syscall.EAGAIN: "pids limit", syscall.EMFILE: "open files", syscall.ENOMEM: "memory",
	} {
		g := guesttest.New(t, guest.Options{StartProcess: func(string, []string, *guest.ProcAttr) (int, error) {
			return 0, fmt.Errorf("clone: %w", errno)
		}})
		_, err := g.Start(limit(t), paddock.Cmd{Args: []string{"true"}})
		var start *paddock.StartError
		if !errors.Is(err, paddock.Exhausted) || errors.As(err, &start) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v is answered by %v", errno, err)
		}
	}
}

func TestHelloAnswersAfterACommandHasRun(t *testing.T) {
	starts := 0
	o := guest.Options{Dir: "/usr", User: guest.User{Name: "someone", Home: "/home/someone", Shell: "/bin/sh"}}
	o.StartProcess = func(argv0 string, argv []string, attr *guest.ProcAttr) (int, error) {
		starts++
		return syscall.ForkExec(argv0, argv, &syscall.ProcAttr{Env: attr.Env, Files: []uintptr{attr.Files[0].Fd()}})
	}
	g := guesttest.New(t, o)
	for range 2 {
		h, err := g.Hello(limit(t))
		if err != nil || h != (guestclient.Hello{User: "someone", Home: "/home/someone", Dir: "/usr"}) {
			t.Errorf("%+v, %v", h, err)
		}
	}
	list, err := g.Processes(limit(t))
	if starts != 1 || err != nil || len(list) != 0 {
		t.Errorf("%d commands ran, %v are listed, %v", starts, list, err)
	}
}

func TestHelloFailsWhereNoCommandCanRun(t *testing.T) {
	g := guesttest.New(t, guest.Options{StartProcess: func(string, []string, *guest.ProcAttr) (int, error) {
		return 0, syscall.EPERM
	}})
	if h, err := g.Hello(limit(t)); !errors.Is(err, paddock.Denied) {
		t.Errorf("it answers %+v, %v", h, err)
	}
}

func TestWhoWasKilledBeforeIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		count func() (int64, error)
		want  int64
	}{
		"by a guest that counts":         {func() (int64, error) { return 3, nil }, 3},
		"by one that cannot count now":   {func() (int64, error) { return 0, paddock.Unavailable }, -1},
		"by one that leaves it to hosts": {nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan int64, 2)
			g, _ := guesttest.Both(t, guest.Options{Killed: c.count}, guestclient.Options{Amend: func(start guestclient.Start, _ *paddock.Exit) { got <- start.Killed }})
			p := start(t, g, sh("sleep 1000"))
			again, err := g.Attach(limit(t), p.ID(), paddock.Output{})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Signal(limit(t), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for _, p := range []paddock.Process{p, again} {
				wait(t, p)
				if n := <-got; n != c.want {
					t.Errorf("%d, want %d", n, c.want)
				}
			}
		})
	}
}
