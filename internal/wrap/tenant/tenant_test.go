package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

func wantKind(t *testing.T, err error, kind paddock.Kind) {
	t.Helper()
	if err == nil || paddock.KindOf(err) != kind {
		t.Errorf("got %v, want kind %v", err, kind)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestATenantMeetsNothingOfAnother(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	ctx := t.Context()
	sb := r.create(t, "acme", paddock.Spec{ID: "one", Labels: map[string]string{"a": "b"}})
	snap, err := sb.Snapshot(ctx, paddock.SnapshotOptions{})
	must(t, err)
	other := r.Driver("other")

	_, theirs := other.Open(ctx, "one")
	_, none := other.Open(ctx, "two")
	same := func(theirs, none error, a, b string) {
		t.Helper()
		wantKind(t, theirs, paddock.NotFound)
		if none == nil || theirs == nil || theirs.Error() != strings.ReplaceAll(none.Error(), b, a) {
			t.Errorf("told apart: %v and %v", theirs, none)
		}
	}
	same(theirs, none, "one", "two")
	from := func(id paddock.SnapshotID) error {
		_, err := other.Create(ctx, paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
		return err
	}
	same(from(snap), from("snap-x"), string(snap), "snap-x")
	must(t, other.RemoveSnapshot(ctx, snap))
	if !r.f.snaps[snap] {
		t.Error("another's snapshot was removed")
	}
	if got := r.ids(t, "other"); got != "" {
		t.Errorf("listed: %s", got)
	}
	if got := r.ids(t, "acme"); got != "one:ready " {
		t.Errorf("listed: %s", got)
	}
	_, err = other.Create(ctx, paddock.Spec{ID: "one"})
	wantKind(t, err, paddock.Exists)

	if _, err := r.Driver("acme").Create(ctx, paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: snap}}); err != nil {
		t.Error(err)
	}
	must(t, r.Driver("acme").RemoveSnapshot(ctx, snap))
	must(t, r.Driver("acme").RemoveSnapshot(ctx, snap))
	if r.f.snaps[snap] {
		t.Error("the snapshot is still there")
	}
}

func TestNobodySeesOrSetsTheServersLabel(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	ctx := t.Context()
	sb := r.create(t, "acme", paddock.Spec{ID: "one", Labels: map[string]string{"a": "b"}})
	check := func(want map[string]string) {
		t.Helper()
		st, err := sb.Status(ctx)
		if err != nil || !reflect.DeepEqual(st.Labels, want) {
			t.Errorf("status: %v, %v", st.Labels, err)
		}
		list, err := r.Driver("acme").List(ctx)
		if err != nil || !reflect.DeepEqual(list[0].Labels, want) {
			t.Errorf("list: %+v, %v", list, err)
		}
		if !strings.HasPrefix(r.f.boxes["one"].st.Labels[tenant.Label], r.s.ID()) {
			t.Error("the driver's sandbox is not marked")
		}
		b, err := r.s.Sandbox(ctx, "acme", "one")
		if err != nil || !reflect.DeepEqual(b.Labels, want) {
			t.Errorf("store: %v, %v", b.Labels, err)
		}
	}
	check(map[string]string{"a": "b"})
	must(t, sb.Update(ctx, paddock.Update{Labels: map[string]string{"c": "d"}}))
	check(map[string]string{"c": "d"})
	wantKind(t, sb.Update(ctx, paddock.Update{Labels: map[string]string{tenant.Label: "x"}}), paddock.Invalid)
	_, err := r.Driver("acme").Create(ctx, paddock.Spec{Labels: map[string]string{tenant.Label: "x"}})
	wantKind(t, err, paddock.Invalid)
}

func TestAQuotaSaysWhichHowMuchIsUsedAndAsked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		quota  func(*store.Quota)
		limits paddock.Limits
		words  string
	}{
		{"sandboxes", func(q *store.Quota) { q.Sandboxes = 1 }, paddock.Limits{}, "quota of sandboxes is 1, used are 1, asked for is 1"},
		{"processors", func(q *store.Quota) { q.CPU = 1500 }, paddock.Limits{CPUs: 0.75}, "quota of processors is 1.5, used are 1, asked for is 0.75"},
		{"memory", func(q *store.Quota) { q.Memory = 3 << 29 }, paddock.Limits{}, "quota of memory is 1536M, used are 1G, asked for is 1G"},
		{"processes", func(q *store.Quota) { q.PIDs = 150 }, paddock.Limits{PIDs: 51}, "quota of processes is 150, used are 100, asked for is 51"},
		{"disk", func(q *store.Quota) { q.Disk = 1 << 30 }, paddock.Limits{Disk: 1}, "quota of disk is 1G, used are 1G, asked for is 1 bytes"},
		{"rate", func(q *store.Quota) { q.Rate = 1 }, paddock.Limits{}, "quota of sandboxes made in a minute is 1, and used up; the next one can be made in 1m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			quota := unbounded()
			tt.quota(&quota)
			r := build(t, storetest.SQLite(), quota)
			sb := r.create(t, "acme", paddock.Spec{ID: "one"})
			_, err := r.Driver("acme").Create(t.Context(), paddock.Spec{Limits: tt.limits})
			wantKind(t, err, paddock.Exhausted)
			if err == nil || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("got %v, want %q", err, tt.words)
			}
			r.create(t, "other", paddock.Spec{Limits: tt.limits}) // has its own
			must(t, sb.Remove(t.Context()))
			r.c.pass(time.Minute)
			r.create(t, "acme", paddock.Spec{Limits: tt.limits})
		})
	}
}

func TestWithoutAQuotaNothingIsMade(t *testing.T) {
	r := build(t, storetest.SQLite(), store.Quota{})
	_, err := r.Driver("acme").Create(t.Context(), paddock.Spec{})
	wantKind(t, err, paddock.Exhausted)
	_, err = r.Driver("nobody").Create(t.Context(), paddock.Spec{})
	wantKind(t, err, paddock.NotFound)
	q := unbounded()
	q.Rate = 0
	must(t, r.s.SetTenant(t.Context(), "acme", "", q))
	_, err = r.Driver("acme").Create(t.Context(), paddock.Spec{})
	wantKind(t, err, paddock.Exhausted)
	if len(r.f.boxes) != 0 {
		t.Error("something was made")
	}
}

func TestTheRateComesBackWithTimeAndSurvivesAClockThatIsSetBack(t *testing.T) {
	quota := unbounded()
	quota.Rate = 6
	r := build(t, storetest.SQLite(), quota)
	made := func() (n int) {
		for range 10 {
			if _, err := r.Driver("acme").Create(t.Context(), paddock.Spec{}); err == nil {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{0, 6}, {9 * time.Second, 0}, {time.Second, 1}, {30 * time.Second, 3}, {time.Hour, 6}, {-24 * time.Hour, 6}, {time.Second, 0}} {
		r.c.pass(step.pass)
		if got := made(); got != step.want {
			t.Errorf("after %s: %d, want %d", step.pass, got, step.want)
		}
	}
}

func TestSpecsThatCheatAreInvalid(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	zero := 0.0
	for _, l := range []paddock.Limits{{Memory: -1}, {CPUs: -1}, {CPUs: zero / zero}, {PIDs: -1}, {Disk: 1 << 60}, {Memory: 1<<63 - 1}} {
		_, err := r.Driver("acme").Create(t.Context(), paddock.Spec{Limits: l})
		wantKind(t, err, paddock.Invalid)
	}
	_, err := r.Driver("acme").Create(t.Context(), paddock.Spec{ID: "../x"})
	wantKind(t, err, paddock.Invalid)
}

func TestQuotasHoldOverServersThatShareAStore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		quota := unbounded()
		quota.Sandboxes = 7
		r := build(t, e, quota)
		two := r.again(t)
		var made, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 30 {
			d := []rig{r, two}[i%2].Driver("acme")
			all.Go(func() {
				switch _, err := d.Create(t.Context(), paddock.Spec{}); {
				case err == nil:
					made.Add(1)
				case errors.Is(err, paddock.Exhausted):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if made.Load() != 7 || refused.Load() != 23 || len(r.f.boxes) != 7 {
			t.Errorf("%d made, %d refused, %d there", made.Load(), refused.Load(), len(r.f.boxes))
		}
	})
}

func TestNewLimitsAreAskedOfTheQuota(t *testing.T) {
	quota := unbounded()
	quota.Memory = 3 << 30
	r := build(t, storetest.SQLite(), quota)
	ctx := t.Context()
	sb := r.create(t, "acme", paddock.Spec{ID: "one"})
	r.create(t, "acme", paddock.Spec{ID: "two"})
	memory := func() int64 {
		have, err := r.s.Total(ctx, "acme")
		must(t, err)
		return have.Memory
	}
	wantKind(t, sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 3 << 30}}), paddock.Exhausted)
	if memory() != 2<<30 {
		t.Errorf("reserved: %d", memory())
	}
	must(t, sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 2 << 30}}))
	if memory() != 3<<30 {
		t.Errorf("reserved: %d", memory())
	}
	r.f.set(func() { r.f.boxes["one"].deaf = paddock.Unsupported })
	wantKind(t, sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 1 << 20}}), paddock.Unsupported)
	if memory() != 3<<30 {
		t.Errorf("reserved: %d", memory())
	}
	r.f.set(func() { r.f.boxes["one"].deaf = nil })
	must(t, sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 1 << 20}}))
	if memory() != 1<<30+1<<20 {
		t.Errorf("reserved: %d", memory())
	}
	// Now there is no room for the default memory, which the sandbox does not get.
	r.create(t, "acme", paddock.Spec{ID: "three", Limits: paddock.Limits{Memory: 3 << 29}})
	must(t, sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{PIDs: 200}}))
	if memory() != 1<<30+1<<20+3<<29 {
		t.Errorf("reserved: %d", memory())
	}
}

func TestSnapshotsAreBounded(t *testing.T) {
	quota := unbounded()
	quota.Snapshots = 1
	r := build(t, storetest.SQLite(), quota)
	sb := r.create(t, "acme", paddock.Spec{})
	_, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
	must(t, err)
	_, err = sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
	wantKind(t, err, paddock.Exhausted)
	if len(r.f.snaps) != 1 {
		t.Errorf("%d snapshots", len(r.f.snaps))
	}
}

func TestAFailureLeavesNothing(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	r.f.set(func() { r.f.fail = fmt.Errorf("no: %w", paddock.Unsupported) })
	_, err := r.Driver("acme").Create(t.Context(), paddock.Spec{ID: "one"})
	wantKind(t, err, paddock.Unsupported)
	r.f.set(func() { r.f.fail = nil })
	// The driver gives a name that the store has already.
	r.create(t, "other", paddock.Spec{ID: "taken"})
	r.f.set(func() {
		r.f.named = func(paddock.ID) paddock.ID { return "taken" }
		delete(r.f.boxes, "taken")
	})
	_, err = r.Driver("acme").Create(t.Context(), paddock.Spec{ID: "one", Ephemeral: true})
	wantKind(t, err, paddock.Exists)
	if len(r.f.boxes) != 0 {
		t.Errorf("left: %v", r.f.boxes)
	}
	if have, err := r.s.Total(t.Context(), "acme"); err != nil || have.Sandboxes != 0 {
		t.Errorf("%+v, %v", have, err)
	}
}

func TestADriverMayChooseTheNameOfWhatIsEphemeral(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	r.f.set(func() {
		r.f.named = func(asked paddock.ID) paddock.ID {
			if asked != "" {
				t.Errorf("asked for %q", asked)
			}
			return "pool-1"
		}
	})
	r.create(t, "acme", paddock.Spec{Ephemeral: true})
	if got := r.ids(t, "acme"); got != "pool-1:ready " {
		t.Errorf("listed: %s", got)
	}
	must(t, r.Driver("acme").Close())
	if len(r.f.boxes) != 0 {
		t.Error("it outlived its driver")
	}
	_, err := r.Driver("acme").Open(t.Context(), "pool-1")
	wantKind(t, err, paddock.NotFound)
}

func TestWhatEndedWithoutAWordMakesRoom(t *testing.T) {
	quota := unbounded()
	quota.Sandboxes = 1
	r := build(t, storetest.SQLite(), quota)
	r.create(t, "acme", paddock.Spec{ID: "one"})
	r.f.set(func() { delete(r.f.boxes, "one") })
	r.create(t, "acme", paddock.Spec{ID: "two"})
	r.f.set(func() { delete(r.f.boxes, "two") })
	_, err := r.Driver("acme").Open(t.Context(), "two")
	wantKind(t, err, paddock.NotFound)
	if have, err := r.s.Total(t.Context(), "acme"); err != nil || have.Sandboxes != 0 {
		t.Errorf("%+v, %v", have, err)
	}
}

func TestTheMeterIsToldOfMomentsThatCount(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	ctx := t.Context()
	sb := r.create(t, "acme", paddock.Spec{ID: "one"})
	must(t, sb.Pause(ctx))
	must(t, sb.Resume(ctx))
	must(t, sb.Remove(ctx))
	must(t, sb.Remove(ctx))
	want := []string{"acme one paused", "acme one ready", "acme one ready"}
	if !reflect.DeepEqual(r.m.told, want) {
		t.Errorf("told: %q", r.m.told)
	}
}

func TestAfterAnyDeathNothingIsLeftOver(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	ctx := t.Context()
	r.create(t, "acme", paddock.Spec{ID: "whole"})
	r.create(t, "acme", paddock.Spec{ID: "gone"})
	r.create(t, "acme", paddock.Spec{ID: "brief", Ephemeral: true})
	leaving := r.create(t, "acme", paddock.Spec{ID: "leaving"})
	// A removal that the server does not live to see.
	r.f.set(func() { r.f.boxes["leaving"].deaf = paddock.Internal })
	wantKind(t, leaving.Remove(ctx), paddock.Internal)
	// Creates that it does not live to see, before and after the driver made it.
	half(t, r, "unmade", false)
	half(t, r, "made", true)
	r.f.set(func() {
		delete(r.f.boxes, "gone")
		delete(r.f.boxes, "brief")
		r.f.boxes["leaving"].deaf = nil
		r.f.boxes["foreign"] = &fakeSandbox{f: r.f, st: paddock.Status{ID: "foreign", State: paddock.Ready}}
		r.f.boxes["orphan"] = &fakeSandbox{f: r.f, st: paddock.Status{ID: "orphan", Labels: map[string]string{tenant.Label: r.s.ID() + ".x"}}}
	})

	next := r.again(t)
	a, err := next.Adopt(ctx)
	must(t, err)
	if got := fmt.Sprint(a.Kept, len(a.Removed), a.Lost, a.Left); got != "[whole] 5 [gone] [foreign]" {
		t.Errorf("adopted: %+v", a)
	}
	if got := next.ids(t, "acme"); got != "gone:dead whole:ready " && got != "whole:ready gone:dead " {
		t.Errorf("listed: %s", got)
	}
	if len(r.f.boxes) != 2 || r.f.boxes["foreign"] == nil || r.f.boxes["whole"] == nil {
		t.Errorf("left: %v", r.f.boxes)
	}
	lostIsDead(t, next)
	if a, err := next.Adopt(ctx); err != nil || len(a.Removed)+len(a.Lost) != 0 {
		t.Errorf("twice: %+v, %v", a, err)
	}
}

func lostIsDead(t *testing.T, r rig) {
	t.Helper()
	ctx := t.Context()
	sb, err := r.Driver("acme").Open(ctx, "gone")
	must(t, err)
	st, err := sb.Status(ctx)
	if err != nil || st.State != paddock.Dead || st.Reason == "" {
		t.Errorf("%+v, %v", st, err)
	}
	_, err = sb.Start(ctx, paddock.Cmd{Args: []string{"true"}})
	wantKind(t, err, paddock.Unavailable)
	_, err = sb.FS().Stat(ctx, "/")
	wantKind(t, err, paddock.Unavailable)
	if have, err := r.s.Total(ctx, "acme"); err != nil || have.Sandboxes != 1 {
		t.Errorf("%+v, %v", have, err)
	}
	must(t, sb.Remove(ctx))
	_, err = r.Driver("acme").Open(ctx, "gone")
	wantKind(t, err, paddock.NotFound)
}

// half leaves what a server leaves that dies in the middle of a Create.
func half(t *testing.T, r rig, id paddock.ID, made bool) {
	t.Helper()
	token := "token-" + string(id)
	must(t, r.s.AddSandbox(t.Context(), store.Sandbox{ID: id, Tenant: "acme", Token: token, Place: "here"}, func(*store.Total) error { return nil }))
	if !made {
		return
	}
	labels := map[string]string{tenant.Label: r.s.ID() + "." + token}
	r.f.set(func() {
		r.f.boxes[id] = &fakeSandbox{f: r.f, st: paddock.Status{ID: id, State: paddock.Ready, Labels: labels}}
	})
}

func TestWhatHasTheNameOfSomethingHalfMadeIsLeftAlone(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	half(t, r, "one", false)
	r.f.set(func() {
		r.f.boxes["one"] = &fakeSandbox{f: r.f, st: paddock.Status{ID: "one", State: paddock.Ready}}
	})
	a, err := r.Adopt(t.Context())
	if err != nil || len(a.Left) != 1 || r.f.boxes["one"] == nil {
		t.Errorf("%+v, %v", a, err)
	}
	if got := r.ids(t, "acme"); got != "" {
		t.Errorf("listed: %s", got)
	}
}

func TestAClosedHouseIsUnavailable(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	d := r.Driver("acme")
	must(t, r.Close())
	must(t, r.Close())
	for _, d := range []paddock.Driver{d, r.Driver("acme"), r.Driver("other")} {
		_, err := d.Create(t.Context(), paddock.Spec{})
		wantKind(t, err, paddock.Unavailable)
		_, err = d.List(t.Context())
		wantKind(t, err, paddock.Unavailable)
		_, err = d.Open(t.Context(), "one")
		wantKind(t, err, paddock.Unavailable)
		must(t, d.Close())
	}
}

func TestATenantHasOneDriverUntilItIsClosed(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	d := r.Driver("acme")
	if r.Driver("acme") != d || r.Driver("other") == d {
		t.Error("not one for each tenant")
	}
	must(t, d.Close())
	if r.Driver("acme") == d {
		t.Error("a closed driver is given out")
	}
}

// Else who has none, and lists all day, would keep the machine busy with the others'.
func TestAListAsksForNoSandboxButTheTenantsOwn(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	r.create(t, "other", paddock.Spec{ID: "theirs"})
	r.create(t, "acme", paddock.Spec{ID: "ours"})
	r.create(t, "acme", paddock.Spec{ID: "gone"})
	r.f.set(func() {
		r.f.boxes["theirs"].asked = func() { t.Error("another's was asked how it is") }
		r.f.each = func(_ context.Context, call string) {
			if call == "list" {
				t.Error("all of the server were asked for")
			}
		}
		delete(r.f.boxes, "gone")
	})
	if got := r.ids(t, "acme"); got != "ours:ready " {
		t.Errorf("%q", got)
	}
}
