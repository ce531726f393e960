package share

import (
	"fmt"
	"net"

	"github.com/paddock-sandbox/paddock"
)

// A Server serves one directory to one machine. Its process's mask for new
// files is to be 0: the machine's kernel has applied the one that counts.
type Server struct {
	options Options
}

// New makes a server for a machine that has not mounted anything yet.
func New(o Options) (*Server, error) {
	return &Server{options: o}, nil
}

// Restore makes one for a machine that goes on: data is the State of the server
// that it had. Files that are not there any more are ESTALE to the machine.
func Restore(o Options, data []byte) (*Server, error) {
	return nil, fmt.Errorf("restore a share of %d bytes: %w", len(data), paddock.Unsupported)
}

// Serve answers what comes on a connection until it ends, and closes it. The
// machine may go on over another connection afterwards, with what it has open.
func (s *Server) Serve(conn net.Conn) error {
	return fmt.Errorf("serve %s: %w", conn.RemoteAddr(), paddock.Unsupported)
}

// State gives what Restore needs. No request may be under way.
func (s *Server) State() ([]byte, error) {
	return nil, fmt.Errorf("keep a share: %w", paddock.Unsupported)
}

// Close closes all that the machine has open. Serve has returned before.
func (s *Server) Close() {}
