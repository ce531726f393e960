package gatewayclient

import (
	"fmt"
	"time"
)

// A meter bounds the rate of events. The gateway bounds it too, but may be compromised.
type meter struct {
	sandbox string
	second  time.Time
	taken   int
	missed  int
}

// take returns the events to report: the event, or nothing, after the sum of missed ones.
func (m *meter) take(e Event, now time.Time) []Event {
	var told []Event
	if now.Sub(m.second) >= time.Second {
		if missed, ok := m.rest(now); ok {
			told = append(told, missed)
		}
		m.second, m.taken = now, 0
	}
	if m.taken >= eventRate {
		m.missed += max(e.Count, 1)
		return told
	}
	m.taken++
	return append(told, e)
}

// rest returns the sum of missed events that was not reported.
func (m *meter) rest(now time.Time) (Event, bool) {
	if m.missed == 0 {
		return Event{}, false
	}
	e := Event{
		Time: now, Sandbox: m.sandbox, Kind: KindRules, Rule: -1, Verdict: VerdictDeny, Count: m.missed,
		Reason: fmt.Sprintf("the gateway told more than %d events in a second; the rest was not kept", eventRate),
	}
	m.missed = 0
	return e, true
}
