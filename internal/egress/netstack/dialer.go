package netstack

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// A Target is a destination to dial.
type Target struct {
	Host  decide.Host
	Port  uint16
	UDP   bool                  // datagrams; not together with Via
	Lists func(netip.Addr) bool // the addresses that a rule lists for this target; nil is none
	// Denies returns the reason why an address must not be dialled although the target is allowed. Nil denies none.
	Denies func(netip.Addr) error
	Via    *url.URL // an upstream proxy (http, https or socks5), which is given the name; nil is none
}

// String returns the target as people write it. It leaves out the proxy, whose URL may hold a password.
func (t Target) String() string {
	return net.JoinHostPort(t.Host.String(), fmt.Sprint(t.Port))
}

// A Dialer dials targets. The zero value is ready: it uses the host's network and Go's own resolver. It keeps nothing
// between calls and is safe for concurrent use.
type Dialer struct {
	// Lookup returns the addresses of a name. It is never called with an address.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Connect connects to an address ("tcp" or "udp").
	Connect func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error)
	// Own returns the host's own addresses. Each dial calls it.
	Own func() ([]netip.Addr, error)
	// Timeout bounds a dial including its lookup. The default is 30 seconds.
	Timeout time.Duration
	// Roots verify the certificates of proxies. Nil uses the system's.
	Roots *x509.CertPool
}

const (
	patience = 30 * time.Second
	stagger  = 250 * time.Millisecond // delay before the next address is tried in parallel; RFC 8305
	most     = 16                     // addresses of one name
)

// Dial resolves the target's name once, checks each address, and connects to the first checked address that answers. A
// refused address is Denied. A failure of the network is Unavailable or Timeout and wraps the system's error
// (syscall.ECONNREFUSED and the like). With Via, Dial passes the name to the proxy and dials the proxy alone, at any
// address, because the author of the policy named it. A TCP connection has CloseWrite.
func (d *Dialer) Dial(ctx context.Context, t Target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, patience))
	defer cancel()
	c, err := d.dial(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", t, dialError(ctx, err))
	}
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, t Target) (net.Conn, error) {
	switch {
	case !t.Host.IsValid() || t.Port == 0:
		return nil, fmt.Errorf("no host or no port: %w", paddock.Invalid)
	case t.Via != nil && t.Host.Loopback():
		return nil, fmt.Errorf("the loopback of this machine is not reached through a proxy: %w", paddock.Unsupported)
	case t.Via != nil && t.UDP:
		return nil, fmt.Errorf("datagrams do not go through a proxy: %w", paddock.Unsupported)
	case t.Via != nil:
		return d.dialVia(ctx, t)
	}
	if t.Host.Loopback() {
		return d.dialLoopback(ctx, t)
	}
	found, err := d.lookup(ctx, t.Host)
	if err != nil {
		return nil, err
	}
	checked, err := d.check(found, t)
	if err != nil {
		return nil, err
	}
	return d.race(ctx, t.UDP, t.Port, checked)
}

// dialLoopback connects to this machine's loopback. The rule that allows the target names it and the port, and Denies
// still counts.
func (d *Dialer) dialLoopback(ctx context.Context, t Target) (net.Conn, error) {
	if t.UDP {
		return nil, fmt.Errorf("datagrams do not reach the loopback of this machine: %w", paddock.Unsupported)
	}
	var first error
	var open []netip.Addr
	for _, addr := range decide.LoopbackAddresses() {
		var err error
		if t.Denies != nil {
			err = t.Denies(addr)
		}
		switch {
		case err == nil:
			open = append(open, addr)
		case first == nil:
			first = err
		}
	}
	if len(open) == 0 {
		return nil, first
	}
	return d.race(ctx, false, t.Port, open)
}

// dialError adds a kind to an error without one.
func dialError(ctx context.Context, err error) error {
	var k paddock.Kind
	var n net.Error
	switch {
	case errors.As(err, &k):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w: %w", err, paddock.Canceled)
	case ctx.Err() != nil, errors.As(err, &n) && n.Timeout():
		return fmt.Errorf("%w: %w", err, paddock.Timeout)
	}
	return fmt.Errorf("%w: %w", err, paddock.Unavailable)
}

// lookup returns the addresses of a host.
func (d *Dialer) lookup(ctx context.Context, h decide.Host) ([]netip.Addr, error) {
	if addr, ok := h.Addr(); ok {
		return []netip.Addr{addr}, nil
	}
	look := d.Lookup
	if look == nil {
		look = resolve
	}
	found, err := look(ctx, h.String())
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, errors.New("the name has no addresses")
	}
	found = slices.Clone(found[:min(len(found), most)])
	for i, a := range found {
		found[i] = a.Unmap()
	}
	return found, nil
}

// resolve queries the host's DNS servers with Go's own resolver. It loads no library of the
// host's configuration, and tries no search list.
func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true}
	return r.LookupNetIP(ctx, "ip", name+".")
}

// check returns the addresses that may be dialled. If there are none, it returns the reason
// for the first.
func (d *Dialer) check(found []netip.Addr, t Target) ([]netip.Addr, error) {
	get := d.Own
	if get == nil {
		get = interfaceAddresses
	}
	ours, err := get()
	if err != nil {
		return nil, fmt.Errorf("addresses of this host: %w", err)
	}
	var first error
	var checked []netip.Addr
	for _, addr := range found {
		err := decide.CheckAddress(addr, t.Lists)
		if err == nil && slices.Contains(ours, addr) && (t.Lists == nil || !t.Lists(addr)) {
			err = decide.RefuseAddress(addr, "this host's own")
		}
		if err == nil && t.Denies != nil {
			err = t.Denies(addr)
		}
		switch {
		case err == nil && !slices.Contains(checked, addr):
			checked = append(checked, addr)
		case first == nil:
			first = err
		}
	}
	if len(checked) == 0 {
		return nil, first
	}
	return checked, nil
}

// interfaceAddresses returns the addresses of the host's interfaces.
func interfaceAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				addrs = append(addrs, addr.Unmap())
			}
		}
	}
	return addrs, nil
}

// alternate alternates the address families, so that a broken family delays the other only
// once.
func alternate(addrs []netip.Addr) []netip.Addr {
	var same, other []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			same = append(same, a)
		} else {
			other = append(other, a)
		}
	}
	var out []netip.Addr
	for i := range max(len(same), len(other)) {
		out = append(out, same[min(i, len(same)):min(i+1, len(same))]...)
		out = append(out, other[min(i, len(other)):min(i+1, len(other))]...)
	}
	return out
}

type dialed struct {
	conn net.Conn
	err  error
}

// race connects to the addresses in order, the next one after a failure or a delay. The
// first connection wins. When race returns, there is no other.
func (d *Dialer) race(ctx context.Context, datagrams bool, port uint16, addrs []netip.Addr) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	addrs = alternate(addrs)
	results := make(chan dialed)
	running := 0
	defer func() {
		cancel()
		for range running {
			if r := <-results; r.conn != nil {
				r.conn.Close()
			}
		}
	}()
	var failures []error
	for len(addrs) > 0 || running > 0 {
		var next <-chan time.Time
		if len(addrs) > 0 {
			to := netip.AddrPortFrom(addrs[0], port)
			addrs = addrs[1:]
			running++
			go func() {
				c, err := d.connect(ctx, datagrams, to)
				results <- dialed{c, err}
			}()
			timer := time.NewTimer(stagger)
			defer timer.Stop()
			if next = timer.C; len(addrs) == 0 {
				next = nil
			}
		}
		select {
		case <-next:
		case r := <-results:
			running--
			if r.err == nil {
				return r.conn, nil
			}
			failures = append(failures, r.err)
		}
	}
	return nil, errors.Join(failures...)
}

// connect connects to exactly one address.
func (d *Dialer) connect(ctx context.Context, datagrams bool, to netip.AddrPort) (net.Conn, error) {
	network, dial := "tcp", d.Connect
	if datagrams {
		network = "udp"
	}
	if dial == nil {
		dial = connect
	}
	c, err := dial(ctx, network, to)
	if err != nil {
		return nil, err
	}
	if got, err := netip.ParseAddrPort(c.RemoteAddr().String()); err != nil || unmapped(got) != to {
		c.Close()
		return nil, fmt.Errorf("a connection to %s arrived at %s", to, c.RemoteAddr())
	}
	return c, nil
}

func connect(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		if got, err := netip.ParseAddrPort(address); err != nil || unmapped(got) != to {
			return fmt.Errorf("%s would be dialled in place of %s", address, to)
		}
		return nil
	}}
	return dialer.DialContext(ctx, network, to.String())
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
