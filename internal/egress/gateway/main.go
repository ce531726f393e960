package gateway

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/internal/egress/owner"
)

// Main becomes a gateway if that is what this program was started for, and tells
// whether it was: it returns when the gateway is over. A program that starts
// gateways of itself calls it before anything else.
func Main() bool {
	if len(os.Args) == 0 || os.Args[0] != owner.Argv0 {
		return false
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "paddock: a gateway ended: %v\n", err)
		os.Exit(1)
	}
	return true
}
