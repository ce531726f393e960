package guestclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

const (
	// dialChunk is how much travels in one message.
	dialChunk = 64 << 10
	// linger is how long Close waits until what was written has been sent.
	linger = time.Second
)

// Dial connects to a TCP port that listens inside. The connection also has a
// method CloseWrite, as that of TCP.
func (g *Guest) Dial(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("dial port %d: a port is a number from 1 to 65535: %w", port, paddock.Invalid)
	}
	c := g.begin(ctx)
	stream := g.rpc.Dial(c.ctx)
	_, err := within(c.ctx, func() (*guestpb.DialResponse, error) {
		c.turn.Lock()
		defer c.turn.Unlock()
		// An error of Send is told better by Receive.
		_ = stream.Send(&guestpb.DialRequest{Port: uint32(port)})
		return stream.Receive()
	}, nil)
	if err != nil {
		err = c.fail(err)
	} else {
		err = c.opened()
	}
	if err != nil {
		c.leave(func() {
			_ = stream.CloseRequest()
			_ = stream.CloseResponse()
		})
		return nil, fmt.Errorf("dial port %d: %w", port, err)
	}
	context.AfterFunc(c.ctx, func() { _ = stream.CloseRequest() }) // Send waits for the connection, not for the context
	conn := &portConn{
		c: c, stream: stream, port: port,
		in: make(chan []byte), out: make(chan *guestpb.DialRequest),
		closed: make(chan struct{}), received: make(chan struct{}), over: make(chan struct{}), sent: make(chan struct{}),
		readBy: newDeadline(), writeBy: newDeadline(),
	}
	go conn.receive()
	go conn.send()
	return conn, nil
}

// A portConn is a connection to a port inside. Two goroutines of its own speak
// with the guest, so that deadlines can end a Read or a Write that waits; Close
// waits a short time for both.
type portConn struct {
	c      *call
	stream *connect.BidiStreamForClient[guestpb.DialRequest, guestpb.DialResponse]
	port   int

	in       chan []byte               // from receive to Read
	out      chan *guestpb.DialRequest // from Write to send
	closed   chan struct{}             // closed by Close
	received chan struct{}             // closed when there is no more to read
	over     chan struct{}             // closed when receive has ended
	sent     chan struct{}             // closed when send has ended

	readBy, writeBy *deadline
	closing         sync.Once

	receiveErr error // why there is no more to read; written before received is closed
	sendErr    error // written before sent is closed

	readMu sync.Mutex
	rest   []byte // guarded by readMu

	writeMu sync.Mutex
	eof     bool // guarded by writeMu: CloseWrite was called
}

func (p *portConn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: p.RemoteAddr(), Err: err}
}

// receive takes from the guest until the guest ends the call.
func (p *portConn) receive() {
	defer close(p.over)
	said := false
	stop := func(err error) {
		if !said {
			said = true
			p.receiveErr = err
			close(p.received)
		}
	}
	for {
		msg, err := p.stream.Receive()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if !said {
				stop(p.c.failure(err))
			}
			_ = p.stream.CloseResponse()
			return
		}
		if data := msg.GetData(); len(data) > 0 && !said {
			select {
			case p.in <- data:
			case <-p.closed:
			}
		}
		if msg.GetEof() {
			stop(io.EOF)
		}
	}
}

// send passes on what Write gives it, then ends the host's side of the call.
func (p *portConn) send() {
	defer close(p.sent)
	defer func() { _ = p.stream.CloseRequest() }()
	for {
		select {
		case msg := <-p.out:
			if err := p.stream.Send(msg); err != nil {
				p.sendErr = fmt.Errorf("the connection has ended: %w", paddock.Unavailable)
				return
			}
		case <-p.closed:
			return
		}
	}
}

func (p *portConn) Read(b []byte) (int, error) {
	p.readMu.Lock()
	defer p.readMu.Unlock()
	if len(p.rest) == 0 {
		if err := p.wait(p.readBy); err != nil {
			return 0, p.fail("read", err)
		}
		if len(b) == 0 {
			return 0, nil
		}
		select {
		case p.rest = <-p.in:
		case <-p.received:
			if errors.Is(p.receiveErr, io.EOF) {
				return 0, io.EOF
			}
			return 0, p.fail("read", p.receiveErr)
		case <-p.closed:
			return 0, p.fail("read", net.ErrClosed)
		case <-p.readBy.passed():
			return 0, p.fail("read", os.ErrDeadlineExceeded)
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Write answers when its bytes are on the way: as with TCP, a later call tells
// that they did not arrive.
func (p *portConn) Write(b []byte) (written int, _ error) {
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	for len(b) > 0 {
		part := b[:min(len(b), dialChunk)]
		if err := p.put(&guestpb.DialRequest{Data: append([]byte(nil), part...)}); err != nil {
			return written, p.fail("write", err)
		}
		written += len(part)
		b = b[len(part):]
	}
	return written, nil
}

// CloseWrite says that nothing more will be written. Reading goes on.
func (p *portConn) CloseWrite() error {
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	if p.eof {
		return nil
	}
	if err := p.put(&guestpb.DialRequest{Eof: true}); err != nil {
		return p.fail("close", err)
	}
	p.eof = true
	return nil
}

// put hands msg to send. p.writeMu is held.
func (p *portConn) put(msg *guestpb.DialRequest) error {
	if p.eof {
		return errors.New("write after CloseWrite")
	}
	if err := p.wait(p.writeBy); err != nil {
		return err
	}
	select {
	case p.out <- msg:
		return nil
	case <-p.sent:
		if p.sendErr != nil {
			return p.sendErr
		}
		return net.ErrClosed
	case <-p.closed:
		return net.ErrClosed
	case <-p.writeBy.passed():
		return os.ErrDeadlineExceeded
	}
}

// wait answers at once: an error if nothing may begin now.
func (p *portConn) wait(d *deadline) error {
	select {
	case <-p.closed:
		return net.ErrClosed
	default:
	}
	select {
	case <-d.passed():
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// Close ends the connection in both directions. It waits, for a short time,
// until what was written has been sent.
func (p *portConn) Close() error {
	err := net.ErrClosed
	p.closing.Do(func() {
		err = nil
		close(p.closed)
		late := time.AfterFunc(linger, func() { p.c.cancel(errClosed) })
		defer late.Stop()
		for _, done := range []chan struct{}{p.sent, p.over} {
			select {
			case <-done:
			case <-p.c.ctx.Done(): // a guest that takes nothing keeps both, until the connection ends
			}
		}
		p.c.cancel(errClosed)
		p.readBy.set(time.Time{})
		p.writeBy.set(time.Time{})
	})
	return err
}

func (p *portConn) LocalAddr() net.Addr  { return addr("host") }
func (p *portConn) RemoteAddr() net.Addr { return addr("sandbox:" + strconv.Itoa(p.port)) }

func (p *portConn) SetDeadline(t time.Time) error {
	if err := p.SetReadDeadline(t); err != nil {
		return err
	}
	return p.SetWriteDeadline(t)
}

func (p *portConn) SetReadDeadline(t time.Time) error { return p.setDeadline(p.readBy, t) }

func (p *portConn) SetWriteDeadline(t time.Time) error { return p.setDeadline(p.writeBy, t) }

func (p *portConn) setDeadline(d *deadline, t time.Time) error {
	select {
	case <-p.closed:
		return p.fail("set", net.ErrClosed)
	default:
	}
	d.set(t)
	return nil
}

// addr is the name of one end of a connection.
type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// A deadline is a point in time that can be moved.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer   // guarded by mu
	done  chan struct{} // guarded by mu; closed when the time has passed
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// set moves the deadline; the zero time is none. Who waits already sees the
// new one: done is replaced only after it was closed.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.done // the timer is about to close it, or has
	}
	d.timer = nil
	select {
	case <-d.done:
		d.done = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	if left := time.Until(t); left > 0 {
		done := d.done
		d.timer = time.AfterFunc(left, func() { close(done) })
		return
	}
	close(d.done)
}
