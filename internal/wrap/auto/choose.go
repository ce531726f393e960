package auto

import (
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Candidate is a tier that [Choose] may take.
type Candidate struct {
	Name paddock.Tier

	// Pass gives the reason why [Choose] never takes the tier on this host. Nil and an
	// empty text are no reason. It is asked for each choice.
	Pass func() string
}

// A PassedOver tier was stronger than the chosen one and could not be used.
type PassedOver struct {
	Tier  paddock.Tier `json:"tier"`
	Cause string       `json:"cause"`
	Tried bool         `json:"-"` // and failed; otherwise its candidate is never taken on this host
}

// Tried returns the tiers that were tried. They make a choice weaker than it usually is.
func Tried(passed []PassedOver) []paddock.PassedOver {
	var list []paddock.PassedOver
	for _, p := range passed {
		if p.Tried {
			list = append(list, paddock.PassedOver{Tier: p.Tier, Cause: p.Cause})
		}
	}
	return list
}

// Meaning says what [paddock.Auto] takes, in the words of flags, schemas and documents. A test keeps
// the registry of tiers and the texts equal to it.
const Meaning = "gvisor, or jail where gvisor cannot make the sandbox; never microvm or sim"

// Choose is the meaning of [paddock.Auto], for every caller that has several tiers. It
// tries the candidates in their order, strongest first, and returns what try made for
// the first that can. The error [paddock.Unsupported] of try leads to the next
// candidate. Any other error ends the choice, so that a temporary failure never leads
// to a weaker tier. If no candidate can, the error is that of the last one tried.
//
// Choose never takes the tier sim: it runs no programs of this machine, so that it is
// no weaker form of the others.
func Choose[T any](candidates []Candidate, try func(paddock.Tier) (T, error)) (made T, passed []PassedOver, err error) {
	var last error
	for _, c := range candidates {
		if why := c.pass(); why != "" {
			passed = append(passed, PassedOver{c.Name, why, false})
			continue
		}
		made, err := try(c.Name)
		if err == nil {
			return made, passed, nil
		}
		if !errors.Is(err, paddock.Unsupported) {
			return made, passed, err
		}
		last = err
		passed = append(passed, PassedOver{c.Name, err.Error(), true})
	}
	if last == nil {
		last = none(passed)
	}
	return made, passed, last
}

func (c Candidate) pass() string {
	switch {
	case c.Name == paddock.Sim:
		return "it runs no programs of this machine"
	case c.Pass != nil:
		return c.Pass()
	}
	return ""
}

// none is the error where no candidate was tried.
func none(passed []PassedOver) error {
	if len(passed) == 0 {
		return fmt.Errorf("there is no tier that can run here: %w", paddock.Unsupported)
	}
	causes := make([]string, len(passed))
	for i, p := range passed {
		causes[i] = fmt.Sprintf("%s: %s", p.Tier, p.Cause)
	}
	return fmt.Errorf("no tier can run this here (%s): %w", strings.Join(causes, "; "), paddock.Unsupported)
}
