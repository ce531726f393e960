package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Sizes of copy buffers: small at low rates and large at high rates. So thousands of idle
// connections need little memory, and a fast one needs few calls.
const (
	smallSize = 8 << 10
	largeSize = 256 << 10
	largeMax  = 64 // large buffers at once
)

// buffers are the copy buffers of one gateway.
type buffers struct {
	small, large sync.Pool
	out          atomic.Int64 // large buffers in use
}

// get returns a buffer, a large one if available.
func (b *buffers) get(large bool) []byte {
	if large && b.out.Add(1) <= largeMax {
		if p, ok := b.large.Get().(*[]byte); ok {
			return *p
		}
		return make([]byte, largeSize)
	}
	if large {
		b.out.Add(-1)
	}
	if p, ok := b.small.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, smallSize)
}

func (b *buffers) put(buf []byte) {
	if len(buf) == largeSize {
		b.large.Put(&buf)
		b.out.Add(-1)
		return
	}
	b.small.Put(&buf)
}

// A pipe is one direction of a connection.
type pipe struct {
	to    net.Conn
	from  io.Reader
	count *atomic.Int64                    // bytes written
	take  func(context.Context, int) error // counts against a rule's limits; may be nil

	// Bytes that were already read.
	buf []byte // owned by the pipe; may be nil
	n   int
	err error
}

// pump copies bytes to the end, and passes the end on.
func (b *buffers) pump(ctx context.Context, p pipe) error {
	buf, n, err := p.buf, p.n, p.err
	if buf == nil {
		buf = b.get(false)
		n, err = p.from.Read(buf)
	}
	defer func() { b.put(buf) }()
	for {
		if n > 0 {
			if e := p.pass(ctx, buf[:n]); e != nil {
				return e
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return closeWrite(p.to)
		case err != nil:
			return err
		case n == len(buf) && n == smallSize:
			b.put(buf)
			buf = b.get(true)
		case n < smallSize && len(buf) == largeSize:
			b.put(buf)
			buf = b.get(false)
		}
		n, err = p.from.Read(buf)
	}
}

func (p *pipe) pass(ctx context.Context, data []byte) error {
	if p.take != nil {
		if err := p.take(ctx, len(data)); err != nil {
			return err
		}
	}
	n, err := p.to.Write(data)
	p.count.Add(int64(n))
	return err
}

// closeWrite closes the sending direction.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
