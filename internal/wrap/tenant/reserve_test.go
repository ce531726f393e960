package tenant_test

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

func (r rig) memory(t *testing.T, who string) int64 {
	t.Helper()
	have, err := r.s.Total(t.Context(), who)
	must(t, err)
	return have.Memory
}

func TestWhatASandboxGotCountsAndNotOnlyWhatWasAsked(t *testing.T) {
	quota := unbounded()
	quota.Memory = 5 << 30
	r := build(t, storetest.SQLite(), quota)
	ctx := t.Context()
	r.f.set(func() { r.f.gives = &paddock.Status{Tier: "chosen", Limits: paddock.Limits{Memory: 3 << 30}} })
	r.create(t, "acme", paddock.Spec{ID: "one"})
	if got := r.memory(t, "acme"); got != 3<<30 {
		t.Errorf("reserved: %d", got)
	}
	if b, err := r.s.Sandbox(ctx, "acme", "one"); err != nil || b.Tier != "chosen" || b.State != store.Ready {
		t.Errorf("%+v, %v", b, err)
	}
	_, err := r.Driver("acme").Create(ctx, paddock.Spec{ID: "two"})
	wantKind(t, err, paddock.Exhausted)
	if got := r.memory(t, "acme"); got != 3<<30 || len(r.f.boxes) != 1 {
		t.Errorf("reserved: %d, there are %d", got, len(r.f.boxes))
	}
	r.create(t, "other", paddock.Spec{ID: "two"})
}

func TestFilesThatAreMemoryBesideTheLimitCountAsMemory(t *testing.T) {
	quota := unbounded()
	quota.Memory = 5 << 30
	r := build(t, storetest.SQLite(), quota)
	ctx := t.Context()
	r.f.set(func() { r.f.plans = true })
	sb := r.create(t, "acme", paddock.Spec{ID: "one", Limits: paddock.Limits{Memory: 1 << 30, Disk: 1 << 30}})
	if got := r.memory(t, "acme"); got != 2<<30 {
		t.Errorf("reserved: %d", got)
	}
	for _, l := range []paddock.Limits{{Memory: 1, Disk: 4 << 30}, {Disk: 3 << 30}} { // the second with 1 GiB by default
		_, err := r.Driver("acme").Create(ctx, paddock.Spec{Limits: l})
		wantKind(t, err, paddock.Exhausted)
	}
	wantKind(t, sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 1 << 30, Disk: 5 << 30}}), paddock.Exhausted)
	must(t, sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 1 << 30, Disk: 3 << 30}}))
	if got := r.memory(t, "acme"); got != 4<<30 {
		t.Errorf("reserved: %d", got)
	}
	r.create(t, "acme", paddock.Spec{Limits: paddock.Limits{Memory: 1 << 29, Disk: 1 << 29}})
}

func TestWhatCouldNotBeRemovedIsNotForgotten(t *testing.T) {
	quota := unbounded()
	quota.Memory = 5 << 30
	r := build(t, storetest.SQLite(), quota)
	ctx := t.Context()
	r.f.set(func() {
		r.f.gives = &paddock.Status{Tier: "chosen", Limits: paddock.Limits{Memory: 6 << 30}} // more than the tenant may have
		r.f.born = func(sb *fakeSandbox) { sb.deaf = paddock.Unavailable }
	})
	_, err := r.Driver("acme").Create(ctx, paddock.Spec{ID: "one"})
	wantKind(t, err, paddock.Exhausted)
	if b, err := r.s.Sandbox(ctx, "acme", "one"); err != nil || b.State != store.Removing {
		t.Fatalf("the record of what runs on: %+v, %v", b, err)
	}
	r.f.set(func() { r.f.boxes["one"].deaf, r.f.born = nil, nil })
	if a, err := r.again(t).Adopt(ctx); err != nil || len(a.Removed) != 1 || len(r.f.boxes) != 0 {
		t.Errorf("adopted: %+v, %v; there are %d", a, err, len(r.f.boxes))
	}
	_, err = r.s.Sandbox(ctx, "acme", "one")
	wantKind(t, err, paddock.NotFound)
}

func TestChangesOfLimitsTakeTurns(t *testing.T) {
	quota := unbounded()
	quota.Memory = 8 << 30
	r := build(t, storetest.SQLite(), quota)
	ctx := t.Context()
	sb := r.create(t, "acme", paddock.Spec{ID: "one"})
	var mu sync.Mutex
	inside, most := 0, 0
	entered, goOn := make(chan struct{}, 4), make(chan struct{})
	r.f.set(func() {
		r.f.each = func(_ context.Context, call string) {
			if call != "update" {
				return
			}
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			entered <- struct{}{}
			<-goOn
			mu.Lock()
			inside--
			mu.Unlock()
		}
	})
	change := func(ctx context.Context, gib int64) error {
		return sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: gib << 30}})
	}
	var all sync.WaitGroup
	for _, gib := range []int64{2, 4, 6} {
		all.Go(func() {
			if err := change(ctx, gib); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	gone, cancel := context.WithCancel(ctx)
	cancel()
	wantKind(t, change(gone, 1), paddock.Canceled)
	close(goOn)
	all.Wait()
	st, err := sb.Status(ctx)
	must(t, err)
	if got := r.memory(t, "acme"); got != st.Limits.Memory || most != 1 {
		t.Errorf("reserved: %d, has %d; %d at once", got, st.Limits.Memory, most)
	}
}

func TestWhatMayStillBeChangedStaysReserved(t *testing.T) {
	quota := unbounded()
	quota.Memory = 4 << 30
	for name, row := range map[string]struct {
		deaf, half error // of the driver
		dead       bool
		want       int64 // in GiB
	}{
		"it changed nothing":                 {deaf: paddock.Conflict, want: 1},
		"its caller left, and it was undone": {deaf: paddock.Canceled, want: 1},
		"its caller left, and it was made":   {half: paddock.Canceled, want: 3},
		"a part of it was made":              {half: paddock.Internal, want: 3},
		"it may still be made":               {deaf: paddock.Unavailable, want: 3},
		"the sandbox has died":               {deaf: paddock.Unavailable, dead: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := build(t, storetest.SQLite(), quota)
			sb := r.create(t, "acme", paddock.Spec{ID: "one", Limits: paddock.Limits{Memory: 1 << 30}})
			box := r.f.boxes["one"]
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r.f.set(func() {
				box.deaf, box.half = row.deaf, row.half
				if row.dead {
					box.st.State = paddock.Dead
				}
				r.f.each = func(_ context.Context, call string) {
					if call == "update" {
						leave()
					}
				}
			})
			if err := sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 3 << 30}}); err == nil {
				t.Error("it was changed")
			}
			if got := r.memory(t, "acme"); got != row.want<<30 {
				t.Errorf("reserved: %d", got)
			}
			_, err := r.Driver("acme").Create(t.Context(), paddock.Spec{ID: "two", Limits: paddock.Limits{Memory: 2 << 30}})
			if full := errors.Is(err, paddock.Exhausted); full != (row.want == 3) {
				t.Errorf("another sandbox: %v", err)
			}
			r.f.set(func() { box.deaf, box.half, box.st.State = nil, nil, paddock.Ready })
			must(t, sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: 1 << 30}}))
			if b, err := r.s.Sandbox(t.Context(), "acme", "one"); err != nil || b.Memory != 1<<30 {
				t.Errorf("after a change: %+v, %v", b.Reserved, err)
			}
		})
	}
}

func TestLabelsAreBounded(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	ctx := t.Context()
	sb := r.create(t, "acme", paddock.Spec{ID: "one"})
	many := func(n, name, value int) map[string]string {
		labels := make(map[string]string, n)
		for i := range n {
			labels[strings.Repeat("n", name-2)+strconv.Itoa(10+i)] = strings.Repeat("v", value)
		}
		return labels
	}
	for _, labels := range []map[string]string{many(65, 2, 1), many(1, 129, 0), many(1, 2, 1025), many(17, 2, 1000)} {
		wantKind(t, sb.Update(ctx, paddock.Update{Labels: maps.Clone(labels)}), paddock.Invalid)
		_, err := r.Driver("acme").Create(ctx, paddock.Spec{Labels: labels})
		wantKind(t, err, paddock.Invalid)
	}
	for _, labels := range []map[string]string{many(64, 128, 128), many(1, 128, 1024)} {
		must(t, sb.Update(ctx, paddock.Update{Labels: labels}))
	}
}

// A forgetful driver leaves every sandbox out of its list, as a tier does with one that does not answer.
type forgetful struct{ *fake }

func (forgetful) List(context.Context) ([]paddock.Status, error) { return nil, nil }

func TestASandboxThatIsMissingFromTheListIsNotForgotten(t *testing.T) {
	quota := unbounded()
	quota.Sandboxes = 1
	r := build(t, storetest.SQLite(), quota)
	ctx := t.Context()
	ts, err := tenant.New(forgetful{r.f}, tenant.Options{Store: r.s, Place: "here", Now: r.c.now, Meter: r.m})
	must(t, err)
	r.Set = ts
	r.create(t, "acme", paddock.Spec{ID: "one"})
	_, err = r.Driver("acme").Create(ctx, paddock.Spec{ID: "two"})
	wantKind(t, err, paddock.Exhausted)
	if _, err := r.s.Sandbox(ctx, "acme", "one"); err != nil || len(r.f.boxes) != 1 {
		t.Errorf("the record of what runs on: %v; there are %d", err, len(r.f.boxes))
	}
	r.f.set(func() { delete(r.f.boxes, "one") })
	r.c.pass(time.Second) // a tenant's sandboxes are asked once a second
	r.create(t, "acme", paddock.Spec{ID: "two"})
}

func TestRefusedCreationsAskFewSandboxesAndNoneOfAnotherTenant(t *testing.T) {
	quota := unbounded()
	quota.Sandboxes, quota.Memory, quota.CPU = 1, 4<<30, 2000
	r := build(t, storetest.SQLite(), quota)
	ctx := t.Context()
	r.create(t, "other", paddock.Spec{ID: "theirs"})
	r.create(t, "acme", paddock.Spec{ID: "ours"})
	var asked atomic.Int64
	r.f.set(func() {
		r.f.boxes["theirs"].asked = func() { t.Error("another's was asked how it is") }
		r.f.boxes["ours"].asked = func() { asked.Add(1) }
		r.f.each = func(_ context.Context, call string) {
			if call == "list" {
				t.Error("all of the server were asked for")
			}
		}
	})
	refused := func(l paddock.Limits) {
		t.Helper()
		asked.Store(0)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, err := r.Driver("acme").Create(ctx, paddock.Spec{Limits: l})
				wantKind(t, err, paddock.Exhausted)
			})
		}
		all.Wait()
	}
	refused(paddock.Limits{})
	if n := asked.Load(); n != 1 {
		t.Errorf("the tenant's only sandbox was asked %d times", n)
	}
	r.c.pass(time.Minute)
	for _, l := range []paddock.Limits{{Memory: 5 << 30}, {CPUs: 3}, {CPUs: 2, Memory: 5 << 30}} { // more than all of the quota
		if refused(l); asked.Load() != 0 {
			t.Errorf("%+v: it was asked %d times", l, asked.Load())
		}
	}
	r.f.set(func() { delete(r.f.boxes, "ours") })
	r.create(t, "acme", paddock.Spec{ID: "again"})
}

func TestTheDriverBelowKnowsWhoseSandboxItMakes(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	for _, who := range []string{"acme", "other"} {
		r.f.set(func() {
			r.f.each = func(ctx context.Context, _ string) {
				if got := tenant.Of(ctx); got != who {
					t.Errorf("a sandbox of %q, and not of %q", got, who)
				}
			}
		})
		r.create(t, who, paddock.Spec{})
	}
	if got := tenant.Of(t.Context()); got != "" {
		t.Errorf("what is nobody's is of %q", got)
	}
}

func TestACallerWhoGivesUpDoesNotKeepWhatEndedInTheQuota(t *testing.T) {
	quota := unbounded()
	quota.Sandboxes = 2
	r := build(t, storetest.SQLite(), quota)
	r.create(t, "acme", paddock.Spec{ID: "gone"})
	r.create(t, "acme", paddock.Spec{ID: "stays"})
	ctx, cancel := context.WithCancel(t.Context())
	r.f.set(func() {
		delete(r.f.boxes, "gone")
		r.f.boxes["stays"].asked = cancel
	})
	_, err := r.Driver("acme").Create(ctx, paddock.Spec{})
	wantKind(t, err, paddock.Canceled)
	if have, err := r.s.Total(t.Context(), "acme"); err != nil || have.Sandboxes != 1 {
		t.Errorf("counted: %+v, %v", have, err)
	}
}
