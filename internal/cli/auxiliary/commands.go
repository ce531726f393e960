package auxiliary

import (
	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/internal/cli"
)

// Commands returns the commands of this package.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{auditCommand(a, hardware()), buildCommand(a), imageCommand(a), mcpCommand(a), simCommand(a), vmCommand(a)}
}
