package client

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"time"
)

// patiently writes, and shows the server now and then that this client lives.
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

// ack tells how much arrived. Where it cannot be told, the stream is cut too, and
// the next one tells it.
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

// forget ends the attachment: the process goes on without waiting for us.
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
	// Where it cannot be told, the server finds out by itself.
	_ = p.s.d.ask(ctx, call{method: "DELETE", path: "/v1/attachments/" + p.token})
}

// forgetLarge ends the attachment of a process that has ended, if the server
// would keep much for it.
func (p *process) forgetLarge() {
	p.mu.Lock()
	large := p.offset-p.acked > 64<<10
	p.mu.Unlock()
	if large {
		p.forget()
	}
}
