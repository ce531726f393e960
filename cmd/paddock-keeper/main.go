// Command paddock-keeper owns one sandbox that outlives its maker. It is embedded in
// paddock and not meant to be started by hand.
package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
)

func main() {
	if box.Main(jail.Runtime(), gvisor.Runtime(), microvm.Runtime()) {
		return
	}
	fmt.Fprintln(os.Stderr, "paddock-keeper: the owner of a sandbox, started by paddock; it does nothing by itself")
	os.Exit(2)
}
