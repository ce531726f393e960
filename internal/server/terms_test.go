package server

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

func leased(t *testing.T, longest time.Duration) func(*Caller) {
	return func(c *Caller) {
		d, err := lifetime.New(t.Context(), c.Driver, lifetime.Options{Longest: longest})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		c.Driver = d
	}
}

func TestTermsAreGivenToldAndChanged(t *testing.T) {
	tr := newTrial(t, leased(t, 3*time.Hour))
	terms := func(code int, method, path, body string) (l api.Lease) {
		t.Helper()
		data := tr.want(code, method, path, body)
		if err := json.Unmarshal(data, &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a","terms":{"lifetime":3600000000000,"keep_alive":60000000000,"on_end":"pause","idle_remove":600000000000}}`)
	l := terms(200, "GET", "/v1/sandboxes/a/terms", "")
	want := api.Terms{Lifetime: time.Hour, KeepAlive: time.Minute, OnEnd: "pause", IdleRemove: 10 * time.Minute}
	if l.Terms != want || l.Ends.Sub(l.Created).Round(time.Minute) != time.Hour || l.Renew.IsZero() {
		t.Errorf("%+v", l)
	}
	l = terms(200, "POST", "/v1/sandboxes/a/extend", `{"by":3600000000000}`)
	if l.Ends.Sub(l.Created).Round(time.Minute) != 2*time.Hour {
		t.Errorf("%+v", l)
	}
	tr.want(403, "POST", "/v1/sandboxes/a/extend", `{"by":7200000000000}`)
	tr.want(400, "POST", "/v1/sandboxes/a/extend", `{"by":-1}`)
	terms(200, "POST", "/v1/sandboxes/a/renew", "")
	l = terms(200, "PUT", "/v1/sandboxes/a/terms", `{"idle_remove":1000000000000,"on_end":"remove"}`)
	if l.Terms != (api.Terms{IdleRemove: 1000 * time.Second}) {
		t.Errorf("%+v", l)
	}
	tr.want(409, "POST", "/v1/sandboxes/a/renew", "")
	tr.want(400, "PUT", "/v1/sandboxes/a/terms", `{"lifetime":1}`)
	tr.want(400, "PUT", "/v1/sandboxes/a/terms", `{"on_end":"never"}`)
	tr.want(400, "POST", "/v1/sandboxes", `{"id":"b","terms":{"deadline":"2001-01-01T00:00:00Z"}}`)
	tr.want(404, "GET", "/v1/sandboxes/b/terms", "")
	tr.want(201, "POST", "/v1/sandboxes/a/fork", `{"spec":{"id":"c"},"terms":{"lifetime":60000000000}}`)
	if l := terms(200, "GET", "/v1/sandboxes/c/terms", ""); l.Terms.Lifetime != time.Minute {
		t.Errorf("%+v", l)
	}
}

func TestABudgetIsGivenToldAndRaised(t *testing.T) {
	tr := newTrial(t, leased(t, 0))
	lease := func(code int, method, path, body string) (l api.Lease) {
		t.Helper()
		if err := json.Unmarshal(tr.want(code, method, path, body), &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a","terms":{"budget":{"cpu":60000000000,"cost":"0.5","prices":{"cpu_second":"0.001"}}}}`)
	l := lease(200, "GET", "/v1/sandboxes/a/terms", "")
	if l.Terms.Budget.CPU != time.Minute || l.Terms.Budget.Prices.CPUSecond != "0.001" || l.Spent == nil || !strings.HasPrefix(l.Spent.Cost, "0.000") || l.Spent.Over != "" {
		t.Errorf("%+v", l)
	}
	l = lease(200, "POST", "/v1/sandboxes/a/budget", `{"add":{"cpu":60000000000,"cost":"0.25"},"set":{"prices":{"cpu_second":"0.002"}}}`)
	if l.Terms.Budget.CPU != 2*time.Minute || l.Terms.Budget.Cost != "0.75" || l.Terms.Budget.Prices.CPUSecond != "0.002" {
		t.Errorf("%+v", l)
	}
	tr.want(409, "POST", "/v1/sandboxes/a/budget", `{"add":{"network":1}}`)
	tr.want(400, "POST", "/v1/sandboxes/a/budget", `{}`)
	tr.want(400, "POST", "/v1/sandboxes/a/budget", `{"set":{"cost":"-1"}}`)
	tr.want(400, "POST", "/v1/sandboxes", `{"id":"b","terms":{"budget":{"cost":"1"}}}`)
	tr.want(404, "GET", "/v1/sandboxes/b", "")
	if l := lease(200, "PUT", "/v1/sandboxes/a/terms", `{}`); l.Terms != (api.Terms{}) || l.Spent != nil {
		t.Errorf("%+v", l)
	}
	tr.caller.ReadOnly = true
	tr.want(403, "POST", "/v1/sandboxes/a/budget", `{"set":{"cpu":60000000000}}`)
}

func TestWhoMayOnlyLookChangesNoTerms(t *testing.T) {
	tr := newTrial(t, leased(t, 0))
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.caller.ReadOnly = true
	tr.want(200, "GET", "/v1/sandboxes/a/terms", "")
	tr.want(403, "PUT", "/v1/sandboxes/a/terms", `{}`)
	tr.want(403, "POST", "/v1/sandboxes/a/extend", `{"by":1000000000}`)
	tr.want(403, "POST", "/v1/sandboxes/a/renew", "")
}

func TestAServerWithoutTermsSaysSoAndMakesNothing(t *testing.T) {
	tr := newTrial(t)
	data := tr.want(501, "POST", "/v1/sandboxes", `{"id":"a","terms":{"lifetime":60000000000}}`)
	if !strings.Contains(string(data), "stay until they are removed") {
		t.Errorf("%s", data)
	}
	tr.want(404, "GET", "/v1/sandboxes/a", "")
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.want(501, "GET", "/v1/sandboxes/a/terms", "")
}

func TestTermsOfSomebodysEphemeralSandboxAreNobodyElses(t *testing.T) {
	tr := newTrial(t, leased(t, 0))
	tr.caller.Trusted = true
	a, err := tr.s.account("one")
	if err != nil {
		t.Fatal(err)
	}
	defer a.leave()
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	a.mu.Lock()
	a.owners[paddock.ID("a")] = &lease{token: "somebody"}
	a.mu.Unlock()
	tr.want(404, "GET", "/v1/sandboxes/a/terms", "")
	tr.want(404, "PUT", "/v1/sandboxes/a/terms", `{}`)
	a.mu.Lock()
	delete(a.owners, "a")
	a.mu.Unlock()
}
