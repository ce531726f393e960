package server

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A shelf is a driver with one sandbox, which the test replaces.
type shelf struct {
	empty

	mu      sync.Mutex
	sb      paddock.Sandbox // guarded by mu; nil if there is none
	opened  int             // guarded by mu
	opening func()          // if not nil, called by Open after it has chosen its result
}

func (s *shelf) Open(context.Context, paddock.ID) (paddock.Sandbox, error) {
	s.mu.Lock()
	sb := s.sb
	s.opened++
	s.mu.Unlock()
	if s.opening != nil {
		s.opening()
	}
	if sb == nil {
		return nil, paddock.NotFound
	}
	return sb, nil
}

func (s *shelf) put(sb paddock.Sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sb = sb
}

// A thing is a sandbox of a shelf, with answers set by the test.
type thing struct {
	paddock.Sandbox
	id  paddock.ID
	err error
}

func (t *thing) ID() paddock.ID { return t.id }

func (t *thing) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{ID: t.id, Tier: paddock.Sim, State: paddock.Ready}, t.err
}

func (t *thing) Remove(context.Context) error { return t.err }

func newHandles() *handles { return &handles{open: map[handleKey]*handle{}} }

func TestAHandleThatWasBeingOpenedWhileItsSandboxWentIsNotKept(t *testing.T) {
	old, young := &thing{id: "a"}, &thing{id: "a"}
	h, d := newHandles(), &shelf{sb: old}
	d.opening = func() { // replace the sandbox meanwhile
		d.opening = nil
		h.forget(d, "a")
		d.put(young)
	}
	if _, err := h.get(t.Context(), d, "a"); err != nil {
		t.Fatal(err)
	}
	if sb, err := h.get(t.Context(), d, "a"); err != nil || sb != paddock.Sandbox(young) {
		t.Errorf("the sandbox that has gone was given: %v", err)
	}
}

func TestAHandleIsKeptForAMomentOnly(t *testing.T) {
	h, d := newHandles(), &shelf{sb: &thing{id: "a"}}
	key := handleKey{d, "a"}
	h.put(key, &handle{&thing{id: "a"}, time.Now().Add(-handleTime)}, h.count())
	if sb, err := h.get(t.Context(), d, "a"); err != nil || sb != d.sb {
		t.Errorf("an old handle was given: %v", err)
	}
	h.sweep(time.Now().Add(2 * handleTime))
	if len(h.open) != 0 {
		t.Error("an old handle is kept")
	}
}

func TestASandboxThatIsNotThereAnyMoreIsOpenedAnew(t *testing.T) {
	d := &shelf{sb: &thing{id: "a", err: paddock.NotFound}}
	tr := newTrial(t, func(c *Caller) { c.Driver = d })
	tr.want(404, "GET", "/v1/sandboxes/a/usage", "")
	d.put(&thing{id: "a"})
	tr.want(200, "GET", "/v1/sandboxes/a/usage", "")
}

func TestARemovalIsOfWhatHasTheNameNow(t *testing.T) {
	d := &shelf{sb: &thing{id: "a"}}
	tr := newTrial(t, func(c *Caller) { c.Driver = d })
	tr.want(200, "GET", "/v1/sandboxes/a/usage", "")
	d.put(&thing{id: "a", err: paddock.Conflict})
	tr.want(409, "DELETE", "/v1/sandboxes/a", "")
}
