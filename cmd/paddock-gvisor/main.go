// Command paddock-gvisor is the init of a sandbox whose commands run on gVisor,
// and gVisor's own processes. It is embedded in paddock and not meant to be
// started by hand.
package main

import (
	"fmt"
	"os"
)

func main() {
	if enter() {
		return
	}
	fmt.Fprintln(os.Stderr, "paddock-gvisor: runs inside a sandbox, started by paddock; it does nothing by itself")
	os.Exit(2)
}
