package store

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Tenant has sandboxes, and sees no other tenant's.
type Tenant struct {
	ID      string    `json:"id"` // with the grammar of a paddock.ID
	Name    string    `json:"name,omitempty"`
	Quota   Quota     `json:"quota"`
	Created time.Time `json:"created"`
}

// Unbounded in a Quota means no limit.
const Unbounded = -1

// A Quota limits what a tenant may have at once. Zero allows none and [Unbounded] has no limit, so both must be
// explicit.
type Quota struct {
	Sandboxes int64 `json:"sandboxes"`
	CPU       int64 `json:"cpu"`       // thousandths of a processor
	Memory    int64 `json:"memory"`    // bytes
	PIDs      int64 `json:"pids"`      // processes and threads
	Disk      int64 `json:"disk"`      // bytes
	Snapshots int64 `json:"snapshots"` // how many
	Rate      int64 `json:"rate"`      // sandboxes made per minute
}

// A Total is the sum of a tenant's reservations, with its counts and quota.
type Total struct {
	Quota     Quota // the tenant's quota
	Sandboxes int64
	Snapshots int64
	Reserved

	// Rate is the time at which the tenant has used up its rate of creations. The caller moves it for each sandbox that
	// it admits.
	Rate time.Time
}

// Reserved holds the limits of one sandbox.
type Reserved struct {
	CPU    int64 // thousandths of a processor
	Memory int64 // bytes
	PIDs   int64
	Disk   int64 // bytes
}

// AddTenant stores a tenant. An ID in use is [paddock.Exists].
func (s *Store) AddTenant(ctx context.Context, t Tenant) error {
	if err := named("tenant", t.ID); err != nil {
		return err
	}
	quota, err := text(t.Quota)
	if err != nil {
		return err
	}
	return s.write(ctx, func(q query) error {
		_, err := q.exec("INSERT INTO tenants (id, name, quota, created, rate) VALUES (?, ?, ?, ?, 0)", t.ID, clean(t.Name), quota, stamp(t.Created))
		return err
	})
}

// SetTenant changes name and quota. Existing sandboxes stay, even beyond the quota.
func (s *Store) SetTenant(ctx context.Context, id, name string, quota Quota) error {
	kept, err := text(quota)
	if err != nil {
		return err
	}
	return s.write(ctx, func(q query) error {
		n, err := q.exec("UPDATE tenants SET name = ?, quota = ? WHERE id = ?", clean(name), kept, clean(id))
		return some(n, err, "tenant", id)
	})
}

const tenantColumns = "SELECT id, name, quota, created FROM tenants"

func scanTenant(r row) (Tenant, error) {
	var t Tenant
	var quota string
	var created int64
	if err := r.Scan(&t.ID, &t.Name, &quota, &created); err != nil {
		return t, err
	}
	t.Created = moment(created)
	return t, value(quota, &t.Quota)
}

// Tenant returns a tenant.
func (s *Store) Tenant(ctx context.Context, id string) (Tenant, error) {
	var t Tenant
	err := s.read(ctx, func(q query) (err error) {
		t, err = scanTenant(q.row(tenantColumns+" WHERE id = ?", clean(id)))
		return absent(err, "tenant", id)
	})
	return t, err
}

// Tenants returns all tenants, by ID.
func (s *Store) Tenants(ctx context.Context) ([]Tenant, error) {
	var list []Tenant
	err := s.read(ctx, func(q query) error {
		return q.each(func(r row) error {
			t, err := scanTenant(r)
			list = append(list, t)
			return err
		}, tenantColumns+" ORDER BY id")
	})
	return list, err
}

// RemoveTenant deletes a tenant with its keys and its notes. A tenant that still has sandboxes or snapshots is
// [paddock.Conflict]. Its usage records stay.
func (s *Store) RemoveTenant(ctx context.Context, id string) error {
	if !paddock.ID(id).Valid() {
		return missing("tenant", id)
	}
	return s.write(ctx, func(q query) error {
		for _, kept := range []string{"DELETE FROM keys WHERE tenant = ?", "DELETE FROM dialects WHERE tenant = ?"} {
			if _, err := q.exec(kept, id); err != nil {
				return err
			}
		}
		n, err := q.exec("DELETE FROM tenants WHERE id = ?", id)
		return some(n, err, "tenant", id)
	})
}

// total returns a tenant's total, and locks it against changes.
func (q query) total(tenant string) (Total, error) {
	var t Total
	var quota string
	var rate int64
	err := q.row("SELECT quota, rate FROM tenants WHERE id = ?"+q.engine.lock, clean(tenant)).Scan(&quota, &rate)
	if err != nil {
		return t, absent(err, "tenant", tenant)
	}
	t.Rate = moment(rate)
	if err := value(quota, &t.Quota); err != nil {
		return t, err
	}
	err = q.row("SELECT COUNT(*), CAST(COALESCE(SUM(cpu), 0) AS BIGINT), CAST(COALESCE(SUM(memory), 0) AS BIGINT), CAST(COALESCE(SUM(pids), 0) AS BIGINT), CAST(COALESCE(SUM(disk), 0) AS BIGINT) FROM sandboxes WHERE tenant = ? AND state <> ?", tenant, Lost).
		Scan(&t.Sandboxes, &t.CPU, &t.Memory, &t.PIDs, &t.Disk)
	if err != nil {
		return t, err
	}
	return t, q.row("SELECT COUNT(*) FROM snapshots WHERE tenant = ?", tenant).Scan(&t.Snapshots)
}

// Total returns the present total of a tenant.
func (s *Store) Total(ctx context.Context, tenant string) (Total, error) {
	var t Total
	err := s.write(ctx, func(q query) (err error) { // in a transaction, so that it is consistent
		t, err = q.total(tenant)
		return err
	})
	return t, err
}
