package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// port handles GET /v1/sandboxes/{id}/ports/{port} with Upgrade. After the answer, both
// directions carry the bytes of a connection to a port inside.
func (q *request) port() error {
	number, err := q.portNumber()
	if err != nil {
		return err
	}
	if q.Header.Get("Upgrade") != api.PortProtocol || q.ProtoMajor != 1 {
		q.w.Header().Set("Upgrade", api.PortProtocol)
		q.failAs(http.StatusUpgradeRequired, fmt.Errorf("a port needs HTTP/1.1 and Upgrade: %s: %w", api.PortProtocol, paddock.Invalid))
		return nil
	}
	return q.with(func(sb paddock.Sandbox) error {
		inside, err := sb.Dial(q.Context(), number)
		if err != nil {
			return err
		}
		defer inside.Close()
		return q.join(inside)
	})
}

func (q *request) portNumber() (int, error) {
	number, err := strconv.Atoi(q.PathValue("port"))
	if err != nil || number < 1 || number > 65535 {
		return 0, fmt.Errorf("port %q: a port is a number from 1 to 65535: %w", q.PathValue("port"), paddock.Invalid)
	}
	return number, nil
}

// join copies both directions until both have ended or the server ends.
func (q *request) join(inside net.Conn) error {
	outside, rw, err := http.NewResponseController(q.w).Hijack()
	if err != nil {
		return fmt.Errorf("take over the connection: %w", err)
	}
	q.w.code = http.StatusSwitchingProtocols
	defer outside.Close()
	if err := outside.SetDeadline(time.Time{}); err != nil {
		return nil // the client has gone
	}
	_, err = io.WriteString(outside, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+api.PortProtocol+"\r\n"+
		api.RequestHeader+": "+q.id+"\r\n\r\n")
	if err != nil {
		return nil // the client has gone
	}
	stop := context.AfterFunc(q.s.ctx, func() {
		_ = outside.SetDeadline(time.Unix(1, 0)) // ends pending reads and writes
		_ = inside.SetDeadline(time.Unix(1, 0))
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { carry(inside, outside, buffered(rw.Reader, outside)) })
	both.Go(func() { carry(outside, inside, inside) })
	both.Wait()
	return nil
}

// buffered returns a reader of the bytes that were read ahead, and then of the connection.
func buffered(ahead *bufio.Reader, conn net.Conn) io.Reader {
	if n := ahead.Buffered(); n > 0 {
		return io.MultiReader(io.LimitReader(ahead, int64(n)), conn)
	}
	return conn
}

// carry copies one direction and its end. If it breaks, the other direction ends too.
func carry(to, from net.Conn, r io.Reader) {
	_, err := io.Copy(to, r)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		if err := half.CloseWrite(); err == nil || errors.Is(err, net.ErrClosed) {
			return
		}
	}
	_ = to.SetDeadline(time.Unix(1, 0))
	_ = from.SetDeadline(time.Unix(1, 0))
}
