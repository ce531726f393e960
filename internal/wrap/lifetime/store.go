package lifetime

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
)

// A Record is the stored state of a sandbox's lifetime.
type Record struct {
	ID      paddock.ID `json:"id"`
	Version int64      `json:"version"` // number of writes; never stored as 0
	Terms   Terms      `json:"terms"`
	Key     string     `json:"key,omitempty"` // of its creation; see [Options]

	Created  time.Time `json:"created"`
	Deadline time.Time `json:"deadline,omitzero"` // zero means none
	Wall     bool      `json:"wall,omitempty"`    // the deadline is by the wall clock
	Written  time.Time `json:"written"`

	Spent allowance.Meter `json:"spent,omitzero"` // of a sandbox with a budget

	Paused   Why       `json:"paused,omitempty"`   // cause of a pause; stored before the pause
	Active   time.Time `json:"active,omitzero"`    // end of the last activity, of a paused sandbox
	Ending   Why       `json:"ending,omitempty"`   // cause of a removal in progress
	Stubborn bool      `json:"stubborn,omitempty"` // it is removed because it let the pause at its end fail for too long
	Hindered bool      `json:"hindered,omitempty"` // it is removed because the host did
	Ended    time.Time `json:"ended,omitzero"`     // time of the removal; only the record is left, for later questions
}

// A Store keeps the records of one driver's sandboxes. Servers with a common database have
// separate Stores. Methods are safe for concurrent use.
type Store interface {
	// Load returns every record.
	Load(ctx context.Context) ([]Record, error)

	// Get returns a record, or paddock.NotFound.
	Get(ctx context.Context, id paddock.ID) (Record, error)

	// Save replaces the record that has the version in r, where 0 means that there is none,
	// and returns the new version. If the stored version differs, Save changes nothing and
	// returns paddock.Conflict.
	Save(ctx context.Context, r Record) (version int64, err error)

	// Delete removes a record on the same condition. A missing record is not an error.
	Delete(ctx context.Context, id paddock.ID, version int64) error
}

// A Memory is a Store in the memory of its process. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	records map[paddock.ID]Record // guarded by mu
}

// Load implements [Store].
func (m *Memory) Load(context.Context) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Collect(maps.Values(m.records))
	slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Get implements [Store].
func (m *Memory) Get(_ context.Context, id paddock.ID) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[id]
	if !ok {
		return Record{}, fmt.Errorf("lease of sandbox %s: %w", id, paddock.NotFound)
	}
	return r, nil
}

// Save implements [Store].
func (m *Memory) Save(_ context.Context, r Record) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.records[r.ID].Version; have != r.Version {
		return 0, fmt.Errorf("lease of sandbox %s has version %d, not %d: %w", r.ID, have, r.Version, paddock.Conflict)
	}
	if m.records == nil {
		m.records = make(map[paddock.ID]Record)
	}
	r.Version++
	m.records[r.ID] = r
	return r.Version, nil
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, id paddock.ID, version int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, ok := m.records[id]; ok && have.Version != version {
		return fmt.Errorf("lease of sandbox %s has version %d, not %d: %w", id, have.Version, version, paddock.Conflict)
	}
	delete(m.records, id)
	return nil
}
