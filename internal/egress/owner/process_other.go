//go:build !linux

package owner

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// A Process is a gateway process, which there is on Linux alone.
type Process struct{}

func unsupported() error {
	return fmt.Errorf("a gateway needs Linux: %w", paddock.Unsupported)
}

// StartProcess is Unsupported here.
func StartProcess(context.Context, *os.File, Config, Callbacks) (*Process, error) {
	return nil, unsupported()
}

// Ready is Unsupported here, as all that follows.
func (g *Process) Ready(context.Context) (Ready, error) { return Ready{}, unsupported() }

// Link hands over a link.
func (g *Process) Link(*os.File) error { return unsupported() }

// Dial connects by the rules.
func (g *Process) Dial(context.Context, string, uint16) (net.Conn, error) { return nil, unsupported() }

// ChannelFD gives a file for another process.
func (g *Process) Channel() (*os.File, error) { return nil, unsupported() }

// Update puts other rules in place.
func (g *Process) Update(context.Context, paddock.NetworkPolicy) error { return unsupported() }

// Names lists names that have addresses.
func (g *Process) Names(context.Context) ([]string, error) { return nil, unsupported() }

// Traffic is nothing.
func (g *Process) Traffic() paddock.Traffic { return paddock.Traffic{} }

// Done is never closed.
func (g *Process) Done() <-chan struct{} { return nil }

// PID is no process.
func (g *Process) PID() int { return 0 }

// Close ends the gateway.
func (g *Process) Close() error { return nil }

// A Dialer dials through a file that Process.Channel gave.
type Dialer struct{}

// NewDialer is Unsupported here.
func NewDialer(*os.File) (*Dialer, error) { return nil, unsupported() }

// Dial connects by the rules.
func (d *Dialer) Dial(context.Context, string, uint16) (net.Conn, error) { return nil, unsupported() }

// Close ends the channel.
func (d *Dialer) Close() error { return nil }
