package main

import (
	"path"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/vminit"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
)

// enter becomes the part that argv0 names, and does not return then.
func enter(argv0 string) bool {
	switch argv0 {
	case boxinit.Argv0:
		boxinit.Main(nil)
	case guestinit.Argv0:
		guestinit.Main()
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
