package box

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// newGateway makes the gateway for a spec. Settings on which saved memory relies stay
// unchanged.
func (d *Driver) newGateway(spec *paddock.Spec, id Identity, was *gatewayclient.Config) (*gatewayclient.Gateway, error) {
	o := gatewayclient.Options{
		Sandbox: string(spec.ID), Policy: spec.Policy.Network, Audit: d.site.o.Audit, Hosts: d.site.o.Hosts, Roots: d.site.o.Roots, Previous: was,
	}
	if spec.Ephemeral {
		o.Ask, o.Judge, o.Login = d.site.o.Ask, d.site.o.Judge, d.site.o.Login
	}
	if id.Root { // a user number that nobody else has, not even the box
		o.User = id.KUID + gatewayIDs
	}
	return gatewayclient.New(o)
}

// gatewayIDs is the offset of a gateway's user number from that of its box's user.
const gatewayIDs = kernelIDs

// ListHow describes how rules about the network are enforced.
const ListHow = "a network stack in a process of its own outside holds the other end of the link, and decides about every packet by the rules"
