package netstack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/paddock-sandbox/paddock"
)

// A Handler decides about the connections that the sandbox opens. The link calls its methods concurrently, each on a
// goroutine of its own, and they may take their time. Close waits for them.
type Handler interface {
	// TCP handles a connection attempt (a SYN) by a.Accept or a.Refuse. The link refuses the attempt if TCP returns
	// without either.
	TCP(a *Attempt)
	// UDP handles the first datagram from one address and port to another. After f.Accept the flow belongs to the
	// handler. The link refuses it if UDP returns without Accept.
	UDP(f *Datagrams)
}

// Options configure a Link. The zero value of each field is its default.
type Options struct {
	Handler  Handler
	MTU      uint32 // of the interface; the default is 65520
	MaxConns int    // TCP connections at once, with those not accepted yet; the default is 4096. More are refused
	MaxFlows int    // flows of datagrams at once; the default is 1024. More are refused

	// Pings reports whether an address answers to ICMP echo. If nil, none does.
	Pings func(netip.Addr) bool
}

// A Conn is a connection of the sandbox, or a flow of its datagrams.
type Conn interface {
	net.Conn
	// CloseWrite ends sending and goes on receiving. It does nothing for a flow of datagrams.
	CloseWrite() error
	// Reset ends the connection at once with a RST, so that the sandbox knows that data is missing. It is Close for a
	// flow of datagrams.
	Reset()
}

// Bounds of a link in addition to the Options.
const (
	linger    = 60 * time.Second // how long a closed connection waits for the sandbox's last packet
	idle      = time.Minute      // time without a datagram after which a flow ends
	handshake = 3                // number of answers to one SYN (15 s)
	halfOpen  = 1024             // unsettled connections; more wait
	oneFlow   = 256 << 10        // unread bytes of datagrams of one flow
	allFlows  = 16 << 20         // of all flows together
)

const nic = 1

// A Link is a TCP/IP stack on the gateway's end of a sandbox's network interface.
type Link struct {
	file     *os.File
	handler  Handler
	stack    *stack.Stack
	endpoint stack.LinkEndpoint
	mtu      uint32
	pings    func(netip.Addr) bool
	maxConns int64
	maxFlows int

	done    chan struct{}
	ended   sync.Once     // closes done
	closing chan struct{} // Close was called
	shut    chan struct{} // Close has finished

	wg     sync.WaitGroup
	conns  atomic.Int64 // attempts, connections, and closed connections that linger
	queued atomic.Int64 // unread bytes of datagrams

	mu     sync.Mutex
	closed bool                                // guarded by mu
	buried []grave                             // guarded by mu
	flows  map[stack.TransportEndpointID]*flow // guarded by mu
}

// Open makes a stack on f: a TUN device without packet information (IFF_TUN|IFF_NO_PI), or a packet socket
// (SOCK_SEQPACKET) whose other end is the sandbox's. The link owns f, even if Open fails.
func Open(f *os.File, o Options) (*Link, error) {
	l := &Link{
		file: f, handler: o.Handler, pings: o.Pings, mtu: cmp.Or(o.MTU, 65520),
		maxConns: int64(cmp.Or(o.MaxConns, 4096)), maxFlows: cmp.Or(o.MaxFlows, 1024),
		done: make(chan struct{}), closing: make(chan struct{}), shut: make(chan struct{}), flows: map[stack.TransportEndpointID]*flow{},
	}
	if l.mtu < header.IPv6MinimumMTU || l.mtu > 65535 {
		return nil, errors.Join(fmt.Errorf("link: an MTU of %d: %w", l.mtu, paddock.Invalid), f.Close())
	}
	if err := l.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("link: %w", err), f.Close())
	}
	return l, nil
}

func (l *Link) open() (err error) {
	if l.endpoint, err = newEndpoint(l.file, l.mtu, l.gone); err != nil {
		return err
	}
	if l.stack, err = newStack(); err != nil {
		return err
	}
	forwarder := tcp.NewForwarder(l.stack, window, halfOpen, l.attempt)
	l.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, func(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
		// Unhandled packets are answered with a RST.
		return l.conns.Load() < l.maxConns && forwarder.HandlePacket(id, pkt)
	})
	l.stack.SetTransportProtocolHandler(udp.ProtocolNumber, l.datagram)
	l.stack.SetTransportProtocolHandler(icmp.ProtocolNumber4, l.echo4)
	l.stack.SetTransportProtocolHandler(icmp.ProtocolNumber6, l.echo6)
	late := &lateEndpoint{LinkEndpoint: l.endpoint}
	if err := l.stack.CreateNIC(nic, late); err != nil {
		return fmt.Errorf("interface: %s", err)
	}
	if err := errors.Join(failed(l.stack.SetPromiscuousMode(nic, true)), failed(l.stack.SetSpoofing(nic, true))); err != nil {
		return fmt.Errorf("interface: %w", err)
	}
	l.endpoint.Attach(late.dispatcher)
	return nil
}

// failed converts an error of the stack.
func failed(err tcpip.Error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.String())
}

// A lateEndpoint starts reading when it is told to, because a new interface refuses packets
// before it is configured.
type lateEndpoint struct {
	stack.LinkEndpoint
	dispatcher stack.NetworkDispatcher
}

func (e *lateEndpoint) Attach(d stack.NetworkDispatcher) {
	if e.dispatcher = d; d == nil {
		e.LinkEndpoint.Attach(nil)
	}
}

// newStack makes a stack without addresses that answers for all addresses. Each connection
// ends here, whatever its destination.
func newStack() (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{
			ipv4.NewProtocol,
			// Disable discovery, because there is no other host on the link.
			ipv6.NewProtocolWithOptions(ipv6.Options{NDPConfigs: ipv6.NDPConfigurations{HandleRAs: ipv6.HandlingRAsDisabled}}),
		},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
	})
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(false)
	// A used port is free again at once, because the other side is one sandbox.
	wait, tries := tcpip.TCPTimeWaitTimeoutOption(0), tcpip.TCPSynRetriesOption(handshake)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: window, Max: window}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: window, Max: window}
	for _, o := range []tcpip.SettableTransportProtocolOption{&sack, &moderate, &wait, &tries, &receive, &send} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return nil, fmt.Errorf("option %T: %s", o, err)
		}
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic}})
	return s, nil
}

// gone notes that the descriptor delivers no more packets.
func (l *Link) gone() { l.ended.Do(func() { close(l.done) }) }

// Done returns a channel that is closed when the other end is gone or the link is closed.
func (l *Link) Done() <-chan struct{} { return l.done }

// begin counts a call that Close waits for. It reports false after Close.
func (l *Link) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.wg.Add(1)
	}
	return !l.closed
}

// Keep leaves the interface to the end of its network namespace, which the caller expects soon. Close is slower without
// it, because the kernel makes the closing process wait for the removal of the interface. No packet leaves by an
// interface that no process reads.
func (l *Link) Keep() error { return keep(l.file) }

// Close ends the link with all its connections and waits for the handler's calls, which see the connections fail. A
// second call waits for the first.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.shut
		return nil
	}
	l.closed = true
	close(l.closing)
	flows := slices.Collect(maps.Values(l.flows))
	l.mu.Unlock()
	// End the reader first, because it takes locks of the stack.
	l.endpoint.Attach(nil)
	for _, f := range flows {
		f.end()
	}
	l.abort()
	l.stack.Destroy()
	l.gone()
	err := l.file.Close()
	close(l.shut)
	return err
}

// abort ends all connections until no new one begins.
func (l *Link) abort() {
	through := make(chan struct{})
	go func() { l.wg.Wait(); close(through) }()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		for _, e := range l.stack.RegisteredEndpoints() {
			e.Abort()
		}
		select {
		case <-through:
			return
		case <-again.C: // a handshake may have begun meanwhile
		}
	}
}
