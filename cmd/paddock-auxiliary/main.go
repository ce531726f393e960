// Command paddock-auxiliary has the commands of paddock that are rarely used and need much code: audit, build, image, mcp,
// sim and vm. paddock embeds it and executes it for these commands. For build, it hands it the programs that sandboxes are
// made with.
package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/cmd/internal/tiers"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/auxiliary"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/program"
)

func main() {
	if box.Main(jail.Runtime(), gvisor.Runtime(), microvm.Runtime()) {
		return // this was a part of a sandbox
	}
	handed, err := program.Received()
	if err != nil {
		fmt.Fprintf(os.Stderr, "paddock: %v\n", err)
		os.Exit(125)
	}
	os.Exit(cli.Main(tiers.Registry(tiers.Handed(handed)), "embedded", handed.Carrier(), auxiliary.Commands))
}
