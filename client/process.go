package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

const (
	ackEvery = 256 << 10        // bytes of output between two acknowledgements; a quarter of the server's window
	beat     = 15 * time.Second // interval of acknowledgements during a slow write of the caller
)

// A process is a process of the server. One goroutine follows it. The goroutine ends with
// the process, with Release or with the driver, but not before a pending write to the
// caller's writer returns.
type process struct {
	s     *sandbox
	pid   paddock.PID
	out   paddock.Output
	token string // of the attachment
	in    input

	ctx      context.Context // ends with Release, and with the driver
	cancel   context.CancelFunc
	released chan struct{} // closed by Release
	release  sync.Once
	done     chan struct{} // closed when exit or err is set
	exit     paddock.Exit  // set before done is closed
	err      error         // set before done is closed

	mu       sync.Mutex
	offset   int64 // guarded by mu; offset of the next byte of output
	missed   int64 // guarded by mu; bytes before offset that the server did not keep for this client
	acked    int64 // guarded by mu
	acking   int64 // guarded by mu; offset of the newest acknowledgement under way; 0 if there is none
	attached bool  // guarded by mu; the server keeps output for this client
	asked    bool  // guarded by mu; a goroutine follows the process
}

func (s *sandbox) process(out paddock.Output) *process {
	p := &process{s: s, out: out, token: token(), released: make(chan struct{}), done: make(chan struct{}), offset: out.From}
	p.ctx, p.cancel = context.WithCancel(s.d.ctx)
	p.in.init(p)
	return p
}

func (s *sandbox) Start(ctx context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	cmd.Output.From = 0
	p := s.process(cmd.Output)
	body := api.FromCmd(cmd)
	if cmd.Output.Detached {
		var begun api.Begun
		if err := s.call(ctx, "start", call{method: "POST", path: "/processes", body: body, answer: &begun}); err != nil {
			p.cancel()
			return nil, err
		}
		p.pid = begun.PID
		return p, nil
	}
	body.Attachment = p.token
	p.attached = true
	err := p.open(ctx, func(ctx context.Context) (*http.Response, error) {
		return s.d.post(ctx, s.path("/processes"), body)
	})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return p, nil
}

func (s *sandbox) Attach(ctx context.Context, pid paddock.PID, out paddock.Output) (paddock.Process, error) {
	if out.From < 0 {
		return nil, fmt.Errorf("attach: from offset %d: %w", out.From, paddock.Invalid)
	}
	p := s.process(out)
	p.pid, p.attached = pid, !out.Detached
	if err := p.open(ctx, p.again); err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	return p, nil
}

// again requests the output from the point where it was cut, or only the exit if the
// process is detached.
func (p *process) again(ctx context.Context) (*http.Response, error) {
	p.mu.Lock()
	query := url.Values{"detached": {"true"}}
	if p.attached {
		query = url.Values{"attachment": {p.token}, "from": {strconv.FormatInt(p.offset, 10)}}
	}
	p.mu.Unlock()
	return p.s.d.stream(ctx, p.path("/output"), query)
}

func (p *process) path(rest string) string {
	return p.s.path("/processes/" + strconv.Itoa(int(p.pid)) + rest)
}

// open starts to follow the process. ctx bounds only the start.
func (p *process) open(ctx context.Context, request func(context.Context) (*http.Response, error)) error {
	if err := p.s.d.open(); err != nil {
		p.cancel()
		return err
	}
	stop := context.AfterFunc(ctx, p.cancel)
	st, err := p.connect(request, p.s.d.tries())
	if !stop() && err == nil { // ctx ended meanwhile
		st.close()
		err = errBroken
	}
	if err != nil {
		p.cancel()
		if ctx.Err() != nil {
			err = p.s.d.lost(ctx, ctx.Err())
		}
		if ctx.Err() != nil || broken(err) {
			p.forget()
		}
		return err
	}
	p.mu.Lock()
	p.asked = true
	p.mu.Unlock()
	p.begin(st)
	return nil
}

// begin starts the goroutine that follows the process. Close does not wait for it, because
// it may be blocked in the caller's writer.
func (p *process) begin(st *frames) {
	p.s.d.add(p)
	go p.follow(st)
}

// frames is an open stream of frames.
type frames struct {
	*api.FrameReader
	body io.ReadCloser
}

func (f *frames) close() { drain(f.body) }

// connect repeats a request until its first frame arrives. The frame has the offset at
// which the output begins.
func (p *process) connect(request func(context.Context) (*http.Response, error), t *tries) (*frames, error) {
	for {
		st, err := p.first(request)
		if err == nil || !broken(err) || p.ctx.Err() != nil || !t.again(p.ctx) {
			return st, err
		}
	}
}

func (p *process) first(request func(context.Context) (*http.Response, error)) (*frames, error) {
	res, err := request(p.ctx)
	if err != nil {
		return nil, err
	}
	st := &frames{FrameReader: api.NewFrameReader(res.Body), body: res.Body}
	k, payload, err := st.Next()
	if err != nil {
		_ = res.Body.Close() // the stream has ended
		return nil, p.s.d.lost(p.ctx, err)
	}
	var begun api.Begun
	if k != api.Begin {
		_ = res.Body.Close() // the stream is not valid
		return nil, fmt.Errorf("the server's stream begins with a frame of kind %d: %w", k, paddock.Internal)
	}
	if err := decode(payload, &begun); err != nil {
		_ = res.Body.Close() // the stream is not valid
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 { // set by start, and never changed
		p.pid = begun.PID
	}
	if p.attached {
		p.missed += max(0, begun.Offset-p.offset)
		p.offset = max(p.offset, begun.Offset)
	}
	return st, nil
}

// errDetached reports that the caller's writer failed.
var errDetached = errors.New("a writer failed")

// follow copies output until the exit is known, and reconnects when a connection breaks.
func (p *process) follow(st *frames) {
	defer p.s.d.remove(p)
	defer p.cancel()
	for {
		exit, err := p.receive(st)
		switch {
		case err == nil:
			p.finish(exit, nil)
			st.close()
			p.forgetLarge()
			return
		case errors.Is(err, errDetached):
			_ = st.body.Close() // the rest is not needed
			p.forget()
		case !broken(err):
			_ = st.body.Close() // the stream has ended
			p.finish(paddock.Exit{}, err)
			return
		default:
			_ = st.body.Close() // the stream has ended
		}
		if st, err = p.connect(p.again, p.s.d.tries()); err != nil {
			p.finish(paddock.Exit{}, fmt.Errorf("follow process %d: %w", p.pid, err))
			return
		}
	}
}

// receive handles frames up to the last one.
func (p *process) receive(st *frames) (paddock.Exit, error) {
	q := newQuiet(p)
	defer q.stop()
	for {
		k, payload, err := st.Next()
		q.stop()
		if err != nil {
			return paddock.Exit{}, p.s.d.lost(p.ctx, err)
		}
		switch k {
		case api.Stdout, api.Stderr:
			if err := p.write(k, payload); err != nil {
				return paddock.Exit{}, err
			}
			q.start()
		case api.End:
			var exit paddock.Exit
			err := decode(payload, &exit)
			p.mu.Lock()
			defer p.mu.Unlock()
			// The server knows what this attachment missed, but not what an earlier
			// attachment missed.
			exit.Dropped = max(exit.Dropped, p.missed)
			return exit, err
		case api.Fail:
			var e api.Error
			if err := decode(payload, &e); err != nil {
				return paddock.Exit{}, err
			}
			return paddock.Exit{}, e.Err()
		case api.Alive: // it was quiet for a while, so the server need not hold what has arrived
			p.ackRest()
		case api.Begin:
		}
	}
}

// write passes output to the caller's writer and acknowledges it.
func (p *process) write(k api.Kind, data []byte) error {
	w := p.out.Stdout
	if k == api.Stderr {
		w = p.out.Stderr
	}
	if w != nil && !p.out.Detached {
		n, err := p.patiently(w, data)
		if err != nil || n < len(data) {
			return errDetached
		}
	}
	p.mu.Lock()
	p.offset += int64(len(data))
	due := p.offset-p.acked >= ackEvery
	p.mu.Unlock()
	if due {
		p.ack()
	}
	return nil
}

func (p *process) finish(exit paddock.Exit, err error) {
	select {
	case <-p.released:
		err = fmt.Errorf("process %d was released: %w", p.pid, paddock.Canceled)
	default:
		if err != nil && p.s.d.ctx.Err() != nil {
			err = fmt.Errorf("follow process %d: the driver is closed: %w", p.pid, paddock.Unavailable)
		}
	}
	p.exit, p.err = exit, err
	close(p.done)
}

func (p *process) ID() paddock.PID { return p.pid }

func (p *process) Input() io.WriteCloser { return &p.in }

func (p *process) Wait(ctx context.Context) (paddock.Exit, error) {
	p.mu.Lock()
	ask := !p.asked
	p.asked = true
	p.mu.Unlock()
	if ask { // a detached process, which no goroutine follows yet
		p.s.d.add(p)
		go p.await()
	}
	select {
	case <-p.done:
		return p.exit, p.err
	default:
	}
	select {
	case <-p.done:
		return p.exit, p.err
	case <-p.released:
		return paddock.Exit{}, fmt.Errorf("wait for process %d: it was released: %w", p.pid, paddock.Canceled)
	case <-ctx.Done():
		return paddock.Exit{}, fmt.Errorf("wait for process %d: %w", p.pid, p.s.d.lost(ctx, ctx.Err()))
	}
}

// await follows a detached process to learn its exit.
func (p *process) await() {
	st, err := p.connect(p.again, p.s.d.tries())
	if err != nil {
		p.cancel()
		p.finish(paddock.Exit{}, fmt.Errorf("wait for process %d: %w", p.pid, err))
		p.s.d.remove(p)
		return
	}
	p.follow(st)
}

func (p *process) Signal(ctx context.Context, sig syscall.Signal) error {
	err := p.s.d.call(ctx, call{method: "POST", path: p.path("/signal"), body: api.Signal{Signal: int(sig)}})
	if err != nil {
		return fmt.Errorf("signal process %d: %w", p.pid, err)
	}
	return nil
}

func (p *process) Resize(ctx context.Context, size paddock.Size) error {
	err := p.s.d.call(ctx, call{
		method: "POST", path: p.path("/resize"), body: api.Size{Rows: size.Rows, Cols: size.Cols}, repeat: true,
	})
	if err != nil {
		return fmt.Errorf("resize process %d: %w", p.pid, err)
	}
	return nil
}

func (p *process) Release() {
	p.release.Do(func() {
		close(p.released)
		p.cancel()
		select {
		case <-p.done:
		default:
			p.forget()
		}
	})
}
