// Package steptest has the promises of a driver that records steps, for the tests of each tier.
package steptest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// An Open opens a driver with these directories for living sandboxes and for the journal of steps.
type Open func(state, journal string) (paddock.Driver, error)

// A session is a sandbox with a workspace whose steps are recorded.
type session struct {
	journal *step.Journal
	work    string
	state   string // directory of the driver
	driver  paddock.Driver
	sandbox paddock.Sandbox
	spec    paddock.Spec
	states  []map[string]string // of the workspace: before the first command, and after each
}

// Undo promises that what commands of a sandbox change in a workspace can be undone, step by step, and redone.
func Undo(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := begin(t, base, open)
	for _, script := range scripts {
		s.run(t, script)
	}
	measured, err := s.sandbox.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.close(t)
	list, err := s.journal.List(t.Context(), step.Filter{Directory: s.work})
	if err != nil {
		t.Fatal(err)
	}
	commands := slices.DeleteFunc(slices.Clone(list), func(r step.Record) bool { return r.Kind == "background" })
	if len(commands) != len(scripts) {
		t.Fatalf("%d steps are recorded for %d commands", len(commands), len(scripts))
	}
	for i, r := range commands {
		if r.Incomplete || r.Exit != 0 || r.Missed != 0 || r.Changed == 0 {
			t.Errorf("%q: %+v", scripts[i], r)
		}
	}
	used(t, commands, &measured)
	var undos []int64
	for i := len(commands) - 1; i >= 0; i-- {
		undos = append(undos, s.undo(t, commands[i].Number))
		s.is(t, i, fmt.Sprintf("undo of %q", scripts[i]))
	}
	for i := len(undos) - 1; i >= 0; i-- {
		s.undo(t, undos[i])
		s.is(t, len(undos)-i, fmt.Sprintf("redo of %q", scripts[len(undos)-1-i]))
	}
}

// used promises that the record of each command has what the host measures of the sandbox, and nothing else.
func used(t *testing.T, commands []step.Record, st *paddock.Status) {
	t.Helper()
	var cpu time.Duration
	for _, r := range commands {
		u := r.Use
		if u == nil {
			u = &paddock.StepUse{}
		}
		if (u.CPU != nil) != (st.Usage.CPU >= 0) || (u.Traffic != nil) != (st.Traffic != nil) {
			t.Errorf("step %d used %+v of what is measured as %+v, %+v", r.Number, u, st.Usage, st.Traffic)
		}
		if u.CPU != nil {
			cpu += *u.CPU
		}
	}
	if st.Usage.CPU >= 0 && (cpu <= 0 || cpu > st.Usage.CPU) {
		t.Errorf("the steps took %v of %v together", cpu, st.Usage.CPU)
	}
}

// scripts are commands of a session, one after the other. Several change what an earlier one has changed.
var scripts = []string{
	`rm -rf src/a "src/a name" src/link; rm deep/er/file`,
	`echo more >> text; : > emptied; printf %s 12 > replaced; truncate -s 3 cut`,
	`echo again >> text; echo 3 > replaced`, // a guest kernel may still have the files open
	`echo new > made; mkdir -p dir/made; echo x > dir/made/x; ln -s nowhere dir/made/dangling; mkfifo dir/made/fifo`,
	`echo changed > made; echo y > dir/made/x`,
	`mv text text.old; mv dir moved; mv made over; mv src/b/one src/two`,
	`chmod 600 over; chmod 700 deep; chmod 755 text.old`,
	`ln text.old hard; echo by another name >> hard`,
	`rm hard; mv moved/made/x text.old`,
	`rm -rf deep moved; mkdir deep; echo file > deep/er`,
	`rmdir deep 2> /dev/null || mv deep old; rm -r old; mv -T text.old src 2> /dev/null || true; rmdir src text.old 2> /dev/null || true`,
	`mv src temporary; mkdir src; mv temporary/b src/; rm -rf temporary`,
	`rm -rf ..?* .[!.]* * || true`, // some names are protected
}

// Held promises that a file can be undone that a command of before still has open.
func Held(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := begin(t, base, open)
	s.run(t, `(exec 3>> text; echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; echo late >&3; : > done; sleep 1000) > /dev/null 2>&1 & while [ ! -e pid ]; do sleep 0.05; done`)
	s.run(t, `echo > go; while [ ! -e done ]; do sleep 0.05; done`)
	s.close(t)
	list, err := s.journal.List(t.Context(), step.Filter{Directory: s.work})
	if err != nil {
		t.Fatal(err)
	}
	last := list[len(list)-1]
	if got, err := os.ReadFile(filepath.Join(s.work, "text")); err != nil || !strings.HasSuffix(string(got), "late\n") {
		t.Fatalf("the file is %q, %v", got, err)
	}
	s.undo(t, last.Number)
	s.is(t, 1, "undo of what another command wrote")
}

// Late promises that a file can be undone that a process changes after its command has ended, by a descriptor that it has
// had open.
func Late(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := begin(t, base, open)
	s.run(t, `(exec 3<> text; while kill -0 $$; do sleep 0.05; done; printf %s late >&3; : > done) > /dev/null 2>&1 &`)
	for {
		if _, err := os.Lstat(filepath.Join(s.work, "done")); err == nil {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.close(t)
	if got, err := os.ReadFile(filepath.Join(s.work, "text")); err != nil || string(got) != "late\n" {
		t.Fatalf("the file is %q, %v", got, err)
	}
	list, err := s.journal.List(t.Context(), step.Filter{Directory: s.work})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(list) - 1; i >= 0; i-- {
		r, err := s.journal.Read(t.Context(), list[i].Number)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("step %d (%s): %+v, left %+v", r.Number, r.Kind, r.Changes, r.Left)
		if r.Changed > 0 {
			s.undo(t, r.Number)
		}
	}
	s.is(t, 0, "undo of what came after the command")
}

// File promises that a command may change a mount that is a single file, of which nothing is recorded.
func File(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "single")
	if err := os.WriteFile(name, []byte("before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	base.Mounts = append(slices.Clone(base.Mounts), paddock.Mount{Source: name, Target: "/single", Write: true})
	s := begin(t, base, open)
	s.run(t, `echo after > /single; echo after > text`)
	s.close(t)
	if got, err := os.ReadFile(name); err != nil || string(got) != "after\n" {
		t.Errorf("the file is %q, %v", got, err)
	}
	s.undo(t, 1)
	s.is(t, 0, "undo beside a single file")
}

// begin makes an ephemeral sandbox with a workspace.
func begin(t *testing.T, spec paddock.Spec, open Open) *session {
	t.Helper()
	spec.Ephemeral = true
	return create(t, spec, open)
}

// clearLater removes a journal when the test ends. The keeper of a sandbox trims the journal after the sandbox is gone.
func clearLater(t *testing.T, journal string) {
	t.Helper()
	t.Cleanup(func() {
		for errors.Is(os.RemoveAll(journal), syscall.ENOTEMPTY) {
			runtime.Gosched()
		}
	})
}

// create makes a sandbox with a workspace.
func create(t *testing.T, spec paddock.Spec, open Open) *session {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{work: filepath.Join(dir, "work"), state: filepath.Join(dir, "state")}
	clearLater(t, filepath.Join(dir, "steps"))
	if err := furnish(s.work); err != nil {
		t.Fatal(err)
	}
	if s.journal, err = step.Open(filepath.Join(dir, "steps"), step.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.journal.Close() })
	d, err := open(s.state, filepath.Join(dir, "steps"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	s.driver = d
	spec.Dir, spec.Undo = "/work", paddock.UndoOn
	spec.Mounts = append(slices.Clone(spec.Mounts), paddock.Mount{Source: s.work, Target: "/work", Write: true})
	s.spec = spec
	if s.sandbox, err = d.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.sandbox.Remove(context.Background()) })
	s.look(t)
	return s
}

// furnish makes a workspace.
func furnish(work string) error {
	for _, dir := range []string{"src/a", "src/a name", "src/b", "deep/er", "dir", ".git/refs/heads", ".git/objects/aa"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"src/a/one": "one\n", "src/a name/\xff\n": "bytes\n", "src/b/one": strings.Repeat("many bytes\n", 200_000), "deep/er/file": "", "text": "text\n",
		"emptied": "full\n", "replaced": "123456789\n", "cut": "cut here\n", "over": "written over\n",
		".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": "0123456789012345678901234567890123456789\n", ".git/objects/aa/bb": "blob\n",
		".git/config": "[core]\n\tbare = false\n",
	} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(work, "cut"), 0o600); err != nil {
		return err
	}
	return os.Symlink("../text", filepath.Join(work, "src/link"))
}

// run runs a command and looks what the workspace is then.
func (s *session) run(t *testing.T, script string) {
	t.Helper()
	s.exec(t, script)
	s.look(t)
}

// exec runs a command.
func (s *session) exec(t *testing.T, script string) {
	t.Helper()
	var out strings.Builder
	p, err := s.sandbox.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Fatalf("%q ends with %+v, %v: %s", script, exit, err, out.String())
	}
}

// close ends the sandbox, and so the recording.
func (s *session) close(t *testing.T) {
	t.Helper()
	if err := s.sandbox.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// undo undoes a step, and returns the number of the undo.
func (s *session) undo(t *testing.T, number int64) int64 {
	t.Helper()
	result, err := s.journal.Undo(t.Context(), step.Request{Steps: []int64{number}})
	if err != nil {
		t.Fatalf("undo of step %d: %v", number, err)
	}
	for _, c := range result.Conflicts {
		t.Errorf("undo of step %d: %q: %s; %s", number, c.Path, c.Why, c.Remedy)
	}
	if len(result.Conflicts) > 0 {
		if r, err := s.journal.Read(t.Context(), number); err == nil {
			t.Logf("the record: %+v, left %+v", r.Changes, r.Left)
		}
	}
	if result.Step == 0 {
		t.Errorf("undo of step %d did nothing", number)
	}
	return result.Step
}

// look notes what the workspace is.
func (s *session) look(t *testing.T) {
	t.Helper()
	state, err := treeOf(s.work)
	if err != nil {
		t.Fatal(err)
	}
	s.states = append(s.states, state)
}

// is fails unless the workspace is what it was before a command, counting from 0.
func (s *session) is(t *testing.T, before int, what string) {
	t.Helper()
	got, err := treeOf(s.work)
	if err != nil {
		t.Fatal(err)
	}
	want := s.states[before]
	for name, is := range got {
		if w, ok := want[name]; !ok {
			t.Errorf("after the %s %q is there: %.80s", what, name, is)
		} else if w != is {
			t.Errorf("after the %s %q is %.80s, not %.80s", what, name, is, w)
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("after the %s %q is missing", what, name)
		}
	}
}

// treeOf describes every file of a tree.
func treeOf(dir string) (map[string]string, error) {
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s has no owner", path)
		}
		text := fmt.Sprintf("%v, of %d:%d", info.Mode(), st.Uid, st.Gid)
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path) //nolint:gosec // a test's own directory
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" with %d bytes: %q", len(data), data)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " to " + target
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if rel != "." { // its own mode and owner are the mount's
			tree[rel] = text
		}
		return nil
	})
	return tree, err
}
