package main

import "github.com/paddock-sandbox/paddock/internal/driver/microvm/monitor"

// enter becomes a part of a sandbox, and does not return then.
func enter() bool { return monitor.Main() }
