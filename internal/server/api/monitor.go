package api

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// Questions are what the monitor of a sandbox asks, oldest first.
type Questions struct {
	Questions []paddock.MonitorQuestion `json:"questions"`
}

// An Answer answers a question of a monitor.
type Answer struct {
	Answer string `json:"answer"` // AnswerAllow or AnswerDeny
}

// Values of Answer.
const (
	AnswerAllow = "allow"
	AnswerDeny  = "deny"
)

// AnswerOf returns the answer.
func AnswerOf(allow bool) Answer {
	if allow {
		return Answer{AnswerAllow}
	}
	return Answer{AnswerDeny}
}

// Allows reports whether the answer is to let it go on. An answer that is neither word is [paddock.Invalid], because a body that
// was left out is no answer.
func (a Answer) Allows() (bool, error) {
	switch a.Answer {
	case AnswerAllow:
		return true, nil
	case AnswerDeny:
		return false, nil
	}
	return false, fmt.Errorf("answer %.40q: it is %s or %s: %w", a.Answer, AnswerAllow, AnswerDeny, paddock.Invalid)
}
