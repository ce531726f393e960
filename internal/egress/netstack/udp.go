package netstack

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/paddock-sandbox/paddock"
)

// Datagrams are a flow of datagrams that the sandbox sends from one address and port to another, with the answers.
type Datagrams struct {
	From, To netip.AddrPort

	flow    *flow
	first   []byte // the first packet, as much as an ICMP error quotes
	settled atomic.Bool
}

// Accept takes the flow. Each Read returns one datagram, cut to the buffer, and each Write sends one. The flow ends
// after a minute without traffic: Read then returns io.EOF, and Write fails.
func (d *Datagrams) Accept() (Conn, error) {
	if !d.settled.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("accept: the datagrams are accepted or refused already: %w", paddock.Conflict)
	}
	return d.flow, nil
}

// Refuse answers with ICMP port unreachable. It does nothing after Accept or Refuse.
func (d *Datagrams) Refuse() {
	if d.settled.CompareAndSwap(false, true) {
		d.flow.link.unreachable(d.flow.route, d.first)
		d.flow.end()
	}
}

// A flow is the datagrams between two address and port pairs. It has no endpoint in the
// stack, so that no datagram is lost or refused while one is made.
type flow struct {
	link  *Link
	id    stack.TransportEndpointID
	route *stack.Route

	read, write deadline
	over        chan struct{} // closed when it has ended
	idle        *time.Timer

	mu      sync.Mutex
	ended   bool          // guarded by mu
	waiting [][]byte      // guarded by mu; unread datagrams
	size    int           // guarded by mu; their size
	arrived chan struct{} // has an element if waiting may not be empty
}

// datagram handles a packet from the sandbox. If it reports false, the stack answers with
// ICMP port unreachable.
func (l *Link) datagram(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	h := header.UDP(pkt.TransportHeader().Slice())
	payload := pkt.Data().AsRange().ToSlice()
	size := int(h.Length()) - header.UDPMinimumSize
	if id.LocalPort == 0 || id.RemotePort == 0 || size < 0 || size > len(payload) {
		return true // not a datagram
	}
	payload = payload[:size]
	l.mu.Lock()
	f, known := l.flows[id]
	if !known && (l.closed || len(l.flows) >= l.maxFlows) {
		l.mu.Unlock()
		return false
	}
	if !known {
		if f = l.newFlow(id, pkt); f == nil {
			l.mu.Unlock()
			return true
		}
		l.flows[id] = f
		l.wg.Add(1)
	}
	l.mu.Unlock()
	f.put(payload)
	if !known {
		d := &Datagrams{From: place(id.RemoteAddress, id.RemotePort), To: place(id.LocalAddress, id.LocalPort), flow: f, first: quote(pkt)}
		go func() {
			defer l.wg.Done()
			defer d.Refuse()
			l.handler.UDP(d)
		}()
	}
	return true
}

// newFlow returns nil if there is no route back.
func (l *Link) newFlow(id stack.TransportEndpointID, pkt *stack.PacketBuffer) *flow {
	route, err := l.stack.FindRoute(nic, id.LocalAddress, id.RemoteAddress, pkt.NetworkProtocolNumber, false)
	if err != nil {
		return nil
	}
	f := &flow{link: l, id: id, route: route, over: make(chan struct{}), arrived: make(chan struct{}, 1), read: newDeadline(), write: newDeadline()}
	f.idle = time.AfterFunc(idle, f.end)
	return f
}

// put queues a datagram for reading. If the queue is full, the datagram is dropped.
func (f *flow) put(payload []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cost := len(payload) + 64
	if f.ended || f.size+cost > oneFlow {
		return
	}
	if f.link.queued.Add(int64(cost)) > allFlows {
		f.link.queued.Add(-int64(cost))
		return
	}
	f.size += cost
	f.waiting = append(f.waiting, payload)
	f.idle.Reset(idle)
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}

// take returns the next datagram.
func (f *flow) take() ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		return nil, false
	}
	payload := f.waiting[0]
	f.waiting[0] = nil
	if f.waiting = f.waiting[1:]; len(f.waiting) > 0 {
		select {
		case f.arrived <- struct{}{}:
		default:
		}
	}
	cost := len(payload) + 64
	f.size -= cost
	f.link.queued.Add(-int64(cost))
	return payload, true
}

// end removes the flow. The next datagram begins another one.
func (f *flow) end() {
	f.mu.Lock()
	if f.ended {
		f.mu.Unlock()
		return
	}
	f.ended = true
	f.idle.Stop()
	f.link.queued.Add(-int64(f.size))
	f.waiting, f.size = nil, 0
	close(f.over)
	f.mu.Unlock()
	f.link.mu.Lock()
	delete(f.link.flows, f.id)
	f.link.mu.Unlock()
	f.route.Release()
}

func (f *flow) Read(b []byte) (int, error) {
	for {
		select {
		case <-f.read.wait():
			return 0, f.failed("read", os.ErrDeadlineExceeded)
		default:
		}
		if payload, ok := f.take(); ok {
			return copy(b, payload), nil
		}
		select {
		case <-f.arrived:
		case <-f.over:
			return 0, io.EOF
		case <-f.read.wait():
		}
	}
}

func (f *flow) Write(b []byte) (int, error) {
	select {
	case <-f.over:
		return 0, f.failed("write", net.ErrClosed)
	case <-f.write.wait():
		return 0, f.failed("write", os.ErrDeadlineExceeded)
	default:
	}
	if len(b) > int(f.route.MTU())-header.UDPMinimumSize {
		return 0, f.failed("write", syscall.EMSGSIZE)
	}
	f.idle.Reset(idle)
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: header.UDPMinimumSize + int(f.route.MaxHeaderLength()),
		Payload:            buffer.MakeWithData(b),
	})
	defer pkt.DecRef()
	pkt.TransportProtocolNumber = udp.ProtocolNumber
	h := header.UDP(pkt.TransportHeader().Push(header.UDPMinimumSize))
	size := uint16(pkt.Size())
	h.Encode(&header.UDPFields{SrcPort: f.id.LocalPort, DstPort: f.id.RemotePort, Length: size})
	if f.route.RequiresTXTransportChecksum() {
		sum := f.route.PseudoHeaderChecksum(udp.ProtocolNumber, size)
		h.SetChecksum(^h.CalculateChecksum(checksum.Combine(sum, pkt.Data().Checksum())))
	}
	if err := f.route.WritePacket(stack.NetworkHeaderParams{Protocol: udp.ProtocolNumber, TTL: f.route.DefaultTTL()}, pkt); err != nil {
		return 0, f.failed("write", errors.New(err.String()))
	}
	return len(b), nil
}

func (f *flow) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: f.LocalAddr(), Addr: f.RemoteAddr(), Err: err}
}

func (f *flow) Close() error { f.end(); return nil }

func (f *flow) Reset() { f.end() }

func (f *flow) CloseWrite() error { return nil }

func (f *flow) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(place(f.id.LocalAddress, f.id.LocalPort))
}

func (f *flow) RemoteAddr() net.Addr {
	return net.UDPAddrFromAddrPort(place(f.id.RemoteAddress, f.id.RemotePort))
}

func (f *flow) SetDeadline(t time.Time) error {
	f.read.set(t)
	f.write.set(t)
	return nil
}

func (f *flow) SetReadDeadline(t time.Time) error { f.read.set(t); return nil }

func (f *flow) SetWriteDeadline(t time.Time) error { f.write.set(t); return nil }
