package operand

import (
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
)

// Count complains unless there are at least and at most operands,
// as GNU tools do, and gives the status for it; 0 is that all is well.
func Count(t *proc.Task, s *command.Spec, operands []string, least, most int) int {
	switch {
	case len(operands) == 0 && least > 0:
		return s.Usage(t, "missing operand")
	case len(operands) < least:
		return s.Usage(t, "missing operand after %s", Quote(operands[len(operands)-1]))
	case len(operands) > most:
		return s.Usage(t, "extra operand %s", Quote(operands[most]))
	}
	return 0
}
