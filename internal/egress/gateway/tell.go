package gateway

import (
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// Bounds of the events reported in one second.
const (
	toldMax  = 256 // reported one by one
	keptMax  = 256 // sums of equal events
	interval = time.Second
)

// A teller reports events. It sums up equal events of one second and reports the sums at
// its end. Beyond the bounds it sums up different events too, because a guest decides how
// many there are, and neither a person nor a log nor memory may be overloaded.
type teller struct {
	sandbox string
	event   func(gatewayclient.Event)

	mu    sync.Mutex                     // held while an event is reported, to keep the order
	told  int                            // guarded by mu; number reported in this second
	seen  map[event]*gatewayclient.Event // guarded by mu; events of this second: the sum, or nil if only reported
	rest  gatewayclient.Event            // guarded by mu; sum beyond the bounds; Count 0 if none
	timer *time.Timer                    // guarded by mu; ends the second; nil if none began
	over  bool                           // guarded by mu
}

// An event identifies equal Events.
type event struct {
	kind, host, method, path, verdict, reason string
	port                                      uint16
	rule                                      int
}

func newTeller(sandbox string, tell func(gatewayclient.Event)) *teller {
	return &teller{sandbox: sandbox, event: tell, seen: map[event]*gatewayclient.Event{}}
}

// tell reports an event, now or at the end of the second.
func (t *teller) tell(e gatewayclient.Event) {
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
	case (!seen || e.Verdict == gatewayclient.VerdictAllow) && t.told < toldMax:
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

// add adds an event to a sum.
func add(to *gatewayclient.Event, e gatewayclient.Event) {
	to.Time = e.Time
	to.Count += max(e.Count, 1)
	to.Sent += e.Sent
	to.Received += e.Received
	to.Duration = max(to.Duration, e.Duration)
}

// end ends a second and reports its sums.
func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
}

// flush reports the sums. The caller holds mu.
func (t *teller) flush() {
	for key, e := range t.seen {
		delete(t.seen, key)
		if e != nil {
			t.event(*e)
		}
	}
	if t.rest.Count > 0 {
		t.rest.Sandbox, t.rest.Kind, t.rest.Rule, t.rest.Verdict = t.sandbox, gatewayclient.KindRules, -1, gatewayclient.VerdictDeny
		t.rest.Reason = "more different things happened in a second than are told one by one"
		t.event(t.rest)
		t.rest = gatewayclient.Event{}
	}
	t.told, t.timer = 0, nil
}

// close reports the sums, and each later event at once.
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
