package netstack

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

func TestPlacesOfTheLinkAreNotDialled(t *testing.T) {
	for _, a := range []netip.Addr{Gateway4(), Gateway6(), Guest4(), Guest6()} {
		if err := decide.CheckAddress(a, nil); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v", a, err)
		}
	}
	if Gateway6().String() != "fd7a:6f74::1" || Guest6().String() != "fd7a:6f74::2" {
		t.Errorf("the places are %s and %s", Gateway6(), Guest6())
	}
}
