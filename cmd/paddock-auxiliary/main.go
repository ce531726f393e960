// Command paddock-auxiliary has the commands of paddock that are rarely used and need much code: audit, image,
// mcp, sim and vm. paddock embeds it and executes it for these commands.
package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/auxiliary"
	"github.com/paddock-sandbox/paddock/internal/program"
)

func main() {
	handed, err := program.Received()
	if err != nil {
		fmt.Fprintf(os.Stderr, "paddock: %v\n", err)
		os.Exit(125)
	}
	os.Exit(cli.Main(nil, "embedded", handed.Carrier(), auxiliary.Commands))
}
