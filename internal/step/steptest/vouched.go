package steptest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// events keeps the events of steps.
type events struct {
	mu   sync.Mutex
	list []audit.Event // guarded by mu
}

// Record implements [audit.Sink].
func (e *events) Record(one audit.Event) {
	if one.Kind != audit.Stepped {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, one.Clean())
}

// Vouched promises that each record of a command has an event with its digest, before the caller hears of the command's end.
func Vouched(t *testing.T, base paddock.Spec, open func(state, journal string, sink audit.Sink) (paddock.Driver, error)) {
	t.Helper()
	var sink events
	s := begin(t, base, func(state, journal string) (paddock.Driver, error) { return open(state, journal, &sink) })
	for i, script := range []string{`i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo more >> text; rm deep/er/file; : > made`, `true`} {
		s.run(t, script)
		sink.mu.Lock()
		said := slices.DeleteFunc(slices.Clone(sink.list), func(e audit.Event) bool { return e.Step == nil || e.Step.Kind == "background" })
		sink.mu.Unlock()
		if len(said) != i+1 {
			t.Fatalf("%d events after %d commands", len(said), i+1)
		}
		e := said[i]
		r, err := s.journal.Read(t.Context(), e.Step.Number)
		if err != nil {
			t.Fatal(err)
		}
		if e.Step.Record != "sha256:"+r.Digest || e.Sandbox != r.Sandbox || e.Step.Kind != r.Kind || e.Step.Exit != 0 || e.Step.Duration <= 0 || len(e.Args) != 3 || e.Args[2] != script {
			t.Errorf("the event %+v %+v is not of the record %+v", e, *e.Step, r)
		}
		if i == 0 && (e.Step.CPU < 0 || e.Step.CPU > 10*e.Step.Duration+time.Second) {
			t.Errorf("%+v: it took so much processor time", *e.Step)
		}
		if i == 0 && (e.Step.Changed != len(r.Changes) || e.Step.Changed < 3 || e.Step.Removed != 1 || e.Step.Left != 0) {
			t.Errorf("%+v", *e.Step)
		}
		if i == 1 && e.Step.Changed != 0 {
			t.Errorf("%+v", *e.Step)
		}
	}
	s.close(t)
}
