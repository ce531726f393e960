// Command paddock-guest runs inside a sandbox, with the agent of package guest: as the init of a box
// (package boxinit), of a guest kernel (guestinit) or of a virtual machine (vminit). It is embedded in
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
