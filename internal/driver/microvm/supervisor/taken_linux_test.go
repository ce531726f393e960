package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/boxinit/boxinittest"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/bootfiles"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// taken returns a supervisor that somebody takes over.
func taken() boxinittest.Taken {
	return boxinittest.Taken{
		GuestKernel: &supervisor{}, Mounted: []string{boxinit.Engine + "/paddock/*", filepath.Dir(boxinit.SavedPart(0)) + "/*"},
		Own: func(name string) bool {
			return strings.HasPrefix(name, "/memfd:ledger") || strings.HasSuffix(name, "/pages (deleted)") || strings.HasSuffix(name, "/state (deleted)") ||
				strings.HasSuffix(name, "/index (deleted)") // the memory of a paused ephemeral sandbox
		},
	}
}

// The caller owns the kernel, too.
func TestASupervisorThatIsTakenOverChangesNoFileOfTheHost(t *testing.T) {
	microvmtest.Need(t)
	if err := microvmtest.Build(); err != nil {
		t.Fatal(err)
	}
	guest, err := microvmtest.Guest()
	if err != nil {
		t.Fatal(err)
	}
	linux, err := bootfiles.Find(bootfiles.Options{Data: os.Getenv(microvmtest.KernelVariable)})
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "vmlinux")
	data, err := os.ReadFile(linux.Path)
	if err == nil {
		err = os.WriteFile(own, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	saved := t.TempDir()
	d, err := microvm.New(microvm.Options{State: t.TempDir(), Data: saved, Environ: os.Environ(), Guest: guest, Kernel: own, Modules: linux.Directory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	spec := paddock.Spec{Ephemeral: true, AllowMissing: weakHere(t, d), Limits: paddock.Limits{Memory: 256 << 20}}
	create := func(how string) paddock.Sandbox {
		t.Helper()
		sb, err := d.Create(t.Context(), spec)
		if err != nil {
			t.Fatalf("a machine that %s: %v", how, err)
		}
		t.Cleanup(func() {
			if err := sb.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return sb
	}
	create("boots")
	awaitTemplate(t, saved)
	sb := create("goes on from a template")
	for _, memory := range []bool{true, false} {
		image, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: image}
		create("begins with a snapshot")
	}
	// The machine goes on from its own memory, and needs the template no more.
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(saved, "templates")); err != nil {
		t.Fatal(err)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"echo", "works"}, Output: paddock.Output{Stdout: &out}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 || out.String() != "works\n" {
		t.Errorf("it ends with %+v, %v, and says %q", exit, err, out.String())
	}
}

// A root caller's files belong to another user than its boxes' processes.
func TestASupervisorThatIsTakenOverChangesNoFileOfAnOrdinaryUser(t *testing.T) {
	microvmtest.Need(t)
	drivertest.SomeAsUser(t, "^TestASupervisorThatIsTakenOverChangesNoFileOfTheHost$", 1)
}

// The caller owns the file that the box's init executes, and /proc names it through a mount of the host.
func TestASupervisorThatIsTakenOverSpoilsNoProgramOfTheNextBox(t *testing.T) {
	microvmtest.Need(t)
	if err := microvmtest.Build(); err != nil {
		t.Fatal(err)
	}
	guest, err := microvmtest.Guest()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	saved, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	d, err := microvm.New(microvm.Options{
		State: t.TempDir(), Data: saved, Cache: cache, Environ: os.Environ(), Guest: guest, Init: program.Embedded("taken", self), Kernels: os.Getenv(microvmtest.KernelVariable),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	spec := paddock.Spec{Ephemeral: true, AllowMissing: weakHere(t, d), Limits: paddock.Limits{Memory: 256 << 20}}
	sb, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	awaitTemplate(t, saved) // until then a box makes it
	if err := sb.Remove(context.Background()); err != nil {
		t.Fatal(err)
	}
	boxinittest.Spoiled(t, d, spec, filepath.Join(cache, "taken-*"))
}

// A root caller's files belong to another user than its boxes' processes.
func TestASupervisorThatIsTakenOverSpoilsNoProgramOfAnOrdinaryUser(t *testing.T) {
	microvmtest.Need(t)
	drivertest.SomeAsUser(t, "^TestASupervisorThatIsTakenOverSpoilsNoProgramOfTheNextBox$", 1)
}

// awaitTemplate waits until a template is complete.
func awaitTemplate(t *testing.T, data string) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; {
		whole, err := filepath.Glob(filepath.Join(data, "templates", "*", "stamps"))
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) > 0 && !strings.HasSuffix(filepath.Dir(whole[0]), ".new") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no template is made")
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
