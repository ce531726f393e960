package pool_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// lasting is a shelf of sandboxes that outlive the process.
func lasting(size int) pool.Shelf {
	return pool.Shelf{Spec: paddock.Spec{Dir: "/work", Env: map[string]string{"A": "1"}, Labels: map[string]string{"shelf": "s"}}, Size: size}
}

func marked(t *testing.T, f *fake, shelves ...pool.Shelf) rig {
	t.Helper()
	if f.boxes == nil {
		f.boxes = make(map[paddock.ID]*fakeSandbox)
	}
	p, err := pool.New(f, pool.Options{Shelves: shelves, Mark: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	return rig{Pool: p, f: f}
}

func TestWhatIsReadyCarriesTheMarkAndWhoTakesItNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := marked(t, &fake{}, lasting(1))
		r.wait(t)
		for _, id := range r.f.left() {
			if have := r.f.boxes[id].labels; have[pool.Label] != "mine" {
				t.Errorf("ready with %v", have)
			}
		}
		for _, want := range []map[string]string{nil, {"shelf": "s"}, {"owner": "me"}} {
			r.wait(t)
			spec := lasting(1).Spec
			spec.Labels = want
			sb := r.create(t, spec)
			if have := labels(t, sb); !ready(sb) || !maps.Equal(have, want) {
				t.Errorf("%s has %v, want %v", sb.ID(), have, want)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if left := r.f.left(); len(left) != 3 {
			t.Errorf("left after a close: %v", left)
		}
	})
}

func TestOnlyASpecThatIsTheShelfsTakesFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := marked(t, &fake{}, lasting(1))
		defer r.Close()
		r.wait(t)
		for what, change := range map[string]func(*paddock.Spec){
			"policy of files":   func(s *paddock.Spec) { s.Policy.Files.DenyRead = []string{"/x"} },
			"policy of network": func(s *paddock.Spec) { s.Policy.Network.Mode = paddock.NetworkList },
			"a rule":            func(s *paddock.Spec) { s.Policy.Network.Rules = []paddock.NetworkRule{{Host: "a"}} },
			"a secret":          func(s *paddock.Spec) { s.Policy.Network.Secrets = []paddock.Secret{{Name: "A", Value: "b"}} },
			"audit":             func(s *paddock.Spec) { s.Policy.Audit = []paddock.AuditKind{paddock.AuditOpen} },
			"a mount":           func(s *paddock.Spec) { s.Mounts = []paddock.Mount{{Source: "/x"}} },
			"env":               func(s *paddock.Spec) { s.Env = map[string]string{"A": "2"} },
			"no env":            func(s *paddock.Spec) { s.Env = nil },
			"limits":            func(s *paddock.Spec) { s.Limits.Memory = 1 },
			"user":              func(s *paddock.Spec) { s.User = "root" },
			"dir":               func(s *paddock.Spec) { s.Dir = "/" },
			"hostname":          func(s *paddock.Spec) { s.Hostname = "h" },
			"tier":              func(s *paddock.Spec) { s.Tier = paddock.Jail },
			"root":              func(s *paddock.Spec) { s.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: "s"} },
			"a control less":    func(s *paddock.Spec) { s.AllowMissing = []paddock.Control{paddock.ControlUserNS} },
			"ephemeral":         func(s *paddock.Spec) { s.Ephemeral = true },
			"an ID":             func(s *paddock.Spec) { s.ID = "mine" },
		} {
			spec := lasting(1).Spec
			spec.Env = maps.Clone(spec.Env)
			change(&spec)
			if sb := r.create(t, spec); ready(sb) {
				t.Errorf("%s: taken from the shelf", what)
			}
		}
		if sb := r.create(t, lasting(1).Spec); !ready(sb) {
			t.Error("the same spec was not taken from the shelf")
		}
	})
}

func TestWhatDoesNotTakeItsCallersLabelsIsRemovedAndMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := marked(t, &fake{}, lasting(1))
		r.wait(t)
		first := r.f.left()[0]
		box := r.f.boxes[first]
		box.set(func() { box.deaf = fmt.Errorf("the disk is full: %w", paddock.Exhausted) })
		sb := r.create(t, lasting(1).Spec)
		synctest.Wait()
		if ready(sb) || slices.Contains(r.f.left(), first) {
			t.Errorf("got %s; there are %v", sb.ID(), r.f.left())
		}
		if have := labels(t, sb); !maps.Equal(have, lasting(1).Spec.Labels) {
			t.Errorf("its labels are %v", have)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAfterACrashWhatWasReadyGoesAndWhatWasTakenStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		crashed := marked(t, f, lasting(3))
		crashed.wait(t)
		taken := crashed.create(t, lasting(3).Spec)
		crashed.wait(t)
		defer crashed.Close()
		other := &fakeSandbox{f: f, spec: paddock.Spec{ID: "other"}, labels: map[string]string{pool.Label: "another's"}}
		f.set(func() { f.boxes["other"] = other })

		removed, err := pool.Clean(t.Context(), f, "mine")
		if err != nil || len(removed) != 3 {
			t.Errorf("removed %v: %v", removed, err)
		}
		if left := f.left(); !slices.Equal(left, []paddock.ID{"other", taken.ID()}) {
			t.Errorf("left: %v", left)
		}
		if _, err := pool.Clean(t.Context(), f, ""); !errors.Is(err, paddock.Invalid) {
			t.Errorf("without a mark: %v", err)
		}
	})
}

func TestWhatCannotBeRemovedAfterACrashIsTold(t *testing.T) {
	f := &fake{boxes: make(map[paddock.ID]*fakeSandbox)}
	for id, keep := range map[paddock.ID]error{"a": paddock.Unavailable, "b": nil} {
		f.boxes[id] = &fakeSandbox{f: f, spec: paddock.Spec{ID: id}, labels: map[string]string{pool.Label: "mine"}, keep: keep}
	}
	removed, err := pool.Clean(t.Context(), f, "mine")
	if !errors.Is(err, paddock.Unavailable) || !slices.Equal(removed, []paddock.ID{"b"}) {
		t.Errorf("removed %v: %v", removed, err)
	}
}

func TestAShelfHasNoMarkOfItsOwn(t *testing.T) {
	s := lasting(1)
	s.Spec.Labels = map[string]string{pool.Label: "mine"}
	if _, err := pool.New(&fake{}, pool.Options{Shelves: []pool.Shelf{s}, Mark: "mine"}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("%v", err)
	}
}
