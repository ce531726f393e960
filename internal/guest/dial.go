package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

const (
	// dialTime bounds a connection to a port of this very machine.
	dialTime = 10 * time.Second
	// dialChunk is how much travels in one message.
	dialChunk = 64 << 10
)

func (h *handler) Dial(ctx context.Context, stream *connect.BidiStream[guestpb.DialRequest, guestpb.DialResponse]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	conn, err := dialPort(ctx, first.GetPort())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := stream.Send(&guestpb.DialResponse{}); err != nil {
		return err
	}
	// The call is over when the host hangs up (it ends its side of the call) or
	// when the connection breaks, not when the port has said all: the host may
	// still be speaking. Whoever still receives then is stopped by the end of
	// the call itself, which closes its request.
	up, down := make(chan error, 1), make(chan struct{})
	var downErr error // readable once down is closed
	h.s.wg.Go(func() { up <- upward(stream, conn) })
	h.s.wg.Go(func() { defer close(down); downErr = downward(stream, conn) })
	select {
	case err = <-up:
	case <-down:
		if downErr != nil {
			return broken(downErr)
		}
		err = <-up
	}
	_ = conn.Close()
	<-down
	return broken(err)
}

// upward copies from the host to the port until the host hangs up.
func upward(stream *connect.BidiStream[guestpb.DialRequest, guestpb.DialResponse], conn *net.TCPConn) error {
	for {
		msg, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := conn.Write(msg.GetData()); err != nil {
			return err
		}
		if msg.GetEof() {
			if err := conn.CloseWrite(); err != nil && !errors.Is(err, syscall.ENOTCONN) {
				return err
			}
		}
	}
}

// downward copies from the port to the host until the port has said all.
func downward(stream *connect.BidiStream[guestpb.DialRequest, guestpb.DialResponse], conn *net.TCPConn) error {
	buf := make([]byte, dialChunk)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if err := stream.Send(&guestpb.DialResponse{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return stream.Send(&guestpb.DialResponse{Eof: true})
		}
		if err != nil {
			return err
		}
	}
}

// broken makes words of what went wrong on a connection.
func broken(err error) error {
	var wire *connect.Error
	if err == nil || errors.As(err, &wire) {
		return err
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return fmt.Errorf("%s: %w", errno.Error(), paddock.Unavailable)
	}
	return err
}

// dialPort connects to what listens on a port of this machine.
func dialPort(ctx context.Context, port uint32) (*net.TCPConn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%d is not a port, which is a number from 1 to 65535: %w", port, paddock.Invalid)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var (
		d     net.Dialer
		first error
	)
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
		if tcp, ok := conn.(*net.TCPConn); ok {
			return tcp, nil
		}
		if first == nil {
			first = err
		}
	}
	switch {
	case errors.Is(first, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("nothing listens there: %w", paddock.NotFound)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("what listens there does not accept: %w", paddock.Timeout)
	case errors.Is(first, syscall.ENETUNREACH), errors.Is(first, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("the sandbox has no loopback interface: %w", paddock.Unavailable)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: %w", first, paddock.Unavailable)
}
