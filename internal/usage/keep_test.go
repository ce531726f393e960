package usage_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
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

// hoursOf are records of sandboxes of some days, from midnight on: many short, some long,
// some with other labels at the end, some without a number.
func hoursOf(days int) (list []store.Record, midnight time.Time) {
	midnight = noon.Truncate(24 * time.Hour)
	random := rand.New(rand.NewPCG(3, 5))
	for i := range 400 {
		first, tenant := random.IntN(days*24), []string{"acme", "other"}[i%2]
		lasts := 1 + random.IntN(3)
		if i%10 == 0 {
			lasts += 40
		}
		for h := first; h < min(first+lasts, days*24); h++ {
			r := store.Record{
				Token: fmt.Sprint("t", i), Sandbox: paddock.ID(fmt.Sprint("s", i)), Tenant: tenant, Tier: paddock.Jail, Labels: map[string]string{"team": fmt.Sprint(i % 3)},
				Begin: midnight.Add(time.Duration(h) * time.Hour), Wall: time.Duration(random.Int64N(int64(time.Hour))),
				CPU: time.Duration(random.Int64N(1e12)), Memory: random.Int64N(1e15), MemoryAsked: random.Int64N(1e15), NetIn: random.Int64N(1e9), NetOut: -1,
			}
			if i%7 == 0 {
				r.NetIn = -1
			}
			if i%11 == 0 && h == first+lasts-1 {
				r.Labels = map[string]string{"team": "9"}
			}
			r.End = r.Begin.Add(r.Wall)
			list = append(list, r)
		}
	}
	return list, midnight
}

func TestSumsOfDaysStayAsTheyWereWhenHoursAreFolded(t *testing.T) {
	const days = 5
	w := build(t)
	must(t, w.s.AddTenant(t.Context(), store.Tenant{ID: "other"}))
	list, midnight := hoursOf(days)
	must(t, w.s.PutRecords(t.Context(), list))
	day := func(n int) time.Time { return midnight.Add(time.Duration(n) * 24 * time.Hour) }
	var asked []usage.Query
	for from := range days {
		for to := from + 1; to <= days; to++ {
			for _, q := range []usage.Query{{}, {Tenant: "acme"}, {By: "team"}, {Where: map[string]string{"team": "1"}}} {
				q.From, q.To = day(from), day(to)
				asked = append(asked, q)
			}
		}
	}
	sums := func() (all []string) {
		t.Helper()
		for _, q := range asked {
			lines, err := usage.Summarize(t.Context(), w.s, q)
			must(t, err)
			text := ""
			for _, l := range lines {
				text += fmt.Sprintf("%s %q: %d %s %s %s %s %s %s %q\n", l.Tenant, l.Label, l.Sandboxes, &l.Wall, &l.CPU, &l.Memory, &l.MemoryAsked, &l.NetIn, &l.NetOut, l.Unmeasured)
			}
			all = append(all, text)
		}
		return all
	}
	before := sums()
	for n := 1; n > 0; {
		var err error
		n, err = w.s.FoldRecords(t.Context(), day(3))
		must(t, err)
	}
	if after := sums(); !reflect.DeepEqual(after, before) {
		t.Errorf("sums are\n%s\nwere\n%s", after, before)
	}
	left := 0
	must(t, w.s.Records(t.Context(), "", day(0), day(3), func(store.Record) error { left++; return nil }))
	if left*2 > len(list)*3/days {
		t.Errorf("%d records of three days are left of about %d", left, len(list)*3/days)
	}
	for _, at := range []time.Time{day(0).Add(time.Hour), day(2).Add(23 * time.Hour)} {
		for _, q := range []usage.Query{{From: at, To: day(days)}, {From: day(0), To: at}} {
			if _, err := usage.Summarize(t.Context(), w.s, q); paddock.KindOf(err) != paddock.Invalid || err == nil || !strings.Contains(err.Error(), "full days") {
				t.Errorf("within a day that was folded: %v", err)
			}
		}
	}
	if _, err := usage.Summarize(t.Context(), w.s, usage.Query{From: day(3).Add(time.Hour), To: day(4).Add(5 * time.Hour)}); err != nil {
		t.Errorf("of days that are not: %v", err)
	}
	lines, err := usage.Summarize(t.Context(), w.s, usage.Query{Tenant: "acme", From: day(0), To: day(days), Each: true})
	must(t, err)
	total, nameless := 0, 0
	for _, l := range lines {
		total += l.Sandboxes
		if l.Sandbox == "" {
			nameless += l.Sandboxes
		} else if l.Sandboxes != 1 {
			t.Errorf("%+v", l)
		}
	}
	if total != 200 || nameless < 50 || lines[0].Sandbox != "" || len(lines) != 1+total-nameless {
		t.Errorf("%d sandboxes, %d of them without a name, in %d lines", total, nameless, len(lines))
	}
}

func TestHoursAreFoldedWhenTheyAreOldAndTheirSandboxIsCountedOn(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	for range 12 {
		w.pass(5 * time.Minute)
		w.sample(t)
	}
	must(t, w.m.Close()) // the ticks are the next one's
	if _, err := usage.New(usage.Options{Driver: w, Store: w.s, Place: "here", Clock: w.clock, Hours: time.Hour}); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("hours that may still be written are folded: %v", err)
	}
	before := w.sum(t)
	m, err := usage.New(usage.Options{Driver: w, Store: w.s, Place: "here", Clock: w.clock, Hours: 48 * time.Hour})
	must(t, err)
	defer m.Close()
	tick := func() {
		t.Helper()
		w.tick <- noon
		w.tick <- noon // which is taken when the first is done with
	}
	folded := func() (n int) {
		t.Helper()
		must(t, w.s.Records(t.Context(), "", time.Time{}, time.Unix(1<<33, 0), func(r store.Record) error {
			if r.Boxes > 0 {
				n++
			}
			return nil
		}))
		return n
	}
	w.mu.Lock()
	there := w.boxes
	w.boxes = nil // nobody looks at it meanwhile
	w.mu.Unlock()
	if w.jump(1000 * time.Hour); folded() != 0 {
		t.Error("folded before it was looked at")
	}
	if tick(); folded() != 0 {
		t.Error("folded within the first hour")
	}
	if w.pass(time.Hour); folded() != 0 {
		t.Error("folded before it was looked at")
	}
	if tick(); folded() != 0 {
		t.Error("folded by a clock that jumped")
	}
	w.pass(time.Hour)
	if tick(); folded() != 1 {
		t.Errorf("%d folded", folded())
	}
	if got, err := usage.Summarize(t.Context(), w.s, usage.Query{From: noon.Truncate(24 * time.Hour), To: noon.Truncate(24 * time.Hour).Add(24 * time.Hour)}); err != nil || len(got) != 1 || got[0].Wall.Int64() != int64(time.Hour) || before == "" {
		t.Errorf("%+v, %v, before %s", got, err, before)
	}
	w.mu.Lock()
	w.boxes = there
	w.boxes["one"].Usage.Wall = 90 * time.Minute
	w.boxes["one"].Usage.CPU = 7 * time.Minute
	w.mu.Unlock()
	tick()
	lines, err := usage.Summarize(t.Context(), w.s, usage.Query{From: time.Unix(0, 0), To: time.Unix(3600*1_000_000, 0)})
	must(t, err)
	if len(lines) != 1 || lines[0].Wall.Int64() != int64(90*time.Minute) || lines[0].CPU.Int64() != int64(7*time.Minute) || lines[0].Sandboxes != 1 || folded() != 1 {
		t.Errorf("counted on: %+v", lines)
	}
}

// While there is much of it samples go on.
func TestWhatIsOldIsSeenToInSlicesBetweenSamples(t *testing.T) {
	w := build(t)
	must(t, w.m.Close()) // the ticks are the next one's
	m, err := usage.New(usage.Options{Driver: w, Store: w.s, Place: "here", Clock: w.clock, Hours: 48 * time.Hour, Keep: 1000 * time.Hour})
	must(t, err)
	defer m.Close()
	var list []store.Record
	for i := range 3000 {
		begin := noon.Add(-100 * time.Hour)
		if i%2 == 0 {
			begin = noon.Add(-2000 * time.Hour)
		}
		list = append(list, store.Record{Token: fmt.Sprint("t", i), Tenant: "acme", Sandbox: paddock.ID(fmt.Sprint("s", i)), Begin: begin, End: begin.Add(time.Hour), CPU: -1, Memory: -1, NetIn: -1, NetOut: -1})
	}
	for len(list) > 0 {
		must(t, w.s.PutRecords(t.Context(), list[:500]))
		list = list[500:]
	}
	left := func() (n int) {
		t.Helper()
		must(t, w.s.Records(t.Context(), "", time.Time{}, time.Unix(1<<33, 0), func(r store.Record) error {
			if r.Boxes == 0 {
				n++
			}
			return nil
		}))
		return n
	}
	w.pass(time.Hour)
	was := left()
	if was != 3000 {
		t.Fatalf("%d records", was)
	}
	for ticks := 1; was > 0; ticks++ {
		w.tick <- noon // which is taken, and a sample made, when the one before is done with
		now := left()
		if ticks > 20 || was-now > 2500 {
			t.Fatalf("of %d records %d were seen to between two samples, %d are left after %d ticks", was, was-now, now, ticks)
		}
		was = now
	}
}
