package e2b

import (
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestRangesThatWouldFillTheMemoryAreRefused(t *testing.T) {
	n := &network{}
	for i := range maxHosts {
		n.DenyOut = append(n.DenyOut, fmt.Sprintf("%x::/16", 0x2000+i))
		n.AllowOut = append(n.AllowOut, fmt.Sprintf("%x::1", 0x2000+i))
	}
	if _, err := policy(n, nil); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("%d ranges but for %d addresses: %v", len(n.DenyOut), len(n.AllowOut), err)
	}
}

func TestARangeThatIsDeniedTwiceCountsOnce(t *testing.T) {
	n := &network{DenyOut: slices.Repeat([]string{"10.0.0.0/8", "10.1.0.0/16"}, maxHosts/2), AllowOut: []string{"10.128.0.0/9", "10.128.0.1"}}
	p, err := policy(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	var denied []string
	for _, r := range p.Rules {
		if r.Deny {
			denied = append(denied, r.Host)
		}
	}
	if want := []string{"10.0.0.0/9"}; !slices.Equal(denied, want) {
		t.Errorf("denied: %v; want %v", denied, want)
	}
}
