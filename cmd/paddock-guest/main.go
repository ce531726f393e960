// Command paddock-guest is what runs inside a sandbox: the agent and init of
// package guest, in the boundary that its name says. It is embedded in
// paddock and not meant to be started by hand.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 0 && enter(os.Args[0]) {
		return
	}
	fmt.Fprintln(os.Stderr, "paddock-guest: runs inside a sandbox, started by paddock; it does nothing by itself")
	os.Exit(2)
}
