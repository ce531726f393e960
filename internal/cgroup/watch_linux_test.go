package cgroup

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A meter is what a driver needs of a Group and of a Watchdog alike.
type meter interface {
	Usage() (paddock.Usage, error)
	OOM() (kills, peak int64, err error)
	PIDsHit() (int64, error)
	Update(l paddock.Limits, paths ...string) error
	PIDs() ([]int, error)
	Remove(ctx context.Context) error
}

var _, _ meter = (*Group)(nil), (*Watchdog)(nil)

// tend starts a shell that runs script, and watches it.
func tend(t *testing.T, script string, limit int64) (*Watchdog, *exec.Cmd, *bufio.Reader, io.Closer) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	w, err := Watch(cmd.Process.Pid, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := w.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return w, cmd, bufio.NewReader(out), in
}

func self(t *testing.T) string {
	t.Helper()
	return "exe=" + executable(t) + "; "
}

func TestTheWatchdogKillsTheLargestAndTheRestGoesOn(t *testing.T) {
	const limit = 128 << 20
	w, cmd, out, in := tend(t, self(t)+helping+"=grow $exe; echo ended $?; read line; exit 7", limit)
	line, err := out.ReadString('\n')
	if err != nil || line != "ended 137\n" {
		t.Fatalf("%q, %v", line, err)
	}
	kills, peak, err := w.OOM()
	if err != nil || kills != 1 || peak <= limit {
		t.Errorf("kills %d, peak %d, %v", kills, peak, err)
	}
	u, err := w.Usage()
	if err != nil || u.PIDs != 1 || u.Memory <= 0 || u.Memory > 16<<20 || u.MemoryPeak != peak || u.CPU <= 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("the sandbox itself ended with %v", cmd.ProcessState)
	}
	if u, err := w.Usage(); err != nil || u.PIDs != 0 || u.Memory != 0 || u.MemoryPeak != peak {
		t.Errorf("usage afterwards %+v, %v", u, err)
	}
}

func TestTheWatchdogSeesTheWholeTree(t *testing.T) {
	w, cmd, out, in := tend(t, self(t)+"(sleep 1000 >/dev/null & "+helping+"=hold $exe; echo ended $?); :", 0)
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	list, err := w.PIDs()
	if err != nil || len(list) != 4 || !slices.Contains(list, cmd.Process.Pid) {
		t.Errorf("processes %v, %v", list, err)
	}
	u, err := w.Usage()
	if err != nil || u.Memory < 48<<20 || u.PIDs < 4 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if n, err := w.PIDsHit(); n != -1 || err != nil {
		t.Errorf("refused %d, %v", n, err)
	}
	// A limit that comes later is kept as well.
	if err := w.Update(paddock.Limits{Memory: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	if line, err := out.ReadString('\n'); err != nil || line != "ended 137\n" {
		t.Errorf("%q, %v", line, err)
	}
	if kills, _, err := w.OOM(); kills < 1 || err != nil {
		t.Errorf("kills %d, %v", kills, err)
	}
	_ = in.Close()
}

func TestASandboxThatIsTooLargeItselfIsEnded(t *testing.T) {
	w, cmd, _, _ := tend(t, self(t)+"export "+helping+"=grow; exec $exe", 96<<20)
	_ = cmd.Wait()
	if ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	if kills, peak, err := w.OOM(); kills != 1 || peak <= 96<<20 || err != nil {
		t.Errorf("kills %d, peak %d, %v", kills, peak, err)
	}
}

func TestSharedMemoryCountsOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 100<<20)); err != nil {
		t.Fatal(err)
	}
	// Each alone is below the limit, and so are both, as they share most of it.
	const limit = 180 << 20
	w, _, out, in := tend(t, self(t)+"export "+helping+"=share; exec 3<&0; $exe "+file+" <&3 & $exe "+file+"; :", limit)
	for range 2 {
		if line, err := out.ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	u, err := w.Usage()
	if kills, _, e := w.OOM(); kills != 0 || e != nil || err != nil || u.Memory > limit || u.Memory < 100<<20 {
		t.Errorf("kills %d, usage %+v, %v, %v", kills, u, e, err)
	}
	_ = in.Close()
}

func TestAProcessOfTheSameNumberIsLeftAlone(t *testing.T) {
	other := exec.Command("/bin/sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	w, err := Watch(other.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Remove(context.Background()) }()
	w.mu.Lock()
	hit := w.kill(identity{other.Process.Pid, w.root.start + 1})
	w.mu.Unlock()
	if hit || other.Process.Signal(syscall.Signal(0)) != nil {
		t.Error("it was killed")
	}
}

func TestWatchRefusesWhatItCannotDo(t *testing.T) {
	if _, err := Watch(1<<30, 0); !errors.Is(err, paddock.NotFound) {
		t.Errorf("a process that is not there: %v", err)
	}
	if _, err := Watch(1, -1); !errors.Is(err, paddock.Invalid) {
		t.Errorf("a negative limit: %v", err)
	}
	w, _, _, _ := tend(t, "read line", 1<<30)
	if err := w.Update(paddock.Limits{PIDs: 3}); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("a limit on processes: %v", err)
	}
	for _, f := range WatchFindings() {
		if f.Strength == paddock.Full || f.Cause == "" || (f.Strength == paddock.Weak && f.How == "") {
			t.Errorf("%+v", f)
		}
	}
}
