//go:build !embedguest

package main

import "github.com/paddock-sandbox/paddock/internal/driver/gvisor/sentry"

// gvisorMain does gVisor's part, if that is what this program was started for.
func gvisorMain() bool { return sentry.Main() }
