package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

// Bounds of the server's state for one caller.
const (
	maxAttachments = 10_000 // with those of ended processes
	maxWatchers    = 16     // further attachments of one process, besides its starter's
	maxLeases      = 10_000
	maxCreations   = 10_000
	maxHandles     = 10_000
)

// An account is the state that the server keeps for one caller between requests.
type account struct {
	s     *Server
	name  string
	news  news
	boxes handles

	output, bodies, inputHeld, files, answers budget // bytes held for the caller
	sentAhead                                 budget // bytes that its sandboxes can send ahead
	results                                   *interpreter.Room
	encoding                                  chan struct{} // has an element for each answer that is encoded

	mu          sync.Mutex
	streams     int                    // guarded by mu; requests in progress
	attachments map[string]*attachment // guarded by mu
	watchers    map[watched]int        // guarded by mu; number of attachments of each process
	leases      map[string]*lease      // guarded by mu
	owners      map[paddock.ID]*lease  // guarded by mu; the leases of ephemeral sandboxes
	creations   map[string]*creation   // guarded by mu
	inputs      map[inputKey]*input    // guarded by mu

	interpreters map[handleKey]*interpreting // guarded by mu
}

// A watched is a process that has attachments.
type watched struct {
	box handleKey
	pid paddock.PID
}

// accountOf returns the account of a caller, and makes it if there is none.
func (s *Server) accountOf(name string) *account {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[name]
	if a == nil {
		a = &account{
			s: s, name: name,
			boxes:       handles{open: map[handleKey]*handle{}},
			output:      budget{max: maxOutput, floor: floor, above: &s.output},
			bodies:      budget{max: maxBodies, floor: floor, above: &s.bodies},
			inputHeld:   budget{max: maxInputHeld, floor: floor, above: &s.inputHeld},
			files:       budget{max: maxFiles, floor: floor, above: &s.files},
			answers:     budget{max: maxAnswers, floor: floor, above: &s.answers},
			sentAhead:   budget{max: maxAhead, floor: minAhead, above: &s.sentAhead},
			results:     interpreter.NewRoom(maxResults, resultFloor, s.results),
			encoding:    make(chan struct{}, encodings),
			watchers:    map[watched]int{},
			attachments: map[string]*attachment{}, leases: map[string]*lease{}, owners: map[paddock.ID]*lease{},
			creations: map[string]*creation{}, inputs: map[inputKey]*input{},
			interpreters: map[handleKey]*interpreting{},
		}
		s.accounts[name] = a
	}
	return a
}

// account counts a request of a caller, and returns the caller's account.
func (s *Server) account(name string) (*account, error) {
	a := s.accountOf(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams >= s.o.Streams {
		return nil, fmt.Errorf("too many requests in progress (%d): %w", a.streams, paddock.Exhausted)
	}
	a.streams++
	return a, nil
}

func (a *account) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams--
}

// sweep releases all state that has expired.
func (a *account) sweep(now time.Time) {
	a.boxes.sweep(now)
	for _, it := range a.idle(now) {
		a.s.wg.Go(func() { _ = it.in.Close() }) // it never fails
	}
	a.mu.Lock()
	var late []*attachment
	for token, at := range a.attachments {
		if at.late(now) {
			late = append(late, at)
			delete(a.attachments, token)
		}
	}
	var mute []*input
	for key, in := range a.inputs {
		if in.late(now) {
			mute = append(mute, in)
			delete(a.inputs, key)
		}
	}
	var ended []*lease
	for _, l := range a.leases {
		if l.late(now) {
			ended = append(ended, l)
		}
	}
	for token, c := range a.creations {
		if c.late(now) {
			delete(a.creations, token)
		}
	}
	a.mu.Unlock()
	for _, at := range late {
		at.detach()
	}
	for _, in := range mute {
		in.release()
	}
	for _, l := range ended {
		a.s.wg.Go(func() {
			// The sandbox still exists after an error, so the next caller who asks for it
			// sees the error.
			if err := a.endLease(context.Background(), l); err != nil {
				a.s.log.Error("remove ephemeral sandboxes", "caller", a.name, "error", err.Error())
			}
		})
	}
}

// close releases everything. The server accepts no more requests by then.
func (a *account) close() error {
	a.mu.Lock()
	attachments, inputs, leases := a.attachments, a.inputs, slices.Collect(maps.Values(a.leases))
	interpreters := slices.Collect(maps.Values(a.interpreters))
	a.attachments, a.inputs, a.interpreters = map[string]*attachment{}, map[inputKey]*input{}, map[handleKey]*interpreting{}
	a.mu.Unlock()
	for _, at := range attachments {
		at.detach()
	}
	for _, in := range inputs {
		in.release()
	}
	var closing sync.WaitGroup
	defer closing.Wait()
	for _, it := range interpreters { // beside what follows, because a sandbox may be slow to let go
		closing.Go(func() { _ = it.in.Close() }) // it never fails
	}
	var errs []error
	for _, l := range leases {
		errs = append(errs, a.endLease(context.Background(), l))
	}
	return errors.Join(errs...)
}
