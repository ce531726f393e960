package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// dialChunk is how much travels in one message.
const dialChunk = 64 << 10

func (h *handler) Dial(ctx context.Context, stream *connect.BidiStream[guestpb.DialRequest, guestpb.DialResponse]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	conn, err := h.s.dialPort(ctx, first.GetPort())
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
