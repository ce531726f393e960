package sim

import (
	"slices"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/text"
)

// builtin lists the programs that every computer has.
func builtin() []command.Command {
	return slices.Concat(text.Commands())
}
