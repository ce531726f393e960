package usage_test

import (
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/usage"
)

func TestWhatIsOlderThanItMayBeIsForgotten(t *testing.T) {
	w := build(t)
	m, err := usage.New(usage.Options{Driver: w, Store: w.s, Place: "here", Clock: w.clock, Keep: 24 * time.Hour})
	must(t, err)
	must(t, w.m.Close()) // the ticks are the other's
	defer m.Close()
	old := store.Record{Token: "t", Tenant: "acme", Sandbox: "a", Begin: noon.Add(-30 * time.Hour), End: noon.Add(-29 * time.Hour), CPU: -1, Memory: -1, NetIn: -1, NetOut: -1}
	young := old
	young.Begin, young.End = noon.Add(-3*time.Hour), noon.Add(-2*time.Hour)
	must(t, w.s.PutRecords(t.Context(), []store.Record{old, young}))
	left := func() (n int) {
		t.Helper()
		must(t, w.s.Records(t.Context(), "", noon.Add(-1000*time.Hour), noon.Add(100000*time.Hour), func(store.Record) error { n++; return nil }))
		return n
	}
	tick := func(wall, mono time.Duration) {
		t.Helper()
		w.clock.mu.Lock()
		w.wall, w.mono = w.wall.Add(wall), w.mono+mono
		w.clock.mu.Unlock()
		w.tick <- noon
		w.tick <- noon // which is taken when the first is done with
	}
	if tick(59*time.Minute, 59*time.Minute); left() != 2 {
		t.Error("forgotten within the first hour")
	}
	if tick(10000*time.Hour, time.Hour); left() != 2 {
		t.Error("forgotten by a clock that jumped")
	}
	tick(-10000*time.Hour, time.Hour)
	if tick(time.Hour, time.Hour); left() != 1 {
		t.Errorf("%d are left, want 1", left())
	}
}

func TestUseIsToldOfEachSandbox(t *testing.T) {
	w := build(t)
	w.make(t, "a")
	w.make(t, "b")
	w.pass(time.Hour)
	must(t, w.m.Sample(t.Context()))
	list, err := usage.Summarize(t.Context(), w.s, usage.Query{Tenant: "acme", From: noon.Truncate(time.Hour), To: noon.Truncate(time.Hour).Add(3 * time.Hour), Each: true})
	if err != nil || len(list) != 2 || list[0].Sandbox != "a" || list[1].Sandbox != "b" || list[0].Sandboxes != 1 || list[0].Wall.Int64() != int64(time.Hour) {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := usage.Summarize(t.Context(), w.s, usage.Query{Tenant: "other", From: noon.Truncate(time.Hour), To: noon.Truncate(time.Hour).Add(3 * time.Hour), Each: true}); err != nil || len(list) != 0 {
		t.Errorf("another's: %+v, %v", list, err)
	}
}
