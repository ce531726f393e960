package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/monitor/measure"
	"github.com/paddock-sandbox/paddock/internal/policy"
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
	return f.over(s, changed)
}

// over puts what the flags ask for over what is asked for without them. Nil is no monitor.
func (f *monitorFlags) over(s policy.Monitor, changed func(string) bool) (*policy.Monitor, error) {
	switch {
	case !changed("monitor"):
	case f.monitor == "":
		return nil, WithHint(fmt.Errorf("--monitor is empty: %w", paddock.Invalid), "it is rules, a command, a URL, or none")
	default:
		s = policy.Monitor{Task: s.Task, History: s.History, Removed: s.Removed, Timeout: s.Timeout, Known: s.Known, On: f.monitor != "off" && f.monitor != "none"}
		switch {
		case !s.On, f.monitor == "rules":
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
	return WithHint(fmt.Errorf("%s: monitor: only paddock run, paddock shell and paddock create have a monitor: %w", p.file.Where("monitor"), paddock.Unsupported),
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
	o := options(s, judge, p.spec.Mounts)
	o.Policy, o.Record, o.Secrets = audit.PolicyDigest(p.spec.Policy), w.record, map[string]string{}
	o.Known = append(registriesOf(p), s.Known...)
	if f.review {
		if p.judgedBy, err = keptOf(s, judge, o.Policy); err != nil {
			return nil, fmt.Errorf("monitor: %w", err)
		}
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

// options gives what the settings say of a monitor.
func options(s *policy.Monitor, judge monitor.Judge, mounts []paddock.Mount) monitor.Options {
	o := monitor.Options{
		Task: s.Task, NoRules: s.NoRules, Judge: judge, Timeout: s.Timeout, History: s.History, Removed: s.Removed,
		Count: func() (int, bool) { return measure.Count(mounts) },
	}
	if s.Model != nil {
		o.Timeout = cmp.Or(s.Timeout, modelTime)
	}
	for _, text := range s.Moments {
		o.Moments = append(o.Moments, monitor.Moment(text))
	}
	return o
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
