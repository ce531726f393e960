package gvisor_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// gVisor's own threads are more than the tasks of a fork bomb, because it frees those of an
// ended task late. The kernel ended when the host allowed it only three for each task.
func TestAForkBombOfTheDefaultLimitDoesNotEndTheSandbox(t *testing.T) {
	d, _ := driver(t)
	sb := create(t, d, paddock.Spec{Ephemeral: true})
	bomb, err := sb.Start(t.Context(), paddock.Cmd{
		Args:   []string{"bash", "-c", "f() { f | f & f; }; f & sleep 6; kill -9 0"},
		Output: paddock.Output{Detached: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := bomb.Wait(t.Context()); err != nil || exit.Cause == paddock.SandboxGone {
		t.Errorf("%+v, %v", exit, err)
	}
	if st, err := sb.Status(t.Context()); err != nil || st.State != paddock.Ready {
		t.Errorf("%+v, %v", st, err)
	}
}
