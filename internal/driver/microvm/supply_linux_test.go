package microvm

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/bootfiles"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

func TestAMachineHasMoreThanItsCommandsMayHave(t *testing.T) {
	for _, limit := range []int64{16 << 20, 256 << 20, 4<<30 + 1} {
		n := machineMemory(limit, 4<<20)
		if n < limit+limit/kernelPart+kernelOwn || n > limit+limit/kernelPart+kernelOwn+2<<20 || n%(2<<20) != 0 {
			t.Errorf("for %d it has %d", limit, n)
		}
		if with := machineMemory(limit, 104<<20); with < n+2*(104-12)<<20 {
			t.Errorf("for %d it has %d with an agent of 104 MiB, and %d with a small one", limit, with, n)
		}
	}
}

func TestTheHostIsPromisedWhatAMachineMayTake(t *testing.T) {
	for _, limit := range []int64{16 << 20, 256 << 20, 4<<30 + 1} {
		beside := overhead(limit)
		if least := limit/10 + 456<<20; beside < least || beside > least+2<<20 {
			t.Errorf("for %d it is %d, and the documents say about %d", limit, beside, least)
		}
		if n := machineMemory(limit, agentSize) + engineOwn; limit+beside < n {
			t.Errorf("for %d it is %d, and the machine may take %d", limit, limit+beside, n)
		}
	}
	if beside := overhead(math.MaxInt64); beside < 0 {
		t.Errorf("%d", beside)
	}
}

func TestMemoryGoesOnOnlyInAMachineThatIsAlike(t *testing.T) {
	h := func() *host {
		return &host{engine: bootfiles.Engine{Path: "/q", Version: "7.2.22"}, linux: bootfiles.Kernel{ID: "k"}}
	}
	m := func() *protocol.Machine {
		return &protocol.Machine{Accel: protocol.TCG, CPU: "max", CPUs: 1, Memory: 1 << 30, Arguments: "quiet"}
	}
	one := shape(h(), m(), "agent")
	if again := shape(h(), m(), "agent"); again != one {
		t.Fatal("equal machines are not alike")
	}
	for what, change := range map[string]func(*host, *protocol.Machine, *string){
		"engine":    func(h *host, _ *protocol.Machine, _ *string) { h.engine.Version = "8.0.0" },
		"kernel":    func(h *host, _ *protocol.Machine, _ *string) { h.linux.ID = "l" },
		"agent":     func(_ *host, _ *protocol.Machine, a *string) { *a = "other" },
		"accel":     func(_ *host, m *protocol.Machine, _ *string) { m.Accel = protocol.KVM },
		"processor": func(_ *host, m *protocol.Machine, _ *string) { m.CPU = "host" },
		"number":    func(_ *host, m *protocol.Machine, _ *string) { m.CPUs = 2 },
		"memory":    func(_ *host, m *protocol.Machine, _ *string) { m.Memory++ },
		"arguments": func(_ *host, m *protocol.Machine, _ *string) { m.Arguments = "" },
	} {
		h, m, a := h(), m(), "agent"
		change(h, m, &a)
		if shape(h, m, a) == one {
			t.Errorf("a machine of another %s is alike", what)
		}
	}
}

func TestATemplateIsOfOneBuildOfTheEngine(t *testing.T) {
	engine := filepath.Join(t.TempDir(), "qemu")
	if err := os.WriteFile(engine, []byte("one build"), 0o755); err != nil {
		t.Fatal(err)
	}
	name := func(accel protocol.Accel) string {
		t.Helper()
		h, err := this(engine, accel)
		if err != nil {
			t.Fatal(err)
		}
		return template("shape", h)
	}
	one := name(protocol.TCG)
	if again := name(protocol.TCG); again != one {
		t.Error("the same engine is another")
	}
	if name(protocol.KVM) == one {
		t.Error("a machine that is given the processor is as one that is not")
	}
	if err := os.WriteFile(engine, []byte("and another one"), 0o755); err != nil {
		t.Fatal(err)
	}
	if name(protocol.TCG) == one {
		t.Error("another build is the same engine")
	}
}

// The attacker has a file open and owns it. It keeps the size, and sets the time back.
func tamper(t *testing.T, path string) {
	t.Helper()
	was, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("owned"), 0o600), os.Chtimes(path, was.ModTime(), was.ModTime()), os.Chmod(path, was.Mode())); err != nil {
		t.Fatal(err)
	}
}

func TestAnInitrdThatWasChangedIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "initrd")
	if err := keep(dir, "one", []byte("whole")); err != nil {
		t.Skipf("this file system has no attributes: %v", err)
	}
	path := filepath.Join(dir, "one")
	f, err := openMarked(dir, "one")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	tamper(t, path)
	if f, err := openMarked(dir, "one"); err == nil {
		f.Close()
		t.Error("a file that was changed is used")
	}
	if err := keep(dir, "one", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	// One that another program has put there, such as an archive.
	if err := errors.Join(os.WriteFile(path+".other", []byte("whole"), 0o600), os.Rename(path+".other", path)); err != nil {
		t.Fatal(err)
	}
	if f, err := openMarked(dir, "one"); err == nil {
		f.Close()
		t.Error("a file that was replaced is used")
	}
}

func TestAKernelThatWasChangedIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vmlinux")
	if err := os.WriteFile(path, []byte("whole"), 0o444); err != nil {
		t.Fatal(err)
	}
	check := func() error {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		if err := checkMark(dir, f); err != nil {
			return err
		}
		if _, err := sys.Attribute(dir, markPrefix+"vmlinux"); err != nil {
			t.Skipf("this file system has no attributes: %v", err)
		}
		return nil
	}
	for range 2 {
		if err := check(); err != nil {
			t.Fatal(err)
		}
	}
	tamper(t, path)
	if err := check(); paddock.KindOf(err) != paddock.Denied {
		t.Errorf("a kernel that was changed: %v", err)
	}
}

func TestAnEngineInAnotherPlaceIsShownAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"qemu", "secret"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list := trees(&host{engine: bootfiles.Engine{Path: filepath.Join(dir, "qemu")}})
	shown := func(path string) bool {
		return slices.ContainsFunc(list, func(m boxinit.Mount) bool { return m.Target == path || strings.HasPrefix(path, m.Target+"/") })
	}
	if !shown(filepath.Join(dir, "qemu")) || shown(filepath.Join(dir, "secret")) {
		t.Errorf("%+v", list)
	}
}
