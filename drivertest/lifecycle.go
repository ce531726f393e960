package drivertest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func lifecyclePromises() []group {
	return []group{{promises: []promise{
		{"a sandbox that was made can run a command at once", readyAtOnce},
		{"an ID that is asked for is kept, and one in use is refused", identities},
		{"a driver chooses an ID where none is asked for", choosesID},
		{"an ID that cannot be is refused by Open, and an unknown one not found", openUnknown},
		{"List gives every sandbox in the order of creation", listOrder},
		{"a driver that was closed says so, and may be closed again", closedDriver},
		{"an ephemeral sandbox is found only by the driver that made it, and is gone when that is closed", ephemeral},
	}}, {can: []paddock.Capability{paddock.CanOutlive}, promises: []promise{
		{"a sandbox outlives the driver that made it, and the next one finds it", outlivesDriver},
		{"what one driver does to a sandbox another one sees", twoDrivers},
	}}, {can: []paddock.Capability{paddock.CanOutlive, paddock.CanAttach}, promises: []promise{
		{"a process outlives the driver that started it, and its output is replayed", attachNextDriver},
	}}}
}

func readyAtOnce(t *testing.T, s *suite) {
	sb, err := s.driver.Create(bounded(t), s.spec())
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	s.removeAfter(t, sb)
	b := box{Sandbox: sb, s: s}
	if got := b.must(t, "echo first"); got != "first\n" {
		t.Errorf("%q", got)
	}
}

func identities(t *testing.T, s *suite) {
	spec := s.spec()
	ctx := bounded(t)
	var mu sync.Mutex
	var made []paddock.Sandbox
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			sb, err := s.driver.Create(ctx, spec)
			if err != nil {
				wantKind(t, "the same ID again", err, paddock.Exists)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made = append(made, sb)
		})
	}
	wg.Wait()
	for _, sb := range made {
		s.removeAfter(t, sb)
	}
	if len(made) != 1 || made[0].ID() != spec.ID {
		t.Fatalf("%d sandboxes were made with one ID", len(made))
	}
	_, err := s.fresh(t).Create(ctx, spec)
	if s.info.Can(paddock.CanOutlive) {
		wantKind(t, "the same ID by another driver", err, paddock.Exists)
	}
	b := box{Sandbox: made[0], s: s}
	b.must(t, "echo not disturbed")
	if err := made[0].Remove(ctx); err != nil {
		t.Fatalf("remove: %v", err)
	}
	again, err := s.driver.Create(ctx, spec)
	if err != nil {
		t.Fatalf("the same ID after a removal: %v", err)
	}
	s.removeAfter(t, again)
}

func choosesID(t *testing.T, s *suite) {
	seen := make(map[paddock.ID]bool)
	for range 3 {
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) { spec.ID = "" }))
		if err != nil {
			t.Fatalf("create: %v", err)
		}
		s.removeAfter(t, sb)
		if !sb.ID().Valid() || seen[sb.ID()] {
			t.Errorf("it chose %q", sb.ID())
		}
		seen[sb.ID()] = true
	}
}

func badIDs() []paddock.ID {
	return []paddock.ID{"-a", "a-", "UPPER", "a/b", "../a", "..", "a b", "a\x00b", "é", "a.b", paddock.ID(strings.Repeat("a", 64))}
}

func openUnknown(t *testing.T, s *suite) {
	for _, id := range badIDs() {
		_, err := s.driver.Open(bounded(t), id)
		wantKind(t, "open "+string(id), err, paddock.Invalid, paddock.NotFound)
	}
	_, err := s.driver.Open(bounded(t), "")
	wantKind(t, "open nothing", err, paddock.Invalid, paddock.NotFound)
	_, err = s.driver.Open(bounded(t), s.id())
	wantKind(t, "open what was never made", err, paddock.NotFound)
}

func listOrder(t *testing.T, s *suite) {
	var want []paddock.ID
	for range 3 {
		want = append(want, s.own(t).ID())
	}
	all, err := s.driver.List(bounded(t))
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	var got []paddock.ID
	for i, st := range all {
		if slices.Contains(want, st.ID) {
			got = append(got, st.ID)
			if st.State != paddock.Ready || st.Tier != s.info.Tier {
				t.Errorf("%+v", st)
			}
		}
		if i > 0 && st.Created.Before(all[i-1].Created) {
			t.Errorf("%s stands after %s, which was made later", st.ID, all[i-1].ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

func closedDriver(t *testing.T, s *suite) {
	d := s.fresh(t)
	for range 2 {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	sb, err := d.Create(bounded(t), s.spec())
	if err == nil {
		s.removeAfter(t, sb)
	}
	wantKind(t, "create", err, paddock.Unavailable)
	_, err = d.Open(bounded(t), s.id())
	wantKind(t, "open", err, paddock.Unavailable)
	_, err = d.List(bounded(t))
	wantKind(t, "list", err, paddock.Unavailable)
	wantKind(t, "remove a snapshot", d.RemoveSnapshot(bounded(t), "none"), paddock.Unavailable)
}

func ephemeral(t *testing.T, s *suite) {
	d, other := s.fresh(t), s.fresh(t)
	b := s.ownOf(t, d, func(spec *paddock.Spec) { spec.Ephemeral = true })
	b.must(t, "echo usable")
	found, err := d.Open(bounded(t), b.ID())
	if err != nil || found.ID() != b.ID() || !s.listed(t, d, b.ID()) {
		t.Errorf("its own driver: %v", err)
	}
	_, err = other.Open(bounded(t), b.ID())
	wantKind(t, "another driver", err, paddock.NotFound)
	if s.listed(t, other, b.ID()) {
		t.Error("another driver lists it")
	}
	p := b.start(t, b.shell("exec sleep 1000"))
	if err := d.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if exit, err := p.Wait(bounded(t)); err == nil && exit.Cause != paddock.SandboxGone || err != nil && !ending(err) {
		t.Errorf("its process ended with %+v, %v", exit, err)
	}
	_, err = b.Start(bounded(t), b.shell("true"))
	if !ending(err) {
		t.Errorf("start: %v", err)
	}
}

func outlivesDriver(t *testing.T, s *suite) {
	d := s.fresh(t)
	b := s.ownOf(t, d, func(spec *paddock.Spec) {
		spec.Labels = map[string]string{"kept": "yes"}
		spec.Env = map[string]string{"KEPT": "too"}
	})
	b.put(t, b.in("file"), []byte("kept"), 0)
	before, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	sb, err := s.fresh(t).Open(bounded(t), b.ID())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	s.removeAfter(t, sb)
	b.Sandbox = sb
	if got := b.must(t, `printf "$KEPT "; cat file`); got != "too kept" {
		t.Errorf("%q", got)
	}
	after, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if !after.Created.Equal(before.Created) || after.Limits != before.Limits || after.Labels["kept"] != "yes" ||
		after.User != before.User || after.Dir != before.Dir || !slices.Equal(after.Enforced, before.Enforced) {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
}

func twoDrivers(t *testing.T, s *suite) {
	b := s.own(t)
	sb, err := s.fresh(t).Open(bounded(t), b.ID())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	other := box{Sandbox: sb, s: s, dir: b.dir}
	other.put(t, b.in("file"), []byte("from the other"), 0)
	if got := b.must(t, "cat file"); got != "from the other" {
		t.Errorf("%q", got)
	}
	p := b.start(t, b.shell("exec sleep 1000"))
	if info := other.info(t, p.ID()); info.Exit != nil {
		t.Errorf("%+v", info)
	}
	if err := other.Remove(bounded(t)); err != nil {
		t.Fatalf("remove: %v", err)
	}
	if exit, err := p.Wait(bounded(t)); err == nil && exit.Cause != paddock.SandboxGone || err != nil && !ending(err) {
		t.Errorf("a process of the first ended with %+v, %v", exit, err)
	}
	if _, err := b.Start(bounded(t), b.shell("true")); !ending(err) {
		t.Errorf("start by the first: %v", err)
	}
	_, err = s.driver.Open(bounded(t), b.ID())
	wantKind(t, "open by the first", err, paddock.NotFound)
}

func attachNextDriver(t *testing.T, s *suite) {
	d := s.fresh(t)
	b := s.ownOf(t, d)
	p, _ := b.announce(t, echoing)
	pid := p.ID()
	if err := d.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	sb, err := s.fresh(t).Open(bounded(t), b.ID())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	s.removeAfter(t, sb)
	b.Sandbox = sb
	q, out, _ := b.attach(t, pid, 0)
	send(t, q, "after\n")
	if err := q.Input().Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if exit := wait(t, q); exit.Code != 0 || exit.Dropped != 0 || out.String() != "ready\ngot after\n" {
		t.Errorf("%q, %+v", out, exit)
	}
}
