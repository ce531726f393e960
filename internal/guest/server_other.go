//go:build !linux

package guest

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// A Server is the agent. There is one on Linux only.
type Server struct {
	o      Options
	names  names
	wg     sync.WaitGroup
	asides asides
	turns  turns

	answerer *answerer
}

// New returns Unsupported: the agent runs on Linux.
func New(Options) (*Server, error) {
	return nil, fmt.Errorf("the agent of a sandbox runs on Linux: %w", paddock.Unsupported)
}

// pass lets nothing through: no agent can be made here.
func (s *Server) pass(<-chan struct{}) bool { return false }

// listenFor serves nobody: no agent can be made here.
func (s *Server) listenFor(_ context.Context, conn net.Conn) error { return conn.Close() }

// Close does nothing.
func (s *Server) Close() error { return nil }
