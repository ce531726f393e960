package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A ring holds keys in a list.
type ring struct{ keys []api.Key }

func (r *ring) List(context.Context) ([]api.Key, error) { return r.keys, nil }

func (r *ring) Make(_ context.Context, k api.NewKey) (api.Key, error) {
	made := api.Key{ID: fmt.Sprint("k", len(r.keys)), Name: k.Name, Scopes: k.Scopes, Created: time.Unix(1e9, 0).UTC()}
	r.keys = append(r.keys, made)
	made.Text = "secret"
	return made, nil
}

func (r *ring) Revoke(_ context.Context, id string) error {
	for i := range r.keys {
		if r.keys[i].ID == id {
			r.keys[i].Revoked = time.Unix(2e9, 0).UTC()
			return nil
		}
	}
	return fmt.Errorf("key %s: %w", id, paddock.NotFound)
}

func TestKeysAreForWhoMaySeeToThem(t *testing.T) {
	r := &ring{}
	tr := newTrial(t)
	tr.want(403, "GET", "/v1/keys", "")
	tr.want(403, "POST", "/v1/keys", `{"scopes":["read"]}`)
	tr.want(403, "DELETE", "/v1/keys/k0", "")
	tr.caller.Keys = r
	var made api.Key
	if err := json.Unmarshal(tr.want(201, "POST", "/v1/keys", `{"scopes":["read"],"name":"ci"}`), &made); err != nil || made.Text != "secret" || made.ID != "k0" {
		t.Errorf("%+v, %v", made, err)
	}
	var list api.Keys
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/keys", ""), &list); err != nil || len(list.Keys) != 1 || list.Keys[0].Text != "" {
		t.Errorf("%+v, %v", list, err)
	}
	tr.want(204, "DELETE", "/v1/keys/k0", "")
	tr.want(404, "DELETE", "/v1/keys/k9", "")
	tr.want(400, "POST", "/v1/keys", `{"tenant":"another","scopes":["read"]}`)
	tr.caller.ReadOnly = true
	tr.want(403, "POST", "/v1/keys", `{"scopes":["read"]}`)
	tr.want(403, "DELETE", "/v1/keys/k0", "")
}

func TestUsageIsAskedForByTheCallersOwnMeansAlone(t *testing.T) {
	tr := newTrial(t)
	tr.want(501, "GET", "/v1/usage", "")
	var asked api.UsageQuery
	n := big.NewInt(7)
	tr.caller.Usage = func(_ context.Context, q api.UsageQuery) ([]api.UsageLine, error) {
		asked = q
		if q.By == "none" {
			return nil, nil
		}
		return []api.UsageLine{{Sandboxes: 1, Wall: new(big.Int).Lsh(n, 80), Paused: n, CPU: n, Memory: n, CPUAsked: n, MemoryAsked: n, DiskAsked: n, NetIn: n, NetOut: n, Unmeasured: []string{"network"}}}, nil
	}
	tr.want(200, "GET", "/v1/usage", "")
	if asked.Since.Day() != 1 || !asked.Until.Equal(asked.Until.Truncate(time.Hour)) || !asked.Until.After(time.Now()) {
		t.Errorf("%+v", asked)
	}
	tr.want(200, "GET", "/v1/usage?since=2026-01-01T00:00:00Z&until=2026-01-01T02:00:00Z&label=a=b&label=c=d=e&each=true", "")
	if fmt.Sprint(asked.Label) != "map[a:b c:d=e]" || !asked.Each || asked.Until.Sub(asked.Since) != 2*time.Hour {
		t.Errorf("%+v", asked)
	}
	tr.want(200, "GET", "/v1/usage?by=none", "")
	for _, bad := range []string{"since=yesterday", "label=a", "each=perhaps", "each=true&by=a", "tenant=another", "since=&since="} {
		tr.want(400, "GET", "/v1/usage?"+bad, "")
	}
}
