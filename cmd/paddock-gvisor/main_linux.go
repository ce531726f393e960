package main

import "github.com/paddock-sandbox/paddock/internal/driver/gvisor/starter"

// enter becomes a part of a sandbox, and does not return then.
func enter() bool { return starter.Main() }
