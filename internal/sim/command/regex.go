package command

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// CompileRegex compiles an expression of a tool that uses re_compile_pattern of
// the C library. Its work counts as the task's. The error has the tool's text.
func CompileRegex(t *kernel.Task, pattern string, o regex.Options) (*regex.Regexp, error) {
	o.Meter = regexMeter{t}
	re, err := regex.Compile(pattern, o)
	if err != nil && strings.HasPrefix(err.Error(), "Unmatched [") {
		return nil, errors.New("Invalid regular expression") //nolint:staticcheck // the words of the C library
	}
	return re, err
}

type regexMeter struct{ t *kernel.Task }

func (m regexMeter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m regexMeter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}
