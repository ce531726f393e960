package owner

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// An dialRequest is what a Dialer says, one packet each.
type dialRequest struct {
	ID     uint64 `json:"id"`
	Host   string `json:"host,omitempty"`
	Port   uint16 `json:"port,omitempty"`
	Cancel bool   `json:"cancel,omitempty"` // the attempt ID is no longer wanted
}

// An dialReply is what a Dialer is told; a socket comes with one that has no error.
type dialReply struct {
	ID    uint64       `json:"id"`
	Error string       `json:"error,omitempty"`
	Kind  paddock.Kind `json:"kind,omitempty"`
}

// Bounds of a channel for dialling.
const (
	dialRequestMax  = 2048 // bytes of one
	dialRequestsMax = 64   // at once
)

// readDialRequest reads what came on a channel for dialling.
func readDialRequest(data []byte) (dialRequest, error) {
	var a dialRequest
	if len(data) > dialRequestMax {
		return a, fmt.Errorf("read an attempt: %d bytes: %w", len(data), paddock.Invalid)
	}
	if err := decodeStrictly(data, &a); err != nil {
		return dialRequest{}, fmt.Errorf("read an attempt: %w", err)
	}
	if a.Cancel != (a.Host == "" && a.Port == 0) || len(a.Host) > nameMax || (a.Host == "") != (a.Port == 0) {
		return dialRequest{}, fmt.Errorf("read an attempt: it makes no sense: %w", paddock.Invalid)
	}
	return a, nil
}
