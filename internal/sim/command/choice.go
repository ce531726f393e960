package command

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// The errors of Choice.
var (
	ErrAmbiguous = errors.New("ambiguous argument")
	ErrUnknown   = errors.New("invalid argument")
)

// Choice finds a word in a list by its name or by an unambiguous abbreviation.
func Choice(s string, list []string) (string, error) {
	found := ""
	for _, w := range list {
		if w == s {
			return w, nil
		}
		if strings.HasPrefix(w, s) {
			if found != "" {
				return "", ErrAmbiguous
			}
			found = w
		}
	}
	if found == "" {
		return "", ErrUnknown
	}
	return found, nil
}

// BadChoice reports a refused choice in the words of GNU tools, with the list
// of valid ones, and returns the exit status.
func BadChoice(t *kernel.Task, s *Spec, option, given string, err error, list []string) int {
	text := err.Error() + " " + Quote(given) + " for " + Quote(option) + "\nValid arguments are:"
	for _, w := range list {
		text += "\n  - ‘" + w + "’"
	}
	return s.Usage(t, "%s", text)
}
