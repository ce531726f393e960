package client

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"time"
)

// patiently writes data to w. While the write lasts, it acknowledges output at intervals so
// that the server keeps the attachment.
func (p *process) patiently(w io.Writer, data []byte) (int, error) {
	var alive *time.Timer
	alive = time.AfterFunc(time.Hour, func() {
		p.ack()
		if p.ctx.Err() == nil {
			alive.Reset(beat)
		}
	})
	alive.Reset(beat)
	n, err := w.Write(data)
	alive.Stop()
	return n, err
}

// ack acknowledges the output that has arrived. It ignores errors: if the request fails,
// the stream breaks too, and the next stream sends the offset.
func (p *process) ack() {
	p.mu.Lock()
	offset := p.offset
	p.mu.Unlock()
	err := p.s.d.call(p.ctx, call{
		method: "POST", path: "/v1/attachments/" + p.token + "/ack",
		query: url.Values{"offset": {strconv.FormatInt(offset, 10)}}, repeat: true,
	})
	if err == nil {
		p.mu.Lock()
		p.acked = max(p.acked, offset)
		p.mu.Unlock()
	}
}

// forget ends the attachment. The process then continues without waiting for this client.
func (p *process) forget() {
	p.mu.Lock()
	attached := p.attached
	p.attached = false
	p.mu.Unlock()
	if !attached {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.s.d.o.Patience)
	defer cancel()
	// On an error, the server ends the attachment by its own timeout.
	_ = p.s.d.ask(ctx, call{method: "DELETE", path: "/v1/attachments/" + p.token})
}

// forgetLarge ends the attachment of an ended process if the server would otherwise keep
// much output for it.
func (p *process) forgetLarge() {
	p.mu.Lock()
	large := p.offset-p.acked > 64<<10
	p.mu.Unlock()
	if large {
		p.forget()
	}
}
