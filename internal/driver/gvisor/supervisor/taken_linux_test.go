package supervisor

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/boxinit/boxinittest"
)

// taken returns a supervisor that somebody takes over. A box that begins anew has no file that others begin with.
func taken() boxinittest.Taken {
	return boxinittest.Taken{
		GuestKernel: &supervisor{}, Mounted: []string{filepath.Dir(boxinit.SavedPart(0)) + "/*"}, Idle: true,
		Own: func(name string) bool {
			return strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, boxinit.State+"/") || strings.HasSuffix(name, " (deleted)")
		},
	}
}

// The caller owns the files that the box begins with.
func TestASupervisorThatIsTakenOverChangesNoSavedSandbox(t *testing.T) {
	d, err := open(t.TempDir(), takenArgv0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	spec := paddock.Spec{AllowMissing: weak(info)}
	create := func() paddock.Sandbox {
		t.Helper()
		sb, err := d.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := sb.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return sb
	}
	say := func(sb paddock.Sandbox, script, want string) {
		t.Helper()
		var out strings.Builder
		p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 || out.String() != want {
			t.Errorf("%s ends with %+v, %v, and says %q", script, exit, err, out.String())
		}
	}
	sb := create()
	say(sb, "echo kept > /tmp/file", "")
	for _, memory := range []bool{true, false} {
		image, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: image}
		say(create(), "cat /tmp/file", "kept\n")
	}
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	say(sb, "cat /tmp/file", "kept\n")
}

// A root caller's files belong to another user than its boxes' processes.
func TestASupervisorThatIsTakenOverChangesNoSavedSandboxOfAnOrdinaryUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestASupervisorThatIsTakenOverChangesNoSavedSandbox$", 1)
}

// weak returns the controls that are weak here.
func weak(info paddock.Info) (list []paddock.Control) {
	for _, f := range info.Controls {
		if f.Strength == paddock.Weak {
			list = append(list, f.Control)
		}
	}
	return list
}

// The caller owns the file that the box's init executes, and /proc names it through a mount of the host.
func TestASupervisorThatIsTakenOverSpoilsNoProgramOfTheNextBox(t *testing.T) {
	state := t.TempDir()
	d, err := open(state, takenArgv0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	boxinittest.Spoiled(t, d, paddock.Spec{AllowMissing: weak(info)}, filepath.Join(state, "cache", "observed-*"))
}

// A root caller's files belong to another user than its boxes' processes.
func TestASupervisorThatIsTakenOverSpoilsNoProgramOfAnOrdinaryUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestASupervisorThatIsTakenOverSpoilsNoProgramOfTheNextBox$", 1)
}
