package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// startTime bounds a start after its client has gone.
const startTime = 5 * time.Minute

// start handles POST /v1/sandboxes/{id}/processes. The answer is the output up to its end,
// or the process number if the command is detached.
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
	from, err := q.seen(0)
	if err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
		return q.attach(sb, 0, c.Attachment, from, func(ctx context.Context, out paddock.Output) (paddock.Process, error) {
			defer q.settle()
			cmd.Output = out
			return sb.Start(ctx, cmd)
		})
	})
}

// pid parses the process number in the path.
func (q *request) pid() (paddock.PID, error) {
	n, err := strconv.ParseInt(q.PathValue("pid"), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("process %q: not a number: %w", q.PathValue("pid"), paddock.Invalid)
	}
	return paddock.PID(n), nil
}

// number parses a numeric parameter. It returns zero if there is none.
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

// seen returns the offset at which output continues for a client of text events that lost
// its connection. It returns from for any other client.
func (q *request) seen(from int64) (int64, error) {
	text := q.Header.Get(api.EventHeader)
	if text == "" {
		return from, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not the id of an event: %w", api.EventHeader, text, paddock.Invalid)
	}
	return n, nil
}

// flag parses a boolean parameter.
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

// output handles GET /v1/sandboxes/{id}/processes/{pid}/output.
func (q *request) output() error {
	pid, err := q.pid()
	if err != nil {
		return err
	}
	from, err := q.number("from")
	if err != nil {
		return err
	}
	if from, err = q.seen(from); err != nil {
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

// await answers with the exit alone.
func (q *request) await(sb paddock.Sandbox, pid paddock.PID) error {
	p, err := sb.Attach(q.Context(), pid, paddock.Output{Detached: true})
	if err != nil {
		return err
	}
	defer p.Release()
	f := q.outputWriter()
	if err := f.begin(api.Begun{PID: pid}); err != nil {
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
		if err := f.alive(); err != nil {
			return nil // the client has gone
		}
	}
}

// begin starts or attaches to a process whose output is wanted.
type begin func(ctx context.Context, out paddock.Output) (paddock.Process, error)

// attach sends the output of a process up to its end. With a token the client may return: a
// request with the same token continues what the first request began. pid is zero for a
// process that is being started.
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

// origin returns the offset at which the output of an attached process begins, because
// output that is no longer kept is skipped. Call it after attaching, so that nothing is
// dropped from there on.
func (q *request) origin(sb paddock.Sandbox, p paddock.Process, from int64) int64 {
	if p == nil || q.Method == http.MethodPost { // a start begins at offset 0
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

// attachment returns an attachment, and makes it if needed. In that case, the caller begins
// it with ctx.
func (q *request) attachment(token string, to watched) (at *attachment, first bool, ctx context.Context, err error) {
	a := q.account
	a.mu.Lock()
	defer a.mu.Unlock()
	if at = a.attachments[token]; at != nil && !at.over() {
		return at, false, nil, q.allowed(at)
	}
	// A detached attachment is released by the request that serves it, or by sweep.
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
	done, err := a.ahead(followCost)
	if err != nil {
		return nil, false, nil, err
	}
	ctx, cancel := context.WithTimeout(a.s.ctx, startTime)
	at = newAttachment(cancel, &a.output)
	at.auto, at.looks, at.who = token == "", q.caller.ReadOnly, q.caller.Who
	at.gone = sync.OnceFunc(done)
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

// allowed returns an error if the caller may not use an attachment. A read-only caller may
// use only its own.
func (q *request) allowed(at *attachment) error {
	if q.caller.ReadOnly && (!at.looks || at.who != q.caller.Who) {
		return fmt.Errorf("this key is read-only and does not own the attachment: %w", paddock.Denied)
	}
	return nil
}

func (a *account) attached(token string) *attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.attachments[token]
}

// end detaches an attachment and forgets it.
func (a *account) end(token string, at *attachment) {
	a.mu.Lock()
	if a.attachments[token] == at {
		delete(a.attachments, token)
	}
	a.mu.Unlock()
	at.detach()
}

// follow sends output up to the end.
func (q *request) follow(at *attachment, from int64, turn int) error {
	m, err := at.look(from, turn)
	if errors.Is(err, errReplaced) { // send an empty stream; a client that still wants the output returns
		q.outputWriter()
		return q.flush()
	}
	if err != nil {
		return err
	}
	f := q.outputWriter()
	if err := f.begin(api.Begun{PID: at.pid, Offset: at.origin + from}); err != nil {
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
					return nil // the attachment was detached
				}
			}
		default:
			select {
			case <-m.more:
			case <-alive.C:
				if err := f.alive(); err != nil {
					return nil // the client has gone
				}
			case <-q.Context().Done():
				return nil
			case <-q.s.ctx.Done():
				return nil
			}
		}
		if m, err = at.look(from, turn); err != nil {
			return nil // another request serves it, or it was detached
		}
	}
}

// ack handles POST /v1/attachments/{token}/ack. It acknowledges output, and shows that the
// client is alive.
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

// detach handles DELETE /v1/attachments/{token}. The process continues.
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

// processes handles GET /v1/sandboxes/{id}/processes.
func (q *request) processes() error {
	return q.with(func(sb paddock.Sandbox) error {
		all, err := sb.Processes(q.Context())
		if err != nil {
			return err
		}
		if err := q.out.hold(sizeOfProcesses(all)); err != nil {
			return err
		}
		out := api.Processes{Processes: make([]api.Process, 0, len(all))}
		for _, p := range all {
			out.Processes = append(out.Processes, api.FromProcess(p))
		}
		return q.json(http.StatusOK, out)
	})
}

// sizeOfProcesses estimates the memory of a list of processes. The guest chose its texts.
func sizeOfProcesses(all []paddock.ProcessInfo) (n int64) {
	const process, text = 512, 32
	for _, p := range all {
		n += int64(process + len(p.Dir) + len(p.User))
		for _, arg := range p.Args {
			n += int64(text + len(arg))
		}
	}
	return n
}

// signal handles POST /v1/sandboxes/{id}/processes/{pid}/signal.
func (q *request) signal() error {
	var sig api.Signal
	if err := q.body(&sig); err != nil {
		return err
	}
	return q.to(func(p paddock.Process) error { return p.Signal(q.Context(), syscall.Signal(sig.Signal)) })
}

// resize handles POST /v1/sandboxes/{id}/processes/{pid}/resize.
func (q *request) resize() error {
	var size api.Size
	if err := q.body(&size); err != nil {
		return err
	}
	return q.to(func(p paddock.Process) error {
		return p.Resize(q.Context(), paddock.Size{Rows: size.Rows, Cols: size.Cols})
	})
}

// to runs an operation on the process that the path names.
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
