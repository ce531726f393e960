package command

import (
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// CheckCount reports too few or too many operands in the words of GNU tools and
// returns the exit status; 0 means that the number is right.
func CheckCount(t *kernel.Task, s *Spec, operands []string, least, most int) int {
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
