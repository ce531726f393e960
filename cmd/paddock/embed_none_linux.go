//go:build !embedguest

package main

import (
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/sentry"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
)

// gvisorMain does gVisor's part, if that is what this program was started for.
func gvisorMain() bool { return sentry.Main() }

// gatewayMain is the way out of a sandbox, if that is what this program was
// started for.
func gatewayMain() bool { return gateway.Main() }
