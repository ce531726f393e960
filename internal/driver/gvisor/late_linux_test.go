package gvisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// resumeVariable makes this program resume the sandbox "late" of a state directory instead
// of running its tests.
const resumeVariable = "PADDOCK_TEST_RESUME"

func resumeThere(dir string) error {
	d, err := open(dir)
	if err != nil {
		return err
	}
	sb, err := d.Open(context.Background(), "late")
	if err != nil {
		return err
	}
	return errors.Join(sb.Resume(context.Background()), d.Close())
}

// children returns the processes that a process has started, by their first argument.
func children(t *testing.T, parent int, name string) []int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, dir := range names {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && bytes.HasPrefix(line, []byte(name)) &&
			bytes.Contains(status, fmt.Appendf(nil, "PPid:\t%d\n", parent)) {
			list = append(list, pid)
		}
	}
	return list
}

// eventually polls until is returns true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// If a caller that resumes a sandbox dies after everything runs, but before it has
// acknowledged that, the sandbox stays paused and intact.
func TestALateResumeLosesNothing(t *testing.T) {
	d, dir := driver(t)
	sb := create(t, d, paddock.Spec{ID: "late"})
	startCounting(t, sb)
	before := ask(t, sb)
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := saved(t)
	about := filepath.Join(dir, "late", "about.json")
	was, err := os.Stat(about)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	caller := exec.CommandContext(t.Context(), self)
	caller.Env = append(os.Environ(), resumeVariable+"="+dir)
	var out bytes.Buffer
	caller.Stdout, caller.Stderr = &out, &out
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	var keeper int
	eventually(t, "the box begins", func() bool {
		for _, keeper = range children(t, caller.Process.Pid, "paddock-keeper") {
			if len(children(t, keeper, "paddock-guest-gvisor")) > 0 {
				return true
			}
		}
		return false
	})
	// From here on it receives nothing.
	if err := caller.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the keeper has written what it is about to tell", func() bool {
		now, err := os.Stat(about)
		return err == nil && !os.SameFile(was, now)
	})
	if err := caller.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = caller.Wait() // it was killed
	eventually(t, "the keeper ends", func() bool { return syscall.Kill(keeper, 0) != nil })
	if st, err := sb.Status(t.Context()); err != nil || st.State != paddock.Paused {
		t.Fatalf("%+v, %v; %s", st, err, &out)
	}
	if now := saved(t); now != kept {
		t.Errorf("%d things are saved, there were %d", now, kept)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := ask(t, sb); after < before {
		t.Errorf("it had counted to %d, and goes on from %d", before, after)
	}
	if now := saved(t); now != kept-1 {
		t.Errorf("%d things are saved, there were %d", now, kept)
	}
}

// After a resume that is canceled at any moment, the sandbox is paused or running, and
// intact.
func TestAResumeThatIsGivenUpLosesNothing(t *testing.T) {
	d, _ := driver(t)
	for _, ephemeral := range []bool{true, false} {
		sb := create(t, d, paddock.Spec{Ephemeral: ephemeral})
		startCounting(t, sb)
		before := ask(t, sb)
		for wait := time.Duration(0); wait < 160*time.Millisecond; wait += 20 * time.Millisecond {
			if err := sb.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			err := sb.Resume(ctx)
			cancel()
			if st, e := sb.Status(t.Context()); e != nil || err == nil && st.State != paddock.Ready || st.State == paddock.Dead {
				t.Fatalf("after %v: %+v, %v; the resume: %v", wait, st, e, err)
			}
			if err := sb.Resume(t.Context()); err != nil {
				t.Fatalf("after %v: %v", wait, err)
			}
			after := ask(t, sb)
			if after < before {
				t.Errorf("after %v: it had counted to %d, and goes on from %d", wait, before, after)
			}
			before = after
		}
	}
}

// The watchers of an ephemeral sandbox that was paused and resumed end with its removal.
func TestNobodyWatchesWhatWasRemoved(t *testing.T) {
	d, _ := driver(t)
	sb := create(t, d, paddock.Spec{Ephemeral: true})
	for range 2 {
		if err := sb.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sb.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweepers := func() []int { return children(t, os.Getpid(), "paddock-sweeper") }
	eventually(t, "it is watched", func() bool { return len(sweepers()) > 0 })
	if err := sb.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := sweepers(); len(list) > 0 {
		t.Errorf("%v go on", list)
	}
}

// A keeper ends even if its caller did not wait for the answer.
func TestAKeeperEndsWithWhatItKept(t *testing.T) {
	d, _ := driver(t)
	others := children(t, os.Getpid(), "paddock-keeper")
	sb := create(t, d, paddock.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sb.Remove(ctx); err == nil {
		t.Error("somebody waited")
	}
	eventually(t, "its keeper ends", func() bool {
		return !slices.ContainsFunc(children(t, os.Getpid(), "paddock-keeper"), func(pid int) bool { return !slices.Contains(others, pid) })
	})
}

// A sandbox that dies during a pause is dead, reports the cause, and has no process left.
func TestASandboxThatDiesWhileItIsPausedIsBuried(t *testing.T) {
	d, _ := driver(t)
	died := 0
	for try, wait := 0, 5*time.Millisecond; try < 12; try, wait = try+1, wait+5*time.Millisecond {
		others := children(t, os.Getpid(), "paddock-keeper")
		sb := create(t, d, paddock.Spec{})
		mine := slices.DeleteFunc(children(t, os.Getpid(), "paddock-keeper"), func(pid int) bool { return slices.Contains(others, pid) })
		if len(mine) != 1 {
			t.Fatalf("keepers %v", mine)
		}
		inits := children(t, mine[0], "paddock-guest-gvisor")
		if len(inits) != 1 {
			t.Fatalf("inits %v", inits)
		}
		paused := make(chan error, 1)
		go func() { paused <- sb.Pause(t.Context()) }()
		time.Sleep(wait)
		if err := syscall.Kill(inits[0], syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		if err := <-paused; err == nil {
			continue // it was saved before
		}
		died++
		eventually(t, "its keeper ends", func() bool { return syscall.Kill(mine[0], 0) != nil })
		st, err := sb.Status(t.Context())
		if err != nil || st.State != paddock.Dead || !strings.Contains(st.Reason, "signal 9") {
			t.Errorf("after %v: %+v, %v", wait, st, err)
		}
	}
	if died == 0 {
		t.Error("none of them died")
	}
}

// Restoring a snapshot checks the root that it was made with.
func TestASnapshotOfATreeThatIsGoneIsRefused(t *testing.T) {
	d, _ := driver(t)
	root := filepath.Join(t.TempDir(), "root")
	for _, dir := range []string{"bin", "usr", "etc", "tmp", "lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sb := create(t, d, paddock.Spec{Ephemeral: true, Root: paddock.Root{Kind: paddock.RootDir, Path: root}})
	id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	spec := paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}}
	for _, row := range []struct {
		what string
		do   func() error
		kind paddock.Kind
		word string
	}{
		{"gone", func() error { return os.Rename(root, root+".away") }, paddock.NotFound, root},
		{"a file", func() error { return os.WriteFile(root, nil, 0o644) }, paddock.Invalid, "not a directory"},
	} {
		if err := row.do(); err != nil {
			t.Fatal(err)
		}
		sb, err := d.Create(t.Context(), spec)
		if err == nil {
			_ = sb.Remove(t.Context())
		}
		if paddock.KindOf(err) != row.kind || !strings.Contains(fmt.Sprint(err), row.word) {
			t.Errorf("%s: %v (%v)", row.what, err, paddock.KindOf(err))
		}
	}
	if err := d.RemoveSnapshot(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// A snapshot whose caller leaves at any moment is not left, and the sandbox goes on.
func TestASnapshotThatIsGivenUpIsNotLeft(t *testing.T) {
	d, _ := driver(t)
	kept := saved(t)
	sb := create(t, d, paddock.Spec{})
	startCounting(t, sb)
	before := ask(t, sb)
	left := 0
	for wait := time.Duration(0); wait < 160*time.Millisecond; wait += 10 * time.Millisecond {
		ctx, cancel := context.WithCancel(t.Context()) // the keeper is told of a deadline, and not of this
		leaves := time.AfterFunc(wait, cancel)
		id, err := sb.Snapshot(ctx, paddock.SnapshotOptions{Memory: true})
		leaves.Stop()
		cancel()
		if err == nil {
			if err := d.RemoveSnapshot(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			continue
		}
		left++
		if !errors.Is(err, paddock.Canceled) {
			t.Errorf("after %v: %v", wait, err)
		}
	}
	if left == 0 {
		t.Error("nobody left")
	}
	eventually(t, "what was written is removed", func() bool { return saved(t) == kept })
	if after := ask(t, sb); after < before {
		t.Errorf("it had counted to %d, and goes on from %d", before, after)
	}
}
