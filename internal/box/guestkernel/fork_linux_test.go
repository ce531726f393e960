package guestkernel

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// The host bounds a machine's box when it begins, before its layout is complete, and again
// when it is resumed, when only the layout is left.
func TestAMachineHasItsOwnMemoryBesideTheLimit(t *testing.T) {
	kept := boxinit.Config{GuestKernel: &boxinit.GuestKernelConfig{Overhead: 7}}
	for what, row := range map[string]struct {
		layout box.Layout
		want   int64
	}{
		"a kernel without machine": {box.Layout{Config: boxinit.Config{GuestKernel: &boxinit.GuestKernelConfig{}}}, 100},
		"a machine that begins":    {box.Layout{Reserve: 7}, 107},
		"a machine that is made":   {box.Layout{Reserve: 7, Config: kept}, 107},
		"a machine that is kept":   {box.Layout{Config: kept}, 107},
	} {
		if got := (Limiter{}).HostLimits(&row.layout, paddock.Limits{Memory: 100}).Memory; got != row.want {
			t.Errorf("%s: %d, not %d", what, got, row.want)
		}
		if got := (Limiter{}).HostLimits(&row.layout, paddock.Limits{}).Memory; got != 0 {
			t.Errorf("%s: a limit that is not changed becomes %d", what, got)
		}
	}
}

// Machines that continue from the same memory know the agent by the same token, but are
// different machines.
func TestAForkIsAnotherMachine(t *testing.T) {
	was := &boxinit.GuestKernelConfig{Token: []byte("token"), Number: []byte("one")}
	var m checkpoint
	m.about.Memory = true
	m.about.Order.Layout.Config.GuestKernel = was
	l := &box.Layout{Config: boxinit.Config{GuestKernel: &boxinit.GuestKernelConfig{Token: []byte("other"), Number: []byte("two")}}}
	if err := m.fits(l); err != nil {
		t.Fatal(err)
	}
	if k := l.Config.GuestKernel; string(k.Token) != "token" || string(k.Number) != "two" {
		t.Errorf("token %q, number %q", k.Token, k.Number)
	}
}
