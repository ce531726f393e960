package microvm_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/bootfiles"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// own opens a driver with its own directory for saved state.
func own(t *testing.T, change func(*microvm.Options)) (d paddock.Driver, data string) {
	t.Helper()
	microvmtest.Need(t)
	o, err := microvmtest.Options()
	if err != nil {
		t.Fatal(err)
	}
	o.State, o.Data = t.TempDir(), t.TempDir()
	if change != nil {
		change(&o)
	}
	if d, err = microvm.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, o.Data
}

// small completes a spec for a small machine, without the controls that this host lacks.
func small(s paddock.Spec) paddock.Spec {
	s.Ephemeral, s.AllowMissing, s.Limits.Memory = true, []paddock.Control{paddock.ControlIO, paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs}, 256<<20
	return s
}

func create(t *testing.T, d paddock.Driver, s paddock.Spec) paddock.Sandbox {
	t.Helper()
	s = small(s)
	sb, err := d.Create(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Remove(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return sb
}

// says runs a command and returns its output.
func says(t *testing.T, sb paddock.Sandbox, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: args, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// engines returns the QEMU processes that descend from this one.
func engines(t *testing.T) []int {
	t.Helper()
	var list []int
	for _, s := range drivertest.Held(t, t.TempDir(), "no sandbox")["process"] {
		pid, what, _ := strings.Cut(s, " ")
		if n, err := strconv.Atoi(pid); err == nil && strings.HasPrefix(what, "(qemu-system") {
			list = append(list, n)
		}
	}
	return list
}

func TestAMachineThatIsKilledSaysSo(t *testing.T) {
	sample.Turn(t, "machines", 3)
	d, _ := own(t, nil)
	sb := create(t, d, paddock.Spec{ID: "killed"})
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	list := engines(t)
	if len(list) != 1 {
		t.Fatalf("%d processes of QEMU run for one sandbox", len(list))
	}
	if err := syscall.Kill(list[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); paddock.KindOf(err) != paddock.Unavailable && exit.Cause != paddock.SandboxGone {
		t.Errorf("a command whose machine was killed ends with %+v, %v", exit, err)
	}
	var st paddock.Status
	for deadline := time.Now().Add(3 * time.Minute); st.State != paddock.Dead && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if st, err = sb.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if st.State != paddock.Dead || !strings.Contains(st.Reason, "QEMU") {
		t.Errorf("it is %s, because: %q", st.State, st.Reason)
	}
	if _, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"true"}}); paddock.KindOf(err) != paddock.Unavailable {
		t.Errorf("the next command: %v", err)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := engines(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	again := create(t, d, paddock.Spec{ID: "killed"})
	if got := says(t, again, "echo", "hi"); got != "hi\n" {
		t.Errorf("the next sandbox of that name says %q", got)
	}
}

// If a machine is killed while no call is pending, its owner notices it and cleans up.
func TestAMachineThatIsKilledWhileNobodyAsksIsSeen(t *testing.T) {
	d, _ := own(t, nil)
	var held []string
	count := func() int {
		held = slices.DeleteFunc(drivertest.Held(t, t.TempDir(), "no sandbox")["process"], func(p string) bool {
			return strings.Contains(p, "paddock-sweeper") // the driver's sweeper, not a sandbox's
		})
		return len(held)
	}
	before := count()
	defer func() { t.Logf("of %d processes there are %q", before, held) }()
	sb := create(t, d, paddock.Spec{ID: "silent"})
	list := engines(t)
	if len(list) != 1 {
		t.Fatalf("%d processes of QEMU run for one sandbox", len(list))
	}
	if err := syscall.Kill(list[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "its processes are gone", func() bool { return count() <= before })
	st, err := sb.Status(t.Context())
	if err != nil || st.State != paddock.Dead || !strings.Contains(st.Reason, "QEMU") || !strings.Contains(st.Reason, "killed") {
		t.Errorf("it is %s, because: %q, %v", st.State, st.Reason, err)
	}
}

// An incomplete template, after a full disk or a crash of the host, is made again. A
// machine that cannot be restored from a template reports that.
func TestATemplateThatIsNotWhole(t *testing.T) {
	sample.Turn(t, "machines", 3)
	d, data := own(t, nil)
	if got := says(t, create(t, d, paddock.Spec{}), "echo", "one"); got != "one\n" {
		t.Fatalf("%q", got)
	}
	files := func(name string) []string {
		t.Helper()
		template(t, data)
		list, err := filepath.Glob(filepath.Join(data, "templates", "*", name))
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return list
	}
	for _, name := range []string{"memory", "state", "stamps"} {
		if err := os.Truncate(files(name)[0], 0); err != nil {
			t.Fatal(err)
		}
		// The next machine boots by itself, and is ready before its template.
		if got := says(t, create(t, d, paddock.Spec{}), "echo", name); got != name+"\n" {
			t.Errorf("with no %s: %q", name, got)
		}
	}
	state := files("state")[0]
	nonsense := func() {
		t.Helper()
		size, err := os.Stat(state)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(state, bytes.Repeat([]byte("?"), int(size.Size())), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nonsense()
	if got := says(t, create(t, d, paddock.Spec{}), "echo", "changed"); got != "changed\n" {
		t.Errorf("with a changed state: %q", got)
	}
	template(t, data)
	state = files("state")[0]
	nonsense()
	var stamps strings.Builder
	for _, name := range []string{state, files("memory")[0]} {
		var st syscall.Stat_t
		if err := syscall.Stat(name, &st); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&stamps, "%d %d %d.%09d\n", st.Size, st.Ino, st.Ctim.Sec, st.Ctim.Nsec)
	}
	if err := os.WriteFile(files("stamps")[0], []byte(stamps.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	before := engines(t)
	_, err := d.Create(t.Context(), small(paddock.Spec{}))
	if err == nil || !strings.Contains(err.Error(), "QEMU") {
		t.Errorf("a machine that goes on from nonsense: %v", err)
	}
	if left := engines(t); len(left) > len(before) {
		t.Errorf("processes are left: %v", left)
	}
}

func TestASnapshotThatWasChangedIsRefused(t *testing.T) {
	sample.Turn(t, "machines", 3)
	d, data := own(t, nil)
	sb := create(t, d, paddock.Spec{ID: "kept"})
	says(t, sb, "sh", "-c", "echo precious > /tmp/file")
	for _, memory := range []bool{false, true} {
		id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		spec := paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}}
		if got := says(t, create(t, d, spec), "cat", "/tmp/file"); got != "precious\n" {
			t.Errorf("memory %v: %q", memory, got)
		}
		changed := 0
		err = filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.Contains(path, string(id)) {
				return err
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			var b [1]byte
			if _, err := f.ReadAt(b[:], 0); err != nil {
				return nil // an empty file has nothing to change
			}
			changed++
			b[0] ^= 0xff
			_, err = f.WriteAt(b[:], 0)
			return err
		})
		if err != nil || changed == 0 {
			t.Fatalf("%d files of the snapshot were changed: %v", changed, err)
		}
		if _, err := d.Create(t.Context(), small(spec)); err == nil || !strings.Contains(err.Error(), string(id)) {
			t.Errorf("memory %v: a snapshot that was changed: %v", memory, err)
		}
	}
	if left := engines(t); len(left) != 3 { // of the three that were made
		t.Errorf("%d processes of QEMU run", len(left))
	}
}

// Missing parts of a machine are reported before anything is started.
func TestAMachineOfNothing(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := filepath.Join(dir, "none")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	text := write("text", []byte("#!/bin/sh\n"))
	microvmtest.Need(t)
	linux, err := bootfiles.Find(bootfiles.Options{Data: filepath.Join(box.DefaultData(os.Environ()), "vm")})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*microvm.Options)
		says   string
	}{
		"a kernel that is none":         {func(o *microvm.Options) { o.Kernel, o.Modules = text, empty }, "kernel"},
		"a kernel without virtio":       {func(o *microvm.Options) { o.Kernel, o.Modules = linux.Path, empty }, "virtio"},
		"a kernel that is not there":    {func(o *microvm.Options) { o.Kernel = filepath.Join(dir, "missing") }, "missing"},
		"an engine that is not there":   {func(o *microvm.Options) { o.Engine = filepath.Join(dir, "qemu") }, "qemu"},
		"an engine that is another one": {func(o *microvm.Options) { o.Engine = "/bin/true" }, "/bin/true"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := own(t, test.change)
			_, err := d.Create(t.Context(), small(paddock.Spec{}))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			if left := engines(t); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
		})
	}
}

// If the disk inside is full, only commands get errors, and the machine continues.
func TestADiskThatIsFullInside(t *testing.T) {
	d, _ := own(t, nil)
	sb := create(t, d, paddock.Spec{Limits: paddock.Limits{Disk: 8 << 20}})
	got := says(t, sb, "sh", "-c", "head -c 20000000 /dev/zero > /tmp/big; rm /tmp/big; echo small > /tmp/small; cat /tmp/small")
	if !strings.Contains(got, "No space left on device") || !strings.HasSuffix(got, "small\n") {
		t.Errorf("%q", got)
	}
}

func TestTooLittleMemoryIsRefused(t *testing.T) {
	d, _ := own(t, nil)
	spec := small(paddock.Spec{})
	spec.Limits.Memory = 1 << 20
	_, err := d.Create(t.Context(), spec)
	if paddock.KindOf(err) != paddock.Invalid || !strings.Contains(err.Error(), "at least 16 MiB") {
		t.Errorf("%v", err)
	}
}

// The agent's timers have slack, but those of commands do not.
func TestTimersOfCommandsAreOnTime(t *testing.T) {
	sample.Turn(t, "machines", 3)
	d, _ := own(t, nil)
	if got := says(t, create(t, d, paddock.Spec{}), "cat", "/proc/self/timerslack_ns"); strings.TrimSpace(got) != "50000" {
		t.Errorf("timers of a command are late by %q ns, want 50000", got)
	}
}

func TestABoxWhoseInitIsKilledStillTellsWhatWasRefused(t *testing.T) {
	microvmtest.Need(t)
	drivertest.KilledInit(t, open, microvm.Runtime().Argv0)
}
