// Command paddock-sim is a part of paddock: the process that one simulated computer
// of the tier sim runs in. paddock carries it and executes it for each.
package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/child"
)

func main() {
	if !child.Main() {
		fmt.Fprintln(os.Stderr, "paddock-sim is a part of paddock, which starts it")
		os.Exit(125)
	}
}
