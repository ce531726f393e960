// Command paddock runs commands in sandboxes. It is the only place where
// Paddock's parts are joined: flags and environment are read here, and values
// passed on.
package main

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock/cmd/internal/tiers"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

func main() {
	if part() {
		return // this was a part of a sandbox
	}
	if err := behind(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "paddock: %v\n", err)
		os.Exit(125)
	}
	os.Exit(cli.Process(tiers.Registry(embedded()), guestFrom, commands))
}
