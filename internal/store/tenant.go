package store

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Tenant is someone who has sandboxes, and sees nobody else's.
type Tenant struct {
	ID      string    `json:"id"` // of the form of a paddock.ID
	Name    string    `json:"name,omitempty"`
	Quota   Quota     `json:"quota"`
	Created time.Time `json:"created"`
}

// Unbounded is a quota without a bound.
const Unbounded = -1

// A Quota bounds what a tenant may have at once. Zero is none at all, and
// [Unbounded] no bound, each of which must be said.
type Quota struct {
	Sandboxes int64 `json:"sandboxes"`
	CPU       int64 `json:"cpu"`       // thousandths of a processor
	Memory    int64 `json:"memory"`    // bytes
	PIDs      int64 `json:"pids"`      // processes and threads
	Disk      int64 `json:"disk"`      // bytes
	Snapshots int64 `json:"snapshots"` // how many
	Rate      int64 `json:"rate"`      // sandboxes made per minute
}

// A Total is what a tenant has: the sum of what its sandboxes may use.
type Total struct {
	Quota     Quota // what it may have
	Sandboxes int64
	Snapshots int64
	Reserved

	// Rate is when the tenant has used up what it may make in a minute; whoever
	// admits one more moves it.
	Rate time.Time
}

// Reserved is what one sandbox may use.
type Reserved struct {
	CPU    int64 // thousandths of a processor
	Memory int64 // bytes
	PIDs   int64
	Disk   int64 // bytes
}

// AddTenant makes a tenant; one of this name is [paddock.Exists].
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

// SetTenant changes name and quota. What the tenant has already stays, also
// where it is more than the quota.
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

// Tenant finds one.
func (s *Store) Tenant(ctx context.Context, id string) (Tenant, error) {
	var t Tenant
	err := s.read(ctx, func(q query) (err error) {
		t, err = scanTenant(q.row(tenantColumns+" WHERE id = ?", clean(id)))
		return absent(err, "tenant", id)
	})
	return t, err
}

// Tenants gives all, by name.
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

// RemoveTenant forgets a tenant, with its keys and what dialects noted. One that still has
// sandboxes or snapshots is [paddock.Conflict]. What it used stays on record.
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

// total counts what a tenant has, and keeps others from changing it meanwhile.
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

// Total counts what a tenant has.
func (s *Store) Total(ctx context.Context, tenant string) (Total, error) {
	var t Total
	err := s.write(ctx, func(q query) (err error) { // in a transaction, so that it is of one moment
		t, err = q.total(tenant)
		return err
	})
	return t, err
}
