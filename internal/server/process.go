package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// startTime bounds a start that no client waits for any more.
const startTime = 5 * time.Minute

// start runs a command: POST /v1/sandboxes/{id}/processes. The answer is its
// output, to its end; of a detached one, its number.
func (q *request) start() error {
	if err := q.s.fresh(); err != nil {
		return err
	}
	var c api.Command
	if err := q.body(&c); err != nil {
		return err
	}
	cmd := c.Cmd()
	if c.Detached {
		cmd.Output.Detached = true
		return q.with(func(sb paddock.Sandbox) error {
			p, err := sb.Start(q.Context(), cmd)
			if err != nil {
				return err
			}
			p.Release()
			return q.json(http.StatusCreated, api.Begun{PID: p.ID()})
		})
	}
	return q.with(func(sb paddock.Sandbox) error {
		return q.attach(sb, 0, c.Attachment, 0, func(ctx context.Context, out paddock.Output) (paddock.Process, error) {
			cmd.Output = out
			return sb.Start(ctx, cmd)
		})
	})
}

// pid reads the process that the path names.
func (q *request) pid() (paddock.PID, error) {
	n, err := strconv.ParseInt(q.PathValue("pid"), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("process %q: not a number: %w", q.PathValue("pid"), paddock.Invalid)
	}
	return paddock.PID(n), nil
}

// number reads a parameter that is a number, zero where there is none.
func (q *request) number(name string) (int64, error) {
	text := q.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not a number of bytes: %w", name, text, paddock.Invalid)
	}
	return n, nil
}

// flag reads a parameter that is true or false.
func (q *request) flag(name string) (bool, error) {
	switch text := q.URL.Query().Get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %q is neither true nor false: %w", name, text, paddock.Invalid)
	}
}

// output follows a process: GET /v1/sandboxes/{id}/processes/{pid}/output.
func (q *request) output() error {
	pid, err := q.pid()
	if err != nil {
		return err
	}
	from, err := q.number("from")
	if err != nil {
		return err
	}
	detached, err := q.flag("detached")
	if err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
		if detached {
			return q.await(sb, pid)
		}
		return q.attach(sb, pid, q.URL.Query().Get("attachment"), from, func(ctx context.Context, out paddock.Output) (paddock.Process, error) {
			out.From = from
			return sb.Attach(ctx, pid, out)
		})
	})
}

// await tells the end alone.
func (q *request) await(sb paddock.Sandbox, pid paddock.PID) error {
	p, err := sb.Attach(q.Context(), pid, paddock.Output{Detached: true})
	if err != nil {
		return err
	}
	defer p.Release()
	f := q.frames()
	if err := f.json(api.Begin, api.Begun{PID: pid}); err != nil {
		return nil // the client has gone
	}
	for {
		ctx, cancel := context.WithTimeout(q.Context(), aliveEvery)
		stop := context.AfterFunc(q.s.ctx, cancel)
		exit, err := p.Wait(ctx)
		over := ctx.Err() != nil
		stop()
		cancel()
		switch {
		case err == nil || !over:
			return f.end(exit, err)
		case q.Context().Err() != nil || q.s.ctx.Err() != nil:
			return nil
		}
		if err := f.frame(api.Alive, nil); err != nil {
			return nil // the client has gone
		}
	}
}

// begin is a start or an attachment: what gives a process whose output is wanted.
type begin func(ctx context.Context, out paddock.Output) (paddock.Process, error)

// attach sends the output of a process to its end. With a token the client may
// come back: the same token joins what the first request began. pid is zero of one
// that is being started.
func (q *request) attach(sb paddock.Sandbox, pid paddock.PID, token string, from int64, call begin) error {
	if token != "" && !api.Token(token) {
		return fmt.Errorf("attachment: not a token: %w", paddock.Invalid)
	}
	at, first, ctx, err := q.attachment(token, watched{handleKey{q.caller.Driver, sb.ID()}, pid})
	if err != nil {
		return err
	}
	defer func() {
		if token == "" || at.over() {
			q.account.end(token, at)
		}
	}()
	turn := at.enter()
	defer at.exitStream()
	if first {
		p, err := call(q.mark(ctx), paddock.Output{Stdout: stream{at, false}, Stderr: stream{at, true}})
		at.begin(q.s, p, q.origin(sb, p, from), err)
		if err != nil {
			q.account.end(token, at)
		}
	}
	select {
	case <-at.ready:
	case <-q.Context().Done():
		return nil
	}
	if at.failed != nil {
		return at.failed
	}
	return q.follow(at, at.place(from), turn)
}

// origin gives the offset at which the output of an attached process begins: what
// is no longer kept is skipped. Asked after it was attached, so that from there on
// nothing is dropped.
func (q *request) origin(sb paddock.Sandbox, p paddock.Process, from int64) int64 {
	if p == nil || q.Method == http.MethodPost { // a start begins at the beginning
		return from
	}
	all, err := sb.Processes(q.Context())
	if err != nil {
		return from
	}
	for _, info := range all {
		if info.PID == p.ID() {
			return max(from, info.First)
		}
	}
	return from
}

// attachment finds an attachment, or makes one; then the caller begins it with ctx.
func (q *request) attachment(token string, to watched) (at *attachment, first bool, ctx context.Context, err error) {
	a := q.account
	a.mu.Lock()
	defer a.mu.Unlock()
	if at = a.attachments[token]; at != nil && !at.over() {
		return at, false, nil, q.allowed(at)
	}
	// One that is over is let go of by whoever serves it, or by sweep.
	if at != nil {
		delete(a.attachments, token)
		a.s.wg.Go(at.detach)
	}
	switch {
	case len(a.attachments) >= maxAttachments:
		return nil, false, nil, fmt.Errorf("%d processes are attached already: %w", len(a.attachments), paddock.Exhausted)
	case to.pid != 0 && a.watchers[to] >= maxWatchers:
		return nil, false, nil, fmt.Errorf("process %d is attached %d times already: %w", to.pid, maxWatchers, paddock.Exhausted)
	}
	ctx, cancel := context.WithTimeout(a.s.ctx, startTime)
	at = newAttachment(cancel, &a.output)
	at.auto, at.looks, at.who = token == "", q.caller.ReadOnly, q.caller.Who
	if to.pid != 0 {
		a.watchers[to]++
		at.leave = func() { a.unwatch(to) }
	}
	if token != "" {
		a.attachments[token] = at
	}
	return at, true, ctx, nil
}

func (a *account) unwatch(to watched) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers[to]--; a.watchers[to] <= 0 {
		delete(a.watchers, to)
	}
}

// allowed says whether an attachment is the caller's to use. Who may only look
// has none but its own.
func (q *request) allowed(at *attachment) error {
	if q.caller.ReadOnly && (!at.looks || at.who != q.caller.Who) {
		return fmt.Errorf("this key may only look, and the attachment is not its own: %w", paddock.Denied)
	}
	return nil
}

func (a *account) attached(token string) *attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.attachments[token]
}

// end forgets an attachment and lets its process go on alone.
func (a *account) end(token string, at *attachment) {
	a.mu.Lock()
	if a.attachments[token] == at {
		delete(a.attachments, token)
	}
	a.mu.Unlock()
	at.detach()
}

// follow sends frames until the end.
func (q *request) follow(at *attachment, from int64, turn int) error {
	m, err := at.look(from, turn)
	if errors.Is(err, errReplaced) { // an empty stream: whoever still wants it comes back
		q.frames()
		return q.flush()
	}
	if err != nil {
		return err
	}
	f := q.frames()
	if err := f.json(api.Begin, api.Begun{PID: at.pid, Offset: at.origin + from}); err != nil {
		return nil // the client has gone
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		switch {
		case m.end:
			if err := f.end(m.exit, m.err); err == nil {
				at.sent()
			}
			return nil
		case len(m.pieces) > 0:
			if err := f.output(m.pieces); err != nil {
				return nil // the client has gone
			}
			from = m.next
			if at.auto {
				if err := at.ack(from); err != nil {
					return nil // it was detached
				}
			}
		default:
			select {
			case <-m.more:
			case <-alive.C:
				if err := f.frame(api.Alive, nil); err != nil {
					return nil // the client has gone
				}
			case <-q.Context().Done():
				return nil
			case <-q.s.ctx.Done():
				return nil
			}
		}
		if m, err = at.look(from, turn); err != nil {
			return nil // another request serves it, or nobody is to
		}
	}
}

// ack says how much of an attachment's output arrived: POST
// /v1/attachments/{token}/ack. It also says that the client lives.
func (q *request) ack() error {
	offset, err := q.number("offset")
	if err != nil {
		return err
	}
	at := q.account.attached(q.PathValue("token"))
	if at == nil {
		return fmt.Errorf("attachment: it has ended: %w", paddock.NotFound)
	}
	if err := q.allowed(at); err != nil {
		return err
	}
	<-at.ready
	if err := at.ack(at.place(offset)); err != nil {
		return err
	}
	return q.none()
}

// detach ends an attachment: DELETE /v1/attachments/{token}. The process goes on.
func (q *request) detach() error {
	token := q.PathValue("token")
	if at := q.account.attached(token); at != nil {
		if err := q.allowed(at); err != nil {
			return err
		}
		q.account.end(token, at)
	}
	return q.none()
}

// processes lists what was started: GET /v1/sandboxes/{id}/processes.
func (q *request) processes() error {
	return q.with(func(sb paddock.Sandbox) error {
		all, err := sb.Processes(q.Context())
		if err != nil {
			return err
		}
		out := api.Processes{Processes: make([]api.Process, 0, len(all))}
		for _, p := range all {
			out.Processes = append(out.Processes, api.FromProcess(p))
		}
		return q.json(http.StatusOK, out)
	})
}

// signal sends one: POST /v1/sandboxes/{id}/processes/{pid}/signal.
func (q *request) signal() error {
	var sig api.Signal
	if err := q.body(&sig); err != nil {
		return err
	}
	return q.to(func(p paddock.Process) error { return p.Signal(q.Context(), syscall.Signal(sig.Signal)) })
}

// resize changes a terminal: POST /v1/sandboxes/{id}/processes/{pid}/resize.
func (q *request) resize() error {
	var size api.Size
	if err := q.body(&size); err != nil {
		return err
	}
	return q.to(func(p paddock.Process) error {
		return p.Resize(q.Context(), paddock.Size{Rows: size.Rows, Cols: size.Cols})
	})
}

// to does something to the process that the path names.
func (q *request) to(do func(paddock.Process) error) error {
	pid, err := q.pid()
	if err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
		p, err := sb.Attach(q.Context(), pid, paddock.Output{Detached: true})
		if err != nil {
			return err
		}
		defer p.Release()
		if err := do(p); err != nil {
			return err
		}
		return q.none()
	})
}
