package main

import (
	"path"

	"github.com/paddock-sandbox/paddock/internal/container/inner"
	"github.com/paddock-sandbox/paddock/internal/container/inside"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/vminit"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
)

// enter becomes the part that argv0 names, and does not return then.
func enter(argv0 string) bool {
	switch argv0 {
	case inner.Argv0:
		inner.Main(nil)
	case inside.Argv0:
		inside.Main()
	case vminit.Argv0:
		vminit.Main()
	default:
		if path.Base(argv0) != sudo.Name {
			return false
		}
		sudo.Main()
	}
	return true
}
