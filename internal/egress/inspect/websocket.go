package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// upgrade carries a protocol other than HTTP after an upgrade.
func (e *exchange) upgrade(response *http.Response) error {
	there, ok := response.Body.(io.ReadWriteCloser)
	if !e.webSocket || !ok || !strings.EqualFold(response.Header.Get("Upgrade"), "websocket") {
		return e.failed(fmt.Errorf("the destination switched to a protocol that was not asked for: %w", paddock.Unavailable))
	}
	here, buffered, err := http.NewResponseController(e.w).Hijack()
	if err != nil {
		return fmt.Errorf("take over the connection: %w", err)
	}
	defer here.Close()
	e.status = http.StatusSwitchingProtocols
	removeHops(response.Header)
	e.set.ScrubHeader(response.Header)
	response.Header.Set("Connection", "Upgrade")
	response.Header.Set("Upgrade", "websocket")
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	if err := response.Header.Write(&head); err != nil {
		return fmt.Errorf("give the answer: %w", err)
	}
	head.WriteString("\r\n")
	if _, err := here.Write(head.Bytes()); err != nil {
		return fmt.Errorf("give the answer: %w", err)
	}
	from := e.set.ScrubFrames(there)
	end := sync.OnceFunc(func() {
		here.Close()
		from.Close()
	})
	// The server does not watch a hijacked connection.
	defer context.AfterFunc(e.ctx, end)()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer end()
		e.pour(there, &hijacked{Conn: here, r: buffered.Reader}, true)
	})
	e.pour(here, from, false)
	end()
	wg.Wait()
	if cause := context.Cause(e.ctx); errors.Is(cause, errCut) {
		return cause
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.limit
}

// pour copies one direction until it ends. count enforces the limits, and each side may end
// its direction.
func (e *exchange) pour(w io.Writer, r io.Reader, sent bool) {
	buffer := make([]byte, readSize)
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			if e.count(n, sent) != nil {
				return
			}
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
