package attestation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

// Bounds of what a Tally keeps.
const (
	maxSecrets = 4096 // names of secrets
	maxKinds   = 256  // kinds of events
)

// A Tally collects a predicate from the lines of a record. Its Line is an Each of [chain.Options]. Only what a head
// vouches for counts.
type Tally struct {
	sandbox string
	at      time.Time // its start, where its ID has several; zero stands for the only one
	until   *Record   // stop behind this head
	first   bool      // collect what version 1 of the predicate has

	now     state // up to the last line
	signed  state // up to the last head
	stopped bool  // until was reached
}

// state is what lines have told so far. It is copied at each head.
type state struct {
	id       string // of the sandbox; before its start, of the last one that something was recorded of
	others   []string
	start    *audit.Start
	starts   []string // of this ID, or of those that At leaves; more are only counted
	again    int
	over     bool // the sandbox was removed, or its ID was used again
	foreign  bool // before the start, of another sandbox of this ID whose removal was not recorded
	probed   bool // the first program was the driver's probe
	p        Predicate
	n        numbers
	lines    uint64
	logs     int
	series   bool // a server's segments, in which a closing head ends no sandbox
	tooMany  bool
	unwanted string // the first line that is no event
}

// numbers are what only some records can have.
type numbers struct{ exec, refusals, refusedActions, keyUses int64 }

// NewTally returns a Tally of one sandbox. An empty ID stands for the only sandbox of the record.
func NewTally(sandbox string) *Tally { return &Tally{sandbox: sandbox} }

// Again returns a Tally that collects what s says anew: of the same sandbox, up to the same head.
func Again(s Statement) *Tally {
	p := s.Predicate
	return (&Tally{sandbox: p.Sandbox.ID, until: &p.Record, first: s.PredicateType == FirstPredicateType}).At(p.Started)
}

// At makes the Tally one of the sandbox that started at this time, where an ID was used for several.
func (t *Tally) At(start time.Time) *Tally {
	t.at = start
	return t
}

// Line adds a line.
func (t *Tally) Line(l chain.Line) {
	if t.stopped {
		return
	}
	s := &t.now
	s.lines++
	switch {
	case l.Seq == 1:
		s.logs++
		var b struct {
			Fingerprint string `json:"fingerprint"`
		}
		if json.Unmarshal(l.Text, &b) == nil {
			s.p.Record.Fingerprint = b.Fingerprint
		}
	case l.Signed:
		r := &s.p.Record
		r.Log, r.Head, r.Signed, r.Closed, r.Lines = l.Log, l.Point, l.Time, l.Closed, s.lines
		t.signed = s.clone()
		t.stopped = t.until != nil && t.until.Log == l.Log && t.until.Head.Seq == l.Seq
	default:
		s.event(l.Text, t)
	}
}

func (s *state) clone() state {
	c := *s
	c.p.Secrets = maps.Clone(s.p.Secrets)
	c.others, c.starts = s.others[:len(s.others):len(s.others)], s.starts[:len(s.starts):len(s.starts)]
	c.p.Counts.Events = maps.Clone(s.p.Counts.Events)
	if n := s.p.Counts.Steps; n != nil {
		steps := *n
		c.p.Counts.Steps = &steps
	}
	return c
}

func (s *state) event(text []byte, t *Tally) {
	var e audit.Event
	if err := json.Unmarshal(text, &e); err != nil {
		if s.unwanted == "" {
			s.unwanted = err.Error()
		}
		return
	}
	if e.Kind == audit.Did && e.Action != nil && e.Action.What == "record.continue" && e.Sandbox == "" {
		s.series = true
	}
	if wanted := t.sandbox == "" || e.Sandbox == t.sandbox; wanted && e.Sandbox != "" {
		if s.start == nil && e.Sandbox != s.id {
			s.turn(e.Sandbox)
		}
		if e.Kind == audit.Started && e.Start != nil {
			s.begin(e, t.at)
		}
	}
	if s.over {
		return
	}
	s.p.Counts.Lost = min(s.p.Counts.Lost+min(e.Dropped, 1<<53), 1<<53) // nobody knows whose they were
	if e.Sandbox != "" && e.Sandbox == s.id {
		s.count(e)
	}
}

// turn begins to count for a sandbox, of which there is no start yet. What happens in one can be recorded before its
// start is: code of a snapshot runs at once, and other clients of a server find the sandbox at once.
func (s *state) turn(id string) {
	if s.series && s.id != "" && id != s.id {
		s.another(s.id)
	}
	s.id, s.n, s.foreign, s.probed = id, numbers{}, false, false
	s.p.Counts, s.p.Secrets, s.p.Ended = Counts{}, nil, time.Time{}
}

func (s *state) another(id string) {
	if len(s.others) < 5 {
		s.others = append(s.others, id)
	}
}

// begin takes up the start of a sandbox. With a time at, the one of that time counts, among those of its ID.
func (s *state) begin(e audit.Event, at time.Time) {
	switch {
	case e.Sandbox != s.id:
		s.another(e.Sandbox)
		return
	case !at.IsZero() && !e.Time.Equal(at):
		if s.over = s.start != nil; !s.over {
			s.turn(e.Sandbox)
			s.foreign = true
		}
		return
	case len(s.starts) < 5:
		text := e.Time.Format(time.RFC3339Nano)
		if e.Start.Tenant != "" {
			text += " for the tenant " + e.Start.Tenant
		}
		s.starts = append(s.starts, text)
	}
	if s.again++; s.again == 1 {
		s.start, s.p.Started = e.Start, e.Time
	}
}

// probe is what the driver runs in each sandbox on a kernel that reports programs, before it is ready.
const probe, probePath = "probe", "/memfd:probe (deleted)"

// count counts an event of the sandbox.
func (s *state) count(e audit.Event) {
	c := &s.p.Counts
	s.kind(e.Kind)
	switch {
	case e.Kind == audit.Stepped && e.Step != nil:
		if c.Steps == nil {
			c.Steps = &StepCounts{}
		}
		n := c.Steps
		n.Number++
		n.Changed, n.Removed, n.Left = n.Changed+some(e.Step.Changed), n.Removed+some(e.Step.Removed), n.Left+some(e.Step.Left)
	case e.Kind == audit.Exec:
		if s.n.exec++; s.n.exec == 1 && s.start == nil {
			s.probed = e.Path == probePath && slices.Equal(e.Args, []string{probe})
		}
	case e.Kind == audit.Network && e.Network != nil:
		if e.Network.Verdict == "deny" {
			s.n.refusals += times(e.Network.Count)
		}
		for _, name := range e.Network.Secrets {
			s.secret(name, times(e.Network.Count))
		}
	case e.Kind == audit.KeyAgent && e.KeyUse != nil:
		if e.KeyUse.Verdict == "deny" {
			s.n.refusals += times(e.KeyUse.Count)
		} else {
			s.n.keyUses += times(e.KeyUse.Count)
		}
	case e.Kind == audit.Did && e.Action != nil:
		s.action(e)
	}
}

// kind counts a line.
func (s *state) kind(k audit.Kind) {
	c := &s.p.Counts
	if c.Events == nil {
		c.Events = map[string]int64{}
	}
	name := audit.Text(string(k), audit.MaxWord)
	if _, known := c.Events[name]; !known && len(c.Events) >= maxKinds {
		s.tooMany = true
		return
	}
	c.Events[name]++
}

// some bounds a count of an event, so that no sum overflows.
func some(n int) int64 { return max(0, min(int64(n), 1<<31)) }

func (s *state) action(e audit.Event) {
	c := &s.p.Counts
	ok := e.Action.Result == "ok"
	switch {
	case e.Action.Result == paddock.Denied.Error():
		s.n.refusedActions++
	case ok && e.Action.What == "process.start":
		c.Commands++
	case ok && e.Action.What == "sandbox.update":
		c.Updates++
	case ok && e.Action.What == "sandbox.create": // the one before is gone, however
		if s.over = s.start != nil; s.foreign {
			s.turn(s.id)
		}
	case ok && e.Action.What == "sandbox.remove":
		if s.start == nil { // of another one
			s.turn(s.id)
			break
		}
		s.p.Ended, s.over = e.Time, true
	}
}

func (s *state) secret(name string, n int64) {
	if s.p.Secrets == nil {
		s.p.Secrets = map[string]int64{}
	}
	if _, known := s.p.Secrets[name]; !known && len(s.p.Secrets) >= maxSecrets {
		s.tooMany = true
		return
	}
	s.p.Secrets[name] += n
}

// times is how many events one stands for.
func times(count int64) int64 { return max(1, min(count, 1<<40)) }

// Predicate returns what the record says of the sandbox, up to the last head or to that of [Again]. An error says what
// the record lacks.
func (t *Tally) Predicate() (Predicate, error) {
	s := t.signed
	p := s.p
	switch {
	case t.until != nil && !t.stopped:
		return p, fmt.Errorf("the record has no head at line %d of the log %s: it is another record, or its end was cut off: %w", t.until.Head.Seq, t.until.Log, paddock.Conflict)
	case s.unwanted != "":
		return p, fmt.Errorf("the record has a line that is no event: %s: %w", s.unwanted, paddock.Invalid)
	case s.start == nil && t.sandbox != "" && !t.at.IsZero():
		return p, fmt.Errorf("the record has no sandbox %q that started at %s: %w", t.sandbox, t.at.Format(time.RFC3339Nano), paddock.NotFound)
	case s.start == nil && t.sandbox != "":
		return p, fmt.Errorf("the record does not say how the sandbox %q began, with an event of the kind %q: %w", t.sandbox, audit.Started, paddock.NotFound)
	case s.start == nil:
		return p, fmt.Errorf("the record does not say how a sandbox began, with an event of the kind %q: %w", audit.Started, paddock.NotFound)
	case s.again > 1:
		return p, fmt.Errorf("the ID %s was used for %d sandboxes, which started at %s: %w", s.id, s.again, strings.Join(s.starts, ", "), paddock.Invalid)
	case len(s.others) > 0:
		return p, fmt.Errorf("the record has more than one sandbox: %s: %w", strings.Join(append([]string{s.id}, s.others...), ", "), paddock.Invalid)
	case s.tooMany:
		return p, fmt.Errorf("the record names more than %d secrets, or more than %d kinds of events: %w", maxSecrets, maxKinds, paddock.Exhausted)
	}
	policy, ok := digestOf(s.start.Policy)
	build, known := digestOf(s.start.Paddock.Digest)
	if !ok || !known || len(s.start.Controls) == 0 || s.start.Tier == "" {
		return p, fmt.Errorf("the start of the sandbox lacks its tier, its controls, or the digest of its policy or of Paddock's program: %w", paddock.NotFound)
	}
	p.Sandbox = Sandbox{ID: s.id, Tenant: s.start.Tenant, Tier: s.start.Tier, Root: s.start.Root, Snapshot: s.start.Snapshot}
	p.Controls = make([]Control, 0, len(s.start.Controls))
	for _, c := range s.start.Controls {
		p.Controls = append(p.Controls, Control{c.Control, c.Strength})
	}
	p.Policy = Policy{Digest: policy}
	if s.start.PolicyFile != "" {
		file, ok := digestOf(s.start.PolicyFile)
		if !ok {
			return p, fmt.Errorf("the start of the sandbox names %q as the digest of its policy file: %w", s.start.PolicyFile, paddock.Invalid)
		}
		p.Policy.File = &file
	}
	p.Paddock = Build{Version: s.start.Paddock.Version, Revision: s.start.Paddock.Revision, Modified: s.start.Paddock.Modified, Digest: build}
	if s.start.Image != "" {
		image, ok := digestOf(s.start.Image)
		if !ok {
			return p, fmt.Errorf("the start of the sandbox names %q as the digest of its image: %w", s.start.Image, paddock.Invalid)
		}
		p.Sandbox.Image = &image
	}
	s.finish(&p)
	if t.first {
		p.Sandbox.Image, p.Sandbox.Tenant = nil, ""
		p.Counts.Steps, p.Counts.Events, p.Counts.RefusedActions = nil, nil, nil
	}
	return p, nil
}

// finish adds what depends on the kind of the record. What it cannot have is left out, because a zero would say that
// nothing happened.
func (s *state) finish(p *Predicate) {
	if s.series { // it has what callers did. What kernels, gateways and key agents report is kept elsewhere, unsigned.
		p.Record.Kinds, p.Record.Segments, p.Secrets = []string{}, s.logs, nil
		p.Counts.RefusedActions = &s.n.refusedActions
		return
	}
	p.Record.Kinds = append([]string{}, s.start.Kinds...)
	if s.probed && s.start.Snapshot == "" { // that of a snapshot can be a program that is called so
		s.n.exec--
	}
	if slices.Contains(p.Record.Kinds, string(audit.Exec)) {
		p.Counts.Exec = &s.n.exec
	}
	p.Counts.Refusals, p.Counts.KeyUses = &s.n.refusals, &s.n.keyUses
	if p.Record.Closed {
		p.Ended = p.Record.Signed // `paddock run` closes its record when the sandbox is gone
	}
}

// digestOf reads "sha256:" and 64 hexadecimal digits.
func digestOf(text string) (Digest, bool) {
	if !chain.IsFingerprint(text) {
		return Digest{}, false
	}
	return Digest{SHA256: strings.TrimPrefix(text, "sha256:")}, true
}

// Same returns an error that names the first part in which what an attestation says differs from what its record says.
func Same(said, found Predicate) error {
	for _, part := range []struct {
		name string
		a, b any
	}{
		{"record", said.Record, found.Record}, {"sandbox", said.Sandbox, found.Sandbox}, {"controls", said.Controls, found.Controls},
		{"policy", said.Policy, found.Policy}, {"paddock", said.Paddock, found.Paddock}, {"counts", said.Counts, found.Counts},
		{"secrets", said.Secrets, found.Secrets},
		{"times", []time.Time{said.Started, said.Ended}, []time.Time{found.Started, found.Ended}},
	} {
		a, err := json.Marshal(part.a)
		if err != nil {
			return fmt.Errorf("encode a statement: %w", err)
		}
		if b, err := json.Marshal(part.b); err != nil || string(a) != string(b) {
			return fmt.Errorf("the attestation says of %s %s, and the record %s: %w", part.name, a, b, paddock.Conflict)
		}
	}
	return nil
}
