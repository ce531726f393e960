package box

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
)

// newGateway makes the way out for a spec. What memory of a saved box relies on
// stays as it was.
func (d *Driver) newGateway(spec *paddock.Spec, id identity, from *checkpoint) (*owner.Gateway, error) {
	o := owner.Options{
		Sandbox: string(spec.ID), Policy: spec.Policy.Network, Audit: d.audit, Hosts: d.hosts, Roots: d.roots,
	}
	if spec.Ephemeral {
		o.Ask = d.ask
	}
	if id.root { // nobody else's number, and not that of the box
		o.User = id.kuid + gatewayIDs
	}
	if from != nil {
		o.Previous = from.about.Order.Gateway
	}
	return owner.New(o)
}

// gatewayIDs is how far the number of a gateway is from that of its box's user.
const gatewayIDs = 1 << 24

// listHow is how rules about the network are enforced.
const listHow = "a network stack in a process of its own outside holds the other end of the only link, and decides about every packet by the rules"
