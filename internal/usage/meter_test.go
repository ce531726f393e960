package usage_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/usage"
)

// noon is in the middle of an hour, which is not to matter.
var noon = time.Date(2030, 1, 1, 12, 30, 0, 0, time.UTC)

// A clock stands still until it is told otherwise.
type clock struct {
	mu   sync.Mutex
	wall time.Time     // guarded by mu
	mono time.Duration // guarded by mu
	tick chan time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

func (c *clock) Tick(time.Duration) (<-chan time.Time, func()) { return c.tick, func() {} }

// A world is a store, a clock, and the sandboxes that a driver would have.
type world struct {
	*clock
	s *store.Store
	m *usage.Meter

	mu    sync.Mutex
	boxes map[paddock.ID]*paddock.Status // guarded by mu
	fail  error                          // guarded by mu; of List
	asked chan struct{}                  // holds one after a List
}

func (w *world) List(context.Context) ([]paddock.Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []paddock.Status
	for _, st := range w.boxes {
		list = append(list, *st)
	}
	select {
	case w.asked <- struct{}{}:
	default:
	}
	return list, w.fail
}

func build(t *testing.T) *world {
	t.Helper()
	w := &world{
		clock: &clock{wall: noon, mono: time.Hour, tick: make(chan time.Time)}, s: storetest.SQLite().New(t),
		boxes: make(map[paddock.ID]*paddock.Status), asked: make(chan struct{}, 1),
	}
	must(t, w.s.AddTenant(t.Context(), store.Tenant{ID: "acme"}))
	w.restart(t)
	return w
}

// restart is the next server's meter; the one before did not live to say goodbye.
func (w *world) restart(t *testing.T) {
	t.Helper()
	m, err := usage.New(usage.Options{Driver: w, Store: w.s, Place: "here", Clock: w.clock})
	must(t, err)
	w.m = m
	t.Cleanup(func() {
		w.mu.Lock()
		w.boxes = nil
		w.fail = nil
		w.mu.Unlock()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// make begins a sandbox: half a processor and 1 GiB reserved.
func (w *world) make(t *testing.T, id paddock.ID) store.Sandbox {
	t.Helper()
	b := store.Sandbox{
		ID: id, Tenant: "acme", Token: "t-" + string(id), Place: "here", Tier: paddock.Jail, Created: w.Now(), State: store.Ready,
		Labels: map[string]string{"job": "7"}, Reserved: store.Reserved{CPU: 500, Memory: 1 << 30, Disk: 1 << 20},
	}
	must(t, w.s.AddSandbox(t.Context(), b, func(*store.Total) error { return nil }))
	must(t, w.s.ReadySandbox(t.Context(), b.Token, id, b.Tier))
	w.boxes[id] = &paddock.Status{ID: id, State: paddock.Ready, Usage: paddock.Usage{Memory: 1 << 29}}
	return b
}

// pass lets time go by: of it sandboxes that run are busy for a tenth.
func (w *world) pass(d time.Duration) {
	w.clock.mu.Lock()
	w.wall, w.mono = w.wall.Add(d), w.mono+d
	w.clock.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.boxes {
		st.Usage.Wall += d
		if st.State == paddock.Ready {
			st.Usage.CPU += d / 10
		}
	}
}

// jump moves the wall clock alone.
func (w *world) jump(d time.Duration) {
	w.clock.mu.Lock()
	defer w.clock.mu.Unlock()
	w.wall = w.wall.Add(d)
}

func (w *world) sample(t *testing.T) {
	t.Helper()
	must(t, w.m.Sample(t.Context()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sum is all that was ever used, and checks what holds of all records.
func (w *world) sum(t *testing.T) string {
	t.Helper()
	ends := make(map[string]time.Time)
	err := w.s.Records(t.Context(), "", time.Time{}, time.Unix(1<<33, 0), func(r store.Record) error {
		if r.Begin.Before(ends[r.Token]) {
			t.Errorf("records overlap: %s begins before %s", r.Begin, ends[r.Token])
		}
		ends[r.Token] = r.End
		if r.End.After(r.Begin.Truncate(time.Hour).Add(time.Hour)) || r.End.Sub(r.Begin) != r.Wall {
			t.Errorf("%s to %s is no part of an hour, or not %s", r.Begin, r.End, r.Wall)
		}
		return nil
	})
	must(t, err)
	lines, err := usage.Summarize(t.Context(), w.s, usage.Query{From: time.Unix(0, 0), To: time.Unix(3600*1_000_000, 0)})
	must(t, err)
	if len(lines) == 0 {
		return ""
	}
	s := &lines[0].Sum
	return fmt.Sprintf("%d boxes %ss paused %ss cpu %sms memory %s asked %s", s.Sandboxes, whole(s.Wall.String(), 9), whole(s.Paused.String(), 9), whole(s.CPU.String(), 6), whole(s.Memory.String(), 0), whole(s.MemoryAsked.String(), 0))
}

// whole cuts digits off.
func whole(number string, digits int) string {
	if len(number) <= digits {
		return "0"
	}
	return number[:len(number)-digits]
}

func gib(seconds int) string  { return fmt.Sprint(int64(seconds) << 30) }
func half(seconds int) string { return fmt.Sprint(int64(seconds) << 29) }

func want(seconds, paused, cpu int) string {
	return fmt.Sprintf("1 boxes %ds paused %ds cpu %dms memory %s asked %s", seconds, paused, cpu, half(seconds), gib(seconds-paused))
}

func TestWhatIsUsedIsCountedOverHours(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	for range 18 {
		w.pass(10 * time.Minute)
		w.sample(t)
	}
	if got := w.sum(t); got != want(3*3600, 0, 3*360_000) {
		t.Errorf("%s, want %s", got, want(3*3600, 0, 3*360_000))
	}
	n := 0
	must(t, w.s.Records(t.Context(), "acme", noon, noon.Add(time.Hour*9), func(store.Record) error {
		n++
		return nil
	}))
	if n != 4 {
		t.Errorf("%d records of four hours", n)
	}
}

func TestTheMemoryLimitIsCountedAndNotWhatIsReservedOfTheHost(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	w.boxes["one"].Limits.Memory = 1 << 29
	w.pass(10 * time.Minute)
	w.sample(t)
	w.pass(10 * time.Minute)
	w.sample(t)
	if got := w.sum(t); !strings.HasSuffix(got, " asked "+half(1200)) {
		t.Errorf("%s, want asked %s", got, half(1200))
	}
}

func TestOneSampleAfterHoursIsAsMany(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	w.pass(5 * time.Hour)
	w.sample(t)
	w.sample(t)
	if got := w.sum(t); got != want(5*3600, 0, 5*360_000) {
		t.Errorf("%s, want %s", got, want(5*3600, 0, 5*360_000))
	}
}

func TestAPauseBetweenSamplesIsCounted(t *testing.T) {
	w := build(t)
	b := w.make(t, "one")
	state := func(s paddock.State) {
		w.boxes["one"].State = s
		w.m.Note(t.Context(), b, *w.boxes["one"])
	}
	w.sample(t)
	w.pass(time.Minute)
	state(paddock.Paused)
	w.pass(time.Hour)
	w.sample(t)
	w.pass(time.Hour)
	state(paddock.Ready)
	w.pass(time.Minute)
	w.sample(t)
	if got := w.sum(t); got != want(7320, 7200, 12_000) {
		t.Errorf("%s, want %s", got, want(7320, 7200, 12_000))
	}
}

func TestARemovalBetweenSamplesIsCounted(t *testing.T) {
	w := build(t)
	for i := range 3 { // one of them lives and dies between two samples
		b := w.make(t, "one")
		if i == 1 {
			w.sample(t)
		}
		w.pass(90 * time.Second)
		w.m.Note(t.Context(), b, *w.boxes["one"])
		delete(w.boxes, "one")
		must(t, w.s.ForgetSandbox(t.Context(), b.Token))
		if i == 1 {
			w.sample(t)
		}
		if got := w.sum(t); got != want(90, 0, 9_000) {
			t.Errorf("%d: %s, want %s", i, got, want(90, 0, 9_000))
		}
		_, err := w.s.DropRecords(t.Context(), noon.Add(24*time.Hour))
		must(t, err)
		w.sample(t)
	}
}

func TestARestartLosesNoTime(t *testing.T) {
	for name, between := range map[string]func(w *world){
		"at once":                          func(w *world) {},
		"after an hour":                    func(w *world) { w.pass(time.Hour) },
		"with a clock that went forward":   func(w *world) { w.pass(time.Hour); w.jump(24 * time.Hour) },
		"with a clock that went backwards": func(w *world) { w.pass(time.Hour); w.jump(-24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := build(t)
			w.make(t, "one")
			w.pass(time.Minute)
			w.sample(t)
			w.pass(time.Second) // is not sampled
			before := w.Elapsed()
			between(w)
			w.clock.mu.Lock()
			lived := 61 + int((w.mono-before)/time.Second)
			w.mono = 0 // of another process, or another boot
			w.clock.mu.Unlock()
			w.restart(t)
			w.sample(t)
			w.pass(time.Minute)
			w.sample(t)
			if got := w.sum(t); got != want(lived+60, 0, (lived+60)*100) {
				t.Errorf("%s, want %s", got, want(lived+60, 0, (lived+60)*100))
			}
		})
	}
}

func TestAClockThatJumpsCostsNothing(t *testing.T) {
	for _, by := range []time.Duration{time.Hour * 30, -time.Hour * 30, 3 * time.Second, -3 * time.Second, time.Second, time.Minute * 17, -time.Minute * 17} {
		t.Run(by.String(), func(t *testing.T) {
			w := build(t)
			w.make(t, "one")
			for i := range 60 {
				w.pass(time.Minute)
				if i == 20 || i == 40 {
					w.jump(by)
				}
				w.sample(t)
			}
			if got := w.sum(t); got != want(3600, 0, 360_000) {
				t.Errorf("%s, want %s", got, want(3600, 0, 360_000))
			}
		})
	}
}

func TestACounterThatBeginsAnewIsNotNegative(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	w.pass(time.Minute)
	w.sample(t)
	w.boxes["one"].Usage.CPU = time.Second
	w.sample(t)
	if got := w.sum(t); got != want(60, 0, 7_000) {
		t.Errorf("%s, want %s", got, want(60, 0, 7_000))
	}
}

func TestLabelsCountFromWhenTheyAreSet(t *testing.T) {
	w := build(t)
	b := w.make(t, "one")
	w.sample(t)
	w.pass(time.Minute)
	must(t, w.s.LabelSandbox(t.Context(), b.Token, map[string]string{"job": "8"}))
	w.sample(t)
	w.pass(2 * time.Minute)
	w.sample(t)
	lines, err := usage.Summarize(t.Context(), w.s, usage.Query{From: noon.Truncate(time.Hour), To: noon.Truncate(time.Hour).Add(time.Hour), By: "job"})
	must(t, err)
	got := ""
	for _, l := range lines {
		got += fmt.Sprintf("%s=%s ", l.Label, whole(l.Wall.String(), 9))
	}
	if got != "7=60 8=120 " {
		t.Errorf("got %s", got)
	}
	lines, err = usage.Summarize(t.Context(), w.s, usage.Query{Tenant: "acme", From: noon.Truncate(time.Hour), To: noon.Truncate(time.Hour).Add(time.Hour), Where: map[string]string{"job": "8"}})
	must(t, err)
	if len(lines) != 1 || whole(lines[0].Wall.String(), 9) != "120" {
		t.Errorf("got %+v", lines)
	}
}

func TestWhatIsNotMeasuredIsNotNothing(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	w.boxes["one"].Usage = paddock.Usage{Wall: -1, CPU: -1, Memory: -1}
	for range 2 {
		w.clock.mu.Lock()
		w.wall, w.mono = w.wall.Add(time.Hour), w.mono+time.Hour
		w.clock.mu.Unlock()
		w.sample(t)
	}
	lines, err := usage.Summarize(t.Context(), w.s, usage.Query{From: noon.Truncate(time.Hour), To: noon.Truncate(time.Hour).Add(9 * time.Hour)})
	must(t, err)
	if len(lines) != 1 || fmt.Sprint(lines[0].Unmeasured) != "[cpu memory network]" || lines[0].CPU.Sign() != 0 || whole(lines[0].Wall.String(), 9) != "7200" {
		t.Errorf("%+v", lines)
	}
	if lines[0].NetIn.Sign() != 0 {
		t.Error("network out of nowhere")
	}
}

// network is what crossed the way out, of all there is.
func (w *world) network(t *testing.T) string {
	t.Helper()
	lines, err := usage.Summarize(t.Context(), w.s, usage.Query{From: time.Unix(0, 0), To: time.Unix(3600*1_000_000, 0)})
	must(t, err)
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	return fmt.Sprintf("%s in %s out %s", &lines[0].NetIn, &lines[0].NetOut, lines[0].Unmeasured)
}

func TestNetworkIsWhatTheTierCounts(t *testing.T) {
	w := build(t)
	b := w.make(t, "one")
	st := w.boxes["one"]
	step := func(in, out int64) {
		st.Traffic = &paddock.Traffic{In: in, Out: out}
		w.pass(time.Hour)
	}
	step(5, 7)
	w.sample(t)
	w.sample(t)
	step(6, 8)
	w.m.Note(t.Context(), b, *st) // a pause
	st.State = paddock.Paused
	step(6, 8)
	w.sample(t)
	w.restart(t) // killed; what was not sampled is not lost, and nothing is counted twice
	step(106, 208)
	w.restart(t)
	w.sample(t)
	w.sample(t)
	if got := w.network(t); got != "106 in 208 out []" {
		t.Error(got)
	}
	step(10, 20) // a counter that begins anew
	w.sample(t)
	if got := w.network(t); got != "116 in 228 out []" {
		t.Error(got)
	}
	st.Traffic = nil // its owner has gone: what was counted stays
	w.sample(t)
	step(11, 21)
	w.sample(t)
	if got := w.network(t); got != "117 in 229 out []" {
		t.Error(got)
	}
}

func TestBytesArePartedByTheHoursTheyMayHaveCrossedIn(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	w.sample(t)
	w.boxes["one"].Traffic = &paddock.Traffic{In: 400, Out: 1}
	w.pass(2 * time.Hour)
	w.sample(t)
	var in []int64
	must(t, w.s.Records(t.Context(), "", time.Time{}, time.Unix(1<<33, 0), func(r store.Record) error {
		in = append(in, r.NetIn)
		return nil
	}))
	if fmt.Sprint(in) != "[100 200 100]" {
		t.Errorf("%d", in)
	}
	if got := w.network(t); got != "400 in 1 out []" {
		t.Error(got)
	}
}

func TestNetworkThatNobodyCountsIsNotNothing(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	w.pass(time.Hour)
	w.sample(t)
	if got := w.network(t); got != "0 in 0 out [network]" {
		t.Error(got)
	}
	w.boxes["one"].Traffic = &paddock.Traffic{In: -4, Out: 1<<63 - 1} // of a tier that is no longer itself
	w.pass(time.Minute)
	w.sample(t)
	if got := w.network(t); got != fmt.Sprintf("0 in %d out [network]", int64(1)<<50) {
		t.Error(got)
	}
}

func TestAStoreThatFailsIsMadeUpFor(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	w.sample(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		w.pass(30 * time.Minute)
		b, err := w.s.Sandbox(t.Context(), "acme", "one")
		must(t, err)
		w.m.Note(gone, b, *w.boxes["one"])
	}
	w.sample(t)
	if got := w.sum(t); got != want(9000, 0, 900_000) {
		t.Errorf("%s, want %s", got, want(9000, 0, 900_000))
	}
}

func TestAMeterSamplesByItselfAndEndsWithItsOwner(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	w.pass(time.Minute)
	w.tick <- time.Time{}
	<-w.asked
	w.pass(time.Minute)
	for range 2 {
		if err := w.m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.sum(t); got != want(120, 0, 12_000) {
		t.Errorf("%s, want %s", got, want(120, 0, 12_000))
	}
	if _, err := usage.New(usage.Options{}); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("got %v", err)
	}
}

func TestManyAtOnceCountOnce(t *testing.T) {
	w := build(t)
	b := w.make(t, "one")
	w.pass(time.Hour)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			w.m.Note(t.Context(), b, paddock.Status{ID: "one", State: paddock.Ready, Usage: paddock.Usage{Wall: time.Hour, CPU: 6 * time.Minute, Memory: 1 << 29}})
		})
		all.Go(func() {
			if err := w.m.Sample(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := w.sum(t); got != want(3600, 0, 360_000) {
		t.Errorf("%s, want %s", got, want(3600, 0, 360_000))
	}
}

func TestOnlyFullHoursAreAddedUp(t *testing.T) {
	w := build(t)
	for _, q := range []usage.Query{
		{From: noon, To: noon.Add(30 * time.Minute)}, {From: noon.Truncate(time.Hour), To: noon},
		{From: noon.Truncate(time.Hour), To: noon.Truncate(time.Hour).Add(-time.Hour)},
	} {
		if _, err := usage.Summarize(t.Context(), w.s, q); paddock.KindOf(err) != paddock.Invalid || err == nil || strings.Contains(err.Error(), "%!") {
			t.Errorf("got %v", err)
		}
	}
}

// A tier may have its figures from inside a sandbox.
func TestNoFigureOfATierMakesRecordsOfTimeThatWasNot(t *testing.T) {
	count := func(w *world) (n int) {
		t.Helper()
		must(t, w.s.Records(t.Context(), "", time.Time{}, time.Unix(1<<33, 0), func(r store.Record) error {
			n++
			if r.Begin.Before(noon.Add(-25*time.Hour)) || r.CPU < -1 || r.Wall < 0 {
				t.Errorf("a record of %s to %s, processor time %s", r.Begin, r.End, r.CPU)
			}
			return nil
		}))
		return n
	}
	for name, lie := range map[string]time.Duration{"for ever": math.MaxInt64, "ten years": 10 * 365 * 24 * time.Hour, "before all time": math.MinInt64} {
		t.Run(name, func(t *testing.T) {
			w := build(t)
			w.make(t, "one")
			for range 2 { // the second time there is a record that it goes on from
				w.mu.Lock()
				w.boxes["one"].Usage.Wall = lie
				w.mu.Unlock()
				w.clock.mu.Lock()
				w.wall, w.mono = w.wall.Add(time.Minute), w.mono+time.Minute
				w.clock.mu.Unlock()
				w.sample(t)
				w.mu.Lock()
				w.boxes["one"].Usage.Wall = 0
				w.mu.Unlock()
				w.sample(t)
				w.restart(t)
			}
			if n := count(w); n > 60 {
				t.Errorf("%d records", n)
			}
		})
	}
}

func TestProcessorTimeOfATierDoesNotOverflow(t *testing.T) {
	w := build(t)
	w.make(t, "one")
	for _, cpu := range []time.Duration{math.MaxInt64, 0, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MaxInt64} {
		w.mu.Lock()
		w.boxes["one"].Usage.CPU = cpu
		w.mu.Unlock()
		w.clock.mu.Lock()
		w.wall, w.mono = w.wall.Add(time.Minute), w.mono+time.Minute
		w.clock.mu.Unlock()
		w.sample(t)
	}
	must(t, w.s.Records(t.Context(), "", time.Time{}, time.Unix(1<<33, 0), func(r store.Record) error {
		if r.CPU < 0 || r.CPU > 4096*time.Hour {
			t.Errorf("processor time %s in %s", r.CPU, r.Wall)
		}
		return nil
	}))
}
