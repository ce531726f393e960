package gvisor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
)

// deedsVariable makes this program perform, inside a sandbox, actions for which there is no
// common command.
const deedsVariable = "PADDOCK_GVISOR_DEEDS"

func deeds() error {
	how := struct{ flags, mode, resolve uint64 }{flags: syscall.O_RDONLY}
	for _, name := range []string{"/etc/passwd\x00", "/tmp/\xff\xfe\x00"} {
		path := []byte(name)
		const openat2 = 437
		_, _, errno := syscall.Syscall6(openat2, ^uintptr(99), uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0) // ^99 is AT_FDCWD
		if errno != 0 && errno != syscall.ENOENT {
			return fmt.Errorf("openat2: %w", errno)
		}
	}
	for _, to := range []struct {
		family int
		addr   syscall.Sockaddr
	}{
		{syscall.AF_INET, &syscall.SockaddrInet4{Port: 443, Addr: [4]byte{192, 0, 2, 7}}},
		{syscall.AF_UNIX, &syscall.SockaddrUnix{Name: "@\x01nobody"}},
	} {
		fd, err := syscall.Socket(to.family, syscall.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := syscall.Connect(fd, to.addr); err == nil {
			return fmt.Errorf("%v can be reached", to.addr)
		}
	}
	return exec.Command("/bin/sh", "-c", "kill -9 $$").Run()
}

// events is a sink.
type events struct {
	mu  sync.Mutex
	all []audit.Event // guarded by mu
}

func (e *events) Record(ev audit.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev.Clean())
}

// of returns the events for which f returns true. It fails if events were lost.
func (e *events) of(t *testing.T, f func(audit.Event) bool) []audit.Event {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []audit.Event
	for _, ev := range e.all {
		if ev.Dropped > 0 {
			t.Errorf("%d events were lost before %+v", ev.Dropped, ev)
		}
		if f(ev) {
			list = append(list, ev)
		}
	}
	return list
}

// told fails if f returns true for no event.
func (e *events) told(t *testing.T, what string, f func(audit.Event) bool) {
	t.Helper()
	if len(e.of(t, f)) == 0 {
		t.Errorf("not told: %s", what)
	}
}

func audited(t *testing.T, state string, sink audit.Sink) paddock.Driver {
	t.Helper()
	d, err := gvisor.New(gvisor.Options{State: state, Environ: os.Environ(), Audit: sink})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func spec(t *testing.T, kinds ...paddock.AuditKind) paddock.Spec {
	t.Helper()
	return paddock.Spec{Ephemeral: true, AllowMissing: drivertest.Weak(t, open), Policy: paddock.Policy{Audit: kinds}}
}

// runs makes a sandbox, runs a shell script in it, and removes it.
func runs(t *testing.T, d paddock.Driver, spec paddock.Spec, script string, args ...string) (paddock.ID, string, paddock.Exit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	sb, err := d.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	out, exit := in(ctx, t, sb, script, args...)
	if err := sb.Remove(ctx); err != nil {
		t.Error(err)
	}
	return sb.ID(), out, exit
}

func in(ctx context.Context, t *testing.T, sb paddock.Sandbox, script string, args ...string) (string, paddock.Exit) {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(ctx, paddock.Cmd{Args: append([]string{"sh", "-c", script, "sh"}, args...), Dir: "/tmp", Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), exit
}

func TestWhatCommandsDoIsTold(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var e events
	s := spec(t, paddock.AuditKinds()...)
	s.Mounts = []paddock.Mount{{Source: exe, Target: "/mnt/deeds"}}
	s.Env = map[string]string{deedsVariable: "1", "PADDOCK_SECRET": "a value that no event holds"}
	id, out, exit := runs(t, audited(t, t.TempDir(), &e), s, `/mnt/deeds "$1"; cat /etc/hostname; exit 7`, "one \x1b[2J word")
	if exit.Code != 7 || !strings.Contains(out, "signal: killed") {
		t.Fatalf("%+v: %s", exit, out)
	}
	var shell, program int32
	e.told(t, "the shell that was started", func(ev audit.Event) bool {
		is := ev.Kind == audit.Exec && len(ev.Args) == 5 && ev.Args[4] == "one \x1b[2J word" && ev.Dir == "/tmp" && strings.HasPrefix(ev.Path, "/")
		if is {
			shell = ev.Process.PID
		}
		return is
	})
	e.told(t, "the program that it starts", func(ev audit.Event) bool {
		is := ev.Kind == audit.Exec && ev.Path == "/mnt/deeds" && ev.Process.Parent == shell && slices.Equal(ev.Args, []string{"/mnt/deeds", "one \x1b[2J word"})
		if is {
			program = ev.Process.PID
		}
		return is
	})
	e.told(t, "the process that it is started in", func(ev audit.Event) bool {
		return ev.Kind == audit.Clone && ev.Process.PID == shell && ev.Child == program
	})
	e.told(t, "openat2", func(ev audit.Event) bool {
		return ev.Kind == audit.Open && ev.Process.PID == program && ev.Path == "/etc/passwd" && ev.Flags == "read" && ev.Error == ""
	})
	e.told(t, "a path that is no text", func(ev audit.Event) bool {
		return ev.Kind == audit.Open && ev.Process.PID == program && ev.Path == "/tmp/\ufffd" && ev.Error == "no such file or directory"
	})
	e.told(t, "a file that another command opens", func(ev audit.Event) bool {
		return ev.Kind == audit.Open && ev.Process.Name == "cat" && ev.Path == "/etc/hostname"
	})
	for _, address := range []string{"192.0.2.7:443", "unix:@\x01nobody"} {
		e.told(t, "a connection to "+strconv.Quote(address), func(ev audit.Event) bool {
			return ev.Kind == audit.Connect && ev.Process.PID == program && ev.Address == address
		})
	}
	e.told(t, "a process that was killed", func(ev audit.Event) bool {
		return ev.Kind == audit.Exited && ev.Process.Parent == program && *ev.Exit == audit.Exit{Code: 137, Signal: 9}
	})
	e.told(t, "the end of the shell", func(ev audit.Event) bool {
		return ev.Kind == audit.Exited && ev.Process.PID == shell && *ev.Exit == audit.Exit{Code: 7}
	})
	for _, ev := range e.of(t, func(audit.Event) bool { return true }) {
		line, err := audit.Line(ev)
		if err != nil || bytes.Contains(line, []byte("no event holds")) || bytes.ContainsRune(line, 0x1b) {
			t.Errorf("%q, %v", line, err)
		}
		if ev.Sandbox != string(id) || ev.Time.IsZero() || ev.Process.PID < 1 {
			t.Errorf("%+v", ev)
		}
	}
}

func TestEveryExecIsToldInOrder(t *testing.T) {
	var e events
	const n = 500
	_, out, exit := runs(t, audited(t, t.TempDir(), &e), spec(t), fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true $i || exit; i=$((i+1)); done", n))
	if exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, out)
	}
	execs := e.of(t, func(ev audit.Event) bool { return len(ev.Args) == 2 && ev.Args[0] == "/bin/true" })
	for i, ev := range execs {
		if ev.Args[1] != strconv.Itoa(i) {
			t.Fatalf("number %d is %+v", i, ev)
		}
	}
	if len(execs) != n {
		t.Errorf("%d of %d are told", len(execs), n)
	}
	if others := e.of(t, func(ev audit.Event) bool { return ev.Kind != audit.Exec }); len(others) > 0 {
		t.Errorf("where nothing is asked, other kinds are told: %+v", others[0])
	}
}

// Events before the end of a sandbox are not lost at its end.
func TestWhatIsNotRecordedYetAtTheEndIsNotLost(t *testing.T) {
	var e slowly
	const n = 60
	_, out, exit := runs(t, audited(t, t.TempDir(), &e), spec(t), fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true || exit; i=$((i+1)); done", n))
	if exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, out)
	}
	if got := len(e.of(t, func(ev audit.Event) bool { return slices.Equal(ev.Args, []string{"/bin/true"}) })); got != n {
		t.Errorf("%d of %d are told", got, n)
	}
}

// slowly is a slow sink.
type slowly struct{ events }

func (s *slowly) Record(ev audit.Event) {
	time.Sleep(20 * time.Millisecond)
	s.events.Record(ev)
}

func TestEventsOfOneSandboxNeverCarryTheNameOfAnother(t *testing.T) {
	var e events
	d := audited(t, t.TempDir(), &e)
	const boxes = 3
	ids := make([]paddock.ID, boxes)
	var wg sync.WaitGroup
	for i := range ids {
		s := spec(t, paddock.AuditExec, paddock.AuditOpen)
		s.ID = paddock.ID(fmt.Sprintf("box-%d", i))
		wg.Go(func() {
			ids[i], _, _ = runs(t, d, s, `i=0; while [ $i -lt 20 ]; do /bin/cat "/tmp/$1" 2>/dev/null; i=$((i+1)); done`, string(s.ID))
		})
	}
	wg.Wait()
	for _, id := range ids {
		own := func(ev audit.Event) bool {
			return ev.Path == "/tmp/"+string(id) || slices.Contains(ev.Args, "/tmp/"+string(id))
		}
		list := e.of(t, own)
		if len(list) != 40 {
			t.Errorf("%d events of %s", len(list), id)
		}
		for _, ev := range list {
			if ev.Sandbox != string(id) {
				t.Errorf("of %s: %+v", id, ev)
			}
		}
	}
}

func TestASandboxThatIsKeptRecordsItself(t *testing.T) {
	state := t.TempDir()
	d := audited(t, state, nil) // its process may end before the sandbox
	s := spec(t, paddock.AuditExec, paddock.AuditExit)
	s.Ephemeral, s.ID = false, "kept"
	sb, err := d.Create(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(context.Background()); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}()
	in(t.Context(), t, sb, "/bin/true kept; exit 3")
	path := filepath.Join(state, "kept", "audit.jsonl")
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Fatalf("%v, %v", st, err)
	}
	want := []func(audit.Event) bool{
		func(ev audit.Event) bool {
			return ev.Kind == audit.Exec && slices.Equal(ev.Args, []string{"/bin/true", "kept"})
		},
		func(ev audit.Event) bool { return ev.Kind == audit.Exited && ev.Exit.Code == 3 },
	}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		have := 0
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); have < len(want) && lines.Scan(); {
			var ev audit.Event
			if err := json.Unmarshal(lines.Bytes(), &ev); err != nil || ev.Sandbox != "kept" {
				break // incompletely written
			}
			if want[have](ev) {
				have++
			}
		}
		f.Close()
		if have == len(want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("only the first %d are there", have)
		}
	}
}

func TestADriverWithNowhereToRecordRefusesToBeAsked(t *testing.T) {
	sb, err := audited(t, t.TempDir(), nil).Create(t.Context(), spec(t, paddock.AuditExec))
	if !errors.Is(err, paddock.Unsupported) || !strings.Contains(err.Error(), "nowhere to record") {
		t.Errorf("%v, %v", sb, err)
	}
}
