package store_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

// day is a day that is long over.
var day = time.Date(2030, 3, 31, 0, 0, 0, 0, time.UTC)

// hour is what a sandbox used in an hour after day; in all but wall a power of ten,
// so that a sum tells what is in it.
func hour(token string, n int) store.Record {
	begin := day.Add(time.Duration(n) * time.Hour)
	return store.Record{
		Token: token, Begin: begin, End: begin.Add(time.Hour), Sandbox: paddock.ID(token), Tenant: "acme", Tier: paddock.Jail, Labels: map[string]string{"job": "7"},
		Wall: time.Hour, Paused: time.Second, CPU: time.Minute, Memory: 10, CPUAsked: 100, MemoryAsked: 1000, DiskAsked: 10_000, NetIn: 100_000, NetOut: 1_000_000,
		Mark: json.RawMessage(fmt.Sprintf(`{"cpu":%d}`, n)),
	}
}

// foldAll folds what is older than a time.
func foldAll(t *testing.T, s *store.Store, before time.Time) int {
	t.Helper()
	for all := 0; ; {
		n, err := s.FoldRecords(t.Context(), before)
		must(t, err)
		if all += n; n == 0 {
			return all
		}
	}
}

// kept tells what records there are, in short.
func kept(t *testing.T, s *store.Store) []string {
	t.Helper()
	var list []string
	must(t, s.Records(t.Context(), "", time.Time{}, day.Add(1000*time.Hour), func(r store.Record) error {
		token := r.Token
		if strings.HasPrefix(token, "+") {
			token = "+"
		}
		list = append(list, fmt.Sprintf("%s %v-%v %s boxes %d wall %v memory %d out %d", token, r.Begin.Sub(day).Hours(), r.End.Sub(day).Hours(), r.Labels["job"], r.Boxes, r.Wall.Hours(), r.Memory, r.NetOut))
		return nil
	}))
	slices.Sort(list)
	return list
}

func wantKept(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	if got := kept(t, s); !slices.Equal(got, want) {
		t.Errorf("kept are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func hoursBecomeDays(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	var all []store.Record
	for i := range 500 { // more than are folded at once
		token := fmt.Sprintf("t%03d", i)
		all = append(all, hour(token, i%23), hour(token, i%23+1))
	}
	other, unmeasured, today := hour("o", 3), hour("u", 4), hour("now", 24)
	other.Tenant, unmeasured.NetOut = "other", -1
	must(t, s.PutRecords(ctx, append(all, other, unmeasured, today)))
	if n := foldAll(t, s, day.Add(24*time.Hour-1)); n != 0 {
		t.Errorf("%d folded of a day that was not over", n)
	}
	if n := foldAll(t, s, day.Add(25*time.Hour)); n != 1002 {
		t.Errorf("%d folded", n)
	}
	wantKept(t, s,
		"+ 0-24 7 boxes 1 wall 1 memory 10 out -1",
		"+ 0-24 7 boxes 1 wall 1 memory 10 out 1000000",
		"+ 0-24 7 boxes 500 wall 1000 memory 10000 out 1000000000",
		"now 24-25 7 boxes 0 wall 1 memory 10 out 1000000",
	)
	late := hour("late", 1)
	must(t, s.PutRecords(ctx, []store.Record{late}))
	if n := foldAll(t, s, day.Add(25*time.Hour)); n != 1 {
		t.Errorf("%d folded of one that came late", n)
	}
	wantKept(t, s,
		"+ 0-24 7 boxes 1 wall 1 memory 10 out -1",
		"+ 0-24 7 boxes 1 wall 1 memory 10 out 1000000",
		"+ 0-24 7 boxes 501 wall 1001 memory 10010 out 1001000000",
		"now 24-25 7 boxes 0 wall 1 memory 10 out 1000000",
	)
	for _, tt := range []struct {
		tenant string
		at     time.Duration
		want   bool
	}{{"", 0, false}, {"", 1, true}, {"", 12 * time.Hour, true}, {"", 24*time.Hour - 1, true}, {"", 24 * time.Hour, false}, {"", 24*time.Hour + 1, false}, {"acme", 12 * time.Hour, true}, {"none", 12 * time.Hour, false}} {
		if got, err := s.Folded(ctx, tt.tenant, day.Add(tt.at)); err != nil || got != tt.want {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
	if n, err := s.DropRecords(ctx, day.Add(24*time.Hour+1)); err != nil || n != 3 {
		t.Errorf("%d dropped, %v", n, err)
	}
}

func daysKept(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	add(t, s, box("living", "acme"))
	living := hour("token-living", 22)
	changed := []store.Record{hour("changed", 1), hour("changed", 2), hour("changed", 3), hour("changed", 4)}
	changed[1].Labels = map[string]string{"job": "8"}
	must(t, s.PutRecords(ctx, append(changed, living, hour("two", 22), hour("two", 23), hour("two", 24), hour("two", 25), hour("two", 49))))
	foldAll(t, s, day.Add(48*time.Hour))
	want := []string{
		"changed 1-2 7 boxes 1 wall 1 memory 10 out 1000000",
		"changed 2-3 8 boxes 1 wall 1 memory 10 out 1000000",
		"changed 3-5 7 boxes 1 wall 2 memory 20 out 2000000",
		"token-living 22-23 7 boxes 1 wall 1 memory 10 out 1000000",
		"two 22-24 7 boxes 1 wall 2 memory 20 out 2000000",
		"two 24-26 7 boxes 1 wall 2 memory 20 out 2000000",
		"two 49-50 7 boxes 0 wall 1 memory 10 out 1000000",
	}
	wantKept(t, s, want...)
	last, err := s.LastRecord(ctx, "token-living")
	if err != nil || last.Boxes != 1 || string(last.Mark) != `{"cpu":22}` || !last.End.Equal(living.End) {
		t.Errorf("%+v, %v", last, err)
	}
	again := hour("two", 22) // of a meter that comes late
	again.End = again.Begin.Add(3 * time.Hour)
	must(t, s.PutRecords(ctx, []store.Record{again}))
	wantKept(t, s, want...)
}

func daysWithoutBound(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	var all []store.Record
	for i := range 3 {
		r := hour(fmt.Sprint("t", i), 1)
		r.Memory = math.MaxInt64 - 5
		all = append(all, r)
	}
	small := hour("small", 1)
	small.Memory = 5
	must(t, s.PutRecords(ctx, append(all, small)))
	foldAll(t, s, day.Add(24*time.Hour))
	wantKept(t, s,
		fmt.Sprintf("+ 0-24 7 boxes 1 wall 1 memory %d out 1000000", math.MaxInt64-5),
		fmt.Sprintf("+ 0-24 7 boxes 1 wall 1 memory %d out 1000000", math.MaxInt64-5),
		fmt.Sprintf("+ 0-24 7 boxes 2 wall 2 memory %d out 2000000", math.MaxInt64),
	)
}

func foldedAtOnce(t *testing.T, e storetest.Engine) {
	place := e.Place(t)
	ctx := t.Context()
	s := storetest.Open(t, place)
	must(t, s.AddTenant(ctx, store.Tenant{ID: "acme"}))
	var all []store.Record
	for i := range 900 {
		all = append(all, hour(fmt.Sprint("t", i), i%24))
	}
	must(t, s.PutRecords(ctx, all))
	var wg sync.WaitGroup
	var mu sync.Mutex
	folded := 0
	for range 3 {
		one := storetest.Open(t, place)
		wg.Go(func() {
			for {
				n, err := one.FoldRecords(ctx, day.Add(24*time.Hour))
				if err != nil {
					t.Error(err)
				}
				if n == 0 {
					return
				}
				mu.Lock()
				folded += n
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if folded != 900 {
		t.Errorf("%d folded", folded)
	}
	wantKept(t, s, "+ 0-24 7 boxes 900 wall 900 memory 9000 out 900000000")
}
