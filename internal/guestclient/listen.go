package guestclient

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// Listen makes the agent listen on a Unix socket of the sandbox, or use the one that it has at the path. conn is a
// connection to the agent on which nothing was said; it waits for a program then, see [Came]. Listen closes conn if it
// fails.
func Listen(ctx context.Context, conn net.Conn, path string) (err error) {
	defer func() {
		if err != nil {
			conn.Close()
			err = fmt.Errorf("listen in the sandbox: %w", err)
		}
	}()
	until := time.Now().Add(answerTime)
	if t, ok := ctx.Deadline(); ok && t.Before(until) {
		until = t
	}
	if err := conn.SetDeadline(until); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if err := guestpb.WriteListenText(conn, guestpb.Listen, path); err != nil {
		return gone(ctx, err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return gone(ctx, err)
	}
	switch answer[0] {
	case guestpb.Listening:
		return conn.SetDeadline(time.Time{})
	case guestpb.ListenFailed:
		why, err := guestpb.ReadListenText(conn)
		if err != nil {
			return gone(ctx, err)
		}
		return fmt.Errorf("%s: %w", text(why), paddock.Unavailable)
	}
	return fmt.Errorf("the agent answers %q: %w", answer[0], paddock.Internal)
}

func gone(ctx context.Context, err error) error {
	if e := ctx.Err(); e != nil {
		err = e
	}
	return fmt.Errorf("the agent does not answer: %w: %w", err, paddock.Unavailable)
}

// Came waits, for as long as it takes, until a program has connected to the socket of a connection that Listen has
// prepared. From then on conn carries what that program says. Closing conn ends the wait.
func Came(conn net.Conn) error {
	var came [1]byte
	if _, err := io.ReadFull(conn, came[:]); err != nil {
		return err
	}
	if came[0] != guestpb.ListenCame {
		return fmt.Errorf("the agent says %q: %w", came[0], paddock.Internal)
	}
	_, err := conn.Write([]byte{guestpb.ListenTaken})
	return err
}
