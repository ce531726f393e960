package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// An Outcome is how a call ended.
type Outcome string

// The outcomes.
const (
	OutcomeDone      Outcome = "done"      // the function returned
	OutcomeFailed    Outcome = "failed"    // the function or its context returned an error
	OutcomeDenied    Outcome = "denied"    // no grant allows it
	OutcomeExhausted Outcome = "exhausted" // a grant would allow it, but has no calls or budget left
	OutcomeInvalid   Outcome = "invalid"   // no such tool, or invalid arguments
)

// maxRecordError bounds the error in a record, because errors of functions may be long.
const maxRecordError = 1 << 10

// A Record describes one call for an audit log. Every call has one, however it ended.
type Record struct {
	Time time.Time `json:"time"`
	Tool string    `json:"tool"`
	// Digest is the SHA-256 of the arguments as canonical JSON. It distinguishes calls; it
	// does not hide arguments that can be guessed.
	Digest string `json:"digest"`
	// Arguments is set if Options.KeepArguments is set and the arguments could be read.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Grant is the charged grant: its name, or its pattern.
	Grant    string  `json:"grant,omitempty"`
	Outcome  Outcome `json:"outcome"`
	DeniedBy string  `json:"denied_by,omitempty"` // reasons of a refusal
	Error    string  `json:"error,omitempty"`
	// Cost is what was charged to the grant's first budget or, if it has none, the tool's
	// declared cost.
	Cost     int64         `json:"cost,omitempty"`
	Duration time.Duration `json:"duration"`
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// cut shortens s to at most n bytes, at a character boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
