package gatewayclient

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// A dialRequest is a packet from a Dialer.
type dialRequest struct {
	ID     uint64 `json:"id"`
	Host   string `json:"host,omitempty"`
	Port   uint16 `json:"port,omitempty"`
	Cancel bool   `json:"cancel,omitempty"` // cancel the attempt ID
}

// A dialReply is the answer to it. A successful one has a socket.
type dialReply struct {
	ID    uint64       `json:"id"`
	Error string       `json:"error,omitempty"`
	Kind  paddock.Kind `json:"kind,omitempty"`
}

// Bounds of a channel for dialling.
const (
	dialRequestMax  = 2048 // bytes of one request
	dialRequestsMax = 64   // requests at once
)

// readDialRequest parses a packet of a channel.
func readDialRequest(data []byte) (dialRequest, error) {
	var a dialRequest
	if len(data) > dialRequestMax {
		return a, fmt.Errorf("read an attempt: %d bytes: %w", len(data), paddock.Invalid)
	}
	if err := decodeStrictly(data, &a); err != nil {
		return dialRequest{}, fmt.Errorf("read an attempt: %w", err)
	}
	if a.Cancel != (a.Host == "" && a.Port == 0) || len(a.Host) > nameMax || (a.Host == "") != (a.Port == 0) {
		return dialRequest{}, fmt.Errorf("read an attempt: it is not valid: %w", paddock.Invalid)
	}
	return a, nil
}
