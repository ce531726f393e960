package drivertest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func leakPromises() []group {
	return []group{{alone: true, promises: []promise{
		{"Remove leaves nothing, whatever ran", removeLeavesNothing},
		{"100 sandboxes made and removed, two at a time, leave nothing", hundred},
		{"Create that is given up leaves nothing", createGivenUp},
		{"Create that is refused leaves nothing", createRefused},
		{"Close leaves nothing of what is ephemeral", closeLeavesNothing},
	}}, {alone: true, can: []paddock.Capability{paddock.CanOutlive}, promises: []promise{
		{"a sandbox that is opened for one question holds nothing afterwards", openedHoldsNothing},
		{"a maker that is killed takes its ephemeral sandboxes along, and leaves the kept ones whole", makerKilled},
	}}}
}

// openedHoldsNothing asks a sandbox of another driver as monitoring does: each question opens it anew.
func openedHoldsNothing(t *testing.T, s *suite) {
	b := s.own(t)
	b.must(t, "true")
	other := s.fresh(t)
	ask := func() {
		sb, err := other.Open(bounded(t), b.ID())
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		if _, err := sb.Status(bounded(t)); err != nil {
			t.Fatalf("status: %v", err)
		}
	}
	ask() // what the driver holds for itself
	before := len(s.held(t)["descriptor"])
	const times = 50
	for range times {
		ask()
	}
	until(t, fmt.Sprintf("of %d openings a few descriptors are left", times), func() bool {
		runtime.GC()
		return len(s.held(t)["descriptor"]) < before+times/5
	})
}

func removeLeavesNothing(t *testing.T, s *suite) {
	d := s.seasoned(t)
	before := s.held(t)
	sb, err := d.Create(bounded(t), s.spec())
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	s.removeAfter(t, sb)
	b := s.scratch(t, sb)
	p := b.start(t, b.shell(`echo x > file
sleep 1000 &
(trap '' HUP TERM INT; while :; do sleep 1000; done) > /dev/null 2>&1 &
if command -v setsid > /dev/null; then setsid sleep 1000 < /dev/null > /dev/null 2>&1 & fi
echo ready; wait`))
	b.must(t, "mkdir dir; mkfifo dir/fifo; exit 0")
	p.Release()
	q, _ := b.announce(t, "echo ready; exec sleep 1000")
	q.Release()
	if err := sb.Remove(bounded(t)); err != nil {
		t.Fatalf("remove: %v", err)
	}
	s.nothingLeft(t, before)
}

func hundred(t *testing.T, s *suite) {
	n := 100
	if testing.Short() {
		n = 10
	}
	d := s.seasoned(t)
	before := s.held(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	var specs []paddock.Spec
	for range n {
		specs = append(specs, s.spec())
	}
	var wg sync.WaitGroup
	for part := range 2 {
		wg.Go(func() {
			for i := part; i < n; i += 2 {
				sb, err := d.Create(ctx, specs[i])
				if err != nil {
					t.Errorf("create %d: %v", i, err)
					return
				}
				b := box{Sandbox: sb, s: s}
				if r, err := b.try(ctx, b.shell("echo x")); err != nil || r.out != "x\n" {
					t.Errorf("run %d: %+v, %v", i, r, err)
				}
				if err := sb.Remove(ctx); err != nil {
					t.Errorf("remove %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	s.nothingLeft(t, before)
}

// createGivenUp cancels Create at many moments, because it must undo its earlier steps from
// whichever step it is at. The name is free again as soon as Create has returned.
func createGivenUp(t *testing.T, s *suite) {
	d := s.seasoned(t)
	before := s.held(t)
	spec := s.spec()
	for after := time.Duration(0); after < 2*time.Second; after = after*3/2 + 500*time.Microsecond {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		sb, err := d.Create(ctx, spec)
		cancel()
		if err != nil {
			wantKind(t, "create within "+after.String(), err, paddock.Canceled, paddock.Timeout)
			continue
		}
		if err := sb.Remove(bounded(t)); err != nil {
			t.Errorf("remove: %v", err)
		}
		break // from here on Create finishes first
	}
	if all, err := d.List(bounded(t)); err != nil || len(all) != 0 {
		t.Errorf("listed %+v, %v", all, err)
	}
	s.nothingLeft(t, before)
}

func createRefused(t *testing.T, s *suite) {
	d := s.seasoned(t)
	before := s.held(t)
	for _, row := range badSpecs(t, s) {
		sb, err := d.Create(bounded(t), s.spec(row.change))
		if err == nil {
			_ = sb.Remove(bounded(t)) // another promise checks that it was made
		}
	}
	if all, err := d.List(bounded(t)); err != nil || len(all) != 0 {
		t.Errorf("listed %+v, %v", all, err)
	}
	s.nothingLeft(t, before)
}

func closeLeavesNothing(t *testing.T, s *suite) {
	before := s.held(t)
	d := s.fresh(t)
	for range 3 {
		b := s.ownOf(t, d, func(spec *paddock.Spec) { spec.Ephemeral = true })
		p := b.start(t, b.shell("sleep 1000 & exec sleep 1000"))
		p.Release()
	}
	if err := d.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	s.nothingLeft(t, before)
}

func makerKilled(t *testing.T, s *suite) {
	d := s.seasoned(t)
	before := s.held(t)
	kept := s.spec()
	short := s.spec(func(spec *paddock.Spec) { spec.Ephemeral = true })
	script := `echo before; i=0; while ! [ -e "$HOME/go" ]; do sleep 0.05; done; echo after; exit 8`
	m := s.maker(t, []string{s.h.Shell, "-c", script}, kept, short)
	sb, err := d.Open(bounded(t), kept.ID)
	if err != nil {
		t.Fatalf("open while the maker lives: %v", err)
	}
	s.removeAfter(t, sb)
	_, err = d.Open(bounded(t), short.ID)
	wantKind(t, "open of the ephemeral one", err, paddock.NotFound)
	// The process that outlasts the maker may be set up shortly after the sandboxes are
	// ready.
	until(t, "the sandboxes are some moments old", func() bool {
		st, err := sb.Status(bounded(t))
		return err == nil && st.Usage.Wall > 500*time.Millisecond
	})
	m.kill(t)

	var still []string
	if !eventually(patience, func() bool {
		still = s.holding(t, short.ID)
		return len(still) == 0
	}) {
		t.Errorf("of the ephemeral sandbox there is still:\n\t%s", strings.Join(still, "\n\t"))
	}

	// A new driver, as after a crash.
	next := s.fresh(t)
	if !s.listed(t, next, kept.ID) || s.listed(t, next, short.ID) {
		t.Error("List does not give the kept one alone")
	}
	for _, d := range []paddock.Driver{d, next} {
		sb, err := d.Open(bounded(t), kept.ID)
		if err != nil {
			t.Fatalf("open after the maker was killed: %v", err)
		}
		b := box{Sandbox: sb, s: s}
		if st, err := b.Status(bounded(t)); err != nil || st.State != paddock.Ready {
			t.Fatalf("status %+v, %v", st, err)
		}
		if got := b.must(t, "echo works"); got != "works\n" {
			t.Errorf("%q", got)
		}
	}
	sb, err = next.Open(bounded(t), kept.ID)
	if err != nil {
		t.Fatal(err)
	}
	b := box{Sandbox: sb, s: s}
	if s.info.Can(paddock.CanAttach) {
		p, out, _ := b.attach(t, m.Processes[0], 0)
		b.must(t, `echo > "$HOME/go"`)
		if exit := wait(t, p); exit.Code != 8 || exit.Dropped != 0 || out.String() != "before\nafter\n" {
			t.Errorf("its process: %q, %+v", out, exit)
		}
	}
	if err := sb.Remove(bounded(t)); err != nil {
		t.Fatalf("remove: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	s.nothingLeft(t, before)
}

// holding lists what is held on the host for one sandbox.
func (s *suite) holding(t testing.TB, id paddock.ID) []string {
	t.Helper()
	var found []string
	for kind, names := range s.held(t) {
		for _, n := range names {
			if containsID(n, id) {
				found = append(found, kind+": "+n)
			}
		}
	}
	return found
}

// seasoned returns a driver that has made a sandbox before, and so already holds what it
// creates only once.
func (s *suite) seasoned(t testing.TB) paddock.Driver {
	t.Helper()
	d := s.fresh(t)
	for _, ephemeral := range []bool{false, true} {
		b := s.ownOf(t, d, func(spec *paddock.Spec) { spec.Ephemeral = ephemeral })
		if err := b.Remove(bounded(t)); err != nil {
			t.Fatalf("remove: %v", err)
		}
	}
	return d
}

// containsID reports whether a name on the host contains the ID of a sandbox. The ID must
// not be the prefix of a longer ID.
func containsID(name string, id paddock.ID) bool {
	for {
		i := strings.Index(name, string(id))
		if i < 0 {
			return false
		}
		name = name[i+len(id):]
		if name == "" || name[0] < '0' || name[0] > '9' {
			return true
		}
	}
}
