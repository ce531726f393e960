// Package auto is a driver of several tiers. A sandbox is made by the driver of the tier
// that its spec names, or, without a tier, by the strongest tier that can. The package
// knows tiers only by name, so that a server has all tiers behind one driver.
package auto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/inventory"
)

// A Tier is a driver to choose from.
type Tier struct {
	Candidate
	Driver paddock.Driver
}

// A Driver chooses a tier for each sandbox.
type Driver struct {
	tiers []Tier
	names inventory.Set[paddock.Sandbox] // reserves names during creation, across tiers
}

// New returns a driver of these tiers, strongest first. It owns them and closes them.
func New(tiers ...Tier) *Driver {
	return &Driver{tiers: slices.Clone(tiers)}
}

// Info implements [paddock.Driver]. For [paddock.Auto] it describes the tier that a spec
// without a tier gets, or the last tier if none can make a sandbox.
func (d *Driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier == paddock.Auto {
		return d.usual(ctx)
	}
	return d.info(ctx, tier)
}

// HostMemory implements [paddock.MemoryPlanner]. For [paddock.Auto] it is the maximum over the tiers that Auto
// may choose.
func (d *Driver) HostMemory(tier paddock.Tier, l paddock.Limits) (most int64, known bool) {
	for _, t := range d.tiers {
		if t.Name != tier && (tier != paddock.Auto || t.pass() != "") {
			continue
		}
		bytes, ok := paddock.HostMemory(t.Driver, t.Name, l)
		if !ok {
			return 0, false
		}
		most, known = max(most, bytes), true
	}
	return most, known
}

// PastJournal implements [paddock.Historian]. A name is unique among all tiers as long as its sandbox is there. So if
// sandboxes of several tiers had it one after the other, it is that of the one with the newest step.
func (d *Driver) PastJournal(ctx context.Context, id paddock.ID) (newest paddock.Journal, err error) {
	var last int64
	var errs []error
	for _, t := range d.tiers {
		j, err := paddock.PastJournal(ctx, t.Driver, id)
		var list []paddock.Step
		if err == nil {
			list, err = j.Steps(ctx, paddock.StepFilter{Last: 1})
		}
		switch {
		case errors.Is(err, paddock.NotFound) || errors.Is(err, paddock.Unsupported):
		case err != nil:
			errs = append(errs, fmt.Errorf("tier %s: %w", t.Name, err))
		case len(list) > 0 && list[0].Number > last:
			newest, last = j, list[0].Number
		}
	}
	if newest == nil && len(errs) == 0 {
		return nil, fmt.Errorf("sandbox %s: no steps of it: %w", id, paddock.NotFound)
	}
	if len(errs) > 0 { // a tier that does not answer may have the newest
		return nil, errors.Join(errs...)
	}
	return newest, nil
}

func (d *Driver) usual(ctx context.Context) (paddock.Info, error) {
	info, _, err := Choose(d.candidates(), func(name paddock.Tier) (paddock.Info, error) {
		info, err := d.info(ctx, name)
		if err == nil && !info.Available {
			err = noTier(paddock.Auto)
		}
		return info, err
	})
	if errors.Is(err, paddock.Unsupported) && len(d.tiers) > 0 { // each can still be named
		return d.info(ctx, d.tiers[len(d.tiers)-1].Name)
	}
	return info, err
}

func (d *Driver) info(ctx context.Context, name paddock.Tier) (paddock.Info, error) {
	t, ok := d.named(name)
	if !ok {
		return paddock.Info{}, noTier(name)
	}
	info, err := t.Driver.Info(ctx, name)
	if err != nil {
		return paddock.Info{}, fmt.Errorf("tier %s: %w", name, err)
	}
	return info, nil
}

// candidates are the tiers as [Choose] takes them.
func (d *Driver) candidates() []Candidate {
	list := make([]Candidate, len(d.tiers))
	for i, t := range d.tiers {
		list[i] = t.Candidate
	}
	return list
}

// Create implements [paddock.Driver]. A name is unique among all tiers.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	done, err := d.reserve(ctx, spec.ID)
	if err != nil {
		return nil, err
	}
	defer done()
	create := func(name paddock.Tier) (paddock.Sandbox, error) {
		t, ok := d.named(name)
		if !ok {
			return nil, noTier(name)
		}
		spec := spec
		spec.Tier = name
		return t.Driver.Create(ctx, spec)
	}
	switch {
	case spec.Tier != paddock.Auto:
		return create(spec.Tier)
	case spec.Root.Kind == paddock.RootSnapshot:
		return d.resume(ctx, spec.Root.Snapshot, create)
	}
	sb, passed, err := Choose(d.candidates(), create)
	if err != nil {
		return nil, err
	}
	if tried := Tried(passed); len(tried) > 0 {
		return &weaker{sb, tried}, nil
	}
	return sb, nil
}

// A weaker sandbox was made by another tier than the first one that was tried.
type weaker struct {
	paddock.Sandbox
	passed []paddock.PassedOver
}

func (w *weaker) Unwrap() paddock.Sandbox { return w.Sandbox }

func (w *weaker) Born() (paddock.Status, bool) {
	st, ok := w.Sandbox.Born()
	if ok {
		st.PassedOver = slices.Clone(w.passed)
	}
	return st, ok
}

func (w *weaker) Status(ctx context.Context) (paddock.Status, error) {
	st, err := w.Sandbox.Status(ctx)
	if err == nil {
		st.PassedOver = slices.Clone(w.passed)
	}
	return st, err
}

// resume creates a sandbox on the tier that has the snapshot, also where [Choose] would
// pass that tier over.
func (d *Driver) resume(ctx context.Context, id paddock.SnapshotID, create func(paddock.Tier) (paddock.Sandbox, error)) (paddock.Sandbox, error) {
	var missing, unable error
	for _, t := range d.tiers {
		k, ok := paddock.As[paddock.SnapshotKeeper](t.Driver)
		if !ok {
			continue
		}
		switch name, err := k.SnapshotTier(ctx, id); {
		case err == nil:
			return create(name)
		case errors.Is(err, paddock.NotFound) || errors.Is(err, paddock.Unsupported) || errors.Is(err, paddock.Invalid): // create tells
		default:
			return nil, fmt.Errorf("tier %s: %w", t.Name, err)
		}
	}
	for _, t := range d.tiers {
		sb, err := create(t.Name)
		switch {
		case errors.Is(err, paddock.NotFound):
			missing = err
		case errors.Is(err, paddock.Unsupported):
			unable = err
		default:
			return sb, err
		}
	}
	return nil, cmp.Or(missing, unable, fmt.Errorf("snapshot %s: %w", id, paddock.NotFound))
}

// reserve reserves a name while its sandbox is being made.
func (d *Driver) reserve(ctx context.Context, id paddock.ID) (done func(), err error) {
	if id == "" {
		return func() {}, nil
	}
	if err := d.names.Reserve(id); err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	done = func() { d.names.Forget(id) }
	switch _, err := d.Open(ctx, id); {
	case err == nil:
		done()
		return nil, fmt.Errorf("create sandbox: sandbox %s: %w", id, paddock.Exists)
	case !errors.Is(err, paddock.NotFound):
		done()
		return nil, err
	}
	return done, nil
}

// Open implements [paddock.Driver].
func (d *Driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	for _, t := range d.tiers {
		sb, err := t.Driver.Open(ctx, id)
		switch {
		case err == nil:
			return sb, nil
		case !errors.Is(err, paddock.NotFound) && !errors.Is(err, paddock.Unsupported):
			return nil, err
		}
	}
	return nil, fmt.Errorf("open sandbox %s: %w", id, paddock.NotFound)
}

// List implements [paddock.Driver].
func (d *Driver) List(ctx context.Context) ([]paddock.Status, error) {
	var all []paddock.Status
	for _, t := range d.tiers {
		list, err := t.Driver.List(ctx)
		if err != nil && !errors.Is(err, paddock.Unsupported) {
			return nil, fmt.Errorf("tier %s: %w", t.Name, err)
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b paddock.Status) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// RemoveSnapshot implements [paddock.Driver]. The snapshot may be of any tier.
func (d *Driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	var errs []error
	for _, t := range d.tiers {
		if err := t.Driver.RemoveSnapshot(ctx, id); err != nil && !errors.Is(err, paddock.Unsupported) {
			errs = append(errs, fmt.Errorf("tier %s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Close implements [paddock.Driver].
func (d *Driver) Close() error {
	var errs []error
	for _, t := range d.tiers {
		errs = append(errs, t.Driver.Close())
	}
	return errors.Join(errs...)
}

func (d *Driver) named(name paddock.Tier) (Tier, bool) {
	i := slices.IndexFunc(d.tiers, func(t Tier) bool { return t.Name == name })
	if i < 0 {
		return Tier{}, false
	}
	return d.tiers[i], true
}

func noTier(name paddock.Tier) error {
	if name == paddock.Auto {
		return fmt.Errorf("there is no tier that can run here: %w", paddock.Unsupported)
	}
	return fmt.Errorf("there is no tier %.64q here: %w", string(name), paddock.Unsupported)
}
