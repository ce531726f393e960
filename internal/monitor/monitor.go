package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A Judge gives verdicts beside the rules. It is called concurrently.
type Judge interface {
	// Kind is a word for the record, such as "command".
	Kind() string
	// Judge answers an input, the JSON of an Input. An error is a denial. Its text holds no text of the sandbox's choosing.
	Judge(ctx context.Context, input []byte) (Answer, error)
}

// Options configure a Monitor. Zero values are the defaults.
type Options struct {
	Sandbox string
	Tier    string
	Policy  string // digest of the sandbox's policy
	Task    string // that the user stated

	NoRules bool     // leaves out the built-in rules
	Judge   Judge    // nil is none
	Moments []Moment // at which the judge is asked; the rules are asked at all. Nil is all

	// Known are hosts that give packages out. The rules do not take them for new.
	Known []string

	Timeout  time.Duration // of one answer of the judge: 10 s
	History  int           // earlier steps in an input: 10
	Removed  int           // paths removed by a step from which on it is judged: 100
	Measured Measured

	Secrets map[string]string // name to value; no input holds a value

	// Count counts what is left in the directories that the sandbox can write, when many files were removed. It has a bound of its
	// own, and reports whether it counted all. Nil counts nothing.
	Count func() (n int, whole bool)

	Record func(audit.Event) // of each decision; nil records nothing
}

// Bounds of a Monitor.
const (
	defaultTimeout = 10 * time.Second
	defaultHistory = 10
	maxHistory     = 100
	defaultRemoved = 100
	judgesAtOnce   = 4
	maxCached      = 1024
	maxEffects     = 20      // questions about effects that one step may put to the judge
	maxTold        = 10_000  // paths of a step of which the decision is kept; others are judged each time
	maxRepeats     = 100     // decisions of a step that are recorded again
	maxSent        = 1000    // hosts of a step whose bytes are counted for each; others are counted together
	maxKnown       = 100_000 // paths that a step made
	maxReached     = 10_000  // hosts that were reached
)

// judgeOfRules is the judge of decisions by the built-in rules.
const judgeOfRules = "rules"

// A Monitor judges one sandbox. It is safe for concurrent use.
type Monitor struct {
	o      Options
	rules  []rule
	re     *patterns
	redact atomic.Pointer[strings.Replacer]
	slots  chan struct{} // holds an element for each question that is with the judge

	mu      sync.Mutex
	steps   []Step            // guarded by mu: ended ones
	now     *present          // guarded by mu: nil before the first command
	last    int               // guarded by mu: number of the last step
	reached map[string]bool   // guarded by mu: hosts that an earlier step reached
	cached  map[string]Answer // guarded by mu
	counts  map[Verdict]int   // guarded by mu
	links   links             // guarded by mu
	keys    string            // guarded by mu: a name of keys that an earlier step named or wrote; how many came since does not matter
}

// present is the step that goes on.
type present struct {
	step    Step
	text    string          // whole
	made    map[string]bool // what it made: "root/path"
	next    int             // removals at which it is judged again
	judged  int             // removals at which it was judged last
	effects int             // questions about what it did
	strict  *Decision       // the last verdict of the judge about an effect that was not an allowance
	waived  bool            // a person let it go on beyond what the judge is asked about
	joined  bool            // it is of several commands that run at once

	told    map[[sha256.Size]byte]Decision // what was decided of each path that matters
	many    *Decision                      // what was decided of its removals, unless they go on
	repeats int                            // decisions that were recorded again

	sent   map[string]*HostUsed // by host
	others HostUsed             // the sum of hosts beyond those
	passed int64                // bytes of others at which they were judged last
}

func (m *Monitor) newPresent(s Step, text string) *present {
	p := &present{step: s, text: text, made: map[string]bool{}, next: m.o.Removed, told: map[[sha256.Size]byte]Decision{}, sent: map[string]*HostUsed{}}
	if m.o.Measured.Files {
		p.step.Files = &Files{}
	}
	if m.o.Measured.Network {
		p.step.Network = &NetworkUse{}
	}
	return p
}

// New makes a Monitor.
func New(o Options) *Monitor {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.History <= 0 {
		o.History = defaultHistory
	}
	o.History = min(o.History, maxHistory)
	o.Known = slices.Clone(o.Known)
	for i := range o.Known {
		o.Known[i] = strings.ToLower(o.Known[i])
	}
	if o.Removed <= 0 {
		o.Removed = defaultRemoved
	}
	m := &Monitor{
		o: o, slots: make(chan struct{}, judgesAtOnce), re: newPatterns(),
		reached: map[string]bool{}, cached: map[string]Answer{}, counts: map[Verdict]int{},
		links: links{notable: map[[2]uint64]Notable{}, mixed: map[[2]uint64]bool{}},
	}
	m.Hide(o.Secrets)
	if !o.NoRules {
		m.rules = rules()
	}
	return m
}

// Sandbox sets what is known of the sandbox once it is made.
func (m *Monitor) Sandbox(id, tier string, measured Measured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.o.Sandbox, m.o.Tier, m.o.Measured = id, tier, measured
}

// Hide replaces the secrets whose values no input and no record holds.
func (m *Monitor) Hide(secrets map[string]string) { m.redact.Store(redactor(secrets)) }

// Counts returns how many decisions of each verdict there were.
func (m *Monitor) Counts() map[Verdict]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts)
}

// Exec judges a command that is about to start. A command that is allowed, or allowed by a person, must be told to Begin.
func (m *Monitor) Exec(ctx context.Context, args []string, dir string) Decision {
	return m.exec(ctx, args, dir, false)
}

// ExecPart is Exec of a command of which only the beginning is known.
func (m *Monitor) ExecPart(ctx context.Context, args []string, dir string) Decision {
	return m.exec(ctx, args, dir, true)
}

func (m *Monitor) exec(ctx context.Context, args []string, dir string, cut bool) Decision {
	m.mu.Lock()
	in := m.input(Exec)
	in.Step = Step{Number: m.last + 1, Guest: StepGuest{Command: slices.Clone(args), Dir: dir}}
	if m.now != nil {
		in.Earlier = m.earlier(m.now.step)
	}
	f := m.facts(in, commandText(args))
	f.cut = cut
	m.mu.Unlock()
	return m.decide(ctx, f, fmt.Sprintf("%q %q", args, dir))
}

// Begin notes that a command starts: from now on, effects are its own.
func (m *Monitor) Begin(args []string, dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over(-1)
	m.last++
	m.now = m.newPresent(Step{Number: m.last, Running: true, Guest: StepGuest{Command: slices.Clone(args[:min(len(args), audit.MaxCount+1)]), Dir: dir}}, commandText(args))
}

// Join notes that a command starts while others run: from now on, effects are its own. They count on top of what the others
// did, because a command that runs on must get no new count by the start of another one. What was decided for the others is
// decided anew.
func (m *Monitor) Join(args []string, dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.current()
	s := p.step
	s.Guest.Notable, s.Guest.Hosts, s.Secrets = slices.Clone(s.Guest.Notable), slices.Clone(s.Guest.Hosts), slices.Clone(s.Secrets)
	if f := s.Files; f != nil {
		g := *f
		s.Files = &g
	}
	if n := s.Network; n != nil {
		g := *n
		s.Network = &g
	}
	m.file(s, p.text)
	m.last++
	if p.told = map[[sha256.Size]byte]Decision{}; p.many != nil && p.step.Files != nil {
		p.many, p.next = nil, min(p.next, p.step.Files.Removed+p.step.Files.Emptied+1)
	}
	p.joined, p.text = true, commandText(args)
	p.step.Number, p.step.Guest.Command, p.step.Guest.Dir = m.last, slices.Clone(args[:min(len(args), audit.MaxCount+1)]), dir
}

// file puts a step with the whole text of its command among the earlier ones. The caller holds m.mu.
func (m *Monitor) file(s Step, text string) {
	if m.keys == "" {
		m.keys = m.keysOf(&s, text)
	}
	m.steps = append(m.steps, s)
	if len(m.steps) > m.o.History {
		m.steps = slices.Delete(m.steps, 0, len(m.steps)-m.o.History)
	}
}

// keysOf returns the name of a file of keys that a step named or wrote, if it did.
func (m *Monitor) keysOf(s *Step, text string) string {
	if name := m.re.keyFile(bare(text)); name != "" {
		return name
	}
	for _, n := range s.Guest.Notable {
		if n.Kind == kindKey && n.What != Removed {
			return n.Path
		}
	}
	return ""
}

// over ends the present step. The caller holds m.mu.
func (m *Monitor) over(exit int) {
	if m.now == nil {
		return
	}
	s := m.now.step
	s.Running, s.Exit = false, exit
	for _, h := range s.Guest.Hosts {
		m.reach(h)
	}
	for _, h := range m.now.sent {
		m.reach(*h)
	}
	m.file(s, m.now.text)
	m.now = nil
}

// A Memory is what a monitor knows of the past of its sandbox, for the monitor that judges it next.
type Memory struct {
	Last    int             `json:"last"`              // number of the last step
	Keys    string          `json:"keys,omitempty"`    // a name of keys that a step named or wrote
	Reached []string        `json:"reached,omitempty"` // hosts that steps reached
	Counts  map[Verdict]int `json:"counts,omitempty"`
}

// maxMemory bounds the hosts of a Memory. Others are new hosts again.
const maxMemory = 200

// Memory returns what is to be known of the past, and ends the present step.
func (m *Monitor) Memory() Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over(-1)
	r := Memory{Last: m.last, Keys: audit.Text(m.keys, maxText), Counts: maps.Clone(m.counts)}
	for host := range m.reached {
		if len(r.Reached) == maxMemory {
			break
		}
		if len(host) <= maxText {
			r.Reached = append(r.Reached, host)
		}
	}
	slices.Sort(r.Reached)
	return r
}

// Recall takes what an earlier monitor of the sandbox knew. It must be called before anything is judged.
func (m *Monitor) Recall(r Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.keys = r.Last, r.Keys
	for _, host := range r.Reached {
		m.reach(HostUsed{Host: host})
	}
	for v, n := range r.Counts {
		m.counts[v] = n
	}
}

// reach notes a host that a step reached. The caller holds m.mu.
func (m *Monitor) reach(h HostUsed) {
	if !h.Refused && len(m.reached) < maxReached {
		m.reached[h.Host] = true
	}
}

// Ended notes that the present command has ended.
func (m *Monitor) Ended(exit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over(exit)
}

// current returns the present step, or one for what happens while no command runs. The caller holds m.mu.
func (m *Monitor) current() *present {
	if m.now == nil {
		m.last++
		m.now = m.newPresent(Step{Number: m.last, Running: true}, "")
	}
	return m.now
}

// Host judges the first connection to a destination.
func (m *Monitor) Host(ctx context.Context, d Destination) Decision {
	m.mu.Lock()
	p := m.current()
	in := m.input(Host)
	in.Destination = &d
	f := m.facts(in, p.text)
	m.mu.Unlock()
	found := m.decide(ctx, f, fmt.Sprintf("%q %d %t", d.Guest.Host, d.Port, d.UDP))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.use(m.current(), d.Guest.Host, d.Port, found.Verdict != Allow && found.Verdict != Ask)
	return found
}

// Secret judges the use of a secret for a destination.
func (m *Monitor) Secret(ctx context.Context, name string, d Destination) Decision {
	m.mu.Lock()
	p := m.current()
	in := m.input(Secret)
	in.Destination, in.Secret = &d, name
	f := m.facts(in, p.text)
	m.mu.Unlock()
	found := m.decide(ctx, f, fmt.Sprintf("%q %q %d", name, d.Guest.Host, d.Port))
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := &m.current().step; found.Verdict == Allow && !slices.Contains(s.Secrets, name) && len(s.Secrets) < maxNames {
		s.Secrets = append(s.Secrets, name)
	}
	return found
}

// NotableOf returns a path with its kind and what was done to it, if the path is of a kind that matters.
func NotableOf(path, what string) (Notable, bool) {
	n := Notable{Path: audit.Text(path, maxText), Kind: notableKind(path), What: what}
	if n.Kind == kindRepository && what != Removed && what != Moved {
		n.Kind = ""
	}
	return n, n.Kind != ""
}

// Rebuildable reports whether a path is in a directory that tools rebuild, by its name.
func Rebuildable(path string) bool { return rebuildable(path) }

// input begins the input of a moment. The caller holds m.mu.
func (m *Monitor) input(at Moment) *Input {
	in := &Input{
		Moment: at, Sandbox: m.o.Sandbox, Tier: m.o.Tier, Policy: m.o.Policy, Task: m.o.Task, Measured: m.o.Measured, Earlier: slices.Clone(m.steps),
	}
	if m.now != nil {
		in.Step = m.now.step
		in.Step.Guest.Notable, in.Step.Guest.Hosts = slices.Clone(in.Step.Guest.Notable), slices.Clone(in.Step.Guest.Hosts)
		in.Step.Secrets = slices.Clone(in.Step.Secrets)
		if f := in.Step.Files; f != nil {
			g := *f
			in.Step.Files = &g
		}
		if n := in.Step.Network; n != nil {
			g := *n
			in.Step.Network = &g
		}
	}
	return in
}

// earlier returns the earlier steps together with one that has not ended. The caller holds m.mu.
func (m *Monitor) earlier(s Step) []Step {
	list := append(slices.Clone(m.steps), s)
	return list[max(0, len(list)-m.o.History):]
}

// facts returns what rules look at. The caller holds m.mu.
func (m *Monitor) facts(in *Input, text string) *facts {
	f := &facts{Input: in, re: m.re, text: text, bare: bare(text), removed: m.o.Removed, known: m.o.Known, keys: m.keys}
	if in.Destination != nil {
		f.reached = m.reached[in.Destination.Guest.Host]
	}
	return f
}

// decide asks the rules and the judge, and records the stricter verdict. A key that is not empty is what the answer of the
// judge is kept for.
func (m *Monitor) decide(ctx context.Context, f *facts, key string) Decision {
	d := judgeRules(m.rules, f)
	if m.asks(f) && d.Verdict != Pause { // nothing is stricter
		var j Decision
		if f.beyond {
			j = m.beyond(f)
		} else {
			j = m.ask(ctx, f, key)
			m.remember(f, j)
		}
		if j.Verdict.rank() > d.Verdict.rank() || d.Verdict == Allow {
			d = j
		}
	}
	d.Reason = m.redact.Load().Replace(d.Reason)
	m.mu.Lock()
	d.Moment, d.Step = f.Moment, f.Step.Number
	m.counts[d.Verdict]++
	m.mu.Unlock()
	m.record(f, d)
	return d
}

// remember keeps the strict verdict of the judge about an effect of the present step.
func (m *Monitor) remember(f *facts, j Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.Moment == Effect && j.Verdict != Allow && m.now != nil && m.now.step.Number == f.Step.Number {
		j.Latency, j.Cached = 0, true
		m.now.strict, m.now.waived = &j, false
	}
}

// RuleTooMany is the rule of a decision about more effects than the judge is asked about.
const RuleTooMany = "too-many-effects"

// beyond decides about an effect beyond those that the judge is asked about: the last verdict that was not an allowance
// stands, and without one the sandbox is paused, because an allowance would be for whatever comes.
func (m *Monitor) beyond(f *facts) Decision {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.now
	switch {
	case p != nil && p.step.Number == f.Step.Number && p.strict != nil:
		return *p.strict
	case p != nil && p.step.Number == f.Step.Number && p.waived:
		return Decision{Verdict: Allow, Judge: judgeOfRules, Rule: RuleTooMany}
	}
	return Decision{
		Verdict: Pause, Judge: judgeOfRules, Rule: RuleTooMany, Score: 0.7,
		Reason: fmt.Sprintf("one step had more than %d effects that matter, and the judge is not asked about more", maxEffects),
	}
}

// asks reports whether the judge is asked.
func (m *Monitor) asks(f *facts) bool {
	return m.o.Judge != nil && (len(m.o.Moments) == 0 || slices.Contains(m.o.Moments, f.Moment))
}

// ask asks the judge. Whatever goes wrong is a denial.
func (m *Monitor) ask(ctx context.Context, f *facts, key string) Decision {
	d := Decision{Judge: m.o.Judge.Kind()}
	in := f.clean(m.redact.Load())
	text, err := json.Marshal(in) //nolint:gosec // the member secret is a name
	if err != nil {
		return d.failed(err)
	}
	digest := ""
	if key != "" {
		digest = m.digest(&in, key)
		m.mu.Lock()
		a, ok := m.cached[digest]
		m.mu.Unlock()
		if ok {
			d.Verdict, d.Reason, d.Score, d.Cached = a.Verdict, a.Reason, a.Score, true
			return d
		}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, m.o.Timeout)
	defer cancel()
	a, err := m.put(ctx, text)
	d.Latency = time.Since(began)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it did not answer within %s: %w", m.o.Timeout, paddock.Timeout)
	}
	if err != nil {
		return d.failed(err)
	}
	if digest != "" {
		m.mu.Lock()
		if len(m.cached) >= maxCached {
			clear(m.cached)
		}
		m.cached[digest] = a
		m.mu.Unlock()
	}
	d.Verdict, d.Reason, d.Score = a.Verdict, a.Reason, a.Score
	return d
}

// put puts a question to the judge when it is its turn.
func (m *Monitor) put(ctx context.Context, text []byte) (Answer, error) {
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	return m.o.Judge.Judge(ctx, text)
}

func (d Decision) failed(err error) Decision {
	d.Verdict, d.Failed, d.Score = Deny, true, 1
	d.Reason = "the monitor gave no verdict, so it is denied: " + audit.Text(strings.ReplaceAll(strings.TrimSuffix(err.Error(), ": "+paddock.KindOf(err).Error()), "\n", "; "), audit.MaxWhy/2)
	return d
}

// digest returns what an answer depends on as far as it is kept: the moment, what is asked, the policy, the task, and what
// the sandbox has done so far that makes the same command another one.
func (m *Monitor) digest(in *Input, key string) string {
	h := sha256.New()
	state := ""
	for _, s := range in.Earlier {
		for _, n := range s.Guest.Notable {
			state += n.Kind + "\x00"
		}
		if name := m.re.keyFile(bare(commandText(s.Guest.Command))); name != "" {
			state += name + "\x00"
		}
		if s.Files != nil && s.Files.Removed >= m.o.Removed {
			state += "removed\x00"
		}
	}
	for _, part := range []string{string(in.Moment), key, in.Policy, in.Task, in.Sandbox, state, fmt.Sprint(in.Step.Guest.Command, in.Step.Guest.Notable)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// record records a decision.
func (m *Monitor) record(f *facts, d Decision) {
	if m.o.Record == nil {
		return
	}
	j := &audit.Judgement{
		Moment: string(f.Moment), Verdict: string(d.Verdict), Judge: d.Judge, Rule: d.Rule, Reason: m.redact.Load().Replace(d.Reason), Score: int(math.Round(d.Score * 1000)),
		Latency: d.Latency, Cached: d.Cached, Failed: d.Failed, Secret: f.Secret, Step: f.Step.Number,
	}
	if f.Destination != nil {
		j.Host, j.Port = m.redact.Load().Replace(f.Destination.Guest.Host), f.Destination.Port
	}
	e := audit.Event{Time: time.Now(), Sandbox: f.Sandbox, Kind: audit.Judged, Judgement: j}
	if f.Moment == Exec {
		for _, a := range f.Step.Guest.Command {
			e.Args = append(e.Args, m.redact.Load().Replace(a))
		}
		e.Dir = m.redact.Load().Replace(f.Step.Guest.Dir)
	}
	m.o.Record(e)
}
