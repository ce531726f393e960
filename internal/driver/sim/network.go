package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// networked reports whether computers can have a network.
func (d *Driver) networked() bool { return d.way != nil || d.o.Dial != nil }

// checkNetwork refuses what is not understood or obeyed.
func (d *Driver) checkNetwork(p paddock.NetworkPolicy) error {
	if err := description.CheckNetwork(p); err != nil || p.Mode == paddock.NetworkNone {
		return err
	}
	switch {
	case !d.networked():
		return fmt.Errorf("network %.64q: this driver has no way out: %w", string(p.Mode), paddock.Unsupported)
	case d.way != nil:
		return nil // it has the rules
	}
	rules, err := decide.Compile(p)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	more := func(r paddock.NetworkRule) bool { return r.Limits != nil || r.Proxy != "" || r.UDP }
	if len(p.Secrets) > 0 || len(rules.Inspected()) > 0 || slices.ContainsFunc(p.Rules, more) {
		return fmt.Errorf("network: inside a program only rules about hosts and ports of connections are obeyed: %w", paddock.Unsupported)
	}
	return nil
}

// newRules reads checked rules; nil is no network.
func (b *box) newRules(p paddock.NetworkPolicy) (*decide.Rules, error) {
	list := p.Mode == paddock.NetworkList
	switch {
	case b.kernel != nil && b.kernel.Dial != nil && p.Mode == paddock.NetworkNone:
		p.Mode = paddock.NetworkList // without rules it reaches nothing, and rules may come again
	case b.kernel != nil && list != (b.kernel.Dial != nil):
		return nil, description.LateNetwork(p)
	case !list:
		return nil, nil
	case b.d.way != nil:
		p = paddock.NetworkPolicy{Mode: paddock.NetworkList} // the way has them
	}
	rules, err := decide.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return rules, nil
}

// network gives the computer's way out; nil is none.
func (b *box) network(p paddock.NetworkPolicy) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	if p.Mode != paddock.NetworkList {
		return nil, nil
	}
	rules, err := b.newRules(p)
	if err != nil {
		return nil, err
	}
	b.rules.Store(rules)
	for i, f := range b.enforced {
		if f.Control == paddock.ControlNetNS || f.Control == paddock.ControlNetwork {
			b.enforced[i].How = "curl, wget and the shell's /dev/tcp are handed connections, by the rules; nothing else has a way to the network"
		}
	}
	return b.dial, nil
}

// dial is a tool's call to the network.
func (b *box) dial(ctx context.Context, network, address string) (net.Conn, error) {
	rules := b.rules.Load()
	if rules == nil || !strings.HasPrefix(network, "tcp") {
		return nil, linux.ENETUNREACH
	}
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("port %q: %w", text, paddock.Invalid)
	}
	if b.d.way != nil {
		c, err := b.d.way(ctx, host, uint16(port))
		return c, unresolved(host, err)
	}
	h, err := decide.ParseHost(host)
	if err != nil {
		return nil, err
	}
	v := rules.Flow(decide.Flow{Host: h, Port: uint16(port)})
	if !v.Allow || v.Look {
		b.note(paddock.Refusal{What: "connect", Target: net.JoinHostPort(h.String(), text), Rule: v.Reason, Remedy: v.Hint})
		err := fmt.Errorf("%s: %w", v.Reason, paddock.Denied)
		if rules.Lookup(h).Allow {
			return nil, err
		}
		return nil, unresolved(host, err)
	}
	c, err := b.d.o.Dial(ctx, h.String(), uint16(port))
	if err != nil {
		return nil, err
	}
	return &counted{c, &b.traffic}, nil
}

// unresolved makes of a refusal of a name the error of a name that does not
// exist, as a box of another tier gets.
func unresolved(host string, err error) error {
	if _, address := netip.ParseAddr(host); address == nil || !errors.Is(err, paddock.Denied) {
		return err
	}
	return &net.DNSError{Err: err.Error(), Name: host, IsNotFound: true, UnwrapErr: err}
}

// A traffic counts what connections carry.
type traffic struct{ in, out atomic.Int64 }

func (t *traffic) now() *paddock.Traffic {
	return &paddock.Traffic{In: t.in.Load(), Out: t.out.Load()}
}

// counted is a connection to the world.
type counted struct {
	net.Conn

	to *traffic
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.to.in.Add(int64(max(n, 0)))
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.to.out.Add(int64(max(n, 0)))
	return n, err
}

// CloseWrite ends the direction to the destination, where that can be done alone.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return fmt.Errorf("end one direction: %w", paddock.Unsupported)
}
