package client_test

import (
	"context"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// oneKey is a tenant that has one key.
type oneKey struct{ revoked bool }

func (k *oneKey) List(context.Context) ([]api.Key, error) {
	return []api.Key{{ID: "k1", Scopes: []string{"read"}, Created: time.Unix(1, 0).UTC()}}, nil
}

func (k *oneKey) Make(_ context.Context, n api.NewKey) (api.Key, error) {
	return api.Key{ID: "k2", Name: n.Name, Scopes: n.Scopes, Created: time.Unix(2, 0).UTC(), Expires: n.Expires, Text: "pk_secret"}, nil
}

func (k *oneKey) Revoke(_ context.Context, id string) error {
	if id != "k/1" {
		return paddock.NotFound
	}
	k.revoked = true
	return nil
}

func TestUseAndKeysGoOverTheNetwork(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := &oneKey{}
	var asked api.UsageQuery
	big1 := new(big.Int).Lsh(big.NewInt(1), 100)
	s, err := server.New(server.Options{Caller: func(*http.Request) (server.Caller, error) {
		return server.Caller{Name: "test", Driver: d, Keys: keys, Usage: func(_ context.Context, q api.UsageQuery) ([]api.UsageLine, error) {
			asked = q
			return []api.UsageLine{{Sandbox: "a", Sandboxes: 1, Wall: big1, Paused: big1, CPU: big1, Memory: big1, CPUAsked: big1, MemoryAsked: big1, DiskAsked: big1, NetIn: big1, NetOut: big1}}, nil
		}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	c, err := client.New(client.Options{Address: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), s.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	ctx := t.Context()
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	u, err := c.Usage(ctx, client.UsageQuery{Since: since, Until: since.Add(time.Hour), Label: map[string]string{"a": "b=c"}, Each: true})
	if err != nil || len(u.Lines) != 1 || u.Lines[0].Sandbox != "a" || u.Lines[0].NetOut.Cmp(big1) != 0 || !u.Since.Equal(since) {
		t.Errorf("%+v, %v", u, err)
	}
	if !asked.Since.Equal(since) || asked.Label["a"] != "b=c" || !asked.Each {
		t.Errorf("asked for %+v", asked)
	}
	if list, err := c.Keys(ctx); err != nil || len(list) != 1 || list[0].ID != "k1" {
		t.Errorf("%+v, %v", list, err)
	}
	text, made, err := c.MakeKey(ctx, client.NewKey{Name: "ci", Scopes: []string{"read"}, Expires: since})
	if err != nil || text != "pk_secret" || made.ID != "k2" || made.Name != "ci" || !made.Expires.Equal(since) {
		t.Errorf("%q, %+v, %v", text, made, err)
	}
	if err := c.RevokeKey(ctx, "k/1"); err != nil || !keys.revoked {
		t.Errorf("revoked %v: %v", keys.revoked, err)
	}
	if err := c.RevokeKey(ctx, ".."); !errors.Is(err, paddock.Invalid) {
		t.Errorf("%v", err)
	}
}
