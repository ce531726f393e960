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
	p.acking = offset
	p.mu.Unlock()
	err := p.s.d.call(p.ctx, call{
		method: "POST", path: "/v1/attachments/" + p.token + "/ack",
		query: url.Values{"offset": {strconv.FormatInt(offset, 10)}}, repeat: true,
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.acked = max(p.acked, offset)
	}
	if p.acking == offset {
		p.acking = 0
	}
}

// rest returns the number of bytes that have arrived and that no acknowledgement covers.
func (p *process) rest() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.attached { // the server holds nothing
		return 0
	}
	return p.offset - max(p.acked, p.acking)
}

// A server whose memory is scarce holds 4 KiB of an attachment, and sends nothing more until they are
// acknowledged. So that many are acknowledged when no more comes for a moment. Fewer wait for more, or
// for the server's word that the stream is quiet, because a process may write a line now and then.
const (
	quietTime = 200 * time.Millisecond
	hurry     = 4 << 10
)

// A quiet acknowledges output when no frame has come for some time. It has no goroutine but while it
// acknowledges, which ends with the process's context.
type quiet struct {
	p     *process
	timer *time.Timer
}

func newQuiet(p *process) *quiet {
	q := &quiet{p: p, timer: time.AfterFunc(time.Hour, p.ackRest)}
	q.timer.Stop()
	return q
}

func (q *quiet) stop() { q.timer.Stop() }

// start begins to wait, if there is enough output to acknowledge.
func (q *quiet) start() {
	if q.p.rest() >= hurry {
		q.timer.Reset(q.p.s.d.quiet)
	}
}

func (p *process) ackRest() {
	if p.rest() > 0 {
		p.ack()
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
