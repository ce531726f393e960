package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// maxAnswer bounds an answer of a judge, in bytes.
const maxAnswer = 64 << 10

// errTooLong is about an answer beyond maxAnswer.
var errTooLong = fmt.Errorf("the answer is longer than %d bytes: %w", maxAnswer, paddock.Invalid)

// An Answer is what a judge answers.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"` // needed unless the verdict is allow
	Score   float64 `json:"score,omitempty"`  // suspicion, from 0 to 1
}

// parseAnswer reads an answer strictly: one JSON object with known members, each once, and a verdict that there is.
func parseAnswer(data []byte) (Answer, error) {
	var a Answer
	if len(data) > maxAnswer {
		return a, errTooLong
	}
	if !utf8.Valid(data) {
		return a, fmt.Errorf("the answer is not UTF-8: %w", paddock.Invalid)
	}
	if err := once(data); err != nil {
		return a, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return Answer{}, fmt.Errorf("the answer is not the JSON of a verdict: %w: %w", err, paddock.Invalid)
	}
	switch a.Verdict {
	case Allow, Ask, Deny, Pause:
	default:
		return Answer{}, fmt.Errorf("the verdict %q is not one of allow, ask, deny and pause: %w", audit.Text(string(a.Verdict), 40), paddock.Invalid)
	}
	if a.Score < 0 || a.Score > 1 {
		return Answer{}, fmt.Errorf("the score is not between 0 and 1: %w", paddock.Invalid)
	}
	if a.Verdict != Allow && a.Reason == "" {
		return Answer{}, fmt.Errorf("the verdict %s has no reason: %w", a.Verdict, paddock.Invalid)
	}
	a.Reason = audit.Text(a.Reason, audit.MaxWhy)
	return a, nil
}

// once refuses what encoding/json reads leniently: a member that comes twice, names in other letters, null, and text after
// the object.
func once(data []byte) error {
	wrong := func(what string) error { return fmt.Errorf("the answer %s: %w", what, paddock.Invalid) }
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return wrong("is not a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return wrong("is not the JSON of a verdict")
		}
		if seen[name] {
			return wrong(fmt.Sprintf("has the member %q twice", audit.Text(name, 40)))
		}
		if name != "verdict" && name != "reason" && name != "score" {
			return wrong(fmt.Sprintf("has the unknown member %q", audit.Text(name, 40)))
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return wrong("is not the JSON of a verdict")
		}
		if string(value) == "null" {
			return wrong(fmt.Sprintf("has null as %q", name))
		}
	}
	if _, err := d.Token(); err != nil {
		return wrong("ends within the object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return wrong("has more than one JSON object")
	}
	return nil
}
