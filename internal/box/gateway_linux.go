package box

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
)

// newGateway makes the way out for a spec. What memory of a saved box relies on
// stays as it was.
func (d *Driver) newGateway(spec *paddock.Spec, id Identity, was *owner.Config) (*owner.Gateway, error) {
	o := owner.Options{
		Sandbox: string(spec.ID), Policy: spec.Policy.Network, Audit: d.site.o.Audit, Hosts: d.site.o.Hosts, Roots: d.site.o.Roots, Previous: was,
	}
	if spec.Ephemeral {
		o.Ask = d.site.o.Ask
	}
	if id.Root { // nobody else's number, and not that of the box
		o.User = id.KUID + gatewayIDs
	}
	return owner.New(o)
}

// gatewayIDs is how far the number of a gateway is from that of its box's user.
const gatewayIDs = 1 << 24

// ListHow is how rules about the network are enforced.
const ListHow = "a network stack in a process of its own outside holds the other end of the only link, and decides about every packet by the rules"
