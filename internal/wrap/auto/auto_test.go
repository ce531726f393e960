package auto_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

// A fake tier knows sandboxes as names.
type fake struct {
	paddock.Driver // of what no test calls
	tier           paddock.Tier
	refuse         error
	boxes          map[paddock.ID]time.Time
	made           []paddock.Spec
	removed        []paddock.SnapshotID
	closed         int
	absent         bool
}

type box struct {
	paddock.Sandbox
	id   paddock.ID
	tier paddock.Tier
}

func (b box) ID() paddock.ID { return b.id }

func (b box) Born() (paddock.Status, bool) { return paddock.Status{ID: b.id, Tier: b.tier}, true }

func (b box) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{ID: b.id, Tier: b.tier}, nil
}

func (f *fake) Info(context.Context, paddock.Tier) (paddock.Info, error) {
	return paddock.Info{Tier: f.tier, Available: !f.absent}, nil
}

func (f *fake) Create(_ context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	f.made = append(f.made, spec)
	if f.refuse != nil {
		return nil, f.refuse
	}
	return box{id: spec.ID, tier: f.tier}, nil
}

func (f *fake) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	if _, ok := f.boxes[id]; !ok {
		return nil, fmt.Errorf("open sandbox %s: %w", id, paddock.NotFound)
	}
	return box{id: id, tier: f.tier}, nil
}

func (f *fake) List(context.Context) ([]paddock.Status, error) {
	var list []paddock.Status
	for id, at := range f.boxes {
		list = append(list, paddock.Status{ID: id, Tier: f.tier, Created: at})
	}
	return list, nil
}

func (f *fake) RemoveSnapshot(_ context.Context, id paddock.SnapshotID) error {
	f.removed = append(f.removed, id)
	return f.refuse
}

func (f *fake) Close() error { f.closed++; return nil }

// tiers gives two, and a driver of both.
func tiers() (strong, weak *fake, d *auto.Driver) {
	strong = &fake{tier: paddock.GVisor, boxes: map[paddock.ID]time.Time{"later": time.Unix(200, 0)}}
	weak = &fake{tier: paddock.Jail, boxes: map[paddock.ID]time.Time{"earlier": time.Unix(100, 0)}}
	return strong, weak, auto.New(auto.Tier{Candidate: auto.Candidate{Name: paddock.GVisor}, Driver: strong}, auto.Tier{Candidate: auto.Candidate{Name: paddock.Jail}, Driver: weak})
}

func madeOn(t *testing.T, d *auto.Driver, spec paddock.Spec) paddock.Tier {
	t.Helper()
	sb, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	b, ok := paddock.As[box](sb)
	if !ok {
		t.Fatalf("a sandbox of nobody's: %v", sb)
	}
	return b.tier
}

func TestATierThatIsNamedIsNeverLeft(t *testing.T) {
	strong, weak, d := tiers()
	if tier := madeOn(t, d, paddock.Spec{Tier: paddock.Jail}); tier != paddock.Jail {
		t.Errorf("made on %s", tier)
	}
	strong.refuse = paddock.Unsupported
	if _, err := d.Create(t.Context(), paddock.Spec{Tier: paddock.GVisor}); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("refused with %v", err)
	}
	if len(weak.made) != 1 {
		t.Errorf("the weaker tier was asked %d times", len(weak.made))
	}
	if _, err := d.Create(t.Context(), paddock.Spec{Tier: paddock.MicroVM}); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("a tier that is not there: %v", err)
	}
}

func TestAutoLeavesATierOnlyForWhatItCannotDo(t *testing.T) {
	strong, weak, d := tiers()
	if tier := madeOn(t, d, paddock.Spec{}); tier != paddock.GVisor {
		t.Errorf("made on %s", tier)
	}
	strong.refuse = paddock.Unsupported
	if tier := madeOn(t, d, paddock.Spec{}); tier != paddock.Jail || weak.made[0].Tier != paddock.Jail {
		t.Errorf("made on %s as %+v", tier, weak.made)
	}
	for _, passing := range []error{paddock.Exhausted, paddock.Unavailable, paddock.Internal, paddock.NotFound, paddock.Invalid} {
		strong.refuse = passing
		if _, err := d.Create(t.Context(), paddock.Spec{}); !errors.Is(err, passing) {
			t.Errorf("%v became %v", passing, err)
		}
	}
	if len(weak.made) != 1 {
		t.Errorf("trouble led to a weaker tier")
	}
}

func TestASandboxOfAWeakerTierTellsWhy(t *testing.T) {
	strong, weak, _ := tiers()
	machine := auto.Tier{Candidate: auto.Candidate{Name: paddock.MicroVM, Pass: func() string { return "slow" }}, Driver: &fake{}}
	d := auto.New(machine, auto.Tier{Candidate: auto.Candidate{Name: paddock.GVisor}, Driver: strong}, auto.Tier{Candidate: auto.Candidate{Name: paddock.Jail}, Driver: weak})
	told := func() []paddock.PassedOver {
		t.Helper()
		sb, err := d.Create(t.Context(), paddock.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		born, ok := sb.Born()
		st, err := sb.Status(t.Context())
		if !ok || err != nil || !slices.Equal(born.PassedOver, st.PassedOver) || st.Tier != born.Tier {
			t.Errorf("%+v then %+v: %v", born, st, err)
		}
		return st.PassedOver
	}
	if list := told(); len(list) != 0 {
		t.Errorf("the usual tier tells of %v", list)
	}
	strong.refuse = fmt.Errorf("no memory limit: %w", paddock.Unsupported)
	if list := told(); len(list) != 1 || list[0].Tier != paddock.GVisor || list[0].Cause != strong.refuse.Error() {
		t.Errorf("told of %v", list)
	}
}

func TestAutoPassesOverWhatIsMarked(t *testing.T) {
	strong, weak, _ := tiers()
	d := auto.New(auto.Tier{Candidate: auto.Candidate{Name: paddock.GVisor, Pass: func() string { return "untried" }}, Driver: strong}, auto.Tier{Candidate: auto.Candidate{Name: paddock.Jail}, Driver: weak})
	if tier := madeOn(t, d, paddock.Spec{}); tier != paddock.Jail || len(strong.made) != 0 {
		t.Errorf("made on %s", tier)
	}
	if tier := madeOn(t, d, paddock.Spec{Tier: paddock.GVisor}); tier != paddock.GVisor {
		t.Errorf("made on %s, though another was named", tier)
	}
	if info, err := d.Info(t.Context(), paddock.Auto); err != nil || info.Tier != paddock.Jail {
		t.Errorf("told of %s: %v", info.Tier, err)
	}
}

func TestASnapshotIsOpenedByTheTierThatKnowsIt(t *testing.T) {
	strong, _, d := tiers()
	strong.refuse = fmt.Errorf("snapshot x: %w", paddock.NotFound)
	root := paddock.Root{Kind: paddock.RootSnapshot, Snapshot: "x"}
	if tier := madeOn(t, d, paddock.Spec{Root: root}); tier != paddock.Jail {
		t.Errorf("made on %s", tier)
	}
}

func TestANameIsOneOfAllTiers(t *testing.T) {
	strong, weak, d := tiers()
	if _, err := d.Create(t.Context(), paddock.Spec{ID: "earlier", Tier: paddock.GVisor}); !errors.Is(err, paddock.Exists) || len(strong.made) != 0 {
		t.Errorf("a name of another tier: %v", err)
	}
	weak.refuse = paddock.Exhausted
	if _, err := d.Create(t.Context(), paddock.Spec{ID: "new", Tier: paddock.Jail}); !errors.Is(err, paddock.Exhausted) {
		t.Error(err)
	}
	weak.refuse = nil
	if tier := madeOn(t, d, paddock.Spec{ID: "new", Tier: paddock.Jail}); tier != paddock.Jail {
		t.Errorf("a name that was not made in the end was not free again")
	}
}

func TestSandboxesOfAllTiersAreFoundAndListedInTheOrderOfTheirCreation(t *testing.T) {
	_, _, d := tiers()
	list, err := d.List(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != "earlier" || list[1].ID != "later" {
		t.Errorf("listed %v: %v", list, err)
	}
	sb, err := d.Open(t.Context(), "earlier")
	if err != nil || sb.ID() != "earlier" {
		t.Errorf("opened %v: %v", sb, err)
	}
	if _, err := d.Open(t.Context(), "nobody"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("opened nobody: %v", err)
	}
}

func TestWhatAllAreAskedIsToldOfEach(t *testing.T) {
	strong, weak, d := tiers()
	strong.refuse = paddock.Unsupported // it takes no snapshots
	if err := d.RemoveSnapshot(t.Context(), "x"); err != nil || len(weak.removed) != 1 {
		t.Errorf("removed of %d tiers: %v", len(weak.removed), err)
	}
	weak.refuse = paddock.Conflict
	if err := d.RemoveSnapshot(t.Context(), "x"); !errors.Is(err, paddock.Conflict) {
		t.Errorf("removed in spite of it: %v", err)
	}
	if err := d.Close(); err != nil || strong.closed != 1 || weak.closed != 1 {
		t.Errorf("closed %d and %d times: %v", strong.closed, weak.closed, err)
	}
}

func TestEachTierTellsOfItself(t *testing.T) {
	_, _, d := tiers()
	for asked, want := range map[paddock.Tier]paddock.Tier{paddock.Auto: paddock.GVisor, paddock.GVisor: paddock.GVisor, paddock.Jail: paddock.Jail} {
		if info, err := d.Info(t.Context(), asked); err != nil || info.Tier != want {
			t.Errorf("%q tells of %s: %v", asked, info.Tier, err)
		}
	}
	if _, err := d.Info(t.Context(), paddock.MicroVM); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("a tier that is not there: %v", err)
	}
}

func TestTheChoiceNamesWhyNoTierCan(t *testing.T) {
	candidates := []auto.Candidate{{Name: paddock.MicroVM, Pass: func() string { return "untried" }}, {Name: paddock.Sim}}
	_, passed, err := auto.Choose(candidates, func(tier paddock.Tier) (bool, error) {
		t.Errorf("%s was tried", tier)
		return true, nil
	})
	want := "no tier can run this here (microvm: untried; sim: it runs no programs of this machine): unsupported"
	if !errors.Is(err, paddock.Unsupported) || err.Error() != want || len(passed) != 2 {
		t.Errorf("passed over %v: %v", passed, err)
	}
}

// A planner takes so many bytes for each sandbox.
type planner struct {
	fake
	takes int64
}

func (p *planner) HostMemory(paddock.Tier, paddock.Limits) (int64, bool) { return p.takes, p.takes > 0 }

func TestTheMemoryOfTheHostIsThatOfTheTierThatTakesMost(t *testing.T) {
	tier := func(name paddock.Tier, takes int64, pass string) auto.Tier {
		return auto.Tier{Candidate: auto.Candidate{Name: name, Pass: func() string { return pass }}, Driver: &planner{takes: takes}}
	}
	d := auto.New(tier(paddock.MicroVM, 9, "slow"), tier(paddock.GVisor, 2, ""), tier(paddock.Jail, 3, ""), tier(paddock.Sim, 8, ""))
	for name, want := range map[paddock.Tier]int64{paddock.Auto: 3, paddock.MicroVM: 9, paddock.GVisor: 2, paddock.Jail: 3, paddock.Sim: 8, "other": 0} {
		if got, known := paddock.HostMemory(d, name, paddock.Limits{}); got != want || known != (want > 0) {
			t.Errorf("%q: %d, %v", name, got, known)
		}
	}
	if got, known := paddock.HostMemory(auto.New(tier(paddock.GVisor, 2, ""), tier(paddock.Jail, 0, "")), paddock.Auto, paddock.Limits{}); known {
		t.Errorf("%d", got)
	}
}

// past is the journal of a sandbox that is gone, with a last step.
type past struct {
	paddock.Journal
	last int64
}

func (p past) Steps(context.Context, paddock.StepFilter) ([]paddock.Step, error) {
	return []paddock.Step{{Number: p.last}}, nil
}

// A historian is a tier with journals of sandboxes that are gone.
type historian struct {
	fake
	journal paddock.Journal
	err     error
}

func (h *historian) PastJournal(context.Context, paddock.ID) (paddock.Journal, error) {
	return h.journal, h.err
}

func TestThePastOfANameIsThatOfTheTierWithTheNewestStep(t *testing.T) {
	none := &historian{err: paddock.NotFound}
	older, newer := &historian{journal: past{last: 3}}, &historian{journal: past{last: 7}}
	late := &historian{err: paddock.Timeout}
	for name, c := range map[string]struct {
		tiers []paddock.Driver
		last  int64
		err   error
	}{
		"the newer one": {[]paddock.Driver{newer, older, &fake{}}, 7, nil},
		"in any order":  {[]paddock.Driver{none, older, newer}, 7, nil},
		"none":          {[]paddock.Driver{none, &fake{}}, 0, paddock.NotFound},
		"not known":     {[]paddock.Driver{newer, late}, 0, paddock.Timeout},
	} {
		var list []auto.Tier
		for _, d := range c.tiers {
			list = append(list, auto.Tier{Candidate: auto.Candidate{Name: paddock.Jail}, Driver: d})
		}
		j, err := paddock.PastJournal(t.Context(), auto.New(list...), "one")
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if p, ok := j.(past); err == nil && (!ok || p.last != c.last) {
			t.Errorf("%s: %+v", name, j)
		}
	}
}
