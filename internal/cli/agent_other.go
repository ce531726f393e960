//go:build !linux

package cli

import (
	"fmt"
	"runtime"

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
			remedy := "run Paddock on Linux, such as in a virtual machine"
			if words := seatbeltWords(runtime.GOOS); words != "" {
				remedy += "; " + words
			}
			return WithHint(fmt.Errorf("coding agents on this system: %w", paddock.Unsupported), "%s", remedy)
		},
	}
}

func (a *App) agents() []listedAgent { return nil }
