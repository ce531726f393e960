package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

// then is a time with all that a time can have.
var then = time.Unix(1_900_000_000, 123_456_789).UTC()

// welcome admits everything.
func welcome(*store.Total) error { return nil }

// A world is a store with the tenants acme and other.
func world(t *testing.T, e storetest.Engine) *store.Store {
	t.Helper()
	s := e.New(t)
	for _, id := range []string{"acme", "other"} {
		if err := s.AddTenant(t.Context(), store.Tenant{ID: id, Name: "a tenant", Quota: store.Quota{Sandboxes: 3, Disk: store.Unbounded}, Created: then}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func box(id paddock.ID, tenant string) store.Sandbox {
	return store.Sandbox{
		ID: id, Tenant: tenant, Token: "token-" + string(id), Place: "here", Tier: paddock.Sim, Created: then,
		Labels: map[string]string{"job": "7"}, Reserved: store.Reserved{CPU: 500, Memory: 1 << 30, PIDs: 10, Disk: 1 << 20},
	}
}

func add(t *testing.T, s *store.Store, b store.Sandbox) {
	t.Helper()
	if err := s.AddSandbox(t.Context(), b, welcome); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadySandbox(t.Context(), b.Token, b.ID, b.Tier); err != nil {
		t.Fatal(err)
	}
}

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

func TestPromises(t *testing.T) {
	promises := []struct {
		text string
		keep func(t *testing.T, e storetest.Engine)
	}{
		{"what was kept is there after opening again", keptAfterOpening},
		{"a tenant with sandboxes is not removed", tenantStays},
		{"a key is kept without its secret, and revoked for good", keysRevoked},
		{"a use is noted once in a while", useNoted},
		{"what a dialect notes is its own, and goes with its tenant", notesOfADialect},
		{"a sandbox is of its tenant alone", ownSandboxes},
		{"an ID in use is refused, whoever has it", idInUse},
		{"a limit holds however many ask at once", limitHolds},
		{"what is refused leaves nothing", refusedLeavesNothing},
		{"a change of what is reserved counts the others only", reserveAgain},
		{"a lost sandbox counts for nothing", lostCountsNothing},
		{"a lease is changed by who knows its version", leaseVersions},
		{"what is said of a port goes with its sandbox, and closing it counts", portsSaid},
		{"a signed URL that was ended stays so until it expires", linksEnded},
		{"a secret is one, and not another's", secretsKept},
		{"a snapshot is of its tenant alone", ownSnapshots},
		{"an image is needed as long as a sandbox or a snapshot of it is recorded", imagesNeeded},
		{"no credential of a spec is kept", nothingSecret},
		{"who asks for sandboxes does not read their specs", specUnread},
		{"a record grows and never shrinks", recordsGrow},
		{"records are found by their beginning", recordsFound},
		{"hours become days, and no sum changes", hoursBecomeDays},
		{"who was there for more than a day keeps their days", daysKept},
		{"days are too large for one number in as many as it takes", daysWithoutBound},
		{"two who fold at once count everything once", foldedAtOnce},
		{"names that no database can hold are not found", oddNames},
		{"a newer schema is refused in words", newerSchema},
		{"two servers may open a new store at once", openedAtOnce},
		{"a place is one server's, until it lets go", placeClaimed},
		{"a call that is given up says so", canceledCall},
		{"a closed store is unavailable", closedStore},
	}
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		for _, p := range promises {
			t.Run(p.text, func(t *testing.T) { p.keep(t, e) })
		}
	})
}

func keptAfterOpening(t *testing.T, e storetest.Engine) {
	place, ctx := e.Place(t), t.Context()
	s, err := store.Open(ctx, place)
	must(t, err)
	tenant := store.Tenant{ID: "acme", Name: "Ærø & Søn", Quota: store.Quota{Sandboxes: 1, Memory: store.Unbounded}, Created: then}
	must(t, s.AddTenant(ctx, tenant))
	b := box("one", "acme")
	b.State, b.Maker, b.Spec = store.Ready, "m", paddock.Spec{ID: "one", Dir: "/x", Limits: paddock.Limits{CPUs: 0.5}}
	add(t, s, b)
	id := s.ID()
	must(t, s.Close())
	must(t, s.Close())

	s = storetest.Open(t, place)
	if s.ID() != id || id == "" {
		t.Errorf("the store was %q and is %q", id, s.ID())
	}
	got, err := s.Tenant(ctx, "acme")
	if err != nil || !reflect.DeepEqual(got, tenant) {
		t.Errorf("tenant: %+v, %v", got, err)
	}
	have, err := s.Sandbox(ctx, "acme", "one")
	b.Limits, b.Spec = b.Spec.Limits, paddock.Spec{}
	if err != nil || !reflect.DeepEqual(have, b) {
		t.Errorf("sandbox:\n%+v\nwant\n%+v, %v", have, b, err)
	}
}

func tenantStays(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	wantKind(t, s.AddTenant(ctx, store.Tenant{ID: "acme"}), paddock.Exists)
	wantKind(t, s.AddTenant(ctx, store.Tenant{ID: "Acme"}), paddock.Invalid)
	must(t, s.SetTenant(ctx, "acme", "new", store.Quota{PIDs: 7}))
	if got, err := s.Tenant(ctx, "acme"); err != nil || got.Name != "new" || got.Quota.PIDs != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	add(t, s, box("one", "acme"))
	must(t, s.AddKey(ctx, store.Key{ID: "k", Tenant: "acme"}))
	wantKind(t, s.RemoveTenant(ctx, "acme"), paddock.Conflict)
	if _, err := s.Key(ctx, "k"); err != nil {
		t.Errorf("a removal that was refused took the key: %v", err)
	}
	must(t, s.ForgetSandbox(ctx, "token-one"))
	must(t, s.RemoveTenant(ctx, "acme"))
	_, err := s.Key(ctx, "k")
	wantKind(t, err, paddock.NotFound)
	wantKind(t, s.RemoveTenant(ctx, "acme"), paddock.NotFound)
	wantKind(t, s.SetTenant(ctx, "acme", "", store.Quota{}), paddock.NotFound)
	if all, err := s.Tenants(ctx); err != nil || len(all) != 1 || all[0].ID != "other" {
		t.Errorf("%+v, %v", all, err)
	}
}

func keysRevoked(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	key := store.Key{ID: "k1", Tenant: "acme", Name: "ci", Hash: "abc", Scopes: []string{"read"}, Created: then, Expires: then.Add(time.Hour)}
	must(t, s.AddKey(ctx, key))
	wantKind(t, s.AddKey(ctx, key), paddock.Exists)
	wantKind(t, s.AddKey(ctx, store.Key{ID: "k2", Tenant: "nobody"}), paddock.NotFound)
	if got, err := s.Key(ctx, "k1"); err != nil || !reflect.DeepEqual(got, key) {
		t.Errorf("%+v, %v", got, err)
	}
	wantKind(t, s.RevokeKey(ctx, "other", "k1", then), paddock.NotFound)
	must(t, s.RevokeKey(ctx, "acme", "k1", then.Add(time.Minute)))
	must(t, s.RevokeKey(ctx, "acme", "k1", then.Add(time.Hour)))
	list, err := s.Keys(ctx, "acme")
	if err != nil || len(list) != 1 || !list[0].Revoked.Equal(then.Add(time.Minute)) {
		t.Errorf("%+v, %v", list, err)
	}
}

func useNoted(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	must(t, s.AddKey(ctx, store.Key{ID: "k", Tenant: "acme"}))
	for _, second := range []int{0, 30, 59, 61} {
		now := then.Add(time.Duration(second) * time.Second)
		must(t, s.UseKey(ctx, "k", now, now.Add(-time.Minute)))
		want := then
		if second > 60 {
			want = now
		}
		if k, err := s.Key(ctx, "k"); err != nil || !k.Used.Equal(want) {
			t.Errorf("after %d s: %v, %v", second, k.Used, err)
		}
	}
}

func ownSandboxes(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	add(t, s, box("one", "acme"))
	elsewhere := box("two", "acme")
	elsewhere.Place = "there"
	add(t, s, elsewhere)
	add(t, s, box("three", "other"))
	_, theirs := s.Sandbox(ctx, "acme", "three")
	_, none := s.Sandbox(ctx, "acme", "nosuch")
	if theirs == nil || none == nil || strings.ReplaceAll(none.Error(), "nosuch", "three") != theirs.Error() {
		t.Errorf("told apart: %v and %v", theirs, none)
	}
	wantKind(t, theirs, paddock.NotFound)
	for _, tt := range []struct{ tenant, place, want string }{
		{"acme", "", "one two"}, {"acme", "here", "one"}, {"", "here", "one three"}, {"", "", "one three two"}, {"nobody", "", ""},
	} {
		list, err := s.Sandboxes(ctx, tt.tenant, tt.place)
		var got []string
		for _, b := range list {
			got = append(got, string(b.ID))
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("of %q at %q: %v, %v; want %s", tt.tenant, tt.place, got, err, tt.want)
		}
	}
	must(t, s.LabelSandbox(ctx, "token-one", map[string]string{"a": "b\x00\xff"}))
	if b, err := s.Sandbox(ctx, "acme", "one"); err != nil || len(b.Labels) != 1 || b.State != store.Ready {
		t.Errorf("%+v, %v", b, err)
	}
	must(t, s.MarkSandbox(ctx, "token-one", store.Removing))
	must(t, s.ForgetSandbox(ctx, "token-one"))
	must(t, s.ForgetSandbox(ctx, "token-one"))
	wantKind(t, s.MarkSandbox(ctx, "token-one", store.Lost), paddock.NotFound)
	wantKind(t, s.ReadySandbox(ctx, "token-one", "one", ""), paddock.NotFound)
}

func idInUse(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	add(t, s, box("one", "acme"))
	again := box("one", "other")
	again.Token = "fresh"
	wantKind(t, s.AddSandbox(ctx, again, welcome), paddock.Exists)
	again.ID = "No"
	wantKind(t, s.AddSandbox(ctx, again, welcome), paddock.Invalid)
	again.ID, again.Tenant = "two", "nobody"
	wantKind(t, s.AddSandbox(ctx, again, welcome), paddock.NotFound)
	// A driver may choose another name than it was asked for.
	again.Tenant = "other"
	must(t, s.AddSandbox(ctx, again, welcome))
	wantKind(t, s.ReadySandbox(ctx, "fresh", "one", ""), paddock.Exists)
	must(t, s.ReadySandbox(ctx, "fresh", "chosen", paddock.Jail))
	if b, err := s.Sandbox(ctx, "other", "chosen"); err != nil || b.Tier != paddock.Jail || b.Token != "fresh" {
		t.Errorf("%+v, %v", b, err)
	}
}

func limitHolds(t *testing.T, e storetest.Engine) {
	place := e.Place(t)
	one, two := storetest.Open(t, place), storetest.Open(t, place)
	must(t, one.AddTenant(t.Context(), store.Tenant{ID: "acme"}))
	full := errors.New("full")
	var admitted, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 24 {
		s := one
		if i%2 == 1 {
			s = two
		}
		all.Go(func() {
			err := s.AddSandbox(t.Context(), box(paddock.ID(fmt.Sprintf("b%d", i)), "acme"), func(have *store.Total) error {
				if have.Sandboxes >= 5 {
					return full
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				admitted++
			case errors.Is(err, full):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if admitted != 5 || refused != 19 {
		t.Errorf("%d admitted, %d refused", admitted, refused)
	}
	have, err := two.Total(t.Context(), "acme")
	if err != nil || have.Sandboxes != 5 || have.Memory != 5<<30 || have.CPU != 2500 || have.PIDs != 50 || have.Disk != 5<<20 || have.Quota != (store.Quota{}) {
		t.Errorf("%+v, %v", have, err)
	}
}

func refusedLeavesNothing(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	no := errors.New("no")
	err := s.AddSandbox(ctx, box("one", "acme"), func(have *store.Total) error {
		have.Rate = then
		return no
	})
	if !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	if have, err := s.Total(ctx, "acme"); err != nil || have.Sandboxes != 0 || have.Reserved != (store.Reserved{}) || !have.Rate.IsZero() {
		t.Errorf("%+v, %v", have, err)
	}
	must(t, s.AddSandbox(ctx, box("one", "acme"), func(have *store.Total) error {
		have.Rate = then
		return nil
	}))
	if have, err := s.Total(ctx, "acme"); err != nil || !have.Rate.Equal(then) || have.Sandboxes != 1 {
		t.Errorf("%+v, %v", have, err)
	}
}

func reserveAgain(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	add(t, s, box("one", "acme"))
	add(t, s, box("two", "acme"))
	var others store.Total
	before, err := s.ReserveSandbox(ctx, "token-one", func(r store.Reserved) store.Reserved {
		r.Memory = 7
		return r
	}, func(have *store.Total) error {
		others = *have
		return nil
	})
	if err != nil || before != box("", "").Reserved || others.Memory != 1<<30 {
		t.Errorf("before %+v, others %+v, %v", before, others, err)
	}
	if have, err := s.Total(ctx, "acme"); err != nil || have.Memory != 1<<30+7 || have.CPU != 1000 {
		t.Errorf("%+v, %v", have, err)
	}
	_, err = s.ReserveSandbox(ctx, "gone", nil, welcome)
	wantKind(t, err, paddock.NotFound)
}

func lostCountsNothing(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	add(t, s, box("one", "acme"))
	must(t, s.MarkSandbox(ctx, "token-one", store.Lost))
	if have, err := s.Total(ctx, "acme"); err != nil || have.Sandboxes != 0 || have.Reserved != (store.Reserved{}) || !have.Rate.IsZero() {
		t.Errorf("%+v, %v", have, err)
	}
}

// A lease is a record as another package has it.
type lease struct {
	ID       paddock.ID `json:"id"`
	Version  int64      `json:"version"`
	Deadline time.Time  `json:"deadline,omitzero"`
}

func leaseVersions(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	here, there := store.LeasesOf[lease](s, "here"), store.LeasesOf[lease](s, "there")
	l := lease{ID: "one", Deadline: then}
	for want := int64(1); want < 4; want++ {
		v, err := here.Save(ctx, l)
		if err != nil || v != want {
			t.Errorf("%d, %v", v, err)
		}
		_, err = here.Save(ctx, l)
		wantKind(t, err, paddock.Conflict)
		l.Version = v
	}
	if got, err := here.Get(ctx, "one"); err != nil || got != l {
		t.Errorf("%+v, %v", got, err)
	}
	if all, err := here.Load(ctx); err != nil || len(all) != 1 || all[0] != l {
		t.Errorf("%+v, %v", all, err)
	}
	_, err := there.Get(ctx, "one")
	wantKind(t, err, paddock.NotFound)
	_, err = there.Save(ctx, l)
	wantKind(t, err, paddock.Conflict)
	_, err = here.Save(ctx, lease{})
	wantKind(t, err, paddock.Invalid)
	_, err = here.Save(ctx, lease{ID: "a", Version: -1})
	wantKind(t, err, paddock.Invalid)
	wantKind(t, here.Delete(ctx, "one", 1), paddock.Conflict)
	must(t, here.Delete(ctx, "one", l.Version))
	must(t, here.Delete(ctx, "one", l.Version))
	if all, err := here.Load(ctx); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func ownSnapshots(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	n := store.Snapshot{ID: "s1", Place: "here", Tenant: "acme", Sandbox: "one", Name: "n", Created: then}
	must(t, s.AddSnapshot(ctx, n, welcome))
	if got, err := s.Snapshot(ctx, "acme", "here", "s1"); err != nil || got != n {
		t.Errorf("%+v, %v", got, err)
	}
	for _, who := range [][2]string{{"other", "here"}, {"acme", "there"}} {
		_, err := s.Snapshot(ctx, who[0], who[1], "s1")
		wantKind(t, err, paddock.NotFound)
		must(t, s.ForgetSnapshot(ctx, who[0], who[1], "s1"))
	}
	if list, err := s.Snapshots(ctx, "acme"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	full := fmt.Errorf("enough: %w", paddock.Exhausted)
	n.ID = "s2"
	err := s.AddSnapshot(ctx, n, func(have *store.Total) error {
		if have.Snapshots != 1 {
			t.Errorf("%+v", have)
		}
		return full
	})
	wantKind(t, err, paddock.Exhausted)
	must(t, s.ForgetSnapshot(ctx, "acme", "here", "s1"))
	if list, err := s.Snapshots(ctx, "acme"); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func nothingSecret(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	b := box("one", "acme")
	b.Spec = paddock.Spec{
		Env: map[string]string{"TOKEN": "hunter2"},
		Policy: paddock.Policy{Network: paddock.NetworkPolicy{
			Secrets: []paddock.Secret{{Name: "KEY", Value: "hunter2", Hosts: []string{"h"}}},
			Rules: []paddock.NetworkRule{{
				Host: "h", Headers: map[string]string{"X": "hunter2"}, Query: map[string]string{"q": "hunter2"}, SetHeaders: map[string]string{"Authorization": "hunter2"},
				Proxy: "http://user:hunter2@proxy:8080/hunter2", Answer: &paddock.NetworkAnswer{Status: 200, Headers: map[string]string{"Y": "hunter2"}, Body: "hunter2"},
			}},
		}},
	}
	before := fmt.Sprintf("%+v", b.Spec.Policy.Network.Rules)
	add(t, s, b)
	kept, err := s.Spec(ctx, b.Token)
	must(t, err)
	if strings.Contains(kept, "hunter2") {
		t.Errorf("kept: %s", kept)
	}
	for _, name := range []string{"TOKEN", "KEY", "Authorization", "http://proxy:8080"} {
		if !strings.Contains(kept, name) {
			t.Errorf("%s is not kept: %s", name, kept)
		}
	}
	if b.Spec.Env["TOKEN"] != "hunter2" || b.Spec.Policy.Network.Secrets[0].Value != "hunter2" || fmt.Sprintf("%+v", b.Spec.Policy.Network.Rules) != before {
		t.Error("the caller's spec was changed")
	}
}

func specUnread(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	b := box("one", "acme")
	b.Spec.Limits.Memory = 7
	add(t, s, b)
	must(t, s.Exec(ctx, "UPDATE sandboxes SET spec = 'no JSON'"))
	if got, err := s.Sandbox(ctx, "acme", "one"); err != nil || got.Limits.Memory != 7 {
		t.Errorf("one: %+v, %v", got, err)
	}
	for _, of := range [][2]string{{"", ""}, {"acme", ""}, {"", "here"}} {
		if list, err := s.Sandboxes(ctx, of[0], of[1]); err != nil || len(list) != 1 || list[0].Limits.Memory != 7 {
			t.Errorf("those of %q: %+v, %v", of, list, err)
		}
	}
}

func recordsGrow(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	r := store.Record{
		Token: "token", Begin: then, End: then.Add(time.Minute), Sandbox: "one", Tenant: "acme", Tier: paddock.Jail, Labels: map[string]string{"a": "b"},
		Wall: time.Minute, Paused: time.Second, CPU: -1, Memory: 7, CPUAsked: 8, MemoryAsked: 9, DiskAsked: 10, NetIn: 11, NetOut: 12, Mark: json.RawMessage(`{}`),
	}
	must(t, s.PutRecords(ctx, []store.Record{r}))
	more := r
	more.End, more.Wall = then.Add(2*time.Minute), 2*time.Minute
	must(t, s.PutRecords(ctx, []store.Record{more, more}))
	must(t, s.PutRecords(ctx, []store.Record{r})) // late
	if got, err := s.LastRecord(ctx, "token"); err != nil || !reflect.DeepEqual(got, more) {
		t.Errorf("%+v\nwant\n%+v, %v", got, more, err)
	}
	_, err := s.LastRecord(ctx, "none")
	wantKind(t, err, paddock.NotFound)
	must(t, s.PutRecords(ctx, nil))
}

func recordsFound(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	var all []store.Record
	for i := range 4 {
		all = append(all, store.Record{
			Token: fmt.Sprint("t", i), Begin: then.Add(time.Duration(i) * time.Hour), End: then.Add(time.Duration(i+1) * time.Hour),
			Tenant: []string{"acme", "other"}[i%2], Mark: json.RawMessage("{}"),
		})
	}
	must(t, s.PutRecords(ctx, all))
	for _, tt := range []struct {
		tenant   string
		from, to int
		want     string
	}{{"", 0, 9, "t0t1t2t3"}, {"acme", 0, 9, "t0t2"}, {"", 1, 3, "t1t2"}, {"other", 1, 3, "t1"}, {"none", 0, 9, ""}} {
		got := ""
		err := s.Records(ctx, tt.tenant, then.Add(time.Duration(tt.from)*time.Hour), then.Add(time.Duration(tt.to)*time.Hour), func(r store.Record) error {
			got += r.Token
			return nil
		})
		if err != nil || got != tt.want {
			t.Errorf("%+v: %s, %v", tt, got, err)
		}
	}
	enough := errors.New("enough")
	if err := s.Records(ctx, "", then, then.Add(time.Hour), func(store.Record) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if n, err := s.DropRecords(ctx, then.Add(2*time.Hour+1)); err != nil || n != 2 {
		t.Errorf("%d dropped, %v", n, err)
	}
}

func oddNames(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	for _, name := range []string{"", "\x00", "\xff", "a'b", "$1 ?", strings.Repeat("x", 1<<16)} {
		_, err := s.Tenant(ctx, name)
		wantKind(t, err, paddock.NotFound)
		_, err = s.Key(ctx, name)
		wantKind(t, err, paddock.NotFound)
		_, err = s.Sandbox(ctx, "acme", paddock.ID(name))
		wantKind(t, err, paddock.NotFound)
		_, err = s.Snapshot(ctx, "acme", "here", paddock.SnapshotID(name))
		wantKind(t, err, paddock.NotFound)
		wantKind(t, s.RevokeKey(ctx, "acme", name, then), paddock.NotFound)
		wantKind(t, s.RemoveTenant(ctx, name), paddock.NotFound)
	}
	must(t, s.SetTenant(ctx, "acme", "a\x00b\xff", store.Quota{}))
}

func openedAtOnce(t *testing.T, e storetest.Engine) {
	place := e.Place(t)
	var all sync.WaitGroup
	ids := make([]string, 6)
	for i := range ids {
		all.Go(func() {
			s, err := store.Open(t.Context(), place)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.ID()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("different stores: %q", ids)
		}
	}
}

func placeClaimed(t *testing.T, e storetest.Engine) {
	place, ctx := e.Place(t), t.Context()
	one, two := storetest.Open(t, place), storetest.Open(t, place)
	release, err := one.Claim(ctx, "here")
	must(t, err)
	for _, s := range []*store.Store{one, two, two} {
		_, err := s.Claim(ctx, "here")
		wantKind(t, err, paddock.Conflict)
	}
	must(t, two.AddTenant(ctx, store.Tenant{ID: "acme"})) // who claims nothing may write
	switch _, err := two.Claim(ctx, "there"); e.Name {
	case "SQLite":
		wantKind(t, err, paddock.Conflict)
	default:
		must(t, err)
	}
	must(t, release())
	must(t, release())
	_, err = two.Claim(ctx, "here")
	must(t, err)
	must(t, two.Close())
	_, err = two.Claim(ctx, "here")
	wantKind(t, err, paddock.Unavailable)
	again, err := one.Claim(ctx, "here")
	must(t, err)
	must(t, release()) // it is another's claim by now
	_, err = storetest.Open(t, place).Claim(ctx, "here")
	wantKind(t, err, paddock.Conflict)
	must(t, again())
}

func canceledCall(t *testing.T, e storetest.Engine) {
	s := world(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Tenant(ctx, "acme")
	wantKind(t, err, paddock.Canceled)
	wantKind(t, s.AddTenant(ctx, store.Tenant{ID: "third"}), paddock.Canceled)
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	wantKind(t, s.Ping(late), paddock.Timeout)
}

func closedStore(t *testing.T, e storetest.Engine) {
	s, err := store.Open(t.Context(), e.Place(t))
	must(t, err)
	must(t, s.Close())
	wantKind(t, s.Ping(t.Context()), paddock.Unavailable)
	wantKind(t, s.AddTenant(t.Context(), store.Tenant{ID: "acme"}), paddock.Unavailable)
}
