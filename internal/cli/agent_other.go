//go:build !linux

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

// agentShortcuts are none: no tier of this system runs programs of the host.
func agentShortcuts() []command { return nil }

func (a *App) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "agent",
		Short: "Run a coding agent in a sandbox",
		RunE: func(*cobra.Command, []string) error {
			return WithHint(fmt.Errorf("coding agents on this system: %w", paddock.Unsupported), "run Paddock on Linux, such as in a virtual machine")
		},
	}
}

func (a *App) agents() []listedAgent { return nil }
