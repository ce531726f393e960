package store

import (
	"context"
)

// Notes are texts that a dialect stores at one place, by kind, tenant and ID. The store does not interpret them.
type Notes struct {
	s       *Store
	place   string
	dialect string
}

// NotesOf returns the notes of a dialect at a place.
func NotesOf(s *Store, place, dialect string) *Notes { return &Notes{s, place, dialect} }

// Keep stores a note, and replaces an existing one.
func (n *Notes) Keep(ctx context.Context, kind, tenant, id, data string) error {
	return n.s.write(ctx, func(q query) error {
		_, err := q.exec(`INSERT INTO dialects (place, dialect, kind, tenant, id, data) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (place, dialect, kind, tenant, id) DO UPDATE SET data = excluded.data`,
			n.place, n.dialect, kind, tenant, clean(id), clean(data))
		return err
	})
}

// Forget removes a note. A missing note is not an error.
func (n *Notes) Forget(ctx context.Context, kind, tenant, id string) error {
	return n.s.write(ctx, func(q query) error {
		_, err := q.exec("DELETE FROM dialects WHERE place = ? AND dialect = ? AND kind = ? AND tenant = ? AND id = ?",
			n.place, n.dialect, kind, tenant, clean(id))
		return err
	})
}

// Each calls f with every note of a kind, in the order of tenants and IDs.
func (n *Notes) Each(ctx context.Context, kind string, f func(tenant, id, data string) error) error {
	return n.s.read(ctx, func(q query) error {
		return q.each(func(r row) error {
			var tenant, id, data string
			if err := r.Scan(&tenant, &id, &data); err != nil {
				return err
			}
			return f(tenant, id, data)
		}, "SELECT tenant, id, data FROM dialects WHERE place = ? AND dialect = ? AND kind = ? ORDER BY tenant, id", n.place, n.dialect, kind)
	})
}
