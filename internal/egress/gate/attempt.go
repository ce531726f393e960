package gate

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// An attempt is what a Dialer says, one packet each.
type attempt struct {
	ID     uint64 `json:"id"`
	Host   string `json:"host,omitempty"`
	Port   uint16 `json:"port,omitempty"`
	Cancel bool   `json:"cancel,omitempty"` // the attempt ID is no longer wanted
}

// An outcome is what a Dialer is told; a socket comes with one that has no error.
type outcome struct {
	ID    uint64       `json:"id"`
	Error string       `json:"error,omitempty"`
	Kind  paddock.Kind `json:"kind,omitempty"`
}

// Bounds of a channel for dialling.
const (
	attemptMax  = 2048 // bytes of one
	attemptsMax = 64   // at once
)

// readAttempt reads what came on a channel for dialling.
func readAttempt(data []byte) (attempt, error) {
	var a attempt
	if len(data) > attemptMax {
		return a, fmt.Errorf("read an attempt: %d bytes: %w", len(data), paddock.Invalid)
	}
	if err := decodeStrictly(data, &a); err != nil {
		return attempt{}, fmt.Errorf("read an attempt: %w", err)
	}
	if a.Cancel != (a.Host == "" && a.Port == 0) || len(a.Host) > nameMax || (a.Host == "") != (a.Port == 0) {
		return attempt{}, fmt.Errorf("read an attempt: it makes no sense: %w", paddock.Invalid)
	}
	return a, nil
}
