//go:build !embedguest

package main

import (
	"os"

	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	gvisorsupervisor "github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	microvmsupervisor "github.com/paddock-sandbox/paddock/internal/driver/microvm/supervisor"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/vminit"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/child"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
)

// runPart runs the part of a sandbox that this process was started as. It returns false if the process was
// started as the command line.
func runPart() bool {
	if len(os.Args) > 0 && os.Args[0] == vminit.Argv0 {
		vminit.Main()
	}
	return box.Main(jail.Runtime(), gvisor.Runtime(), microvm.Runtime()) || gvisorsupervisor.Main() || microvmsupervisor.Main() || gateway.Main() || child.Main()
}
