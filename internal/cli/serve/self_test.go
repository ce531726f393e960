package serve

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

func TestAKeyGivesNoScopeThatItHasNotAndReachesNoOtherTenant(t *testing.T) {
	s := storetest.SQLite().New(t)
	for _, id := range []string{"acme", "other"} {
		if err := s.AddTenant(t.Context(), store.Tenant{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	c := &accounts{store: s, ring: key.New(s, nil)}
	c.drivers = map[string]paddock.Driver{"acme": &fake.Fake{}, "other": &fake.Fake{}}
	writer := ownKeys{c, key.Principal{Key: "w", Tenant: "acme", Scopes: []key.Scope{key.Write}}}
	for _, scope := range []string{"admin", "read"} {
		if k, err := writer.Make(t.Context(), api.NewKey{Scopes: []string{"write", scope}}); !errors.Is(err, paddock.Denied) || k.Text != "" {
			t.Errorf("%s: %+v, %v", scope, k, err)
		}
	}
	if _, err := writer.Make(t.Context(), api.NewKey{}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("without scopes: %v", err)
	}
	if _, err := writer.Make(t.Context(), api.NewKey{Scopes: []string{"all"}}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("a scope that is none: %v", err)
	}
	admin := ownKeys{c, key.Principal{Key: "a", Tenant: "acme", Scopes: []key.Scope{key.Admin}}}
	made, err := admin.Make(t.Context(), api.NewKey{Scopes: []string{"admin"}, Expires: time.Now().Add(time.Hour)})
	if err != nil || made.Text == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	if who, err := c.ring.Verify(t.Context(), made.Text); err != nil || who.Tenant != "acme" {
		t.Errorf("%+v, %v", who, err)
	}
	other := ownKeys{c, key.Principal{Key: "o", Tenant: "other", Scopes: []key.Scope{key.Admin}}}
	if err := other.Revoke(t.Context(), made.ID); !errors.Is(err, paddock.NotFound) {
		t.Errorf("another's: %v", err)
	}
	if list, err := other.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("another's: %+v, %v", list, err)
	}
	if list, err := admin.List(t.Context()); err != nil || len(list) != 1 || list[0].Text != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestATenantThatAsksForManySumsDelaysAnotherByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &accounts{sums: make(chan struct{}, sumsAtOnce)}
		var all sync.WaitGroup
		sum := func(ctx context.Context, tenant string) {
			all.Go(func() {
				leave, err := c.sumTurn(ctx, tenant)
				if err != nil {
					if !errors.Is(err, paddock.Canceled) || ctx.Err() == nil {
						t.Errorf("%s: %v", tenant, err)
					}
					return
				}
				defer leave()
				<-time.After(time.Minute)
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		for _, tenant := range []string{"one", "two"} {
			for range 100 {
				sum(ctx, tenant)
			}
		}
		began := time.Now()
		sum(t.Context(), "another")
		<-time.After(90 * time.Second)
		cancel()
		all.Wait()
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("another waited, and was done after %v", took)
		}
	})
}
