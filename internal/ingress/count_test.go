package ingress

import (
	"fmt"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestNoTenantTakesEveryPlaceAndNoStrangerThoseOfKeys(t *testing.T) {
	p := &Proxy{}
	p.made.Do(p.make)
	var leaves []func()
	// fill takes places at sandboxes of a tenant until none is left.
	fill := func(tenant string, keyed bool) (n int) {
		for box := range 64 {
			for {
				leave, err := p.enter(Target{ID: paddock.ID(fmt.Sprintf("%s-%d", tenant, box)), Tenant: tenant, Keyed: keyed})
				if err != nil {
					if paddock.KindOf(err) != paddock.Exhausted {
						t.Fatal(err)
					}
					break
				}
				leaves = append(leaves, leave)
				n++
			}
		}
		return n
	}
	if n := fill("a", false); n != mostTenant-keptTenant {
		t.Errorf("strangers have %d places of a tenant", n)
	}
	if n := fill("a", true); n != keptTenant {
		t.Errorf("%d are left for its keys", n)
	}
	for _, tenant := range []string{"b", "c", "d", "e"} {
		fill(tenant, false)
	}
	if p.all != mostRequests-keptAll {
		t.Errorf("strangers have %d places of all", p.all)
	}
	if n := fill("f", true); n != sureTenant+keptAll {
		t.Errorf("%d are left for keys", n)
	}
	for _, keyed := range []bool{false, true} {
		if n := fill(fmt.Sprint("g", keyed), keyed); n != 32 {
			t.Errorf("where others have all places, a tenant has %d", n)
		}
	}
	for _, leave := range leaves {
		leave()
	}
	if p.all != 0 || len(p.each) != 0 || len(p.whose) != 0 {
		t.Errorf("%d, %d, %d are left", p.all, len(p.each), len(p.whose))
	}
}
