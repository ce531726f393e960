package lifetime_test

import (
	"context"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A tier is a fake with a name, that refuses a hostname, so that auto goes on.
type tier struct {
	*fake
	name paddock.Tier
}

func (d tier) Info(ctx context.Context, _ paddock.Tier) (paddock.Info, error) {
	info, err := d.fake.Info(ctx, paddock.Auto)
	info.Tier, info.Available = d.name, true
	return info, err
}

func (d tier) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	if d.name == "strong" && spec.Hostname != "" {
		return nil, paddock.Unsupported
	}
	sb, err := d.fake.Create(ctx, spec)
	return tiered{sb, d.name}, err
}

func (d tier) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.fake.Open(ctx, id)
	return tiered{sb, d.name}, err
}

type tiered struct {
	paddock.Sandbox
	name paddock.Tier
}

func (s tiered) Status(ctx context.Context) (paddock.Status, error) {
	st, err := s.Sandbox.Status(ctx)
	st.Tier = s.name
	return st, err
}

// both are a tier that can pause, and a weaker one that cannot.
func both(t *testing.T, usual lifetime.Terms) (strong, weak *fake, d *lifetime.Driver) {
	t.Helper()
	strong, weak = newFake(), newFake()
	weak.cannot = true
	d, err := lifetime.New(t.Context(), auto.New(
		auto.Tier{Candidate: auto.Candidate{Name: "strong"}, Driver: tier{strong, "strong"}}, auto.Tier{Candidate: auto.Candidate{Name: "weak"}, Driver: tier{weak, "weak"}},
	), lifetime.Options{Default: usual})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return strong, weak, d
}

func TestTermsThatPauseAreJudgedByTheSandboxsOwnTier(t *testing.T) {
	_, weak, d := both(t, lifetime.Terms{})
	ctx := t.Context()
	pause := lifetime.Terms{IdlePause: hour}
	_, err := d.CreateWith(ctx, paddock.Spec{ID: "a", Tier: "weak"}, pause)
	wantKind(t, "a tier that cannot", err, paddock.Unsupported, "the tier weak cannot pause")
	_, err = d.CreateWith(ctx, paddock.Spec{ID: "a", Hostname: "x"}, pause)
	wantKind(t, "where auto came to it", err, paddock.Unsupported, "the tier weak cannot pause")
	if len(weak.boxes) != 0 {
		t.Errorf("left over: %v", weak.boxes)
	}
	_, err = d.CreateWith(ctx, paddock.Spec{ID: "a", Tier: "none"}, pause)
	wantKind(t, "a tier that is not there", err, paddock.Unsupported, "no tier")
	for _, spec := range []paddock.Spec{{ID: "b"}, {ID: "c", Tier: "strong"}} {
		if _, err := d.CreateWith(ctx, spec, pause); err != nil {
			t.Errorf("a tier that can: %v", err)
		}
	}
	if _, err := d.CreateWith(ctx, paddock.Spec{ID: "d", Tier: "weak"}, lifetime.Terms{IdleRemove: hour}); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "change", d.Change(ctx, "d", pause), paddock.Unsupported, "the tier weak cannot pause")
	if err := d.Change(ctx, "b", pause); err != nil {
		t.Error(err)
	}
}

func TestTheUsualPauseIsLeftOutWhereATierCannot(t *testing.T) {
	usual := lifetime.Terms{IdlePause: hour, Wake: true, IdleRemove: 2 * hour}
	_, _, d := both(t, usual)
	ctx := t.Context()
	for id, spec := range map[paddock.ID]paddock.Spec{"a": {Tier: "weak"}, "b": {Hostname: "x"}, "c": {}} {
		spec.ID = id
		if _, err := d.Create(ctx, spec); err != nil {
			t.Fatal(err)
		}
		want := lifetime.Terms{IdleRemove: 2 * hour}
		if id == "c" {
			want = usual
		}
		if l, err := d.Terms(ctx, id); err != nil || l.Terms != want {
			t.Errorf("%s: %+v, %v", id, l.Terms, err)
		}
	}
}
