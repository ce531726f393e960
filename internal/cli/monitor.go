package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/packageregistry"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// MonitorStatus is the exit status of a run that a monitor ended, or whose command it refused.
const MonitorStatus = 123

// Times of a monitor's questions and of what it does.
const (
	pausedTime = 10 * time.Minute // for the person's answer while the sandbox is stopped
	modelTime  = 30 * time.Second // for an answer of a model, unless the policy says otherwise
)

// monitorFlags say who judges a run.
type monitorFlags struct {
	monitor string
	task    string
}

func (f *monitorFlags) registerMonitor(fs *pflag.FlagSet) {
	fs.StringVar(&f.monitor, "monitor", "", "`who` judges commands, connections and effects: rules (the built-in ones), a command of this machine, an https URL, or off; no boundary (docs/use/monitor.md)")
	fs.StringVar(&f.task, "task", "", "what you want done, as `text` for the monitor")
}

// settings gives what the flags and the file ask for. Nil is no monitor.
func (f *monitorFlags) settings(p *plan, changed func(string) bool) (*policy.Monitor, error) {
	var s policy.Monitor
	if p.file != nil && p.file.Monitor != nil {
		s = *p.file.Monitor
	}
	switch {
	case !changed("monitor"):
	case f.monitor == "":
		return nil, WithHint(fmt.Errorf("--monitor is empty: %w", paddock.Invalid), "it is rules, a command, a URL or off")
	default:
		s = policy.Monitor{Task: s.Task, History: s.History, Removed: s.Removed, Timeout: s.Timeout, Known: s.Known, On: f.monitor != "off"}
		switch {
		case f.monitor == "off", f.monitor == "rules":
		case strings.Contains(f.monitor, "://"):
			s.URL = f.monitor
		default:
			s.Command = strings.Fields(f.monitor)
		}
	}
	if changed("task") {
		s.Task = f.task
	}
	switch {
	case !s.On && changed("task"):
		return nil, WithHint(fmt.Errorf("--task without a monitor that it is told: %w", paddock.Invalid), "add --monitor rules")
	case !s.On:
		return nil, nil
	}
	return &s, nil
}

// unmonitored refuses a policy with a monitor where there is none.
func (p *plan) unmonitored() error {
	if p.file == nil || p.file.Monitor == nil || !p.file.Monitor.On {
		return nil
	}
	return WithHint(fmt.Errorf("%s: monitor: only paddock run and paddock shell have a monitor: %w", p.file.Where("monitor"), paddock.Unsupported),
		"leave the key out here, or write \"monitor: off\"")
}

// A monitoring is the monitor of one run, with what its verdicts lead to. A nil one allows everything.
type monitoring struct {
	a        *App
	m        *monitor.Monitor
	asker    *asker // nil where nobody can be asked
	record   func(audit.Event)
	measured monitor.Measured

	ctx    context.Context // ends with the run
	cancel context.CancelFunc
	wg     sync.WaitGroup
	turn   chan struct{} // holds an element while the person decides

	mu      sync.Mutex
	box     *oneShot       // guarded by mu
	stopped string         // guarded by mu: why the sandbox was ended
	gone    bool           // guarded by mu: the command has ended, and the sandbox is removed
	asked   int            // guarded by mu: questions to the person
	mute    int            // guarded by mu: refusals because the judge gave no verdict
	whyMute string         // guarded by mu: of the last one
	granted map[grant]bool // guarded by mu
}

// A grant is what a person allowed for the rest of a step: more of the same is not asked again.
type grant struct {
	step int
	rule string
}

// listening gives the asker of --ask, or one for a monitor that may want to ask where there is a terminal.
func (f *runFlags) listening(a *App, p *plan, changed func(string) bool) (*asker, error) {
	k, err := f.asking(a, p)
	if k != nil || err != nil {
		return k, err
	}
	s, err := f.settings(p, changed)
	if err != nil || s == nil {
		return nil, err
	}
	terminal, err := a.Tty()
	if err != nil {
		return nil, nil //nolint:nilerr // nobody can be asked, which is a denial
	}
	k, err = newAsker(terminal)
	if err != nil {
		return nil, errors.Join(err, terminal.Close())
	}
	return k, nil
}

// monitoring makes the monitor that the flags and the file ask for, and puts it into the plan.
func (f *runFlags) monitoring(ctx context.Context, a *App, p *plan, asker *asker, events *record, changed func(string) bool) (*monitoring, error) {
	s, err := f.settings(p, changed)
	if err != nil || s == nil {
		return nil, err
	}
	if !changed("monitor") {
		if err := notFromInside(p); err != nil {
			return nil, err
		}
	}
	judge, err := a.judgeOf(s, p)
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	w := &monitoring{a: a, asker: asker, turn: make(chan struct{}, 1), granted: map[grant]bool{}}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if events != nil {
		w.record = events.lines.Record
	}
	o := monitor.Options{
		Policy: audit.PolicyDigest(p.spec.Policy), Task: s.Task, NoRules: s.NoRules, Judge: judge, Timeout: s.Timeout, History: s.History, Removed: s.Removed,
		Secrets: map[string]string{}, Count: func() (int, bool) { return countIn(p.spec.Mounts) }, Record: w.record,
	}
	o.Known = append(registriesOf(p), s.Known...)
	if s.Model != nil {
		o.Timeout = cmp.Or(s.Timeout, modelTime)
	}
	for _, text := range s.Moments {
		o.Moments = append(o.Moments, monitor.Moment(text))
	}
	for _, secret := range p.spec.Policy.Network.Secrets {
		o.Secrets[secret.Name] = secret.Value
	}
	w.m = monitor.New(o)
	w.measured.Network = p.spec.Policy.Network.Mode == paddock.NetworkList
	p.judge, p.watch = &judged{w}, &watcher{w}
	if !f.review && (f.undo == "" || !changed("undo")) {
		f.undo = "on" // what is not recorded is not measured
	}
	return w, nil
}

// registriesOf lists the hosts that the configuration of the caller's package clients names, but for what only files of the
// project name.
func registriesOf(p *plan) (hosts []string) {
	for _, g := range packageregistry.Read(packageregistry.Machine{Home: p.host.Home, Env: p.host.Env, Files: p.host.Files}) {
		for _, h := range g.Hosts {
			if name, _, err := net.SplitHostPort(h); err == nil {
				h = name
			}
			if !g.Project {
				hosts = append(hosts, h)
			}
		}
	}
	return hosts
}

// judgeOf makes the judge beside the rules. Nil is none.
func (a *App) judgeOf(s *policy.Monitor, p *plan) (monitor.Judge, error) {
	switch {
	case len(s.Command) > 0:
		return a.commandJudge(s, p)
	case s.URL != "":
		if err := monitor.CheckURL(s.URL); err != nil {
			return nil, WithHint(fmt.Errorf("url: %w", err), "an address such as https://monitor.example/judge, or http://127.0.0.1:8080")
		}
		key, err := a.monitorKey(s.Key, p)
		if err != nil {
			return nil, err
		}
		return monitor.NewURL(s.URL, key, nil)
	case s.Model != nil:
		return a.modelJudge(s.Model, p)
	}
	return nil, nil
}

func (a *App) monitorKey(from string, p *plan) (string, error) {
	if from == "" {
		return "", nil
	}
	key, err := policy.Value(from, p.host)
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	return key, nil
}

func (a *App) modelJudge(s *policy.MonitorModel, p *plan) (monitor.Judge, error) {
	key, err := a.monitorKey(s.Key, p)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	o := monitor.ModelOptions{Interface: s.Interface, Name: s.Name, Key: key, Address: s.URL}
	if s.Prompt != "" {
		name := s.Prompt
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(p.host.Home, rest)
		}
		if err := outOfReach(name, p); err != nil {
			return nil, fmt.Errorf("model: prompt: %w", err)
		}
		text, err := ReadDocument("the monitor's prompt", name)
		if err != nil {
			return nil, err
		}
		o.Prompt = string(text)
	}
	j, err := monitor.NewModel(o)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return j, nil
}

// begin notes the sandbox, and says which rules cannot work.
func (w *monitoring) begin(p *plan, b *oneShot) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.box = b
	w.mu.Unlock()
	w.measured.Files = p.steps != nil && b.tier != paddock.Sim
	w.m.Sandbox(string(b.ID()), string(b.tier), w.measured)
	writes := b.tier != paddock.Sim && slices.ContainsFunc(p.spec.Mounts, func(m paddock.Mount) bool { return m.Write && !m.Cache })
	reaches := p.spec.Policy.Network.Mode != paddock.NetworkNone
	// What cannot happen needs no rule.
	needed := monitor.Measured{Files: w.measured.Files || !writes, Network: w.measured.Network || !reaches}
	if off := monitor.OffRules(needed); len(off) > 0 {
		why := "what this run changes is not recorded"
		if !needed.Network {
			why = "the network is this machine's own, where nothing is measured"
		}
		fmt.Fprintf(w.a.Stderr, "paddock: note: rules of the monitor are off, because %s: %s\n", why, Join(off))
	}
}

// A stoppedError is the end of a run by its monitor.
type stoppedError struct{ why string }

func (e *stoppedError) Error() string { return e.why }

func (e *stoppedError) Unwrap() error { return paddock.Denied }

// exec judges the command before it starts.
func (w *monitoring) exec(ctx context.Context, args []string) error {
	if w == nil {
		return nil
	}
	d := w.m.Exec(ctx, args, "")
	ok, why := w.settle(ctx, d, "a command", "it wants to run "+OneLineOf(strings.Join(args, " "), Paragraph))
	if !ok {
		return WithHint(&stoppedError{"the monitor refused the command: " + why}, "docs/use/monitor.md tells about rules and judges; --monitor off runs it without")
	}
	w.m.Begin(args, "")
	return nil
}

// settle does what a decision asks for, and reports whether it goes on.
func (w *monitoring) settle(ctx context.Context, d monitor.Decision, what, about string) (ok bool, why string) {
	if why := w.ended(); why != "" {
		return false, why
	}
	if d.Failed && d.Moment != monitor.Exec { // whose refusal is told at once
		w.mu.Lock()
		w.mute, w.whyMute = w.mute+1, d.Reason
		w.mu.Unlock()
	}
	why = d.Reason
	if d.Rule != "" {
		why += " (rule " + d.Rule + ")"
	}
	if d.Moment == monitor.Effect && w.isGranted(d) {
		return w.goesOn(ctx)
	}
	switch d.Verdict {
	case monitor.Allow:
		return w.goesOn(ctx)
	case monitor.Ask:
		if w.asker == nil {
			return false, why + "; a person would be asked, and there is no terminal"
		}
		if w.asks(ctx, answerTime, "paddock: the monitor asks about "+what+": "+OneLineOf(why, Paragraph), about,
			"paddock: allow it (a), or deny it (d)? ", "denied", "allow", "deny") {
			w.answered(d, "allow")
			return true, ""
		}
		w.answered(d, "deny")
		return false, why + "; a person was asked and did not allow it"
	case monitor.Pause:
		return w.pause(ctx, d, why, about)
	}
	return false, why
}

// goesOn waits while a person decides about something else, and reports whether the sandbox is still there.
func (w *monitoring) goesOn(ctx context.Context) (ok bool, why string) {
	select {
	case w.turn <- struct{}{}:
		<-w.turn
	case <-ctx.Done():
		return false, whyStopped
	}
	why = w.ended()
	return why == "", why
}

// whyStopped is why something is refused that nobody waited for.
const whyStopped = "the monitor had stopped the sandbox"

// asks puts a question to the person, and reports whether the answer is yes.
func (w *monitoring) asks(ctx context.Context, patience time.Duration, why, about, question, otherwise, yes, no string) bool {
	release, err := w.asker.hold(ctx)
	if err != nil {
		return false
	}
	defer release()
	w.mu.Lock()
	w.asked++
	many := w.asked > maxQuestions
	w.mu.Unlock()
	if many {
		return false
	}
	said, _ := w.asker.choose(ctx, patience, why+"\r\npaddock: "+OneLineOf(about, Paragraph), question, otherwise, []string{yes, no})
	return said == yes
}

func (w *monitoring) isGranted(d monitor.Decision) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.granted[grant{d.Step, d.Rule}]
}

// answered records what a person answered.
func (w *monitoring) answered(d monitor.Decision, said string) {
	if said == "allow" && d.Rule != "" && d.Moment == monitor.Effect {
		w.mu.Lock()
		w.granted[grant{d.Step, d.Rule}] = true
		w.mu.Unlock()
	}
	if w.record == nil {
		return
	}
	w.record(audit.Event{Time: time.Now(), Sandbox: string(w.id()), Kind: audit.Judged, Judgement: &audit.Judgement{
		Moment: "answer", Verdict: string(d.Verdict), Judge: d.Judge, Rule: d.Rule, Score: int(d.Score * 1000), Answered: said,
	}})
}

func (w *monitoring) id() paddock.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.box == nil {
		return ""
	}
	return w.box.ID()
}

// pause stops the sandbox until a person says how to go on. Without a terminal, it is ended.
func (w *monitoring) pause(ctx context.Context, d monitor.Decision, why, about string) (ok bool, reason string) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return false, whyStopped
	}
	if reason := w.ended(); reason != "" {
		return false, reason
	}
	w.mu.Lock()
	gone := w.gone
	w.mu.Unlock()
	if w.asker == nil || gone {
		w.end(why)
		return false, why
	}
	resume, err := w.freeze(ctx, d.Moment)
	if err != nil {
		w.end(why + "; and it could not be paused: " + err.Error())
		return false, why
	}
	if !w.asks(w.ctx, pausedTime, "paddock: the monitor paused the sandbox: "+OneLineOf(why, Paragraph), about,
		"paddock: let it go on (g), or end it (e)? ", "it is ended", "go", "end") {
		w.answered(d, "deny")
		w.end(why)
		return false, why
	}
	if err := resume(); err != nil {
		w.end(why + "; and it could not go on: " + err.Error())
		return false, why
	}
	w.answered(d, "allow")
	return true, ""
}

// freeze stops all processes of a jail, whose pause is a matter of its control group, unless one of them waits for a change:
// the kernel cannot freeze that. The other tiers write a machine to the disk for a pause, which would wait for the very change
// or connection that is held. Where nothing is frozen, what is judged is held, and with it every change of a directory of the
// host and every new connection.
func (w *monitoring) freeze(ctx context.Context, at monitor.Moment) (resume func() error, err error) {
	w.mu.Lock()
	b := w.box
	w.mu.Unlock()
	if b == nil || b.tier != paddock.Jail || at == monitor.Effect || at == monitor.Exec {
		return func() error { return nil }, nil
	}
	asked, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if err := b.Pause(asked); err != nil {
		return nil, err
	}
	return func() error {
		asked, cancel := context.WithTimeout(w.ctx, Patience)
		defer cancel()
		return b.Resume(asked)
	}, nil
}

// end ends the sandbox.
func (w *monitoring) end(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped != "" {
		return
	}
	w.stopped = why
	if b := w.box; b != nil && !w.gone {
		w.wg.Go(func() { // whoever told of the reason waits for the answer, and the removal for him
			ctx, cancel := context.WithTimeout(context.Background(), 6*Patience)
			defer cancel()
			_ = b.Remove(ctx) // the removal at the end of the run reports what is left
		})
	}
}

// ended returns why the monitor ended the sandbox, or nothing.
func (w *monitoring) ended() string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// closing is called when the command has ended. From now on nobody is asked: nothing is left to go on.
func (w *monitoring) closing() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
}

// over is called when the sandbox is gone. It waits for what the monitor still judges: connections tell of their bytes when
// they end.
func (w *monitoring) over(exit paddock.Exit, err error) {
	if w == nil {
		return
	}
	w.wg.Wait()
	code := unknownStatus
	if err == nil {
		code = exit.Code
	}
	w.m.Ended(code)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mute > 0 && w.stopped == "" {
		fmt.Fprintf(w.a.Stderr, "paddock: note: refused %s because of the monitor; the last time: %s\n", times(w.mute), OneLineOf(w.whyMute, Paragraph))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// unknownStatus is the exit of a command whose end is not known.
const unknownStatus = -1

// close waits for what the monitor still does, when the sandbox is gone.
func (w *monitoring) close() {
	if w == nil {
		return
	}
	w.cancel()
	w.wg.Wait()
}

// failure returns the end of the run by its monitor as an error, if that is what it was.
func (w *monitoring) failure() error {
	why := w.ended()
	if why == "" {
		return nil
	}
	return WithHint(&stoppedError{"the monitor ended the sandbox: " + why}, "`paddock undo` brings back what it changed in directories of yours; docs/use/monitor.md tells about rules and judges")
}

// A judged answers the gateway of a monitored sandbox.
type judged struct{ w *monitoring }

// Judge implements gatewayclient.Judge.
func (j *judged) Judge(ctx context.Context, q gatewayclient.Question) gatewayclient.Judgement {
	w := j.w
	to := monitor.Destination{Port: q.Port, UDP: q.UDP, Rule: q.Rule, Guest: monitor.DestinationGuest{Host: q.Host}}
	var d monitor.Decision
	about := "it wants to connect to " + OneLineOf(q.Host, 255)
	if q.Secret == "" {
		d = w.m.Host(ctx, to)
	} else {
		d = w.m.Secret(ctx, q.Secret, to)
		about = "it wants to use the secret " + OneLine(q.Secret) + " for " + OneLineOf(q.Host, 255)
	}
	ok, why := w.settle(ctx, d, "a connection", about)
	if ok {
		return gatewayclient.Judgement{Allow: true}
	}
	return gatewayclient.Judgement{Reason: "the monitor denied it: " + w.inside(d, why)}
}

// inside returns why something was refused, for the eyes of the sandbox. What a judge that failed said is for the owner: it may
// name programs and addresses of this machine, and what a traceback quotes.
func (w *monitoring) inside(d monitor.Decision, why string) string {
	switch {
	case w.ended() != "":
		return "it ended the sandbox"
	case d.Failed:
		return "it gave no verdict"
	}
	return why
}

// Told implements gatewayclient.Judge.
func (j *judged) Told(e gatewayclient.Event) {
	if e.Kind == gatewayclient.KindDNS || e.Kind == gatewayclient.KindRules {
		return
	}
	w := j.w
	refused := e.Verdict == gatewayclient.VerdictDeny
	d := w.m.Flow(monitor.Flow{Host: e.Host, Port: e.Port, Refused: refused, Sent: e.Sent, Received: e.Received, Secrets: e.Secrets})
	if d == nil {
		return
	}
	w.wg.Go(func() { w.after(d(w.ctx)) })
}

// after does what a decision about something asks for that has happened already.
func (w *monitoring) after(d monitor.Decision) (ok bool, why string) {
	if w.ctx.Err() != nil {
		return false, whyStopped
	}
	if d.Verdict != monitor.Allow {
		d.Verdict = monitor.Pause
	}
	return w.settle(w.ctx, d, "what it did", "it has done that already") // a refusal changes nothing any more
}

// A watcher is told of the changes of a monitored sandbox.
type watcher struct{ w *monitoring }

// Change implements step.Watcher.
func (t *watcher) Change(c step.Watched) error {
	w := t.w
	if why := w.ended(); why != "" {
		return fmt.Errorf("the monitor ended the sandbox: %w", paddock.Denied)
	}
	what := map[step.Verb]string{step.Created: monitor.Created, step.Removed: monitor.Removed, step.Moved: monitor.Moved, step.Edited: monitor.Edited, step.Unseen: monitor.Unseen}[c.Verb]
	change := monitor.Change{
		Root: c.Root, Path: string(c.Path), What: what, From: string(c.From), FromRoot: c.FromRoot, Half: monitor.Half(c.Half), Link: c.Link,
		Was: string(c.Was), Old: c.Old, Links: c.Links, Inode: c.Inode,
	}
	d := w.m.Change(w.ctx, change)
	if c.Done { // an error would not refuse it
		ok, why := w.after(d)
		w.m.Settled(change, d, ok, why)
		return nil
	}
	ok, why := w.settle(w.ctx, d, "a change", "it changes "+OneLineOf(string(c.Path), Paragraph))
	w.m.Settled(change, d, ok, why)
	if !ok {
		return fmt.Errorf("the monitor refused it: %s: %w", why, paddock.Denied)
	}
	return nil
}

// Ended implements step.Watcher.
func (t *watcher) Ended(r *step.Record) {
	if len(r.Undoes) > 0 {
		return
	}
	t.w.after(t.w.m.End(t.w.ctx, summaryOf(r)))
}

// summaryOf tells a step as a monitor sees it.
func summaryOf(r *step.Record) monitor.Summary {
	s := monitor.Summary{Exit: r.Exit}
	for i := range r.Changes {
		c := &r.Changes[i]
		name, what := string(c.Path), monitor.Edited
		switch {
		case !c.Before.Exists():
			what = monitor.Created
			s.Files.Created++
		case !c.After.Exists() && monitor.Rebuildable(name):
			what = monitor.Removed
			s.Files.Rebuilt++
		case !c.After.Exists():
			what = monitor.Removed
			s.Files.Removed++
		case c.Before.Kind == step.File && c.Before.Size > 0 && c.After.Kind == step.File && c.After.Size == 0:
			s.Files.Emptied++
		default:
			s.Files.Changed++
		}
		if n, ok := monitor.NotableOf(name, what); ok && len(s.Notable) < maxNotable {
			s.Notable = append(s.Notable, n)
		}
	}
	return s
}

// maxNotable bounds what is listed of a step.
const maxNotable = 50

// Bounds of countIn.
const (
	maxCounted = 200_000
	countPiece = 1000
)

// countIn counts the files and directories in writable mounts outside of directories that tools rebuild. Commands may change
// them meanwhile in any way: no link is followed, and the work is bounded.
func countIn(mounts []paddock.Mount) (n int, whole bool) {
	whole = true
	for _, m := range mounts {
		if !m.Write || m.Cache {
			continue
		}
		root, err := os.OpenRoot(m.Source)
		if err != nil {
			continue // a single file
		}
		more, all := countBelow(root, maxCounted-n)
		_ = root.Close() // only read
		n, whole = n+more, whole && all
	}
	return n, whole
}

func countBelow(root *os.Root, most int) (n int, whole bool) {
	dirs := []string{"."}
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		if in, err := root.Lstat(dir); err != nil || !in.IsDir() {
			continue // it has become something else
		}
		f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0) // which waits for no FIFO either
		if err != nil {
			continue
		}
		for {
			list, err := f.ReadDir(countPiece)
			for _, e := range list {
				name := filepath.Join(dir, e.Name())
				if monitor.Rebuildable(name) {
					continue
				}
				if n++; n >= most {
					_ = f.Close() // only read
					return n, false
				}
				if e.IsDir() {
					dirs = append(dirs, name)
				}
			}
			if errors.Is(err, io.EOF) || err != nil || len(list) == 0 {
				break
			}
		}
		_ = f.Close() // only read
	}
	return n, true
}

// A monitored is what a result tells of the monitor.
type monitored struct {
	Stopped  string         `json:"stopped,omitempty"` // why the monitor ended the sandbox
	Verdicts map[string]int `json:"verdicts"`          // how many decisions of each verdict there were
}

// result tells what the monitor decided.
func (w *monitoring) result() *monitored {
	if w == nil {
		return nil
	}
	r := &monitored{Stopped: w.ended(), Verdicts: map[string]int{}}
	for v, n := range w.m.Counts() {
		r.Verdicts[string(v)] = n
	}
	return r
}
