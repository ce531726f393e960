//go:build !embedguest || !linux

package main

import (
	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/cmd/internal/tiers"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/auxiliary"
	"github.com/paddock-sandbox/paddock/internal/cli/serve"
)

// guestFrom is where this build has the guest program from, for `paddock version`.
const guestFrom = "self"

// embedded returns no programs: this build embeds none, and executes itself as each of them.
func embedded() tiers.Programs { return tiers.Programs{} }

// commands returns the commands that subprograms implement in a build that embeds them.
func commands(a *cli.App) []*cobra.Command {
	return append(serve.Commands(a), auxiliary.Commands(a)...)
}

// execSubprogram does nothing: this program implements all commands.
func execSubprogram([]string) error { return nil }
