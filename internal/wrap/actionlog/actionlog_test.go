package actionlog_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
)

// A list is a sink that a test reads.
type list struct {
	mu     sync.Mutex
	events []audit.Event // guarded by mu
}

func (l *list) Record(e audit.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e.Clean())
}

// take gives what was told since the last, each as one line.
func (l *list) take() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		lines = append(lines, strings.Join(append([]string{e.Action.Who, e.Sandbox, e.Action.What, e.Action.Target, e.Action.Result}, e.Args...), "|"))
	}
	l.events = nil
	return lines
}

type callerKey struct{}

func caller(ctx context.Context) actionlog.Caller {
	who, _ := ctx.Value(callerKey{}).(string)
	return actionlog.Caller{Who: who, Tenant: "t", From: "192.0.2.1:9", Request: "r1", Rule: "scope"}
}

func set(t *testing.T, failed <-chan struct{}) (paddock.Driver, *list) {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &list{}
	a, err := actionlog.New(d, actionlog.Options{Sink: l, Caller: caller, Failed: failed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, l
}

// A weaker driver makes sandboxes on another tier than the usual one.
type weaker struct{ paddock.Driver }

type born struct{ paddock.Sandbox }

func (d weaker) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	sb, err := d.Driver.Create(ctx, spec)
	return born{sb}, err
}

func (born) Born() (paddock.Status, bool) {
	return paddock.Status{PassedOver: []paddock.PassedOver{{Tier: paddock.MicroVM, Cause: "no machine"}, {Tier: paddock.GVisor, Cause: "no limit"}}}, true
}

func TestACreationOnAWeakerTierIsRecordedWithItsReason(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &list{}
	d, err := actionlog.New(weaker{inner}, actionlog.Options{Sink: l})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Create(t.Context(), paddock.Spec{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := l.events[0].Action; got.Result != "ok" || got.Reason != "not on tier microvm: no machine; not on tier gvisor: no limit" {
		t.Errorf("recorded %+v", got)
	}
}

// An unheard driver makes sandboxes whose kernels report to nobody.
type unheard struct{ paddock.Driver }

func (d unheard) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	spec.Policy.Audit = nil
	return d.Driver.Create(ctx, spec)
}

func TestTheStartOfASandboxIsRecordedAfterItsCreation(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &list{}
	d, err := actionlog.New(unheard{inner}, actionlog.Options{Sink: l, Caller: caller, Build: func() audit.Build { return audit.Build{Version: "v1", Digest: "sha256:ab"} }, Image: func(_ paddock.Sandbox, r paddock.Root) string { return "sha256:of " + string(r.Kind) }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	policy := paddock.Policy{Audit: []paddock.AuditKind{paddock.AuditExec}}
	sb, err := d.Create(t.Context(), paddock.Spec{ID: "a", Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create(t.Context(), paddock.Spec{ID: "a"}); err == nil {
		t.Fatal("there are two")
	}
	st, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) != 3 || l.events[0].Action == nil || l.events[1].Kind != audit.Started || l.events[1].Sandbox != "a" || l.events[2].Action == nil {
		t.Fatalf("%+v", l.events)
	}
	got := l.events[1].Start
	if got.Tenant != "t" || len(got.Kinds) > 0 { // what they name is recorded elsewhere
		t.Errorf("%+v", got)
	}
	if got.Tier != "sim" || got.Root != "host" || got.Paddock.Version != "v1" || got.Policy != audit.PolicyDigest(policy) {
		t.Errorf("%+v", got)
	}
	if len(got.Controls) != len(st.Enforced) || len(got.Controls) == 0 {
		t.Fatalf("%v, and the sandbox has %v", got.Controls, st.Enforced)
	}
	for i, f := range st.Enforced {
		if got.Controls[i] != (audit.Strength{Control: string(f.Control), Strength: string(f.Strength)}) {
			t.Errorf("%v, and the sandbox has %v", got.Controls[i], f)
		}
	}
}

func TestEveryActionIsToldWithWhoAndHowItWent(t *testing.T) {
	d, l := set(t, nil)
	ctx := context.WithValue(t.Context(), callerKey{}, "alice")
	sb, err := d.Create(ctx, paddock.Spec{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = d.Create(ctx, paddock.Spec{ID: "a"})
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"cat", "-u"}, Input: true, Env: map[string]string{"SECRET": "hush"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := p.Input().Write([]byte("hush\n")); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.Input().Close()
	if _, err := p.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	w, err := sb.FS().Create(ctx, "/tmp/x", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_ = sb.FS().Rename(ctx, "/tmp/x", "/tmp/y z")
	_, _ = sb.FS().Open(ctx, "/tmp/none", paddock.OpenOptions{})
	_, _ = sb.FS().Stat(ctx, "/tmp/y z") // only looks
	_, _ = sb.Status(ctx)
	_ = sb.Update(ctx, paddock.Update{Labels: map[string]string{"secret": "hush"}})
	_ = sb.Pause(ctx)
	_ = sb.Resume(ctx)
	if r, ok := paddock.As[actionlog.Recorder](d); ok {
		r.Record(ctx, "", "key.create", "k1", nil)
	}
	again, err := d.Open(context.WithValue(t.Context(), callerKey{}, "bob"), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(context.WithValue(t.Context(), callerKey{}, "bob")); err != nil {
		t.Fatal(err)
	}
	pid := "1"
	l.mu.Lock()
	for _, e := range l.events {
		if line, err := audit.Line(e); err != nil || bytes.Contains(line, []byte("hush")) {
			t.Errorf("%s, %v", line, err)
		}
		if e.Action.What == "process.start" {
			pid = e.Action.Target
		}
		if a := e.Action; e.Kind != audit.Did || a.Tenant != "t" || a.From != "192.0.2.1:9" || a.Request != "r1" || a.Rule != "scope" || (a.Result == "ok") != (a.Reason == "") {
			t.Errorf("%+v", a)
		}
	}
	l.mu.Unlock()
	want := []string{
		"alice|a|sandbox.create||ok",
		"alice|a|sandbox.create||already exists",
		"alice|a|process.start|" + pid + "|ok|cat|-u",
		"alice|a|process.input|" + pid + "|ok",
		"alice|a|file.write|/tmp/x|ok",
		"alice|a|file.rename|/tmp/x|ok|/tmp/y z",
		"alice|a|file.read|/tmp/none|not found",
		"alice|a|sandbox.update||ok",
		"alice|a|sandbox.pause||ok",
		"alice|a|sandbox.resume||ok",
		"alice||key.create|k1|ok",
		"bob|a|sandbox.remove||ok",
	}
	if got := l.take(); !slices.Equal(got, want) {
		t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// A stopped writer is one that waits for its disk.
type stopped struct {
	bytes.Buffer
	goOn chan struct{}
}

func (w *stopped) Write(p []byte) (int, error) {
	<-w.goOn
	return w.Buffer.Write(p)
}

// The attacker is a tenant that makes so many actions while the record waits for its disk that there is no room for them.
func TestAFloodOfActionsHidesNone(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := &stopped{goOn: make(chan struct{})}
	lines := audit.NewLines(out)
	d, err := actionlog.New(inner, actionlog.Options{Sink: lines, Failed: lines.Failed()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rec, ok := paddock.As[actionlog.Recorder](d)
	if !ok {
		t.Fatal("it records nothing")
	}
	const count = 400
	var called, told sync.WaitGroup
	called.Add(count)
	for range count {
		told.Go(func() {
			if err := rec.Do(t.Context(), "a", "file.read", strings.Repeat("\x01", audit.MaxPath), func() error {
				called.Done()
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	called.Wait()
	close(out.goOn)
	told.Wait()
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte(`"file.read"`)); n != count || bytes.Contains(out.Bytes(), []byte(`"dropped"`)) {
		t.Errorf("%d of %d actions were recorded", n, count)
	}
}

func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	failed := make(chan struct{})
	d, _ := set(t, failed)
	ctx := t.Context()
	sb, err := d.Create(ctx, paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"cat"}, Input: true})
	if err != nil {
		t.Fatal(err)
	}
	close(failed)
	files := sb.FS()
	for what, call := range map[string]func() error{
		"create":          func() error { _, err := d.Create(ctx, paddock.Spec{}); return err },
		"start":           func() error { _, err := sb.Start(ctx, paddock.Cmd{Args: []string{"true"}}); return err },
		"attach":          func() error { _, err := sb.Attach(ctx, p.ID(), paddock.Output{}); return err },
		"input":           func() error { _, err := p.Input().Write([]byte("x")); return err },
		"signal":          func() error { return p.Signal(ctx, 15) },
		"update":          func() error { return sb.Update(ctx, paddock.Update{}) },
		"pause":           func() error { return sb.Pause(ctx) },
		"resume":          func() error { return sb.Resume(ctx) },
		"snapshot":        func() error { _, err := sb.Snapshot(ctx, paddock.SnapshotOptions{}); return err },
		"dial":            func() error { _, err := sb.Dial(ctx, 80); return err },
		"remove snapshot": func() error { return d.RemoveSnapshot(ctx, "x") },
		"read":            func() error { _, err := files.Open(ctx, "/etc/passwd", paddock.OpenOptions{}); return err },
		"write":           func() error { _, err := files.Create(ctx, "/tmp/x", paddock.CreateOptions{}); return err },
		"mkdir":           func() error { return files.Mkdir(ctx, "/tmp/d", paddock.MkdirOptions{}) },
		"rename":          func() error { return files.Rename(ctx, "/tmp/a", "/tmp/b") },
		"remove":          func() error { return files.Remove(ctx, "/tmp/a", true) },
		"chmod":           func() error { return files.Chmod(ctx, "/tmp", 0o700) },
		"another's": func() error {
			r, _ := paddock.As[actionlog.Recorder](d)
			return r.Do(ctx, "a", "port.public", "80", func() error { t.Error("it is done"); return nil })
		},
		"symlink": func() error { return files.Symlink(ctx, "a", "/tmp/l") },
	} {
		if err := call(); !errors.Is(err, paddock.Unavailable) || !strings.Contains(err.Error(), "recorded") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := sb.Remove(ctx); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := actionlog.New(d, actionlog.Options{}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("without a sink: %v", err)
	}
}

// A nowhere keeps nothing.
type nowhere struct{}

func (nowhere) Record(audit.Event) {}

// overridden lists the subjects of the promises that this wrapper could break: what
// it does more than to pass on.
func overridden() []string {
	return sample.Subjects("actionlog", "leak", "start", "attach", "file", "port", "remove", "lifecycle", "update", "pause")
}

func TestPromises(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Memory: true, Skip: unmeasured(), Subjects: overridden(), New: func(string) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			return nil, err
		}
		return actionlog.New(d, actionlog.Options{Sink: nowhere{}})
	}})
}

func TestMain(m *testing.M) {
	drivertest.Main(m, func(string) (paddock.Driver, error) { return sim.New(sim.Options{}) })
}

func TestACellIsRecordedByItsDigest(t *testing.T) {
	a, l := set(t, nil)
	ctx := context.WithValue(t.Context(), callerKey{}, "key-1")
	sb, err := a.Create(ctx, paddock.Spec{ID: "box"})
	if err != nil {
		t.Fatal(err)
	}
	l.take()
	r, ok := paddock.As[interpreter.Recorder](sb)
	if !ok {
		t.Fatal("it records no cells")
	}
	for _, c := range []struct {
		failed bool
		err    error
		want   string
	}{
		{false, nil, "key-1|box|cell.run|c1|ok|python|SUM|13|ended"},
		{true, nil, "key-1|box|cell.run|c1|ok|python|SUM|13|failed"},
		{false, paddock.Canceled, "key-1|box|cell.run|c1|" + paddock.Canceled.Error() + "|python|SUM|13|cut"},
	} {
		err := r.RecordCell(ctx, "c1", "python", "print(secret)", func() (bool, error) { return c.failed, c.err })
		sum := sha256.Sum256([]byte("print(secret)"))
		want := strings.Replace(c.want, "SUM", fmt.Sprintf("sha256:%x", sum), 1)
		if got := l.take(); !errors.Is(err, c.err) || len(got) != 1 || got[0] != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

func TestACellThatCannotBeRecordedIsNotRun(t *testing.T) {
	failed := make(chan struct{})
	a, _ := set(t, failed)
	sb, err := a.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	close(failed)
	r, _ := paddock.As[interpreter.Recorder](sb)
	err = r.RecordCell(t.Context(), "c1", "python", "1", func() (bool, error) {
		t.Error("it ran")
		return false, nil
	})
	if paddock.KindOf(err) != paddock.Unavailable {
		t.Error(err)
	}
}
