package endtoend

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent"
)

// simTier makes simulated computers. Its gateway is this program too.
func simTier() tier {
	return tier{paddock.Sim, func(w *world, o driverOptions) (paddock.Driver, error) {
		return parent.New(parent.Options{Hosts: w.hosts(), Roots: w.CA, Audit: o.audit})
	}}
}
