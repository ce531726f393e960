//go:build !embedguest

package main

import (
	"os"

	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/sentry"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/supervisor"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/vminit"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
)

// gvisorMain does gVisor's part, if that is what this program was started for.
func gvisorMain() bool { return sentry.Main() }

// monitorMain does a part of what runs a machine, or is what runs in one, if that
// is what this program was started for.
func monitorMain() bool {
	if len(os.Args) > 0 && os.Args[0] == vminit.Argv0 {
		vminit.Main()
	}
	return supervisor.Main()
}

// gatewayMain is the way out of a sandbox, if that is what this program was
// started for.
func gatewayMain() bool { return gateway.Main() }
