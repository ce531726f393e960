package volume

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestAVolumeStaysUntilNobodyUsesIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	if err := Create(dir, "a", 1<<20, time.Unix(5, 0)); err != nil {
		t.Fatal(err)
	}
	if err := Create(dir, "a", 1<<20, time.Unix(5, 0)); !errors.Is(err, paddock.Conflict) {
		t.Errorf("twice: %v", err)
	}
	one, err := Open(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Open(dir, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	m := one.Mount("/v")
	if !m.Cache || !m.Write || two.Mount("/v").Write || !two.Mount("/v").Cache || m.Source != filepath.Join(dir, "a", "data") {
		t.Errorf("%+v, %+v", m, two.Mount("/v"))
	}
	if err := os.WriteFile(filepath.Join(m.Source, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, u := range []*Use{one, two} {
		if err := Remove(dir, "a"); !errors.Is(err, paddock.Conflict) {
			t.Errorf("in use: %v", err)
		}
		if e, err := Inspect(dir, "a"); err != nil || !e.InUse || e.Files != 1 || e.Size != 1<<20 || !e.Created.Equal(time.Unix(5, 0)) {
			t.Errorf("%+v, %v", e, err)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
	if list, err := List(dir); err != nil || len(list) != 1 || list[0].InUse {
		t.Errorf("%+v, %v", list, err)
	}
	if err := Remove(dir, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, "a", true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("removed: %v", err)
	}
}

func TestAFullVolumeIsOnlyRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	if err := Create(dir, "a", 1<<20, time.Now()); err != nil {
		t.Fatal(err)
	}
	u, err := Open(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.Mount("/v").Source, "x"), make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("at the end: %v", err)
	}
	if _, err := Open(dir, "a", true); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("to write: %v", err)
	}
	r, err := Open(dir, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), Resize(dir, "a", 2<<20)); err != nil {
		t.Fatal(err)
	}
	u, err = Open(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

func TestRemovalFollowsNoLinkAndClearsWhatAKilledOneLeft(t *testing.T) {
	top := t.TempDir()
	dir, kept := filepath.Join(top, "volumes"), filepath.Join(top, "kept")
	if err := errors.Join(Create(dir, "a", 1<<20, time.Now()), os.WriteFile(kept, nil, 0o600),
		os.Symlink(top, filepath.Join(dir, "a", "data", "link")), os.MkdirAll(filepath.Join(dir, ".made-1", "data"), 0o700),
		os.MkdirAll(filepath.Join(dir, ".gone-1", "data"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if list, err := List(dir); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := Remove(dir, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 { // the lock
		t.Errorf("%v, %v", left, err)
	}
}

func TestNamesAreNoPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	for _, name := range []string{"", ".", "..", "a/b", "../a", "A", ".lock", "-a", strings.Repeat("a", 64), "a\x00"} {
		_, opened := Open(dir, name, true)
		_, inspected := Inspect(dir, name)
		for _, err := range []error{Create(dir, name, 1<<20, time.Now()), Resize(dir, name, 1<<20), Remove(dir, name), opened, inspected} {
			if !errors.Is(err, paddock.Invalid) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if err := Create(dir, "a", 0, time.Now()); !errors.Is(err, paddock.Invalid) {
		t.Errorf("no size: %v", err)
	}
}

func TestMeasuringLeavesTheModesOfDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	closed := filepath.Join(dir, "a", "data", "closed")
	if err := errors.Join(Create(dir, "a", 1<<20, time.Now()), os.Mkdir(closed, 0o700), os.WriteFile(filepath.Join(closed, "x"), nil, 0o600), os.Chmod(closed, 0)); err != nil {
		t.Fatal(err)
	}
	if e, err := Inspect(dir, "a"); err != nil || e.Files != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	if st, err := os.Lstat(closed); err != nil || st.Mode().Perm() != 0 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if err := Remove(dir, "a"); err != nil {
		t.Error(err)
	}
}

// What a sandbox put into a volume could be a volume by its form.
func TestWhatASandboxMadeIsNeverBesideTheVolumes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	if err := Create(dir, "a", 1<<20, time.Now()); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "a", "data", strings.Repeat("d/", 98))
	for range 150 {
		if err := errors.Join(os.MkdirAll(filepath.Join(at, "data"), 0o700), syscall.Mkfifo(filepath.Join(at, recordName), 0o600),
			os.WriteFile(filepath.Join(at, lockName), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		at += "/d"
	}
	watch, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(watch)
	if _, err := syscall.InotifyAddWatch(watch, dir, syscall.IN_CREATE|syscall.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir, "a"); err != nil {
		t.Fatal(err)
	}
	events := make([]byte, 1<<16)
	n, err := syscall.Read(watch, events)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for at := 0; at < n; made++ {
		size := int(binary.NativeEndian.Uint32(events[at+12:]))
		name := strings.TrimRight(string(events[at+syscall.SizeofInotifyEvent:][:size]), "\x00")
		if !strings.HasPrefix(name, ".gone-") {
			t.Errorf("%s was there", name)
		}
		at += syscall.SizeofInotifyEvent + size
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || made == 0 { // the lock
		t.Errorf("%d names were made, and %v is left: %v", made, left, err)
	}
}

func TestAVolumeThatCannotBeReadHidesNoOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	for _, name := range []string{"a", "fifo", "garbage", "none", "z"} {
		if err := Create(dir, name, 1<<20, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	record := func(name string) string { return filepath.Join(dir, name, recordName) }
	if err := errors.Join(os.Remove(record("fifo")), syscall.Mkfifo(record("fifo"), 0o600), os.WriteFile(record("garbage"), []byte("x"), 0o600),
		os.Remove(record("none"))); err != nil {
		t.Fatal(err)
	}
	list, err := List(dir)
	if err != nil || len(list) != 5 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, e := range list {
		if sound := e.Name == "a" || e.Name == "z"; sound != (e.Fault == "") {
			t.Errorf("%+v", e)
		}
		if err := Remove(dir, e.Name); err != nil {
			t.Errorf("%s cannot be removed: %v", e.Name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 { // the lock
		t.Errorf("%v is left: %v", left, err)
	}
}
