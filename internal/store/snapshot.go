package store

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Snapshot belongs to the tenant of the sandbox that it was taken of.
type Snapshot struct {
	ID      paddock.SnapshotID
	Place   string
	Tenant  string
	Sandbox paddock.ID // that it was taken of, which may be gone
	Name    string
	Image   string // digest of the image below its files; empty is none
	Created time.Time
}

// AddSnapshot stores a snapshot, if admit accepts the tenant's total.
func (s *Store) AddSnapshot(ctx context.Context, n Snapshot, admit func(*Total) error) error {
	return s.write(ctx, func(q query) error {
		t, err := q.total(n.Tenant)
		if err != nil {
			return err
		}
		if err := admit(&t); err != nil {
			return err
		}
		_, err = q.exec("INSERT INTO snapshots (id, place, tenant, sandbox, name, image, created) VALUES (?, ?, ?, ?, ?, ?, ?)",
			clean(string(n.ID)), n.Place, n.Tenant, n.Sandbox, clean(n.Name), n.Image, stamp(n.Created))
		return err
	})
}

const snapshotColumns = "SELECT id, place, tenant, sandbox, name, image, created FROM snapshots"

func scanSnapshot(r row) (Snapshot, error) {
	var n Snapshot
	var created int64
	err := r.Scan(&n.ID, &n.Place, &n.Tenant, &n.Sandbox, &n.Name, &n.Image, &created)
	n.Created = moment(created)
	return n, err
}

// Snapshot returns a tenant's snapshot. The error is the same for another tenant's snapshot as for a missing one.
func (s *Store) Snapshot(ctx context.Context, tenant, place string, id paddock.SnapshotID) (Snapshot, error) {
	var n Snapshot
	err := s.read(ctx, func(q query) (err error) {
		n, err = scanSnapshot(q.row(snapshotColumns+" WHERE id = ? AND place = ? AND tenant = ?", clean(string(id)), place, tenant))
		return absent(err, "snapshot", string(id))
	})
	return n, err
}

// Snapshots returns a tenant's snapshots, oldest first.
func (s *Store) Snapshots(ctx context.Context, tenant string) ([]Snapshot, error) {
	var list []Snapshot
	err := s.read(ctx, func(q query) error {
		return q.each(func(r row) error {
			n, err := scanSnapshot(r)
			list = append(list, n)
			return err
		}, snapshotColumns+" WHERE tenant = ? ORDER BY created, id", clean(tenant))
	})
	return list, err
}

// ForgetSnapshot deletes a tenant's snapshot from the store. A missing snapshot is not an error.
func (s *Store) ForgetSnapshot(ctx context.Context, tenant, place string, id paddock.SnapshotID) error {
	return s.write(ctx, func(q query) error {
		_, err := q.exec("DELETE FROM snapshots WHERE id = ? AND place = ? AND tenant = ?", clean(string(id)), place, tenant)
		return err
	})
}
