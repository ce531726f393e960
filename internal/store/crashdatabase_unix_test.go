//go:build unix

package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

func TestADatabaseThatIsKilledLosesNothingAndIsFoundAgain(t *testing.T) {
	pg := storetest.StartPostgres(t)
	s := pg.Engine().New(t)
	ctx := t.Context()
	must(t, s.AddTenant(ctx, store.Tenant{ID: "acme"}))
	var kept []paddock.ID
	for round := range 3 {
		enough := make(chan struct{})
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := 0; ; i++ {
				b := box(paddock.ID(fmt.Sprintf("b%d-%d", round, i)), "acme")
				if err := s.AddSandbox(ctx, b, welcome); err != nil {
					wantKind(t, err, paddock.Unavailable)
					return
				}
				kept = append(kept, b.ID)
				if i == 30*(round+1) {
					close(enough)
				}
			}
		})
		<-enough
		pg.Kill(t)
		writer.Wait()
		wantKind(t, s.Ping(ctx), paddock.Unavailable)
		pg.Start(t)
		must(t, s.Ping(ctx))
		for _, id := range kept {
			if _, err := s.Sandbox(ctx, "acme", id); err != nil {
				t.Errorf("%s was acknowledged: %v", id, err)
			}
		}
	}
}
