package client

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"sync"
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

// A server whose memory is scarce may hold no more than a few KiB of an attachment, and sends nothing
// more until these are acknowledged. So output is acknowledged when no more comes for a moment.
const (
	quietTime   = 200 * time.Millisecond
	trickle     = 4 << 10         // bytes below which there is no hurry: a process may write a line now and then
	trickleTime = 2 * time.Second // between two acknowledgements of so few bytes
)

// A quiet acknowledges output when no frame has come for some time. It has no goroutine but while it
// acknowledges. Its methods are called by one goroutine.
type quiet struct {
	p     *process
	timer *time.Timer

	mu   sync.Mutex
	last time.Time // guarded by mu; time of the last acknowledgement
}

func newQuiet(p *process) *quiet {
	q := &quiet{p: p}
	q.timer = time.AfterFunc(time.Hour, q.ack)
	q.timer.Stop()
	return q
}

func (q *quiet) stop() { q.timer.Stop() }

// start begins to wait, if there is output to acknowledge.
func (q *quiet) start() {
	if rest := q.p.rest(); rest > 0 {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.timer.Reset(patienceFor(rest, time.Since(q.last), q.p.s.d.quiet))
	}
}

func (q *quiet) ack() {
	if q.p.rest() <= 0 {
		return
	}
	q.mu.Lock()
	q.last = time.Now()
	q.mu.Unlock()
	q.p.ack()
}

// patienceFor returns how long no frame must come before rest bytes are acknowledged, if the last
// acknowledgement was made since ago.
func patienceFor(rest int64, since, quiet time.Duration) time.Duration {
	if rest >= trickle {
		return quiet
	}
	return max(quiet, trickleTime-since)
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
