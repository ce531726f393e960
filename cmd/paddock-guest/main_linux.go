package main

import (
	"github.com/paddock-sandbox/paddock/internal/container/inner"
	"github.com/paddock-sandbox/paddock/internal/container/inside"
)

// enter becomes the part that argv0 names, and does not return then.
func enter(argv0 string) bool {
	switch argv0 {
	case inner.Argv0:
		inner.Main(nil)
	case inside.Argv0:
		inside.Main()
	default:
		return false
	}
	return true
}
