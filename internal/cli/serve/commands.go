package serve

import (
	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/internal/cli"
)

// Commands returns the commands that open the state of a server.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{serveCommand(a), tenantCommand(a), keyCommand(a), usageCommand(a)}
}
