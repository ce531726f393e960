// Package inventory holds the sandboxes that a driver owns in its own process, by ID. It
// reserves the IDs of sandboxes that are being made. No ID is used twice, and a closed
// driver has no sandboxes.
package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Set holds sandboxes by ID. The zero value is empty and ready to use. Its methods are
// safe for concurrent use.
type Set[S paddock.Sandbox] struct {
	mu     sync.Mutex
	closed bool                    // guarded by mu
	places map[paddock.ID]place[S] // guarded by mu
	last   int                     // guarded by mu; number of the last added sandbox
}

// A place belongs to one sandbox.
type place[S paddock.Sandbox] struct {
	sandbox S
	number  int // order of addition; 0 during creation
}

func errClosed() error { return fmt.Errorf("the driver is closed: %w", paddock.Unavailable) }

// Reserve reserves an ID for a sandbox that is being made, until [Set.Add] or [Set.Forget].
// An ID in use is [paddock.Exists].
func (r *Set[S]) Reserve(id paddock.ID) error {
	if !id.Valid() {
		return fmt.Errorf("id %.64q is not a name of lower-case letters, digits and dashes, at most 63: %w", id, paddock.Invalid)
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

// Add adds a sandbox under its reserved ID. It fails if the set was closed meanwhile; the
// caller must then remove the sandbox.
func (r *Set[S]) Add(s S) error {
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

// Forget frees an ID, whether or not its sandbox was added.
func (r *Set[S]) Forget(id paddock.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.places, id)
}

// Open returns a sandbox, for a driver's Open. A reserved ID is [paddock.NotFound].
func (r *Set[S]) Open(id paddock.ID) (s S, err error) {
	if !id.Valid() {
		return s, fmt.Errorf("id %.64q: %w", id, paddock.Invalid)
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

// All returns the sandboxes that were added, oldest first.
func (r *Set[S]) All() []S {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all()
}

// all is All with mu held.
func (r *Set[S]) all() []S {
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

// List returns the status of each sandbox, oldest first, for a driver's List. It leaves out
// sandboxes that are removed meanwhile. Of sandboxes that are made beside each other, one that was
// created later may be added first, so the time of creation decides.
//
// It asks many at once, and the context of all ends within a bound: a Status must then return, so
// that one which does not answer delays nobody else.
func (r *Set[S]) List(ctx context.Context) ([]paddock.Status, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errClosed()
	}
	all := r.all()
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	states, errs := make([]paddock.Status, len(all)), make([]error, len(all))
	var asking sync.WaitGroup
	places := make(chan struct{}, listAtOnce)
	for i, s := range all {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			states[i], errs[i] = s.Status(ctx)
		})
	}
	asking.Wait()
	list := make([]paddock.Status, 0, len(all))
	for i, err := range errs {
		if err == nil {
			list = append(list, states[i])
		}
	}
	slices.SortStableFunc(list, func(a, b paddock.Status) int { return a.Created.Compare(b.Created) })
	return list, nil
}

const (
	listTime   = 5 * time.Second // how long a list waits for all its sandboxes together
	listAtOnce = 64              // sandboxes that are asked at the same time
)

// Err is [paddock.Unavailable] once the set is closed.
func (r *Set[S]) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed()
	}
	return nil
}

// Shut closes the set: it accepts no more sandboxes. It returns the remaining ones, oldest
// first, for the caller to remove, and whether this was the first call.
func (r *Set[S]) Shut() (left []S, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, r.closed = !r.closed, true
	return r.all(), first
}

// Close closes the set and removes every sandbox, for a driver's Close. It continues after
// an error and returns the first one.
func (r *Set[S]) Close() error {
	left, _ := r.Shut()
	var first error
	for _, s := range left {
		if err := s.Remove(context.Background()); err != nil && first == nil {
			first = fmt.Errorf("remove sandbox %s: %w", s.ID(), err)
		}
	}
	return first
}
