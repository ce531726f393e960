package steptest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Kept promises that a sandbox which outlives its maker records commands, calls about files, and what changes while none
// of them runs, and that its own journal undoes them by the paths of the sandbox.
func Kept(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := create(t, base, open)
	st, err := s.sandbox.Status(t.Context())
	if err != nil || st.Undo == nil || st.Undo.Mode != paddock.UndoOn || len(st.Undo.Without) != 1 || st.Undo.Failed != "" {
		t.Errorf("the status says %+v, %v", st.Undo, err)
	}
	s.run(t, `rm -rf src/a deep; echo more >> text`)
	s.run(t, `echo again >> text; mkdir dir/made`)
	fs := s.sandbox.FS()
	for _, call := range []func() error{
		func() error { return s.write(t, "/work/text", "written by a call\n") },
		func() error { return fs.Mkdir(t.Context(), "/work/one/two", paddock.MkdirOptions{Parents: true}) },
		func() error { return fs.Rename(t.Context(), "/work/over", "/work/one/under") },
		func() error { return fs.Remove(t.Context(), "/work/src", true) },
		func() error { return fs.Chmod(t.Context(), "/work/cut", 0o640) },
		func() error { return fs.Symlink(t.Context(), "text", "/work/link") },
	} {
		if err := call(); err != nil {
			t.Fatal(err)
		}
		s.look(t)
	}
	if err := s.write(t, "/tmp/private", "not in a mount\n"); err != nil {
		t.Fatal(err)
	}
	s.run(t, `(while [ ! -e go ]; do sleep 0.05; done; echo in the background > late; : > done) > /dev/null 2>&1 & echo started > started`)
	if err := os.WriteFile(filepath.Join(s.work, "go"), nil, 0o644); err != nil { // by the user, so it is no step's
		t.Fatal(err)
	}
	s.await(t, "done")
	s.states[len(s.states)-1]["go"] = s.tree(t)["go"]
	s.look(t)
	s.run(t, `: > last`)

	s.refused(t)
	j := s.steps(t)
	list, err := j.Steps(t.Context(), paddock.StepFilter{})
	if err != nil || len(list) < 2 {
		t.Fatal(list, err)
	}
	list = list[:len(list)-2] // without that of what was refused, and its undo
	var got []string
	for _, r := range list {
		got = append(got, r.Kind+" "+strings.Join(r.Command, " "))
		if r.Incomplete || r.Changed == 0 || r.Missed > 0 || r.Exit != 0 && r.Kind != "background" {
			t.Errorf("%+v", r)
		}
	}
	want := []string{
		"run sh -c rm -rf", "run sh -c echo again", "file write /work/text", "file mkdir /work/one/two", "file rename /work/over /work/one/under",
		"file remove /work/src", "file chmod -rw-r----- /work/cut", "file symlink text /work/link", "run sh -c (while", "background", "run sh -c : > last",
	}
	if len(got) != len(want) {
		t.Fatalf("the steps are %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("step %d is %q, not %q", i, got[i], want[i])
		}
	}
	one, err := j.Step(t.Context(), list[4].Number)
	if err != nil || len(one.Changes) != 1 || one.Changes[0] != (paddock.StepChange{What: "moved", Path: "/work/one/under", From: "/work/over"}) {
		t.Errorf("the step of a rename is %+v, %v", one, err)
	}
	diff, err := j.Diff(t.Context(), list[1].Number, list[2].Number, []string{"/work/text"})
	if err != nil || len(diff) != 1 || diff[0].Path != "/work/text" || !strings.Contains(diff[0].Text, "+written by a call\n") || !strings.Contains(diff[0].Text, "-more\n") {
		t.Errorf("the difference is %+v, %v", diff, err)
	}
	newest, err := j.Steps(t.Context(), paddock.StepFilter{Before: list[3].Number, Last: 2})
	if err != nil || len(newest) != 2 || newest[0].Number != list[1].Number || newest[1].Number != list[2].Number {
		t.Errorf("two steps before the fourth are %+v, %v", newest, err)
	}
	s.backwards(t, j, list)
	again, err := j.Undo(t.Context(), paddock.Undo{To: list[len(list)-1].Number, Paths: []string{"/work/src"}})
	if err != nil || len(again.Conflicts) > 0 {
		t.Errorf("undo of all undos below a path: %+v, %v", again, err)
	}
	if _, err := j.Undo(t.Context(), paddock.Undo{Steps: []int64{list[0].Number}, Paths: []string{"/etc/passwd"}}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("undo of what is in no mount: %v", err)
	}
	s.others(t, base, list)
}

// refused promises that a step has what was refused meanwhile, and no other step has it.
func (s *session) refused(t *testing.T) {
	t.Helper()
	s.run(t, `mkdir -p .git/hooks; (echo x > .git/hooks/pre-commit) 2> /dev/null || true; echo x > kept`)
	j := s.steps(t)
	list, err := j.Steps(t.Context(), paddock.StepFilter{Last: 2})
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []int{0, 1} {
		one, err := j.Step(t.Context(), list[i].Number)
		if err != nil || len(one.Refused) != want || want > 0 && !strings.Contains(one.Refused[0], "/work/.git/hooks/pre-commit") {
			t.Errorf("%q was refused %q, %v", one.Command, one.Refused, err)
		}
	}
	if _, err := j.Undo(t.Context(), paddock.Undo{Steps: []int64{list[1].Number}}); err != nil {
		t.Error(err)
	}
}

// others promises that a sandbox of the same driver sees no step of this one, also if it has its name later.
func (s *session) others(t *testing.T, spec paddock.Spec, list []paddock.Step) {
	t.Helper()
	id := s.sandbox.ID()
	s.close(t)
	spec.ID, spec.Undo = id, paddock.UndoOn
	spec.Mounts = append(slices.Clone(spec.Mounts), paddock.Mount{Source: s.work, Target: "/work", Write: true})
	sb, err := s.driver.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Remove(context.Background()) })
	j, err := paddock.JournalOf(sb)
	if err != nil {
		t.Fatal(err)
	}
	if has, err := j.Steps(t.Context(), paddock.StepFilter{}); err != nil || len(has) != 0 {
		t.Errorf("a sandbox with the name of an earlier one has the steps %+v, %v", has, err)
	}
	n := list[0].Number
	_, read := j.Step(t.Context(), n)
	_, diffed := j.Diff(t.Context(), n, n, nil)
	_, undone := j.Undo(t.Context(), paddock.Undo{Steps: []int64{n}})
	_, all := j.Undo(t.Context(), paddock.Undo{To: 1})
	for what, err := range map[string]error{"read": read, "diff": diffed, "undo": undone, "undo all": all} {
		if !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s of a step of an earlier sandbox with the same name: %v", what, err)
		}
	}
}

// Paused promises that what goes on after a pause and a resume is recorded, also by files that are open meanwhile.
func Paused(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := create(t, base, open)
	s.run(t, `(exec 3>> text; echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; echo late >&3; : > emptied; : > done) > /dev/null 2>&1 & while [ ! -e pid ]; do sleep 0.05; done`)
	info, err := s.driver.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	if info.Can(paddock.CanPause) {
		if err := s.sandbox.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.sandbox.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.work, "go"), nil, 0o644); err != nil { // by the user: no step begins before the change
		t.Fatal(err)
	}
	s.await(t, "done")
	s.run(t, `echo after > text`)
	j := s.steps(t)
	list, err := j.Steps(t.Context(), paddock.StepFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Changed == 0 {
			continue
		}
		done, err := j.Undo(t.Context(), paddock.Undo{Steps: []int64{list[i].Number}})
		if err != nil || len(done.Conflicts) > 0 {
			t.Errorf("undo of %+v: %+v, %v", list[i], done, err)
		}
	}
	if err := os.Remove(filepath.Join(s.work, "go")); err != nil {
		t.Fatal(err)
	}
	s.is(t, 0, "undo of what happened before and after a pause")
}

// Killed promises that nothing is lost that was recorded before the owner of a sandbox was killed, and that the step which
// went on then can be undone.
func Killed(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := create(t, base, open)
	s.run(t, `rm -rf src; echo more >> text`)
	if err := s.write(t, "/work/cut", "by a call\n"); err != nil {
		t.Fatal(err)
	}
	s.look(t)
	p, err := s.sandbox.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", `echo partial >> text; : > started; rm -r deep; sleep 1000`}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	s.awaitGone(t, "deep") // a removal is reported before it is made, so that all before it is in the record
	pid := s.keeper(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err == nil && exit.Cause == paddock.Exited {
		t.Fatalf("the command ended with %+v", exit)
	}
	s.look(t)
	j := s.steps(t)
	list, err := j.Steps(t.Context(), paddock.StepFilter{})
	if err != nil || len(list) < 3 {
		t.Fatalf("the steps are %+v, %v", list, err)
	}
	if last := list[len(list)-1]; !last.Incomplete || last.Exit != paddock.UnknownExit {
		t.Errorf("the step that went on is %+v", last)
	}
	s.backwards(t, j, list)
}

// Refused promises that a sandbox which cannot be recorded as asked for is not made.
func Refused(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "single")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	single := []paddock.Mount{{Source: file, Target: "/single", Write: true}}
	for _, row := range []struct {
		journal string
		undo    paddock.UndoMode
		mounts  []paddock.Mount
		kind    paddock.Kind
		failed  bool // it is made, and its status says that nothing is recorded
	}{
		{"", paddock.UndoOn, nil, paddock.Unsupported, false},
		{"steps", "sometimes", nil, paddock.Invalid, false},
		{"steps", paddock.UndoStrict, single, paddock.Unsupported, false},
		{"journal", paddock.UndoStrict, nil, paddock.Internal, false},
		{"journal", paddock.UndoOn, nil, 0, true},
	} {
		journal := row.journal
		if journal != "" {
			journal = filepath.Join(dir, journal)
		}
		d, err := open(filepath.Join(dir, "state"), journal)
		if err != nil {
			t.Fatal(err)
		}
		spec := base
		spec.Undo, spec.Mounts = row.undo, append(slices.Clone(base.Mounts), row.mounts...)
		sb, err := d.Create(t.Context(), spec)
		switch {
		case row.failed && err == nil:
			st, err := sb.Status(t.Context())
			if err != nil || st.Undo == nil || st.Undo.Failed == "" {
				t.Errorf("without a journal the status says %+v, %v", st.Undo, err)
			}
		case err == nil:
			t.Errorf("with the journal %q and undo %q a sandbox is made", row.journal, row.undo)
		case row.failed || paddock.KindOf(err) != row.kind:
			t.Errorf("with the journal %q and undo %q: %v", row.journal, row.undo, err)
		}
		if err == nil {
			if err := sb.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// steps returns the journal of the sandbox, opened anew.
func (s *session) steps(t *testing.T) paddock.Journal {
	t.Helper()
	sb, err := s.driver.Open(t.Context(), s.sandbox.ID())
	if err != nil {
		t.Fatal(err)
	}
	j, err := paddock.JournalOf(sb)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// backwards undoes steps from the last to the first, each of which led from one state to the next.
func (s *session) backwards(t *testing.T, j paddock.Journal, list []paddock.Step) {
	t.Helper()
	for i := len(list) - 1; i >= 0; i-- {
		done, err := j.Undo(t.Context(), paddock.Undo{Steps: []int64{list[i].Number}})
		if err != nil || done.Step == 0 {
			t.Fatalf("undo of %+v: %+v, %v", list[i], done, err)
		}
		for _, c := range done.Conflicts {
			t.Errorf("undo of %q: %q: %s; %s", list[i].Command, c.Path, c.Why, c.Remedy)
		}
		want := s.states[i]
		if _, user := want["go"]; !user {
			if err := os.Remove(filepath.Join(s.work, "go")); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		s.is(t, i, fmt.Sprintf("undo of %q", list[i].Command))
	}
}

// write writes a file by a call.
func (s *session) write(t *testing.T, name, text string) error {
	t.Helper()
	w, err := s.sandbox.FS().Create(t.Context(), name, paddock.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = w.Write([]byte(text))
	return errors.Join(err, w.Close())
}

// await waits until a file is in the workspace.
func (s *session) await(t *testing.T, name string) {
	t.Helper()
	s.until(t, name, true)
}

func (s *session) awaitGone(t *testing.T, name string) {
	t.Helper()
	s.until(t, name, false)
}

func (s *session) until(t *testing.T, name string, there bool) {
	t.Helper()
	for {
		if _, err := os.Lstat(filepath.Join(s.work, name)); (err == nil) == there {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tree returns what the workspace is now.
func (s *session) tree(t *testing.T) map[string]string {
	t.Helper()
	tree, err := treeOf(s.work)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// keeper returns the process that owns the sandbox, which listens at a socket.
func (s *session) keeper(t *testing.T) int {
	t.Helper()
	dir, err := os.Open(filepath.Join(s.state, string(s.sandbox.ID())))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/keeper", dir.Fd()), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var peer *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return int(peer.Pid)
}

// Past promises that the steps of a removed sandbox are answered and undone by its ID, and those of no other sandbox.
func Past(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := create(t, base, open)
	was := s.tree(t)
	s.run(t, `rm -rf src; echo more >> text`)
	id := s.sandbox.ID()
	if j, err := paddock.PastJournal(t.Context(), s.driver, "nobody"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("the journal of nobody is %v, %v", j, err)
	}
	if err := s.sandbox.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	j, err := paddock.PastJournal(t.Context(), s.driver, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Begin(t.Context(), "cell", nil); !errors.Is(err, paddock.NotFound) {
		t.Errorf("a step begins in a sandbox that is gone: %v", err)
	}
	list, err := j.Steps(t.Context(), paddock.StepFilter{})
	if err != nil || len(list) == 0 || list[0].Kind != "run" {
		t.Fatalf("the steps are %+v, %v", list, err)
	}
	first := list[0].Number
	if one, err := j.Step(t.Context(), first); err != nil || one.Changed == 0 || !strings.HasPrefix(one.Changes[0].Path, "/work/") {
		t.Errorf("the step is %+v, %v", one, err)
	}
	if d, err := j.Diff(t.Context(), first, first, []string{"/work/text"}); err != nil || len(d) != 1 || !strings.Contains(d[0].Text, "+more") {
		t.Errorf("the difference is %+v, %v", d, err)
	}
	done, err := j.Undo(t.Context(), paddock.Undo{To: first})
	if err != nil || len(done.Conflicts) > 0 || done.Step == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	differ(t, "after the undo", s.tree(t), was)

	// Another sandbox of the name hides it while it is there, and has no steps of it.
	s.spec.ID = id
	next, err := s.driver.Create(t.Context(), s.spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Remove(context.Background()) })
	own, err := paddock.JournalOf(next)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := own.Steps(t.Context(), paddock.StepFilter{}); err != nil || len(list) != 0 {
		t.Errorf("a new sandbox has steps of an earlier one: %+v, %v", list, err)
	}
	if _, err := own.Step(t.Context(), first); !errors.Is(err, paddock.NotFound) {
		t.Errorf("a new sandbox reads a step of an earlier one: %v", err)
	}
}
