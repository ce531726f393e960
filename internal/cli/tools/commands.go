package tools

import (
	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/internal/cli"
)

// Commands are those for what is rarely done, and takes much code.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{auditCommand(a), simCommand(a), vmCommand(a)}
}
