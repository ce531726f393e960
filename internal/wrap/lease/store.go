package lease

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Record is what is kept of a sandbox's lifetime, over restarts.
type Record struct {
	ID      paddock.ID `json:"id"`
	Version int64      `json:"version"` // counts the writes; 0 is never written
	Terms   Terms      `json:"terms"`

	Created  time.Time `json:"created"`
	Deadline time.Time `json:"deadline,omitzero"` // zero is none
	Wall     bool      `json:"wall,omitempty"`    // the deadline is by the wall clock
	Written  time.Time `json:"written"`

	Paused Why       `json:"paused,omitempty"` // what has it paused; written before it is done
	Active time.Time `json:"active,omitzero"`  // when the last activity was over, of one that is paused
	Ending Why       `json:"ending,omitempty"` // it is being removed, for this
	Ended  time.Time `json:"ended,omitzero"`   // it was; what is left is this record, for who asks
}

// A Store keeps the records of one driver's sandboxes: where servers share a
// database each has a Store of its own. Calls are safe for many goroutines at once.
type Store interface {
	// Load gives every record.
	Load(ctx context.Context) ([]Record, error)

	// Get gives one, or paddock.NotFound.
	Get(ctx context.Context, id paddock.ID) (Record, error)

	// Save writes a record over the one with the version in it, where 0 is none,
	// and gives the new version. If another one is there it changes nothing, and
	// is paddock.Conflict.
	Save(ctx context.Context, r Record) (version int64, err error)

	// Delete removes a record, on the same condition. One that is gone is not
	// an error.
	Delete(ctx context.Context, id paddock.ID, version int64) error
}

// A Memory is a Store that lives as long as its process. Zero is empty.
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
