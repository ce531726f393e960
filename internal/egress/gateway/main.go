package gateway

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// Main runs a gateway if this program was started as one, and reports whether it was. It returns when the gateway has
// ended. A program that starts itself as a gateway calls Main before anything else.
func Main() bool {
	if len(os.Args) == 0 || os.Args[0] != gatewayclient.Argv0 {
		return false
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "paddock: a gateway ended: %v\n", err)
		os.Exit(1)
	}
	return true
}
