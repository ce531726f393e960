// Command paddock-gateway is the gateway of one sandbox: the process that judges and carries its
// outgoing connections. It is embedded in paddock and not meant to be started by hand.
package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
)

func main() {
	if gateway.Main() {
		return
	}
	fmt.Fprintln(os.Stderr, "paddock-gateway: the way out of a sandbox, started by paddock; it does nothing by itself")
	os.Exit(2)
}
