package e2b_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A shelf is a driver with a pool: what is asked for as it is kept has a name already.
// Nothing of the tier sim has the network of E2B's, so it has none.
type shelf struct {
	lifetime.Lessor
	asked []paddock.Spec
}

func (s *shelf) CreateWith(ctx context.Context, spec paddock.Spec, t lifetime.Terms) (paddock.Sandbox, error) {
	s.asked = append(s.asked, spec)
	bare := spec
	bare.Labels = nil
	if reflect.DeepEqual(bare, e2b.Ready(paddock.Sim, false)) {
		spec.ID = "pool-one"
	}
	spec.Policy = paddock.Policy{}
	return s.Lessor.CreateWith(ctx, spec, t)
}

func newShelf(t *testing.T, ready ...paddock.Tier) (*bench, *shelf) {
	b := newBench(t)
	b.close()
	s := &shelf{Lessor: b.d}
	b.lessor, b.ready = s, ready
	b.open()
	return b, s
}

func TestASandboxThatIsReadyIsTakenAndHasANameOfE2Bs(t *testing.T) {
	b, s := newShelf(t, paddock.Sim)
	code, v := b.ask("acme", "POST", "/v2/sandboxes", `{"templateID":"base:sim","envVars":{"A":"b"},"metadata":{"c":"d"}}`)
	id, _ := v["sandboxID"].(string)
	token, _ := v["envdAccessToken"].(string)
	if code != 201 || len(id) != 21 || token == "" {
		t.Fatalf("%d %v", code, v)
	}
	if asked := s.asked[0]; asked.ID != "" || asked.Env != nil || asked.Labels["e2b.sandbox"] != id || asked.Labels["c"] != "d" {
		t.Errorf("asked for %+v", asked)
	}
	// All that names it finds it, also after a restart.
	for _, again := range []bool{false, true} {
		if again {
			b.close()
			b.open()
		}
		if code, v := b.ask("", "GET", "/x", "", "E2b-Sandbox-Id", id); code != 200 || v["text"] != token {
			t.Errorf("its agent: %d %v", code, v)
		}
		if code, v := b.ask("acme", "GET", "/sandboxes/"+id, ""); code != 200 || v["sandboxID"] != id {
			t.Errorf("get: %d %v", code, v)
		}
		if code, v := b.ask("acme", "POST", "/sandboxes/"+id+"/timeout", `{"timeout":100}`); code != 204 {
			t.Errorf("timeout: %d %v", code, v)
		}
		if code, v := b.ask("acme", "POST", "/v2/sandboxes/"+id+"/connect", ""); code != 200 || v["sandboxID"] != id {
			t.Errorf("connect: %d %v", code, v)
		}
		if _, v := b.ask("acme", "GET", "/v2/sandboxes", ""); v["text"] == "[]\n" || v["text"] == "[]" {
			t.Errorf("list: %v", v)
		}
	}
	if code, _ := b.ask("acme", "DELETE", "/sandboxes/"+id, ""); code != 204 {
		t.Errorf("kill: %d", code)
	}
	if list, err := b.d.List(t.Context()); err != nil || len(list) > 0 || len(b.notes.data) != 0 {
		t.Errorf("left: %v %v %v", list, err, b.notes.data)
	}
}

func TestWhatIsOtherThanWhatIsReadyIsMadeByItsName(t *testing.T) {
	for what, x := range map[string]struct {
		ready      []paddock.Tier
		body, name string
	}{
		"no pool":        {nil, `{"templateID":"base:sim"}`, ""},
		"another tier's": {[]paddock.Tier{paddock.Jail}, `{"templateID":"base:sim"}`, ""},
		"another policy": {[]paddock.Tier{paddock.Sim}, `{"templateID":"base:sim","allow_internet_access":false}`, ""},
		"a name for it":  {[]paddock.Tier{paddock.Sim}, `{"templateID":"base:sim"}`, "again"},
	} {
		t.Run(what, func(t *testing.T) {
			b, s := newShelf(t, x.ready...)
			code, v := b.ask("acme", "POST", "/v2/sandboxes", x.body, "Idempotency-Key", x.name)
			if code != 201 || len(s.asked) != 1 || v["sandboxID"] != string(s.asked[0].ID) {
				t.Errorf("%d %v: asked for %+v", code, v, s.asked)
			}
		})
	}
}

// A host is a driver whose tiers have sudo, or have not.
type host struct {
	*shelf
	sudo bool
}

func (h host) CreateWith(ctx context.Context, spec paddock.Spec, t lifetime.Terms) (paddock.Sandbox, error) {
	if spec.Sudo && !h.sudo {
		h.asked = append(h.asked, spec)
		return nil, paddock.Unsupported
	}
	return h.shelf.CreateWith(ctx, spec, t)
}

// What is asked of the driver is what a pool keeps: with sudo where the tier has it,
// also where the tier is not named.
func TestWhatIsReadyIsAskedForAsItIsKept(t *testing.T) {
	for _, c := range []struct {
		template string
		tier     paddock.Tier
		sudo     bool
	}{
		{"base:gvisor", paddock.GVisor, true},
		{"base:jail", paddock.Jail, false},
		{"base", paddock.Auto, true},
		{"base", paddock.Auto, false},
	} {
		t.Run(fmt.Sprint(c.template, c.sudo), func(t *testing.T) {
			b, s := newShelf(t, paddock.GVisor, paddock.Jail, paddock.Auto)
			b.close()
			b.lessor = host{s, c.sudo}
			b.open()
			_, v := b.ask("acme", "POST", "/v2/sandboxes", `{"templateID":"`+c.template+`"}`)
			if len(s.asked) == 0 {
				t.Fatalf("nothing was asked for: %v", v)
			}
			i := slices.IndexFunc(s.asked, func(spec paddock.Spec) bool { return !spec.Sudo || c.sudo }) // the first that the pool is asked
			if i < 0 {
				t.Fatalf("asked for %+v alone", s.asked)
			}
			asked := s.asked[i]
			asked.Labels = nil
			if want := e2b.Ready(c.tier, c.sudo); !reflect.DeepEqual(asked, want) {
				t.Errorf("asked for %+v, kept is %+v", asked, want)
			}
		})
	}
}
