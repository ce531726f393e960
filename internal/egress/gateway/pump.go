package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// What moves bytes: a small buffer while little comes, a large one while much
// does, so that thousands of idle connections need little memory and a fast one
// few calls.
const (
	smallSize = 8 << 10
	largeSize = 256 << 10
	largeMax  = 64 // large ones at once
)

// buffers are those of one gateway.
type buffers struct {
	small, large sync.Pool
	out          atomic.Int64 // large ones that are used
}

// get gives a buffer, a large one if there is one left.
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
	count *atomic.Int64                    // of bytes that were written
	take  func(context.Context, int) error // of a rule's limits; nil is none

	// What was read already.
	buf []byte // its own; nil is none
	n   int
	err error
}

// pump moves bytes until the end, which it passes on.
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

// closeWrite tells the other side that nothing more comes.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
