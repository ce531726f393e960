package operand

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
)

// What can be wrong with a choice.
var (
	ErrAmbiguous = errors.New("ambiguous argument")
	ErrUnknown   = errors.New("invalid argument")
)

// Choice finds a word in a list by its name or an abbreviation of it.
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

// Choose complains about a choice as GNU tools do, and gives the status.
func Choose(t *proc.Task, s *command.Spec, option, given string, err error, list []string) int {
	text := err.Error() + " " + Quote(given) + " for " + Quote(option) + "\nValid arguments are:"
	for _, w := range list {
		text += "\n  - ‘" + w + "’"
	}
	return s.Usage(t, "%s", text)
}
