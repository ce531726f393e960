package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// said implements Ports for one caller with the sandbox "a".
type said struct{ public map[int]bool }

func (s said) mine(caller string, id paddock.ID) error {
	if caller != "one" || id != "a" {
		return fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
	}
	return nil
}

func (s said) Port(_ context.Context, caller string, id paddock.ID, port int) (api.Port, error) {
	return api.Port{Port: port, Public: s.public[port], URL: "https://80-a.example.com/"}, s.mine(caller, id)
}

func (s said) SetPublic(ctx context.Context, caller string, id paddock.ID, port int, public bool) (api.Port, error) {
	if err := s.mine(caller, id); err != nil {
		return api.Port{}, err
	}
	s.public[port] = public
	return s.Port(ctx, caller, id, port)
}

func (s said) Link(_ context.Context, caller, key string, id paddock.ID, _ int, ask api.Link) (api.Linked, error) {
	return api.Linked{URL: "https://80-a.example.com" + ask.Path + "?" + key, Expires: time.Unix(1e9, 0).Add(ask.Lifetime).UTC()}, s.mine(caller, id)
}

func TestWhoMayReachAPortIsItsOwnersToSay(t *testing.T) {
	tr := newTrial(t)
	tr.s.o.Ports, tr.caller.Who = said{map[int]bool{}}, "k1"
	const port = "/v1/sandboxes/a/ports/80"
	public := func(method string, want string) {
		t.Helper()
		if got := string(tr.want(200, method, port+"/public", "")); !strings.Contains(got, want) {
			t.Errorf("%s: %s", method, got)
		}
	}
	public("GET", `"public":false`)
	public("PUT", `"public":true`)
	public("GET", `"public":true`)
	if got := string(tr.want(200, "POST", port+"/url", `{"lifetime":1000000000,"path":"/x"}`)); !strings.Contains(got, `/x?k1","expires":"2001-09-09T01:46:41Z"`) {
		t.Error(got)
	}
	public("DELETE", `"public":false`)

	for _, bad := range []string{"0", "65536", "x"} {
		tr.want(400, "PUT", "/v1/sandboxes/a/ports/"+bad+"/public", "")
	}
	tr.want(400, "POST", port+"/url", `{"until":1}`)
	for _, header := range [][]string{nil, {"Authorization", "Bearer other"}} {
		path := "/v1/sandboxes/b/ports/80"
		if header != nil {
			path = port
		}
		tr.want(404, "GET", path+"/public", "", header...)
		tr.want(404, "PUT", path+"/public", "", header...)
		tr.want(404, "POST", path+"/url", "{}", header...)
	}

	tr.caller.ReadOnly = true
	public("GET", `"public":false`)
	tr.want(403, "PUT", port+"/public", "")
	tr.want(403, "DELETE", port+"/public", "")
	tr.want(403, "POST", port+"/url", "{}")

	tr.caller.ReadOnly, tr.s.o.Ports = false, nil
	if got := string(tr.want(501, "POST", port+"/url", "{}")); !strings.Contains(got, "paddock forward") {
		t.Error(got)
	}
}
