package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// Leases are records about the lifetimes of the sandboxes of one place, one for each ID. A record may outlive its
// sandbox. R is a struct whose JSON is an object with a string "id" and a number "version"; the store reads nothing
// else of it.
type Leases[R any] struct {
	s     *Store
	place string
}

// LeasesOf returns the leases of a place.
func LeasesOf[R any](s *Store, place string) *Leases[R] { return &Leases[R]{s, place} }

// Load returns every record, by ID.
func (l *Leases[R]) Load(ctx context.Context) ([]R, error) {
	var list []R
	err := l.s.read(ctx, func(q query) error {
		return q.each(func(found row) error {
			r, err := scanLease[R](found)
			list = append(list, r)
			return err
		}, "SELECT version, data FROM leases WHERE place = ? ORDER BY id", l.place)
	})
	return list, err
}

// Get returns a record, or [paddock.NotFound].
func (l *Leases[R]) Get(ctx context.Context, id paddock.ID) (R, error) {
	var r R
	err := l.s.read(ctx, func(q query) (err error) {
		r, err = scanLease[R](q.row("SELECT version, data FROM leases WHERE place = ? AND id = ?", l.place, clean(string(id))))
		return absent(err, "lease of sandbox", string(id))
	})
	return r, err
}

// scanLease reads a record with its present version.
func scanLease[R any](found row) (R, error) {
	var r R
	var version int64
	var data string
	if err := found.Scan(&version, &data); err != nil {
		return r, err
	}
	if err := value(data, &r); err != nil {
		return r, err
	}
	return r, value(fmt.Sprintf(`{"version":%d}`, version), &r)
}

// Save replaces the record that has the version in r, where 0 means that there is none, and returns the new version. If
// the stored version differs it changes nothing and returns [paddock.Conflict].
func (l *Leases[R]) Save(ctx context.Context, r R) (int64, error) {
	data, err := text(r)
	if err != nil {
		return 0, err
	}
	var head struct {
		ID      paddock.ID `json:"id"`
		Version int64      `json:"version"`
	}
	if err := json.Unmarshal([]byte(data), &head); err != nil || !head.ID.Valid() || head.Version < 0 {
		return 0, fmt.Errorf("a lease without a valid id and version: %w", paddock.Invalid)
	}
	write := l.s.write
	if head.Version == 0 { // of a new sandbox
		write = l.s.writeLive
	}
	err = write(ctx, func(q query) error {
		change, args := "UPDATE leases SET data = ?, version = version + 1 WHERE place = ? AND id = ? AND version = ?", []any{data, l.place, head.ID, head.Version}
		if head.Version == 0 {
			change, args = "INSERT INTO leases (data, place, id, version) VALUES (?, ?, ?, 1) ON CONFLICT (place, id) DO NOTHING", args[:3]
		}
		n, err := q.exec(change, args...)
		if err != nil || n > 0 {
			return err
		}
		return l.conflict(q, head.ID, head.Version)
	})
	return head.Version + 1, err
}

// Delete removes a record on the same condition. A missing record is not an error.
func (l *Leases[R]) Delete(ctx context.Context, id paddock.ID, version int64) error {
	return l.s.write(ctx, func(q query) error {
		n, err := q.exec("DELETE FROM leases WHERE place = ? AND id = ? AND version = ?", l.place, clean(string(id)), version)
		if err != nil || n > 0 {
			return err
		}
		if err := l.conflict(q, id, version); !errors.Is(err, errNone) {
			return err
		}
		return nil
	})
}

// errNone reports a missing record.
var errNone = fmt.Errorf("no lease: %w", paddock.Conflict)

// conflict reports the stored version if it differs from the known one.
func (l *Leases[R]) conflict(q query, id paddock.ID, known int64) error {
	var have int64
	err := q.row("SELECT version FROM leases WHERE place = ? AND id = ?", l.place, clean(string(id))).Scan(&have)
	if paddock.KindOf(absent(err, "lease", string(id))) == paddock.NotFound {
		return fmt.Errorf("sandbox %s has no lease any more: %w", id, errNone)
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the lease of sandbox %s has version %d, not %d: %w", id, have, known, paddock.Conflict)
}
