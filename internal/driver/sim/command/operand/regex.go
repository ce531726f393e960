package operand

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/regex"
)

// Regex compiles an expression of a tool that uses the C library's
// re_compile_pattern. Its work counts as the task's. The error is the text of
// the complaint.
func Regex(t *proc.Task, pattern string, o regex.Options) (*regex.Regexp, error) {
	o.Meter = meter{t}
	re, err := regex.Compile(pattern, o)
	if err != nil && strings.HasPrefix(err.Error(), "Unmatched [") {
		return nil, errors.New("Invalid regular expression")
	}
	return re, err
}

type meter struct{ t *proc.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}
