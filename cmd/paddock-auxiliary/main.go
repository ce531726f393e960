// Command paddock-auxiliary has the commands of paddock that are rarely used and need much code: audit, image,
// sim and vm. paddock embeds it and executes it for these commands.
package main

import (
	"os"

	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/auxiliary"
)

func main() { os.Exit(cli.Main(nil, "embedded", "", auxiliary.Commands)) }
