package tiers

import "github.com/paddock-sandbox/paddock/internal/program"

// Names of the programs that sandboxes are made with.
const (
	Guest   = "guest"
	Agent   = "agent"
	Gateway = "gateway"
	Keeper  = "keeper"
	GVisor  = "gvisor"
	MicroVM = "microvm"
	Sim     = "sim"
)

// All lists them.
func (p Programs) All() []program.Program {
	return []program.Program{p.Guest, p.Agent, p.Gateway, p.Keeper, p.GVisor, p.MicroVM, p.Sim}
}

// Handed returns the programs that a subprogram received from paddock.
func Handed(h program.Handed) Programs {
	return Programs{Guest: h.Get(Guest), Agent: h.Get(Agent), Gateway: h.Get(Gateway), Keeper: h.Get(Keeper), GVisor: h.Get(GVisor), MicroVM: h.Get(MicroVM), Sim: h.Get(Sim)}
}
