package gateway

import (
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/egress/owner"
)

// What is told in one second at most.
const (
	toldMax  = 256 // events one by one
	keptMax  = 256 // that are summed up, each with what is the same
	interval = time.Second
)

// A teller tells events. What is the same as an event of the same second is summed
// up and told when that is over, and so is what is more than a person, a log or
// memory could bear: a guest decides how much happens.
type teller struct {
	sandbox string
	event   func(owner.Event)

	mu    sync.Mutex             // held while an event is told, which keeps them in order
	told  int                    // guarded by mu: one by one in it
	seen  map[event]*owner.Event // guarded by mu: what was told or kept in it; of what was told only, nil
	rest  owner.Event            // guarded by mu: what did not even find room there; Count is 0 without any
	timer *time.Timer            // guarded by mu: the second's end; nil without a second
	over  bool                   // guarded by mu
}

// An event is what makes two Events the same.
type event struct {
	kind, host, method, path, verdict, reason string
	port                                      uint16
	rule                                      int
}

func newTeller(sandbox string, tell func(owner.Event)) *teller {
	return &teller{sandbox: sandbox, event: tell, seen: map[event]*owner.Event{}}
}

// tell tells an event, now or a second later.
func (t *teller) tell(e owner.Event) {
	if t.event == nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Sandbox = t.sandbox
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		t.event(e) // the last ones
		return
	}
	if t.timer == nil {
		t.timer = time.AfterFunc(interval, t.end)
	}
	key := event{e.Kind, e.Host, e.Method, e.Path, e.Verdict, e.Reason, e.Port, e.Rule}
	kept, seen := t.seen[key]
	switch {
	case seen && kept != nil:
		add(kept, e)
	case (!seen || e.Verdict == owner.VerdictAllow) && t.told < toldMax:
		t.told++
		t.seen[key] = nil
		t.event(e)
	case len(t.seen) < toldMax+keptMax || seen:
		e.Count = max(e.Count, 1)
		t.seen[key] = &e
	default:
		add(&t.rest, e)
	}
}

// add sums an event up with others.
func add(to *owner.Event, e owner.Event) {
	to.Time = e.Time
	to.Count += max(e.Count, 1)
	to.Sent += e.Sent
	to.Received += e.Received
	to.Duration = max(to.Duration, e.Duration)
}

// end ends a second: what was kept is told.
func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
}

// flush tells what was kept. The caller holds mu.
func (t *teller) flush() {
	for key, e := range t.seen {
		delete(t.seen, key)
		if e != nil {
			t.event(*e)
		}
	}
	if t.rest.Count > 0 {
		t.rest.Sandbox, t.rest.Kind, t.rest.Rule, t.rest.Verdict = t.sandbox, owner.KindRules, -1, owner.VerdictDeny
		t.rest.Reason = "more different things happened in a second than are told one by one"
		t.event(t.rest)
		t.rest = owner.Event{}
	}
	t.told, t.timer = 0, nil
}

// close tells what was kept, and from now on each event at once.
func (t *teller) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.event == nil {
		return
	}
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.flush()
}
