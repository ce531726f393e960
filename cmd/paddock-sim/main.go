// Command paddock-sim is the process of one simulated computer of the tier sim. paddock embeds it and
// executes it for each of them.
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
