package tenant

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// A foreign sandbox is one of the whole driver's that has no record here.
type foreign struct {
	paddock.Sandbox
}

// openForeign opens a sandbox without a record.
func (d *driver) openForeign(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.ts.d.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return &foreign{sb}, nil
}

func (*foreign) Born() (paddock.Status, bool) { return paddock.Status{}, false }

func (s *foreign) Status(ctx context.Context) (paddock.Status, error) {
	st, err := s.Sandbox.Status(ctx)
	return plain(st), err
}

// Update keeps Label, by which the sandbox's own server recognises it.
func (s *foreign) Update(ctx context.Context, u paddock.Update) error {
	if u.Labels != nil {
		if err := ordinary(u.Labels); err != nil {
			return err
		}
		st, err := s.Sandbox.Status(ctx)
		if err != nil {
			return fmt.Errorf("read the labels: %w", err)
		}
		if mark, ok := st.Labels[Label]; ok {
			u.Labels = maps.Clone(u.Labels)
			u.Labels[Label] = mark
		}
	}
	return s.Sandbox.Update(ctx, u)
}

// listWhole lists every sandbox of the driver, except those that are being made here.
func (ts *Set) listWhole(ctx context.Context, rows []store.Sandbox) ([]paddock.Status, error) {
	all, err := ts.d.List(ctx)
	if err != nil {
		return nil, err
	}
	byMark := make(map[string]store.Sandbox, len(rows))
	for _, b := range rows {
		byMark[ts.mark(b.Token)] = b
	}
	list := all[:0]
	for _, st := range all {
		b, ok := byMark[st.Labels[Label]]
		switch {
		case ok && b.State == store.Making:
			continue
		case ok && st.ID == b.ID:
			st = b.Since(st)
		}
		list = append(list, plain(st))
	}
	slices.SortStableFunc(list, func(a, b paddock.Status) int { return a.Created.Compare(b.Created) })
	return list, nil
}
