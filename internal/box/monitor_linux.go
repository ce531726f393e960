package box

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/monitor/measure"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// A monitored describes the monitor of a sandbox, for every owner that the sandbox gets. It is never changed in place, because
// an about is copied.
type monitored struct {
	Settings paddock.Monitor `json:"settings"`
	Tier     paddock.Tier    `json:"tier"`
	Policy   string          `json:"policy"`           // digest
	Mounts   []paddock.Mount `json:"mounts,omitempty"` // that commands may change
	Network  bool            `json:"network"`          // connections are measured
	Without  []string        `json:"without,omitempty"`
	Paused   string          `json:"paused,omitempty"` // why the monitor paused the sandbox
	Memory   *monitor.Memory `json:"memory,omitempty"` // of the owner before
}

// Bounds of Spec.Monitor besides those of package paddock.
const (
	maxMonitorRemoved = 1 << 20
	maxMonitorHost    = 253 // bytes
)

// checkMonitor rejects a spec whose monitor cannot be had, and makes its steps recorded.
func (d *Driver) checkMonitor(spec *paddock.Spec) error {
	m := spec.Monitor
	if m == nil {
		return nil
	}
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("monitor: "+format+": %w", append(args, paddock.Invalid)...)
	}
	switch {
	case d.site.o.Steps == "":
		return fmt.Errorf("monitor: this driver has no journal of steps, and what is not recorded is not judged: %w", paddock.Unsupported)
	case d.site.o.Watch != nil || d.site.o.Judge != nil:
		return fmt.Errorf("monitor: this process judges its sandboxes itself: %w", paddock.Unsupported)
	case len(m.Task) > paddock.MaxMonitorTask:
		return invalid("a task of more than %d bytes", paddock.MaxMonitorTask)
	case m.Removed < 0 || m.Removed > maxMonitorRemoved:
		return invalid("removed %d: it is 1 to %d", m.Removed, maxMonitorRemoved)
	case len(m.Known) > paddock.MaxMonitorKnown:
		return invalid("%d known hosts, at most %d", len(m.Known), paddock.MaxMonitorKnown)
	case slices.ContainsFunc(m.Known, func(h string) bool { return h == "" || len(h) > maxMonitorHost }):
		return invalid("a known host is a name of at most %d bytes", maxMonitorHost)
	case m.Wait < 0 || m.Wait > paddock.MaxMonitorWait:
		return invalid("wait %s: it is up to %s", m.Wait, paddock.MaxMonitorWait)
	}
	spec.Undo = cmp.Or(spec.Undo, paddock.UndoOn)
	return nil
}

// checkHalt refuses a monitor where its sandbox could not be paused, which some verdicts ask for. groups says that the sandbox
// gets a control group.
func (d *Driver) checkHalt(spec *paddock.Spec, groups bool) error {
	if spec.Monitor == nil || slices.Contains(d.tier.Probe.Capabilities(groups), paddock.CanPause) {
		return nil
	}
	return fmt.Errorf("monitor: a sandbox of this tier cannot be paused here, which some verdicts ask for; `paddock doctor` tells what control groups lack: %w", paddock.Unsupported)
}

// monitored describes the monitor of a spec; nil is none.
func (d *Driver) monitored(spec *paddock.Spec) *monitored {
	if spec.Monitor == nil {
		return nil
	}
	m := &monitored{Settings: *spec.Monitor, Tier: d.tier.Name, Policy: audit.PolicyDigest(spec.Policy), Network: spec.Policy.Network.Mode == paddock.NetworkList}
	m.Settings.Known = slices.Clone(m.Settings.Known)
	for _, one := range spec.Mounts {
		if st, err := os.Stat(one.Source); one.Write && !one.Cache && err == nil && st.IsDir() {
			m.Mounts = append(m.Mounts, one)
		}
	}
	// What cannot happen needs no rule.
	m.Without = monitor.OffRules(monitor.Measured{Files: true, Network: m.Network || spec.Policy.Network.Mode == paddock.NetworkNone})
	return m
}

// tell returns what a status says about a monitor whose sandbox has no owner.
func (m *monitored) tell() *paddock.Monitoring {
	if m == nil {
		return nil
	}
	return &paddock.Monitoring{Settings: m.Settings, Without: slices.Clone(m.Without), Paused: m.Paused}
}

// Bounds of the questions of one sandbox, because a guest can cause any number.
const (
	maxQuestions  = 16  // that wait at once
	questionsHour = 100 // an hour
	maxAbout      = 1024
	haltTime      = 3 * time.Minute // for a pause after a verdict; then the sandbox is ended
)

// A guard is the monitor of a sandbox, with the questions that wait for an answer. It is in the process that owns the sandbox,
// so it lives as long as the sandbox does, whoever asks for what. A nil guard allows everything.
type guard struct {
	m     *monitor.Monitor
	id    string
	about *monitored
	wait  time.Duration
	sink  audit.Sink // may be nil
	told  verdicts

	halt func(ctx context.Context, why string) error // pauses the sandbox
	end  func(why string)                            // ends the sandbox, when that fails

	ctx    context.Context // ends with the sandbox
	cancel context.CancelFunc
	wg     sync.WaitGroup // of what is judged after it has happened, and of pauses
	turn   chan struct{}  // holds an element while a question waits whose denial pauses the sandbox

	starting sync.Mutex // held while a command begins or ends
	running  int        // guarded by starting: commands that go on

	held atomic.Bool // what is told now is of files that earlier commands have open

	mu      sync.Mutex
	open    []*openQuestion // guarded by mu
	more    chan struct{}   // guarded by mu: closed at the next question; nil if nobody waits
	granted map[grant]bool  // guarded by mu
	allowed map[place]bool  // guarded by mu: what a person let change
	halted  string          // guarded by mu: why the monitor has paused the sandbox, or is about to
	quiet   string          // guarded by mu: why nobody is asked now
	room    float64         // guarded by mu: questions that may be asked
	filled  time.Time       // guarded by mu: when room was counted
}

// A grant is what a person allowed for the rest of a step: more of the same is not asked again.
type grant struct {
	step int
	rule string
}

// A place is a path that a person let a command change. The kernel of a sandbox may keep such a file open, so that it is held by
// an earlier command for each one that begins.
type place struct {
	root int
	path step.Text
}

// maxAllowed bounds the places that are remembered. Others are asked about again.
const maxAllowed = 1000

type openQuestion struct {
	paddock.MonitorQuestion
	answer chan answer // of capacity 1
}

// An answer is what became of a question.
type answer struct {
	allow bool
	why   string // of a denial
	stops bool   // the sandbox is being paused or removed anyway
}

// newGuard makes the monitor of a sandbox. Nil is none.
func newGuard(id paddock.ID, tier paddock.Tier, how *monitored, secrets []paddock.Secret, sink audit.Sink) *guard {
	if how == nil {
		return nil
	}
	g := &guard{
		id: string(id), about: how, wait: cmp.Or(how.Settings.Wait, paddock.MonitorWait), sink: sink, turn: make(chan struct{}, 1),
		granted: map[grant]bool{}, allowed: map[place]bool{}, room: questionsHour, filled: time.Now(), halted: how.Paused,
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	o := monitor.Options{
		Sandbox: string(id), Tier: string(tier), Policy: how.Policy, Task: how.Settings.Task, Known: how.Settings.Known, Removed: how.Settings.Removed,
		Measured: monitor.Measured{Files: true, Network: how.Network}, Secrets: valuesOf(secrets),
		Count: func() (int, bool) { return measure.Count(how.Mounts) },
	}
	o.Record = g.record
	g.m = monitor.New(o)
	if how.Memory != nil {
		g.m.Recall(*how.Memory)
	}
	return g
}

func valuesOf(secrets []paddock.Secret) map[string]string {
	values := make(map[string]string, len(secrets))
	for _, s := range secrets {
		values[s.Name] = s.Value
	}
	return values
}

// guardedBy makes a guard judge the boxes of a life. pause pauses the sandbox.
func (l *Life) guardedBy(g *guard, pause func(context.Context) error) {
	l.guard, l.watching = g, g.watcher()
	g.halt = func(ctx context.Context, _ string) error { return pause(ctx) }
	g.end = func(why string) { l.Box().finishWith(why) }
	if out := l.plan.Gateway; out != nil {
		out.JudgeBy(g.judge())
	}
}

// recordTime bounds the wait for room in the record. Without room, an event is counted as lost there.
const recordTime = 10 * time.Second

// record records an event. It waits for room, or other events, of which the guest can cause any number, could displace it.
func (g *guard) record(e audit.Event) {
	g.told.put(e.Clean())
	switch sink := g.sink.(type) {
	case nil:
	case audit.Keeper:
		ctx, cancel := context.WithTimeout(context.Background(), recordTime)
		defer cancel()
		_ = sink.Keep(ctx, e) // a record that fails ends the sandbox
	default:
		sink.Record(e)
	}
}

// hide makes no question and no record hold these secrets.
func (g *guard) hide(secrets []paddock.Secret) {
	if g != nil {
		g.m.Hide(valuesOf(secrets))
	}
}

// judge returns what answers the gateway; nil for no guard.
func (g *guard) judge() gatewayclient.Judge {
	if g == nil {
		return nil
	}
	return guardedNetwork{g}
}

// watcher returns what is told of steps; nil for no guard.
func (g *guard) watcher() step.Watcher {
	if g == nil {
		return nil
	}
	return guardedSteps{g}
}

// tell returns what a status says.
func (g *guard) tell() *paddock.Monitoring {
	if g == nil {
		return nil
	}
	s := g.about.tell()
	s.Verdicts = map[string]int{}
	for v, n := range g.m.Counts() {
		s.Verdicts[string(v)] = n
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Open, s.Paused = len(g.open), g.halted
	return s
}

// command judges the command of a step that a caller begins. What is no command, such as a call about a file, is judged by its
// effects alone.
func (g *guard) command(ctx context.Context, kind string, args []string, cut bool) error {
	if g == nil || kind == fileStep {
		return nil
	}
	exec := g.m.Exec
	if cut {
		exec = g.m.ExecPart
	}
	ok, why := g.settle(ctx, exec(ctx, args, ""), strings.Join(args, " "), false)
	if !ok {
		return fmt.Errorf("the monitor refused the command: %s: %w", why, paddock.Denied)
	}
	return nil
}

// begin notes that a command starts, and returns what notes its end.
func (g *guard) begin(kind string, args []string) (end func(*paddock.Exit)) {
	if g == nil {
		return func(*paddock.Exit) {}
	}
	if kind == fileStep { // whose words are not a text of commands
		args = nil
	}
	g.starting.Lock()
	defer g.starting.Unlock()
	if g.running++; g.running > 1 {
		g.m.Join(args, "")
	} else {
		g.m.Begin(args, "")
	}
	return func(exit *paddock.Exit) {
		g.starting.Lock()
		defer g.starting.Unlock()
		if g.running--; g.running == 0 {
			g.m.Ended(statusOf(exit))
		}
	}
}

// settle does what a decision asks for, and reports whether it goes on. about is what it is about, in the guest's words. What
// is done cannot be refused any more.
func (g *guard) settle(ctx context.Context, d monitor.Decision, about string, done bool) (ok bool, why string) {
	if d.Verdict == monitor.Allow {
		return g.goesOn(ctx)
	}
	if d.Moment == monitor.Effect && g.isGranted(d) {
		return g.goesOn(ctx)
	}
	why = d.Reason
	if d.Rule != "" {
		why += " (rule " + d.Rule + ")"
	}
	pauses := d.Verdict == monitor.Pause || done
	if d.Verdict == monitor.Deny && !done {
		return false, why
	}
	if pauses {
		if ok, why := g.take(ctx); !ok {
			return false, why
		}
		defer func() { <-g.turn }()
	}
	a := g.ask(ctx, paddock.MonitorQuestion{
		Moment: string(d.Moment), Rule: d.Rule, Reason: audit.Text(d.Reason, audit.MaxWhy), About: audit.Text(about, maxAbout), Pauses: pauses, Done: done,
	})
	g.answered(d, a)
	if a.allow {
		return true, ""
	}
	why += "; " + a.why
	if pauses && !a.stops {
		g.stop(why)
	}
	return false, why
}

// whyGone is why something is refused in a sandbox that is about to be gone.
const whyGone = "the sandbox is being removed"

// take waits for the turn of a question whose denial pauses the sandbox.
func (g *guard) take(ctx context.Context) (ok bool, why string) {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return false, "nobody waits for it any more"
	case <-g.ctx.Done():
		return false, whyGone
	}
	why = g.stopped()
	if g.ctx.Err() != nil { // both may have been so
		why = whyGone
	}
	if why != "" {
		<-g.turn
		return false, why
	}
	return true, ""
}

// goesOn waits while a question waits whose denial pauses the sandbox, and reports whether the sandbox goes on.
func (g *guard) goesOn(ctx context.Context) (ok bool, why string) {
	if ok, why := g.take(ctx); !ok {
		return false, why
	}
	<-g.turn
	return true, ""
}

// stopped returns why the monitor has paused the sandbox, or nothing.
func (g *guard) stopped() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.halted == "" {
		return ""
	}
	return "the monitor paused the sandbox: " + g.halted
}

// ask puts a question, and waits for its answer. Without one the answer is no.
func (g *guard) ask(ctx context.Context, q paddock.MonitorQuestion) answer {
	o := &openQuestion{MonitorQuestion: q, answer: make(chan answer, 1)}
	o.ID, o.Asked = rand.Text(), time.Now()
	o.Until = o.Asked.Add(g.wait)
	if refused := g.put(o); refused != nil {
		return *refused
	}
	late := time.NewTimer(g.wait)
	defer late.Stop()
	var none answer
	select {
	case given := <-o.answer:
		return given
	case <-late.C:
		none.why = fmt.Sprintf("nobody answered within %s", g.wait)
	case <-ctx.Done():
		none.why = "nobody waits for it any more"
	case <-g.ctx.Done():
		none = answer{why: whyGone, stops: true}
	}
	if !g.withdraw(o) { // it was answered meanwhile
		return <-o.answer
	}
	return none
}

// put adds a question, or returns the answer where nobody is asked.
func (g *guard) put(o *openQuestion) *answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room = min(questionsHour, g.room+o.Asked.Sub(g.filled).Hours()*questionsHour)
	g.filled = o.Asked
	switch {
	case g.quiet != "":
		return &answer{why: g.quiet, stops: true}
	case len(g.open) >= maxQuestions:
		return &answer{why: fmt.Sprintf("%d questions wait already, and nobody is asked more", maxQuestions)}
	case g.room < 1:
		return &answer{why: fmt.Sprintf("more than %d questions in an hour, and nobody is asked more", questionsHour)}
	}
	g.room--
	g.open = append(g.open, o)
	if g.more != nil {
		close(g.more)
		g.more = nil
	}
	return nil
}

// withdraw removes a question, and reports whether it was still there.
func (g *guard) withdraw(o *openQuestion) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.open)
	g.open = slices.DeleteFunc(g.open, func(other *openQuestion) bool { return other == o })
	return len(g.open) < n
}

// questionTime bounds the wait for a question of whoever asks for the next one.
const questionTime = 30 * time.Second

// questions lists what waits. With wait it waits for a question, until ctx or the time for that ends.
func (g *guard) questions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	if g == nil {
		return nil, errUnmonitored()
	}
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	for {
		list, more := g.waiting()
		if len(list) > 0 || !wait || ctx.Err() != nil {
			return list, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
		case <-g.ctx.Done():
			return nil, nil
		}
	}
}

// waiting returns the questions that wait, and a channel that is closed at the next one.
func (g *guard) waiting() (list []paddock.MonitorQuestion, more <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.open {
		list = append(list, o.MonitorQuestion)
	}
	if g.more == nil {
		g.more = make(chan struct{})
	}
	return list, g.more
}

// reply answers a question.
func (g *guard) reply(question string, allow bool) error {
	if g == nil {
		return errUnmonitored()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, o := range g.open {
		if o.ID == question {
			g.open = slices.Delete(g.open, i, i+1)
			o.answer <- answer{allow: allow, why: "a person was asked and did not allow it"}
			return nil
		}
	}
	return fmt.Errorf("question %.40q does not wait any more: it was answered, its time was over, or nobody waited for it: %w", question, paddock.NotFound)
}

func errUnmonitored() error {
	return fmt.Errorf("the sandbox has no monitor: make it with one: %w", paddock.Unsupported)
}

func (g *guard) mayChange(at place) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.allowed[at]
}

func (g *guard) letChange(at place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.allowed) < maxAllowed {
		g.allowed[at] = true
	}
}

func (g *guard) isGranted(d monitor.Decision) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.granted[grant{d.Step, d.Rule}]
}

// answered records what became of a question.
func (g *guard) answered(d monitor.Decision, a answer) {
	word := "deny"
	if a.allow {
		word, a.why = "allow", ""
	}
	if a.allow && d.Rule != "" && d.Moment == monitor.Effect {
		g.mu.Lock()
		for old := range g.granted {
			if old.step != d.Step { // only the present step counts
				delete(g.granted, old)
			}
		}
		g.granted[grant{d.Step, d.Rule}] = true
		g.mu.Unlock()
	}
	g.record(audit.Event{Time: time.Now(), Sandbox: g.id, Kind: audit.Judged, Judgement: &audit.Judgement{
		Moment: "answer", Step: d.Step, Verdict: string(d.Verdict), Judge: d.Judge, Rule: d.Rule, Reason: a.why, Score: int(d.Score * 1000), Answered: word,
	}})
}

// stop pauses the sandbox in the background, because what is judged waits for the answer, and the pause for what is judged. A
// sandbox that cannot be paused is ended.
func (g *guard) stop(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.halted != "" || g.ctx.Err() != nil {
		return
	}
	g.halted = audit.Text(why, audit.MaxWhy)
	held := g.halted
	g.wg.Go(func() {
		ctx, cancel := context.WithTimeout(g.ctx, haltTime)
		defer cancel()
		err := g.halt(ctx, held)
		if err == nil || errors.Is(err, paddock.NotFound) || g.ctx.Err() != nil {
			return
		}
		g.end("the monitor ended it, because it could not be paused: " + held + "; the pause: " + err.Error())
	})
}

// silence denies all questions: those that wait, and those that come until speak is called. A pause would wait for what waits
// for an answer.
func (g *guard) silence(why string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.quiet = why
	for _, o := range g.open {
		o.answer <- answer{why: why, stops: true}
	}
	g.open = nil
}

// speak ends a silence.
func (g *guard) speak() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.quiet = ""
}

// resuming lets a sandbox go on that the monitor has paused. undo takes that back.
func (g *guard) resuming() (undo func()) {
	if g == nil {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	halted, quiet := g.halted, g.quiet
	g.halted, g.quiet = "", ""
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.halted, g.quiet = halted, quiet
	}
}

// later returns the description of the monitor for the next owner of the sandbox, with what this one knows.
func (g *guard) later(how *monitored) *monitored {
	if g == nil || how == nil {
		return how
	}
	next := *how
	memory := g.m.Memory()
	next.Memory = &memory
	return &next
}

// busy reports whether a question waits.
func (g *guard) busy() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open) > 0
}

// leave denies all that waits. The sandbox is about to be gone.
func (g *guard) leave() {
	if g != nil {
		g.cancel()
	}
}

// close waits for what is still judged. The sandbox is gone.
func (g *guard) close() {
	if g == nil {
		return
	}
	g.cancel()
	g.wg.Wait()
}

// A guardedNetwork answers the gateway of a monitored sandbox.
type guardedNetwork struct{ g *guard }

// Judge implements gatewayclient.Judge.
func (n guardedNetwork) Judge(ctx context.Context, q gatewayclient.Question) gatewayclient.Judgement {
	to := monitor.Destination{Port: q.Port, UDP: q.UDP, Rule: q.Rule, Guest: monitor.DestinationGuest{Host: q.Host}}
	about := fmt.Sprintf("%s, port %d", q.Host, q.Port)
	var d monitor.Decision
	if q.Secret == "" {
		d = n.g.m.Host(ctx, to)
	} else {
		d = n.g.m.Secret(ctx, q.Secret, to)
		about = "the secret " + q.Secret + " for " + about
	}
	ok, why := n.g.settle(ctx, d, about, false)
	if ok {
		return gatewayclient.Judgement{Allow: true}
	}
	return gatewayclient.Judgement{Reason: "the monitor denied it: " + why}
}

// Told implements gatewayclient.Judge.
func (n guardedNetwork) Told(e gatewayclient.Event) {
	if e.Kind == gatewayclient.KindDNS || e.Kind == gatewayclient.KindRules {
		return
	}
	g := n.g
	judge := g.m.Flow(monitor.Flow{Host: e.Host, Port: e.Port, Refused: e.Verdict == gatewayclient.VerdictDeny, Sent: e.Sent, Received: e.Received, Secrets: e.Secrets})
	if judge == nil || g.ctx.Err() != nil {
		return
	}
	g.wg.Go(func() { g.settle(g.ctx, judge(g.ctx), e.Host, true) })
}

// A guardedSteps is told of the changes of a monitored sandbox.
type guardedSteps struct{ g *guard }

// Change implements step.Watcher.
func (t guardedSteps) Change(c step.Watched) error {
	g := t.g
	change := measure.Change(c)
	d := g.m.Change(g.ctx, change)
	asks := d.Verdict == monitor.Ask || d.Verdict == monitor.Pause
	at := place{c.Root, c.Path}
	if asks && c.Verb == step.Edited && g.held.Load() && g.mayChange(at) {
		d.Verdict = monitor.Allow
	}
	ok, why := g.settle(g.ctx, d, change.What+" "+change.Path, c.Done)
	if ok && d.Verdict != monitor.Allow {
		g.letChange(at)
	}
	g.m.Settled(change, d, ok, why)
	if !ok && !c.Done {
		return fmt.Errorf("the monitor refused it: %s: %w", why, paddock.Denied)
	}
	return nil
}

// Ended implements step.Watcher.
func (t guardedSteps) Ended(r *step.Record) {
	if len(r.Undoes) > 0 {
		return
	}
	words := make([]string, len(r.Command))
	for i, w := range r.Command {
		words[i] = string(w)
	}
	t.g.settle(t.g.ctx, t.g.m.End(t.g.ctx, measure.Summary(r)), strings.Join(words, " "), true)
}
