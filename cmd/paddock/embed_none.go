//go:build !embedguest || !linux

package main

import (
	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/cmd/internal/tiers"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/serve"
	"github.com/paddock-sandbox/paddock/internal/cli/tools"
)

// guestFrom says where the program inside a sandbox is from.
const guestFrom = "self"

// embedded is nothing: this build carries no programs of its own, and starts itself
// as each.
func embedded() tiers.Programs { return tiers.Programs{} }

// commands are those that a build with programs has behind it.
func commands(a *cli.App) []*cobra.Command {
	return append(serve.Commands(a), tools.Commands(a)...)
}

// behind executes nothing: all commands are in this program.
func behind([]string) error { return nil }
