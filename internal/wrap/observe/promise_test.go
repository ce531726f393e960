package observe_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
	"github.com/paddock-sandbox/paddock/internal/wrap/observe"
)

// A record keeps what was told.
type record struct {
	mu    sync.Mutex
	begun []observe.Op   // guarded by mu
	ended []string       // guarded by mu
	tiers []paddock.Tier // guarded by mu
}

func (r *record) observe(ctx context.Context, op observe.Op, tier paddock.Tier) (context.Context, func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.tiers = append(r.begun, op), append(r.tiers, tier)
	return ctx, func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		word := "ok"
		if err != nil {
			word = paddock.KindOf(err).Error()
		}
		r.ended = append(r.ended, string(op)+" "+word)
	}
}

func harness() drivertest.Harness {
	return drivertest.Harness{Memory: true, Subjects: overridden(), New: func(string) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			return nil, err
		}
		return observe.New(d, paddock.Sim, (&record{}).observe), nil
	}}
}

// overridden lists the subjects of the promises that this wrapper could break: what
// it does more than to pass on.
func overridden() []string {
	return sample.Subjects("observe", "leak", "attach", "file", "watch", "port", "remove", "lifecycle", "status", "update", "pause")
}

func TestADriverThatIsObservedKeepsItsPromises(t *testing.T) { drivertest.Run(t, harness()) }

func TestMain(m *testing.M) {
	drivertest.Main(m, func(string) (paddock.Driver, error) { return sim.New(sim.Options{}) })
}

func TestEachCallIsToldOnceWithItsEnd(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &record{}
	d := observe.New(inner, paddock.Sim, r.observe)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := t.Context()
	sb, err := d.Create(ctx, paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sb.FS().Stat(ctx, "/none"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("stat: %v", err)
	}
	for range sb.FS().List(ctx, "/", 1) {
		break
	}
	if _, err := d.Open(ctx, "nobody"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("open: %v", err)
	}
	if err := sb.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"create ok", "file-stat not found", "file-list ok", "open not found", "remove ok"}
	if !slices.Equal(r.ended, want) || len(r.begun) != len(want) {
		t.Errorf("told %q, want %q", r.ended, want)
	}
	if slices.ContainsFunc(r.tiers, func(t paddock.Tier) bool { return t != paddock.Sim }) {
		t.Errorf("tiers %q", r.tiers)
	}
}

func TestObserversNestAndHandTheirContextOn(t *testing.T) {
	type key struct{}
	var order []string
	watch := func(name string) observe.Observer {
		return func(ctx context.Context, _ observe.Op, _ paddock.Tier) (context.Context, func(error)) {
			before, _ := ctx.Value(key{}).(string)
			order = append(order, "begin "+before+name)
			return context.WithValue(ctx, key{}, before+name), func(error) { order = append(order, "end "+name) }
		}
	}
	d := observe.New(&bare{seen: func(ctx context.Context) { order = append(order, "call "+ctx.Value(key{}).(string)) }}, paddock.Jail, watch("a"), watch("b"))
	if _, err := d.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"begin a", "begin ab", "call ab", "end b", "end a"}; !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
}

// A bare driver lists.
type bare struct {
	paddock.Driver
	seen func(context.Context)
}

func (b *bare) List(ctx context.Context) ([]paddock.Status, error) {
	b.seen(ctx)
	return nil, nil
}
