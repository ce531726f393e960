package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func exitPromises() []group {
	return []group{{promises: []promise{
		{"every exit code from 0 to 255 is told", exitCodes},
		{"a process killed by itself tells the signal", killedByItself},
		{"an exit code above 128 is not taken for a signal", codeIsNoSignal},
		{"a signal reaches the whole process group", signalGroup},
		{"a signal can be handled", signalHandled},
		{"a signal to what has ended is not found", signalEnded},
		{"a signal that does not exist is invalid", signalInvalid},
		{"Wait answers many callers, many times, the same", waitMany},
		{"a deadline in Wait ends the waiting, not the process", waitDeadline},
		{"a process outlives the call that started it", outlivesStart},
		{"Release ends Wait and lets the process go on", releaseGoesOn},
		{"the exit tells what was used", exitUsage},
		{"Processes tells what runs and what has ended", listsProcesses},
		{"no signal that a shell sends to the sandbox's first process, or a thread of it, ends the sandbox", signalFirst},
	}}, {can: []paddock.Capability{paddock.CanPrograms}, walls: []paddock.Control{paddock.ControlPIDNS}, promises: []promise{
		{"no way to send a signal ends the sandbox, whatever the signal is", signalEveryWay},
	}}, {can: []paddock.Capability{paddock.CanMountWrite}, walls: []paddock.Control{paddock.ControlProtected}, promises: []promise{
		{"what was refused is still told after signals to the sandbox's first process", signalRefusals},
	}}}
}

func exitCodes(t *testing.T, s *suite) {
	b := s.box(t)
	ctx := bounded(t)
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for code := part; code < 256; code += 8 {
				r, err := b.try(ctx, b.shell(fmt.Sprintf("exit %d", code)))
				if err != nil || r.exit.Code != code || r.exit.Cause != paddock.Exited || r.exit.Signal != 0 || r.exit.Reason != "" {
					t.Errorf("exit %d: %+v, %v", code, r.exit, err)
				}
			}
		})
	}
	wg.Wait()
}

func killedByItself(t *testing.T, s *suite) {
	b := s.box(t)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSEGV, syscall.SIGHUP, syscall.SIGUSR1} {
		r := b.sh(t, fmt.Sprintf("kill -%d $$", sig))
		if r.exit.Cause != paddock.Signaled || r.exit.Signal != sig || r.exit.Code != 128+int(sig) || r.exit.Reason == "" {
			t.Errorf("%v: %+v", sig, r.exit)
		}
	}
}

func codeIsNoSignal(t *testing.T, s *suite) {
	r := s.box(t).sh(t, "exit 137")
	if r.exit.Cause != paddock.Exited || r.exit.Signal != 0 || r.exit.Code != 137 {
		t.Errorf("%+v", r.exit)
	}
}

func signalGroup(t *testing.T, s *suite) {
	b := s.box(t)
	p := b.start(t, b.shell("sleep 1000 & echo $! > child; echo $$ > main; wait"))
	until(t, "the command runs", func() bool { return b.exists(t, b.in("main")) })
	if err := p.Signal(bounded(t), syscall.SIGTERM); err != nil {
		t.Fatalf("signal: %v", err)
	}
	exit := wait(t, p)
	if exit.Cause != paddock.Signaled || exit.Signal != syscall.SIGTERM || exit.Code != 143 {
		t.Errorf("%+v", exit)
	}
	b.gone(t, b.in("child"))
}

// announce starts a command with input and waits for its first line.
func (b box) announce(t testing.TB, script string) (paddock.Process, *syncBuffer) {
	t.Helper()
	var out syncBuffer
	cmd := b.shell(script)
	cmd.Input = true
	cmd.Output = paddock.Output{Stdout: &out, Stderr: &out}
	p := b.start(t, cmd)
	until(t, "the command says something", func() bool { return bytes.ContainsRune(out.Bytes(), '\n') })
	return p, &out
}

// A syncBuffer may be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// Bytes returns a copy of what was written so far.
func (b *syncBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

func (b *syncBuffer) String() string { return string(b.Bytes()) }

func signalHandled(t *testing.T, s *suite) {
	p, out := s.box(t).announce(t, "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
	if err := p.Signal(bounded(t), syscall.SIGTERM); err != nil {
		t.Fatalf("signal: %v", err)
	}
	// The signal ends the sleep too, and the shell may report that.
	exit := wait(t, p)
	if exit.Cause != paddock.Exited || exit.Code != 3 || !bytes.Contains(out.Bytes(), []byte("got it")) {
		t.Errorf("%+v, output %q", exit, out)
	}
}

func signalEnded(t *testing.T, s *suite) {
	b := s.box(t)
	p := b.start(t, b.shell("exit 0"))
	wait(t, p)
	wantKind(t, "signal", p.Signal(bounded(t), syscall.SIGTERM), paddock.NotFound)
}

func signalInvalid(t *testing.T, s *suite) {
	b := s.box(t)
	p := b.start(t, b.shell("exec sleep 1000"))
	for _, sig := range []syscall.Signal{-1, 65, 1000} {
		wantKind(t, fmt.Sprint("signal ", int(sig)), p.Signal(bounded(t), sig), paddock.Invalid)
	}
	kill(t, p)
	if exit := wait(t, p); exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v", exit)
	}
}

func waitMany(t *testing.T, s *suite) {
	b := s.box(t)
	p := b.start(t, b.shell("exit 5"))
	ctx := bounded(t)
	first := wait(t, p)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if exit, err := p.Wait(ctx); err != nil || exit != first {
				t.Errorf("%+v, %v; the first was %+v", exit, err, first)
			}
		})
	}
	wg.Wait()
}

func waitDeadline(t *testing.T, s *suite) {
	b := s.box(t)
	cmd := b.shell("read line; exit 7")
	cmd.Input = true
	p := b.start(t, cmd)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Wait(ctx)
	wantKind(t, "wait", err, paddock.Canceled, paddock.Timeout)
	if _, err := io.WriteString(p.Input(), "go\n"); err != nil {
		t.Fatalf("write: %v", err)
	}
	if exit := wait(t, p); exit.Code != 7 {
		t.Errorf("%+v", exit)
	}
}

func outlivesStart(t *testing.T, s *suite) {
	b := s.box(t)
	var out bytes.Buffer
	cmd := b.shell("read line; echo $line")
	cmd.Input = true
	cmd.Output = paddock.Output{Stdout: &out}
	ctx, cancel := context.WithCancel(t.Context())
	p, err := b.Start(ctx, cmd)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	defer p.Release()
	cancel()
	if _, err := io.WriteString(p.Input(), "after the call\n"); err != nil {
		t.Fatalf("write: %v", err)
	}
	if exit := wait(t, p); exit.Code != 0 || out.String() != "after the call\n" {
		t.Errorf("%+v, output %q", exit, &out)
	}
}

func releaseGoesOn(t *testing.T, s *suite) {
	b := s.box(t)
	p, _ := b.announce(t, "echo ready; while ! [ -e go ]; do sleep 0.05; done; echo x > done")
	ended := make(chan error, 1)
	ctx := bounded(t)
	go func() {
		_, err := p.Wait(ctx)
		ended <- err
	}()
	p.Release()
	p.Release()
	wantKind(t, "the wait of a released process", <-ended, paddock.Canceled)
	b.put(t, b.in("go"), nil, 0)
	until(t, "the process went on", func() bool { return b.exists(t, b.in("done")) })
}

func exitUsage(t *testing.T, s *suite) {
	r := s.box(t).sh(t, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
	u := r.exit.Usage
	if u.Wall <= 0 || u.CPU == 0 || u.CPU > 100*u.Wall || u.MemoryPeak == 0 || u.Memory > 0 {
		t.Errorf("%+v", u)
	}
}

func listsProcesses(t *testing.T, s *suite) {
	b := s.own(t)
	ended := b.start(t, b.shell("echo 12345; exit 9"))
	wait(t, ended)
	running := b.start(t, paddock.Cmd{Args: []string{"sleep", "1000"}, Dir: "/"})
	info := b.info(t, running.ID())
	if len(info.Args) != 2 || info.Args[0] != "sleep" || info.Args[1] != "1000" || info.Dir != "/" ||
		info.Exit != nil || info.Terminal || info.Started.IsZero() || info.User == "" {
		t.Errorf("of what runs: %+v", info)
	}
	kill(t, running)
	info = b.info(t, ended.ID())
	if info.Exit == nil || info.Exit.Code != 9 || info.First != 0 || info.Next != 6 {
		t.Errorf("of what has ended: %+v", info)
	}
}

// signals sends signals to process 1, of which kill(2) also takes the number of a thread.
const signals = `
for t in 1 $(ls /proc/1/task 2> /dev/null); do
	for s in 11 7 4 8 5 31 6 3 2 15 1 10 12 13 14 16 24 25 26 27 29 30 23 32 33 34 64; do kill -$s $t; done
done 2> /dev/null
true`

func signalFirst(t *testing.T, s *suite) {
	b := s.own(t)
	b.sh(t, signals)
	b.lives(t)
}

func signalEveryWay(t *testing.T, s *suite) {
	b := s.own(t)
	if r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "signal", "1"}}); r.exit.Code != 0 || r.out != "tried\n" {
		t.Errorf("%+v", r)
	}
	b.lives(t)
}

func signalRefusals(t *testing.T, s *suite) {
	b := s.mounted(t, paddock.Mount{Source: repository(t), Target: "/mnt/desk", Write: true})
	b.attempt(t, "echo x > /mnt/desk/.git/hooks/pre-commit", signals)
	b.lives(t)
	st, err := b.Status(bounded(t))
	told := slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool { return strings.Contains(r.Target, ".git/hooks") })
	if err != nil || !told && s.enforces(paddock.ControlLandlock) {
		t.Errorf("refused: %+v, %v", st.Refused, err)
	}
}

// lives checks that the sandbox still runs commands.
func (b box) lives(t testing.TB) {
	t.Helper()
	if got := b.must(t, "echo lives"); got != "lives\n" {
		t.Errorf("%q", got)
	}
	if st, err := b.Status(bounded(t)); err != nil || st.State != paddock.Ready {
		t.Errorf("status %+v, %v", st, err)
	}
}
