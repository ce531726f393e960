// Command paddock-tools is a part of paddock: it has the commands that are rarely used
// and need much code (audit, sim, vm). paddock carries it and executes it for them.
package main

import (
	"os"

	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/tools"
)

func main() { os.Exit(cli.Main(nil, "embedded", tools.Commands)) }
