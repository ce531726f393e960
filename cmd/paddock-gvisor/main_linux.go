package main

import "github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor"

// enter becomes a part of a sandbox, and does not return then.
func enter() bool { return supervisor.Main() }
