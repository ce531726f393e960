//go:build !linux

// Package early starts the process of a simulated computer before the program
// is initialised, on Linux.
package early

import "github.com/paddock-sandbox/paddock/internal/driver/sim/wall/spawn"

// Begun gives nil: there are no such processes here.
func Begun() *spawn.Process { return nil }
