package server

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestAnEphemeralSandboxThatCannotBeRemovedIsTriedAgain(t *testing.T) {
	tr := newTrial(t)
	a, err := tr.s.account("one")
	if err != nil {
		t.Fatal(err)
	}
	l := &lease{token: someToken, gone: make(chan struct{}), left: time.Now()}
	a.leases[someToken] = l
	sb := &thing{id: "a", err: paddock.Unavailable}
	if err := a.own(someToken, tr.caller.Driver, sb); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.endLease(t.Context(), l); !errors.Is(err, paddock.Unavailable) {
			t.Errorf("%v", err)
		}
	}
	if a.leased(someToken) || a.owners["a"] != l {
		t.Error("a lease that ends takes another sandbox, or has lost its own")
	}
	sb.err = nil
	a.sweep(time.Now().Add(2 * leaseGrace))
	select {
	case <-l.gone:
	case <-time.After(time.Minute):
		t.Fatal("it is not tried again")
	}
	if err := a.endLease(t.Context(), l); err != nil {
		t.Errorf("ended twice: %v", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.leases) != 0 || len(a.owners) != 0 {
		t.Error("what has ended is kept")
	}
}

func TestANameThatIsUsedAgainHasNoOldOwner(t *testing.T) {
	tr := newTrial(t)
	a, err := tr.s.account("one")
	if err != nil {
		t.Fatal(err)
	}
	l := &lease{token: someToken, gone: make(chan struct{}), left: time.Now()}
	a.leases[someToken] = l
	if err := a.own(someToken, tr.caller.Driver, &thing{id: "a"}); err != nil { // removed without this server
		t.Fatal(err)
	}
	tr.want(404, "GET", "/v1/sandboxes/a", "")
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.want(200, "GET", "/v1/sandboxes/a", "")
	if err := a.endLease(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	tr.want(200, "GET", "/v1/sandboxes/a", "")
}

func TestAForkHasWhatItsSourceHasAndNoMoreIsAskedFor(t *testing.T) {
	from := paddock.Status{
		Tier: paddock.Jail, User: "u", Dir: "/d", Labels: map[string]string{"x": "1"},
		Limits: paddock.Limits{Memory: 1, CPUs: 2, PIDs: 3, Disk: 4, Files: 5, IO: 6, Lifetime: 7},
	}
	got := inherit(paddock.Spec{Limits: paddock.Limits{Disk: 9}, Dir: "/e"}, from, false)
	want := from.Limits
	want.Disk = 9
	if got.Tier != paddock.Jail || got.Limits != want || got.User != "u" || got.Dir != "/e" || got.Labels["x"] != "1" {
		t.Errorf("%+v", got)
	}
}
