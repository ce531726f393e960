package store

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A State is the stage of a sandbox between its creation and removal. Its driver knows its status.
type State string

const (
	Making   State = "making"   // its driver may or may not have created it yet
	Ready    State = "ready"    // it was created
	Removing State = "removing" // its removal was requested, and it may be gone
	Lost     State = "lost"     // its driver no longer knows it; it counts for no quota
)

// A Sandbox is the server's record of a sandbox, besides the driver's status.
type Sandbox struct {
	ID     paddock.ID
	Tenant string
	Token  string // unique to this sandbox, although its ID may be reused later
	Place  string // the driver that has it, among those whose servers share the store
	Maker  string // of an ephemeral sandbox: the driver whose end it shares; else empty
	Tier   paddock.Tier
	Limits paddock.Limits // as asked
	Labels map[string]string
	State  State
	Image  string // digest of the image below its files; empty is none

	// Spec is the spec as asked, with its Limits. It is stored without possible credentials. No call reads it back,
	// because it may be large: sandboxes are listed every few seconds.
	Spec paddock.Spec

	Created time.Time
	Reserved
}

// Since returns the status with the start moved to the time of this record. A sandbox made ahead of time existed
// before, and that time is not its tenant's.
func (b Sandbox) Since(st paddock.Status) paddock.Status {
	early := b.Created.Sub(st.Created)
	if b.Created.IsZero() || st.Created.IsZero() || early <= 0 {
		return st
	}
	st.Created = b.Created
	if st.Usage.Wall >= 0 {
		st.Usage.Wall = max(0, st.Usage.Wall-early)
	}
	return st
}

const sandboxColumns = "SELECT id, tenant, token, place, maker, tier, limits, labels, state, image, created, cpu, memory, pids, disk FROM sandboxes"

func scanSandbox(r row) (Sandbox, error) {
	var b Sandbox
	var limits, labels string
	var created int64
	if err := r.Scan(&b.ID, &b.Tenant, &b.Token, &b.Place, &b.Maker, &b.Tier, &limits, &labels, &b.State, &b.Image, &created, &b.CPU, &b.Memory, &b.PIDs, &b.Disk); err != nil {
		return b, err
	}
	b.Created = moment(created)
	if err := value(limits, &b.Limits); err != nil {
		return b, err
	}
	return b, value(labels, &b.Labels)
}

// AddSandbox stores a sandbox that is about to be created, if admit accepts the tenant's total, which nothing else
// changes meanwhile. admit may be called several times. An ID in use, by any tenant, is [paddock.Exists].
func (s *Store) AddSandbox(ctx context.Context, b Sandbox, admit func(*Total) error) error {
	if !b.ID.Valid() {
		return fmt.Errorf("sandbox %q: 1 to 63 lower-case letters, digits and dashes: %w", b.ID, paddock.Invalid)
	}
	spec, err := text(Redact(b.Spec))
	if err != nil {
		return err
	}
	limits, err := text(b.Spec.Limits)
	if err != nil {
		return err
	}
	labels, err := text(b.Labels)
	if err != nil {
		return err
	}
	return s.writeLive(ctx, func(q query) error {
		t, err := q.total(b.Tenant)
		if err != nil {
			return err
		}
		if err := admit(&t); err != nil {
			return err
		}
		if _, err := q.exec("UPDATE tenants SET rate = ? WHERE id = ?", stamp(t.Rate), b.Tenant); err != nil {
			return err
		}
		_, err = q.exec("INSERT INTO sandboxes (id, tenant, token, place, maker, tier, spec, limits, labels, state, image, created, cpu, memory, pids, disk) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			b.ID, b.Tenant, b.Token, b.Place, b.Maker, b.Tier, spec, limits, labels, Making, b.Image, stamp(b.Created), b.CPU, b.Memory, b.PIDs, b.Disk)
		return err
	})
}

// ReadySandbox records that a sandbox was created, with its ID and tier.
func (s *Store) ReadySandbox(ctx context.Context, token string, id paddock.ID, tier paddock.Tier) error {
	return s.writeLive(ctx, func(q query) error {
		n, err := q.exec("UPDATE sandboxes SET state = ?, id = ?, tier = ? WHERE token = ? AND state = ?", Ready, id, tier, token, Making)
		return some(n, err, "sandbox", string(id))
	})
}

// MarkSandbox records that a sandbox is being removed, or was lost. A missing sandbox is [paddock.NotFound].
func (s *Store) MarkSandbox(ctx context.Context, token string, state State) error {
	return s.writeLive(ctx, func(q query) error {
		n, err := q.exec("UPDATE sandboxes SET state = ? WHERE token = ?", state, token)
		return some(n, err, "sandbox", token)
	})
}

// LabelSandbox replaces the labels.
func (s *Store) LabelSandbox(ctx context.Context, token string, labels map[string]string) error {
	kept, err := text(labels)
	if err != nil {
		return err
	}
	return s.write(ctx, func(q query) error {
		n, err := q.exec("UPDATE sandboxes SET labels = ? WHERE token = ?", kept, token)
		return some(n, err, "sandbox", token)
	})
}

// ReserveSandbox changes the reservation of a sandbox, if admit accepts the total of its tenant's others. It returns
// the previous reservation.
func (s *Store) ReserveSandbox(ctx context.Context, token string, change func(Reserved) Reserved, admit func(*Total) error) (Reserved, error) {
	var before Reserved
	err := s.write(ctx, func(q query) error {
		var tenant string
		if err := q.row("SELECT tenant FROM sandboxes WHERE token = ?", token).Scan(&tenant); err != nil {
			return absent(err, "sandbox", token)
		}
		t, err := q.total(tenant)
		if err != nil {
			return err
		}
		err = q.row("SELECT cpu, memory, pids, disk FROM sandboxes WHERE token = ?", token).Scan(&before.CPU, &before.Memory, &before.PIDs, &before.Disk)
		if err != nil {
			return absent(err, "sandbox", token)
		}
		t.CPU, t.Memory, t.PIDs, t.Disk = t.CPU-before.CPU, t.Memory-before.Memory, t.PIDs-before.PIDs, t.Disk-before.Disk
		if err := admit(&t); err != nil {
			return err
		}
		after := change(before)
		_, err = q.exec("UPDATE sandboxes SET cpu = ?, memory = ?, pids = ?, disk = ? WHERE token = ?", after.CPU, after.Memory, after.PIDs, after.Disk, token)
		return err
	})
	return before, err
}

// ForgetSandbox deletes a sandbox from the store. A missing sandbox is not an error.
func (s *Store) ForgetSandbox(ctx context.Context, token string) error {
	return s.writeLive(ctx, func(q query) error {
		_, err := q.exec("DELETE FROM sandboxes WHERE token = ?", token)
		return err
	})
}

// Sandbox returns a tenant's sandbox. The error is the same for another tenant's sandbox as for a missing one.
func (s *Store) Sandbox(ctx context.Context, tenant string, id paddock.ID) (Sandbox, error) {
	var b Sandbox
	err := s.read(ctx, func(q query) (err error) {
		b, err = scanSandbox(q.row(sandboxColumns+" WHERE id = ? AND tenant = ?", clean(string(id)), tenant))
		return absent(err, "sandbox", string(id))
	})
	return b, err
}

// Sandboxes returns the sandboxes of a tenant, of a place, or of both, oldest first. An empty name means any.
func (s *Store) Sandboxes(ctx context.Context, tenant, place string) ([]Sandbox, error) {
	var list []Sandbox
	err := s.read(ctx, func(q query) error {
		where, args := " WHERE 1 = 1", []any{}
		if tenant != "" {
			where, args = where+" AND tenant = ?", append(args, clean(tenant))
		}
		if place != "" {
			where, args = where+" AND place = ?", append(args, clean(place))
		}
		return q.each(func(r row) error {
			b, err := scanSandbox(r)
			list = append(list, b)
			return err
		}, sandboxColumns+where+" ORDER BY created, id", args...)
	})
	return list, err
}
