package parent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
)

// What is reserved for a sandbox is what the host tells of its limits.
func TestLimitsThatAreTakenBackAreTakenBackInTheChild(t *testing.T) {
	for name, asked := range map[string]paddock.Limits{
		"none was asked for":      {},
		"some were asked for":     {Memory: 64 << 20},
		"all of them were so far": {Memory: 64 << 20, Disk: 32 << 20, PIDs: 50, CPUs: 1, Files: 100},
	} {
		t.Run(name, func(t *testing.T) {
			d := driver(t)
			policy := paddock.Policy{Network: allow(80, "a.test")}
			made, err := d.Create(t.Context(), paddock.Spec{Policy: policy, Limits: asked})
			if err != nil {
				t.Fatal(err)
			}
			sb, ok := made.(*sandbox)
			if !ok {
				t.Fatalf("a sandbox is a %T", made)
			}
			before, err := sb.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			first, err := sb.inside(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			policy.Network.Secrets = []paddock.Secret{{Name: "NEW", Value: "sk-0123456789abcdefghij", Hosts: []string{"a.test"}}}
			higher := before.Limits
			higher.Memory += 8 << 20
			higher.Disk += 8 << 20
			higher.PIDs++
			higher.CPUs /= 2
			higher.Files++
			if err := sb.Update(t.Context(), paddock.Update{Limits: &higher, Policy: &policy}); !errors.Is(err, paddock.Unsupported) {
				t.Fatalf("a late secret: %v", err)
			}
			told, err := sb.inside(t.Context())
			if err != nil || told.Limits != first.Limits {
				t.Errorf("the child says\n%+v, %v\nand before\n%+v", told, err, first)
			}
			if st, err := sb.Status(t.Context()); err != nil || st.Limits != before.Limits {
				t.Errorf("the host says\n%+v, %v\nand before\n%+v", st, err, before)
			}
		})
	}
}

func TestACallerWhoLeavesWhenTheChildHasChangedStopsNothing(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") }))
	defer s.Close()
	port := portOf(t, s)
	d, err := New(Options{Hosts: loopback("a.test", "b.test")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sb, before := usurped(t, d, paddock.Spec{Policy: paddock.Policy{Network: allow(port, "a.test")}}, func(protocol.Order) any {
		cancel()
		return protocol.Reply{}
	})
	policy := paddock.Policy{Network: allow(port, "b.test")}
	if err := sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{PIDs: 20}, Policy: &policy, Labels: map[string]string{"a": "b"}}); err != nil {
		t.Error(err)
	}
	reach := func(host string) bool { return said(t, sb, fmt.Sprintf("curl -s http://%s:%d/", host, port)) == "yes" }
	if reach("a.test") || !reach("b.test") {
		t.Error("the rules did not change")
	}
	want := before.Limits
	want.PIDs = 20
	if st, err := sb.Status(t.Context()); err != nil || st.Limits != want || st.Labels["a"] != "b" {
		t.Errorf("%v, %+v", err, st)
	}
}
