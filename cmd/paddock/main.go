// Command paddock runs commands in sandboxes. It joins Paddock's parts: only this command and its subprograms read
// the process's arguments and environment, and they pass values on.
package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/cmd/internal/tiers"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

func main() {
	if runPart() {
		return
	}
	if err := execSubprogram(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "paddock: %v\n", err)
		os.Exit(125)
	}
	os.Exit(cli.Main(tiers.Registry(embedded()), guestFrom, "", commands))
}
