// Package roster keeps the sandboxes that a driver holds in its own process, by
// their IDs, with the laws of package paddock about names: none is taken twice,
// and a driver that is closed has no more.
package roster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// A Roster is ready to use when it is zero. Its methods are safe for many
// goroutines at once.
type Roster[S paddock.Sandbox] struct {
	mu     sync.Mutex
	closed bool                    // guarded by mu
	places map[paddock.ID]place[S] // guarded by mu
	last   int                     // guarded by mu: how many were added
}

// A place is for one sandbox.
type place[S paddock.Sandbox] struct {
	sandbox S
	number  int // in the order in which they came; 0 while it is made
}

func errClosed() error { return fmt.Errorf("the driver is closed: %w", paddock.Unavailable) }

// Reserve takes a name for a sandbox that is being made.
func (r *Roster[S]) Reserve(id paddock.ID) error {
	if !id.Valid() {
		return fmt.Errorf("id %q is not a name of lower-case letters, digits and dashes, at most 63: %w", id, paddock.Invalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed()
	}
	if _, taken := r.places[id]; taken {
		return fmt.Errorf("sandbox %s: %w", id, paddock.Exists)
	}
	if r.places == nil {
		r.places = map[paddock.ID]place[S]{}
	}
	r.places[id] = place[S]{}
	return nil
}

// Add puts a sandbox in the place that was reserved for it. An error says that
// the driver was closed meanwhile: the sandbox is the caller's to end.
func (r *Roster[S]) Add(s S) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		delete(r.places, s.ID())
		return errClosed()
	}
	r.last++
	r.places[s.ID()] = place[S]{s, r.last}
	return nil
}

// Forget frees a name, whether its sandbox was there or never made.
func (r *Roster[S]) Forget(id paddock.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.places, id)
}

// Open finds a sandbox, for a driver's Open.
func (r *Roster[S]) Open(id paddock.ID) (s S, err error) {
	if !id.Valid() {
		return s, fmt.Errorf("id %q: %w", id, paddock.Invalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return s, errClosed()
	}
	if p := r.places[id]; p.number > 0 {
		return p.sandbox, nil
	}
	return s, fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
}

// All gives the sandboxes that are there, oldest first.
func (r *Roster[S]) All() []S {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all()
}

// all is with mu held.
func (r *Roster[S]) all() []S {
	there := make([]place[S], 0, len(r.places))
	for _, p := range r.places {
		if p.number > 0 {
			there = append(there, p)
		}
	}
	slices.SortFunc(there, func(a, b place[S]) int { return cmp.Compare(a.number, b.number) })
	list := make([]S, len(there))
	for i, p := range there {
		list[i] = p.sandbox
	}
	return list
}

// List describes them, for a driver's List. What is removed meanwhile is left
// out.
func (r *Roster[S]) List(ctx context.Context) ([]paddock.Status, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errClosed()
	}
	all := r.all()
	r.mu.Unlock()
	list := make([]paddock.Status, 0, len(all))
	for _, s := range all {
		if st, err := s.Status(ctx); err == nil {
			list = append(list, st)
		}
	}
	return list, nil
}

// Close removes every sandbox, for a driver's Close, and lets none in any more.
// It goes on after a failure and tells the first.
func (r *Roster[S]) Close() error {
	r.mu.Lock()
	r.closed = true
	all := r.all()
	r.mu.Unlock()
	var first error
	for _, s := range all {
		if err := s.Remove(context.Background()); err != nil && first == nil {
			first = fmt.Errorf("remove sandbox %s: %w", s.ID(), err)
		}
	}
	return first
}
