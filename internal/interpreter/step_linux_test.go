package interpreter_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

// A kernel lives for long, and what a cell changes by it is a step of the cell.
func TestACellIsAStep(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	open := func(state string) (paddock.Driver, error) {
		return jail.New(jail.Options{State: state, Environ: os.Environ(), Steps: filepath.Join(dir, "steps")})
	}
	d, err := open(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{
		Undo: paddock.UndoOn, Mounts: []paddock.Mount{{Source: work, Target: "/work", Write: true}}, AllowMissing: drivertest.Weak(t, open),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Remove(context.Background()) })
	in, err := interpreter.New(interpreter.Options{Sandbox: sb})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	for _, code := range []string{"echo one > /work/a", "echo two > /work/a; false", "rm /work/a"} {
		run(t, in, interpreter.Cell{Language: interpreter.Bash, Code: code})
	}
	j, err := paddock.JournalOf(sb)
	if err != nil {
		t.Fatal(err)
	}
	list, err := j.Steps(t.Context(), paddock.StepFilter{})
	if err != nil || len(list) != 3 {
		t.Fatalf("the steps are %+v, %v", list, err)
	}
	for i, want := range []string{"bash echo one > /work/a", "bash echo two > /work/a; false", "bash rm /work/a"} {
		if s := list[i]; s.Kind != "cell" || strings.Join(s.Command, " ") != want || s.Changed != 1 || s.Exit == paddock.UnknownExit {
			t.Errorf("step %d is %+v", i, s)
		}
	}
	undone(t, j, list[2].Number, filepath.Join(work, "a"), "two\n")
	undone(t, j, list[1].Number, filepath.Join(work, "a"), "one\n")
}

// undone undoes a step, after which a file has this text.
func undone(t *testing.T, j paddock.Journal, number int64, name, want string) {
	t.Helper()
	done, err := j.Undo(t.Context(), paddock.Undo{Steps: []int64{number}})
	if err != nil || len(done.Conflicts) > 0 {
		t.Errorf("undo of step %d: %+v, %v", number, done, err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("after the undo of step %d it is %q, %v", number, got, err)
	}
}
