package guestclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// chunk is how much of a file travels in one message.
const chunk = 256 << 10

// A reader is an open file. One that is forgotten without Close ends with the
// garbage collection, or with the connection.
type reader struct {
	c      *call
	stream *connect.ServerStreamForClient[guestpb.ReadResponse]
	name   string

	mu     sync.Mutex
	number []byte   // guarded by mu: of a connection that the rest may come over; nil is none
	side   net.Conn // guarded by mu: that connection, once it is there
	block  []byte   // guarded by mu: what is received from there

	data []byte // guarded by mu: received and not yet read
	left int64  // guarded by mu: how much may still come; negative is any
	err  error  // guarded by mu: how it ended
}

func newReader(c *call, stream *connect.ServerStreamForClient[guestpb.ReadResponse], name string, length int64) *reader {
	r := &reader{c: c, stream: stream, name: name, left: -1}
	if length > 0 {
		r.left = length
	}
	runtime.AddCleanup(r, func(c *call) { c.cancel(errClosed) }, c)
	return r
}

func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

// WriteTo copies without a buffer in between.
func (r *reader) WriteTo(w io.Writer) (written int64, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		err := r.fill()
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(r.data)
		written += int64(n)
		r.data = r.data[n:]
		if err != nil {
			return written, err
		}
	}
}

// fill waits until there is data. r.mu is held; Close ends the waiting.
func (r *reader) fill() error {
	for len(r.data) == 0 {
		if r.err != nil {
			return r.err
		}
		err := r.more()
		if err == nil {
			if err = r.count(len(r.data)); err != nil {
				r.data = nil
				r.c.cancel(nil)
			}
		} else if !errors.Is(err, io.EOF) {
			err = fmt.Errorf("read %q: %w", r.name, r.c.failure(err))
		}
		if r.err = err; err != nil {
			r.c.leave(func() { _ = r.stream.Close() })
		}
	}
	return nil
}

// more waits for what comes next. It is io.EOF when all was sent. r.mu is held.
func (r *reader) more() error {
	if r.side != nil {
		return r.moreAside()
	}
	msg, err := r.receive()
	if err != nil {
		return err
	}
	r.data = msg.GetData()
	if !msg.GetAside() {
		return nil
	}
	if len(r.data) > 0 || r.number == nil {
		r.data = nil
		return nonsense("that data comes over a connection which it was not told of")
	}
	side, err := r.c.aside(r.number)
	if err != nil {
		return err
	}
	r.side, r.number, r.block = side, nil, make([]byte, chunk)
	return nil
}

// moreAside is more where that comes over a connection of its own. What went wrong is
// said by the call. r.mu is held.
func (r *reader) moreAside() error {
	n := 0
	err := r.c.patiently(func() (err error) {
		n, err = guestpb.ReadBlock(r.side, r.block)
		return err
	})
	switch {
	case err == nil && n > 0:
		r.data = r.block[:n]
		return nil
	case errors.Is(err, guestpb.ErrBlock):
		return nonsense("too much data at once")
	case r.c.ctx.Err() != nil:
		return err
	}
	switch _, end := r.receive(); {
	case end == nil:
		return nonsense("data beside the connection for it")
	case errors.Is(end, io.EOF) && err != nil:
		return err // the connection broke, and the guest has not seen that
	default:
		return end
	}
}

// receive waits for the next message. r.mu is held.
func (r *reader) receive() (*guestpb.ReadResponse, error) {
	return exchange(r.c, func() (*guestpb.ReadResponse, error) { return next(r.stream) }, nil)
}

// count refuses more than was asked for.
func (r *reader) count(n int) error {
	if n > chunk {
		return nonsense("too much data at once")
	}
	if r.left >= 0 {
		if r.left -= int64(n); r.left < 0 {
			return nonsense("more data than was asked for")
		}
	}
	return nil
}

func (r *reader) Close() error {
	r.c.cancel(errClosed) // ends a Read that waits
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(r.err, io.ErrClosedPipe) {
		r.c.leave(func() { _ = r.stream.Close() })
		r.data, r.err = nil, fmt.Errorf("read %q: %w: %w", r.name, io.ErrClosedPipe, paddock.Canceled)
	}
	return nil
}

// A writer is a file that is being written. One that is forgotten without
// Close ends with the garbage collection, or with the connection; what was
// written until then stays.
type writer struct {
	c      *call
	stream *connect.BidiStreamForClient[guestpb.WriteRequest, guestpb.WriteResponse]
	name   string

	mu     sync.Mutex
	number []byte   // guarded by mu: of a connection that the rest may go over; nil is none
	side   net.Conn // guarded by mu: that connection, once it is there

	sent   int64 // guarded by mu
	err    error // guarded by mu: why nothing more can be written
	closed bool  // guarded by mu
	result error // guarded by mu: what Close answered
}

func newWriter(c *call, stream *connect.BidiStreamForClient[guestpb.WriteRequest, guestpb.WriteResponse], name string) *writer {
	w := &writer{c: c, stream: stream, name: name}
	context.AfterFunc(c.ctx, func() { _ = stream.CloseRequest() }) // Send waits for the connection, not for the context
	runtime.AddCleanup(w, func(c *call) { c.cancel(errClosed) }, c)
	return w
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(p)
}

func (w *writer) write(p []byte) (written int, _ error) {
	for len(p) > 0 {
		if w.err != nil {
			return written, w.err
		}
		part := p[:min(len(p), chunk)]
		err := w.send(part)
		if err != nil {
			w.err = w.why(err)
			w.end()
			return written, w.err
		}
		written += len(part)
		w.sent += int64(len(part))
		p = p[len(part):]
	}
	return written, w.err
}

// send sends a piece, by the call or past it. w.mu is held.
func (w *writer) send(part []byte) error {
	if w.number != nil && w.sent >= guestpb.AsideAfter {
		side, err := w.c.aside(w.number)
		if w.number = nil; err == nil { // else all goes by the call
			w.side = side
			err = w.c.patiently(func() error { return w.stream.Send(&guestpb.WriteRequest{Aside: true}) })
			if err != nil {
				return err
			}
		}
	}
	if w.side == nil {
		return w.c.patiently(func() error { return w.stream.Send(&guestpb.WriteRequest{Data: part}) })
	}
	return w.c.patiently(func() error {
		if guestpb.WriteBlock(w.side, part) != nil {
			return io.EOF // the guest says by the call why it takes no more
		}
		return nil
	})
}

// ReadFrom copies in pieces of the right size.
func (w *writer) ReadFrom(r io.Reader) (read int64, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	buf := make([]byte, chunk)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			put, err := w.write(buf[:n])
			read += int64(put)
			if err != nil {
				return read, err
			}
		}
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return read, err
		}
	}
}

// why says what the guest answered instead of taking more.
func (w *writer) why(err error) error {
	if errors.Is(err, io.EOF) {
		if _, err = w.receive(); err == nil {
			return nonsense("that all is written when it was not")
		}
	}
	return fmt.Errorf("write %q: %w", w.name, w.c.failure(err))
}

func (w *writer) end() {
	w.c.leave(func() { closeBoth(w.stream) })
}

// receive waits for the guest's next message. w.mu is held.
func (w *writer) receive() (*guestpb.WriteResponse, error) {
	return exchange(w.c, w.stream.Receive, nil)
}

func closeBoth(stream *connect.BidiStreamForClient[guestpb.WriteRequest, guestpb.WriteResponse]) {
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
}

// Close waits until the guest has written everything.
func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.result
	}
	w.closed = true
	if w.err == nil {
		w.result = w.finish()
		w.end()
	} else {
		w.result = w.err
	}
	w.err = fmt.Errorf("write %q: %w: %w", w.name, io.ErrClosedPipe, paddock.Canceled)
	return w.result
}

func (w *writer) finish() error {
	if w.side != nil {
		_ = w.c.patiently(func() error { return guestpb.WriteBlock(w.side, nil) }) // a guest that it does not reach says so
	}
	res, err := exchange(w.c, func() (*guestpb.WriteResponse, error) {
		if err := w.stream.CloseRequest(); err != nil {
			return nil, err
		}
		return w.stream.Receive()
	}, nil)
	if err != nil {
		return w.why(err)
	}
	if _, err = w.receive(); !errors.Is(err, io.EOF) {
		if w.c.ctx.Err() != nil {
			return w.why(err)
		}
		return nonsense("more than the end of a file")
	}
	if res.GetWritten() != w.sent {
		return nonsense(fmt.Sprintf("that %d bytes were written, of %d", res.GetWritten(), w.sent))
	}
	return nil
}
