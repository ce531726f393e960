package steptest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// A reviewed is a sandbox with a workspace whose changes go to a layer.
type reviewed struct {
	dir, work string
	reviews   *step.Reviews
	journal   *step.Journal
	layers    *step.Layers
	sandbox   paddock.Sandbox
	was       map[string]string // the whole workspace before
	seen      int               // an inotify descriptor that tells of changes in the workspace
}

// OpenLayered opens a driver whose sandboxes have layers.
type OpenLayered func(state string, l *step.Layers) (paddock.Driver, error)

// reviewScripts change everything in a way that a plain copy of the workspace can follow. They move no FIFO in a
// directory: mv copies a directory that was there before, and there a FIFO's mode cannot be kept on gvisor.
var reviewScripts = append(strings.Split(strings.ReplaceAll(strings.Join(scripts[:len(scripts)-1], "\n"), "; mkfifo dir/made/fifo", ""), "\n"), `echo b > z; rm -rf .git/objects; mkdir .git/objects; echo x > .git/objects/new`)

// Review promises that the workspace on the host stays as it is, to its times, whatever commands do, that they see their
// own changes, and that the proposal makes of it what the commands saw.
func Review(t *testing.T, base paddock.Spec, open OpenLayered) {
	t.Helper()
	s := beginReview(t, base, open)
	copied := filepath.Join(s.dir, "copy")
	if err := furnish(copied); err != nil {
		t.Fatal(err)
	}
	for _, script := range reviewScripts {
		got := s.run(t, script+"; find . | sort")
		c := exec.CommandContext(t.Context(), "sh", "-c", "umask 022; "+script+"; find . | sort")
		c.Dir = copied
		want, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Fatalf("after %q a command sees %q, not %q", script, got, want)
		}
		s.same(t, fmt.Sprintf("after %q", script))
	}
	rec := s.propose(t)
	for _, l := range rec.Left {
		t.Errorf("%q is left: %s", l.Path, l.Why)
	}
	s.same(t, "after the proposal")
	s.apply(t, step.Application{Number: rec.Number}, 0)
	got, err := treeOf(s.work)
	if err != nil {
		t.Fatal(err)
	}
	want, err := treeOf(copied)
	if err != nil {
		t.Fatal(err)
	}
	differ(t, "after all was applied", got, want)
	list, err := s.journal.List(t.Context(), step.Filter{})
	if err != nil || len(list) != 1 || list[0].Kind != "apply" {
		t.Fatalf("steps %+v, %v", list, err)
	}
	if _, err := s.journal.Undo(t.Context(), step.Request{Steps: []int64{list[0].Number}}); err != nil {
		t.Fatal(err)
	}
	after, err := treeOf(s.work)
	if err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(s.dir, "before")
	if err := furnish(before); err != nil {
		t.Fatal(err)
	}
	if want, err = treeOf(before); err != nil {
		t.Fatal(err)
	}
	differ(t, "after the undo of it", after, want)
	if n, err := s.reviews.List(t.Context(), step.Filter{}); err != nil || len(n) != 0 {
		t.Errorf("proposals %+v, %v", n, err)
	}
}

// ReviewProtected promises that protected names are protected in a layer as they are in a workspace, that deleting all
// leaves the host's directory as it is, and that a proposal may be applied in part.
func ReviewProtected(t *testing.T, base paddock.Spec, open OpenLayered) {
	t.Helper()
	s := beginReview(t, base, open)
	out := s.run(t, `mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; echo evil > .envrc; ls .git/hooks .envrc 2>&1; ln -s /etc/passwd out; mkfifo fifo
		echo x > nothere; rm nothere; chmod 755 over; mkdir -p new/deep; echo y > new/deep/f; rm -rf src .git/refs .git/objects; true`)
	if strings.Contains(out, "post-checkout\n") {
		t.Errorf("a hook was made: %q", out)
	}
	s.same(t, "after all was removed")
	rec := s.propose(t)
	for _, c := range rec.Changes {
		if strings.Contains(string(c.Path), "hooks/") || c.Path == ".envrc" || c.Path == "nothere" {
			t.Errorf("the proposal has %+v", c)
		}
	}
	a := s.apply(t, step.Application{Number: rec.Number, Paths: []string{filepath.Join(s.work, "new/deep/f")}}, 0)
	if got, err := os.ReadFile(filepath.Join(s.work, "new/deep/f")); err != nil || string(got) != "y\n" {
		t.Errorf("the file is %q, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(s.work, "src/b/one")); err != nil || a.Stays == 0 {
		t.Errorf("more was applied than was asked for: %v, %+v", err, a)
	}
	s.apply(t, step.Application{Number: rec.Number}, 0)
	if st, err := os.Lstat(filepath.Join(s.work, "over")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("the mode is %v, %v", st.Mode(), err)
	}
	if _, err := os.Lstat(filepath.Join(s.work, "src")); !os.IsNotExist(err) {
		t.Errorf("src: %v", err)
	}
	if to, err := os.Readlink(filepath.Join(s.work, "out")); err != nil || to != "/etc/passwd" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// ReviewGit promises that git works in a layer, and that its commit can be applied.
func ReviewGit(t *testing.T, base paddock.Spec, open OpenLayered) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git: ", err)
	}
	s := beginReview(t, base, open, func(work string) {
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "first"}} {
			c := exec.CommandContext(t.Context(), git, args...)
			c.Dir = work
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v: %s", args, err, out)
			}
		}
	})
	s.run(t, `git -c user.name=n -c user.email=e commit -q --allow-empty -m second && echo new > text && git add text && git -c user.name=n -c user.email=e commit -q -m third && git gc -q`)
	s.same(t, "after a commit inside")
	rec := s.propose(t)
	s.apply(t, step.Application{Number: rec.Number}, 0)
	for _, args := range [][]string{{"fsck", "--strict"}, {"log", "--format=%s"}, {"status", "--porcelain"}} {
		c := exec.CommandContext(t.Context(), git, args...)
		c.Dir = s.work
		out, err := c.CombinedOutput()
		if err != nil || args[0] == "log" && string(out) != "third\nsecond\nfirst\n" || args[0] == "status" && len(out) > 0 {
			t.Errorf("git %q: %v: %s", args, err, out)
		}
	}
}

// ReviewMeanwhile promises that text is merged which the user changed after a command did, and that what cannot be merged
// is left as the user has it.
func ReviewMeanwhile(t *testing.T, base paddock.Spec, open OpenLayered) {
	t.Helper()
	lines := strings.Repeat("line\n", 20)
	s := beginReview(t, base, open, func(work string) {
		for _, name := range []string{"merged", "conflict", "untouched"} {
			if err := os.WriteFile(filepath.Join(work, name), []byte(lines), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	s.run(t, `sed -i 1s/line/theirs/ merged conflict`)
	s.same(t, "after the command")
	for name, text := range map[string]string{"merged": lines + "ours\n", "conflict": "ours\n" + lines[5:], "untouched": "ours\n"} {
		if err := os.WriteFile(filepath.Join(s.work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rec := s.propose(t)
	a := s.apply(t, step.Application{Number: rec.Number}, 1)
	if len(a.Conflicts) == 1 && a.Conflicts[0].Path != "conflict" {
		t.Errorf("%+v", a.Conflicts)
	}
	for name, want := range map[string]string{"merged": "theirs\n" + lines[5:] + "ours\n", "conflict": "ours\n" + lines[5:], "untouched": "ours\n"} {
		if got, err := os.ReadFile(filepath.Join(s.work, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// beginReview makes a sandbox with a workspace and a layer over it.
func beginReview(t *testing.T, spec paddock.Spec, open OpenLayered, prepare ...func(work string)) *reviewed {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &reviewed{dir: dir, work: filepath.Join(dir, "work")}
	if len(prepare) == 0 {
		prepare = append(prepare, func(work string) {
			if err := furnish(work); err != nil {
				t.Fatal(err)
			}
		})
	} else if err := os.MkdirAll(filepath.Join(s.work, "sub"), 0o755); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(filepath.Join(s.work, "text"), []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range prepare {
		p(s.work)
	}
	if s.reviews, err = step.OpenReviews(filepath.Join(dir, "reviews"), step.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.reviews.Close() })
	if s.journal, err = step.Open(filepath.Join(dir, "steps"), step.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.journal.Close() })
	settled(t, s.work)
	s.seen = watched(t, s.work)
	s.was = exactly(t, s.work)
	if s.layers, err = s.reviews.Begin(t.Context(), step.About{Command: []string{"test"}, Roots: []step.Root{{Path: step.Text(s.work), Target: "/work"}}}); err != nil {
		t.Fatal(err)
	}
	d, err := open(filepath.Join(dir, "state"), s.layers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	spec.Ephemeral, spec.Dir = true, "/work"
	spec.Mounts = append(slices.Clone(spec.Mounts), paddock.Mount{Source: s.work, Target: "/work", Overlay: true})
	if s.sandbox, err = d.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.sandbox.Remove(context.Background()) })
	return s
}

// settled waits until what was just made in a directory is older than any change of a command.
func settled(t *testing.T, dir string) {
	t.Helper()
	probe := filepath.Join(filepath.Dir(dir), "probe")
	st, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	made := st.Sys().(*syscall.Stat_t).Ctim.Nano() //nolint:errcheck,forcetypeassert // of this system
	for {
		if err := os.WriteFile(probe, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(probe)
		if err != nil {
			t.Fatal(err)
		}
		if now := st.Sys().(*syscall.Stat_t).Ctim.Nano(); now > made+100_000_000 { //nolint:errcheck,forcetypeassert // of this system
			return
		}
		if err := os.Remove(probe); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command, and returns its output.
func (s *reviewed) run(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	p, err := s.sandbox.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", "umask 022; " + script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Fatalf("%q ends with %+v, %v: %s", script, exit, err, out.String())
	}
	return out.String()
}

// propose ends the sandbox, and returns the proposal.
func (s *reviewed) propose(t *testing.T) *step.Record {
	t.Helper()
	if err := s.sandbox.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := s.layers.Propose(t.Context(), step.Proposer{Sandbox: "sb", Tier: paddock.Jail})
	if err != nil || rec == nil {
		t.Fatalf("there is a proposal: %t, %v", rec != nil, err)
	}
	rec, err = s.reviews.Read(t.Context(), rec.Number)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(s.dir, "reviews/layer"))
	if err != nil || len(left) > 0 {
		t.Errorf("layers that are left: %v, %v", left, err)
	}
	return rec
}

// apply applies a proposal, and fails unless it has so many conflicts.
func (s *reviewed) apply(t *testing.T, q step.Application, conflicts int) *step.Applied {
	t.Helper()
	a, err := s.journal.Apply(t.Context(), s.reviews, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Conflicts) != conflicts {
		for _, c := range a.Conflicts {
			t.Errorf("%q: %s; %s", c.Path, c.Why, c.Remedy)
		}
	}
	return a
}

// same fails unless the workspace is what it was, to the times of each file.
func (s *reviewed) same(t *testing.T, when string) {
	t.Helper()
	differ(t, when, exactly(t, s.work), s.was)
	event := make([]byte, 64<<10)
	if n, err := syscall.Read(s.seen, event); err != syscall.EAGAIN {
		t.Errorf("%s something was opened for writing or changed: %q, %v", when, event[:max(n, 0)], err)
	}
}

// watched returns a descriptor that can be read when something in a workspace was opened for writing, or changed.
func watched(t *testing.T, work string) int {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	const all = syscall.IN_MODIFY | syscall.IN_ATTRIB | syscall.IN_CLOSE_WRITE | syscall.IN_CREATE | syscall.IN_DELETE | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_DELETE_SELF
	err = filepath.WalkDir(work, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_, err = syscall.InotifyAddWatch(fd, path, all)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func differ(t *testing.T, when string, got, want map[string]string) {
	t.Helper()
	for name, is := range got {
		if want[name] != is {
			t.Errorf("%s %q is %.200q, not %.200q", when, name, is, want[name])
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s %q is missing", when, name)
		}
	}
}

// exactly describes every file of a tree with all that a file system tells about it but the time of the last access.
func exactly(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree, err := treeOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	tree["."] = ""
	for name := range tree {
		var st syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(dir, name), &st); err != nil {
			t.Fatal(err)
		}
		tree[name] += fmt.Sprintf(" inode %d of %d, %d links, %d blocks, changed %d, %d", st.Ino, st.Dev, st.Nlink, st.Blocks, st.Mtim.Nano(), st.Ctim.Nano())
	}
	return tree
}
