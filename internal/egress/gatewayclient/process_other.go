//go:build !linux

package gatewayclient

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// A Process is a gateway process, which needs Linux.
type Process struct{}

func unsupported() error {
	return fmt.Errorf("a gateway needs Linux: %w", paddock.Unsupported)
}

// StartProcess is Unsupported here.
func StartProcess(context.Context, *os.File, Config, Callbacks) (*Process, error) {
	return nil, unsupported()
}

// Ready is Unsupported here.
func (g *Process) Ready(context.Context) (Ready, error) { return Ready{}, unsupported() }

// Link is Unsupported here.
func (g *Process) Link(*os.File) error { return unsupported() }

// Dial is Unsupported here.
func (g *Process) Dial(context.Context, string, uint16) (net.Conn, error) { return nil, unsupported() }

// Channel is Unsupported here.
func (g *Process) Channel() (*os.File, error) { return nil, unsupported() }

// Update is Unsupported here.
func (g *Process) Update(context.Context, paddock.NetworkPolicy) error { return unsupported() }

// Names is Unsupported here.
func (g *Process) Names(context.Context) ([]string, error) { return nil, unsupported() }

// Traffic returns zero.
func (g *Process) Traffic() paddock.Traffic { return paddock.Traffic{} }

// Done returns nil: a channel that is never closed.
func (g *Process) Done() <-chan struct{} { return nil }

// PID returns 0.
func (g *Process) PID() int { return 0 }

// Close does nothing.
func (g *Process) Close() error { return nil }

// A Dialer dials through a gateway, which needs Linux.
type Dialer struct{}

// NewDialer is Unsupported here.
func NewDialer(*os.File) (*Dialer, error) { return nil, unsupported() }

// Dial is Unsupported here.
func (d *Dialer) Dial(context.Context, string, uint16) (net.Conn, error) { return nil, unsupported() }

// Close does nothing.
func (d *Dialer) Close() error { return nil }
