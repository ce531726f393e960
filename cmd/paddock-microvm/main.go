// Command paddock-microvm is the init of a sandbox whose commands run in a
// machine of their own, and the processes that it needs: it runs QEMU, and serves
// the sandbox's files. It is embedded in paddock and not meant to be started by
// hand.
package main

import (
	"fmt"
	"os"
)

func main() {
	if enter() {
		return
	}
	fmt.Fprintln(os.Stderr, "paddock-microvm: runs inside a sandbox, started by paddock; it does nothing by itself")
	os.Exit(2)
}
