package gvisor_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
)

// placed returns a driver with directories of its own.
func placed(t *testing.T, state, saved string) paddock.Driver {
	t.Helper()
	d, err := gvisor.New(gvisor.Options{State: state, Data: saved, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // closing it again is no error worth the name
	return d
}

func within(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, name)
}

// A logout and a restart of the host remove what is in memory: the state directory, and
// with it the processes that hold running sandboxes. What was paused is on the disk.
func TestAPausedSandboxOutlivesItsStateDirectory(t *testing.T) {
	saved, labels := within(t, "saved"), map[string]string{"a": "b"}
	first := within(t, "state")
	d := placed(t, first, saved)
	sb := create(t, d, paddock.Spec{Labels: labels})
	said(t, sb, paddock.Cmd{Args: []string{"sh", "-c", "echo kept > file"}})
	before, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := placed(t, within(t, "beside"), saved).List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("a driver of another state directory lists %+v, %v", list, err)
	}
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}

	next := placed(t, within(t, "next"), saved)
	list, err := next.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	st := list[0]
	if st.ID != sb.ID() || st.State != paddock.Paused || !maps.Equal(st.Labels, labels) || !st.Created.Equal(before.Created) || st.Limits != before.Limits || st.User != before.User {
		t.Errorf("%+v, want what was %+v", st, before)
	}
	if list, err := placed(t, within(t, "late"), saved).List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("it is found twice: %+v, %v", list, err)
	}
	if _, err := next.Create(t.Context(), paddock.Spec{ID: sb.ID()}); err == nil {
		t.Error("its name is free")
	}
	found, err := next.Open(t.Context(), sb.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := said(t, found, paddock.Cmd{Args: []string{"cat", "file"}}); got != "kept\n" {
		t.Errorf("%q", got)
	}
	if err := found.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := found.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(saved); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestWhatAnInterruptedPauseLeftIsFoundAfterTheNextStartOfTheHost(t *testing.T) {
	saved := within(t, "saved")
	old := time.Unix(1, 0)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	boots := map[string]string{"paused-marked": "another", "paused-clock": string(boot)} // by directory
	for name, file := range map[string]string{"paused-whole": "checkpoint.json", "paused-part": "pages", "paused-now": "pages", "im-snapshot": "checkpoint.json",
		"paused-marked": "pages", "paused-clock": "pages"} { // the last one is of now, and the clock was set since
		dir := filepath.Join(saved, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if boot := boots[name]; boot != "" {
			if err := os.WriteFile(filepath.Join(dir, "boot"), []byte(boot), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if name != "paused-now" && name != "paused-marked" {
			if err := os.Chtimes(dir, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	d := placed(t, within(t, "state"), saved)
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != "paused-whole" || list[0].State != paddock.Paused {
		t.Fatalf("%+v, %v", list, err)
	}
	sb, err := d.Open(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Resume(t.Context()); err == nil {
		t.Error("a checkpoint without content is resumed")
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(saved)
	if err != nil || len(left) != 3 || left[0].Name() != "im-snapshot" || left[1].Name() != "paused-clock" || left[2].Name() != "paused-now" {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestAPausedSandboxWhoseRecordCannotBeReadIsListedWithTheReason(t *testing.T) {
	saved := within(t, "saved")
	dir := filepath.Join(saved, "paused-damaged")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"checkpoint.json", "sandbox.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := placed(t, within(t, "state"), saved)
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 || list[0].State != paddock.Dead || list[0].Tier != paddock.GVisor || !strings.Contains(list[0].Reason, "remove the directory "+dir) {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := d.Open(t.Context(), list[0].ID); !errors.Is(err, paddock.Conflict) || !strings.Contains(err.Error(), list[0].Reason) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(dir); err != nil {
		t.Error(err)
	}
}
