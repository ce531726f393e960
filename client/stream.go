package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strconv"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// lines reads JSON lines.
type lines struct{ r *bufio.Reader }

func newLines(r io.Reader) lines { return lines{bufio.NewReaderSize(r, 64<<10)} }

func (l lines) next() (api.Line, error) {
	var text []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(text)+len(part) > api.MaxLine {
			return api.Line{}, fmt.Errorf("a line from the server is too long: %w", paddock.Internal)
		}
		text = append(text, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return api.Line{}, err
		}
		var line api.Line
		return line, decode(text, &line)
	}
}

func (f files) List(ctx context.Context, name string, depth int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		if err := f.list(ctx, name, depth, yield); err != nil {
			yield(paddock.FileInfo{}, fmt.Errorf("list %q: %w", name, err))
		}
	}
}

func (f files) list(ctx context.Context, name string, depth int, yield func(paddock.FileInfo, error) bool) error {
	d := f.s.d
	if err := d.open(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(d.ctx, cancel)
	defer stop()
	res, err := d.stream(ctx, f.s.path("/files/list"), url.Values{"path": {name}, "depth": {strconv.Itoa(depth)}}) //nolint:bodyclose // drain closes it
	if err != nil {
		return err
	}
	defer drain(res.Body)
	for in := newLines(res.Body); ; {
		line, err := in.next()
		switch {
		case err != nil:
			return d.lost(ctx, err)
		case line.Error != nil:
			return line.Error.Err()
		case line.End:
			return nil
		case line.File != nil && !yield(line.File.Info(), nil):
			cancel()
			return nil
		}
	}
}

// maxEvents is the number of changes that a watcher keeps for its reader. Beyond it, the
// oldest are dropped, and Event.Lost reports the gap.
const maxEvents = 4096

// A watcher reads events from the server, and reconnects when a connection breaks. It reads
// ahead of its reader so that the server never waits.
type watcher struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when no more events come
	once   sync.Once
	closed chan struct{} // closed by Close

	mu     sync.Mutex
	events []paddock.Event // guarded by mu
	lost   bool            // guarded by mu; events were dropped before the next one that is kept
	err    error           // guarded by mu; why no more events come
	more   chan struct{}   // holds one element: there may be more events
}

func (f files) Watch(ctx context.Context, name string, o paddock.WatchOptions) (paddock.Watcher, error) {
	d := f.s.d
	query := url.Values{"path": {name}, "recursive": {strconv.FormatBool(o.Recursive)}}
	res, cancel, err := d.begin(ctx, f.s.path("/files/watch"), query)
	if err != nil {
		return nil, fmt.Errorf("watch %q: %w", name, err)
	}
	w := &watcher{cancel: cancel, done: make(chan struct{}), closed: make(chan struct{}), more: make(chan struct{}, 1)}
	in := newLines(res.Body)
	// The headers arrive with the first line or just before it.
	if _, err := in.next(); err != nil {
		cancel()
		_ = res.Body.Close() // the stream has ended
		return nil, fmt.Errorf("watch %q: %w", name, d.lost(ctx, err))
	}
	if !d.run(func() { w.follow(f, query, in, res.Body) }) {
		cancel()
		return nil, d.open()
	}
	return w, nil
}

// follow reads events until the end.
func (w *watcher) follow(f files, query url.Values, in lines, body io.ReadCloser) {
	d := f.s.d
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-w.closed:
			cancel()
		case <-stop:
		}
	}()
	for tries := d.tries(); ; {
		err := w.receive(in)
		_ = body.Close() // the stream has ended
		if paddock.KindOf(err) != paddock.Internal || ctx.Err() != nil || errors.Is(err, errTold) {
			w.end(err)
			return
		}
		w.skip()
		for {
			if !tries.again(ctx) {
				w.end(fmt.Errorf("watch: %w", d.lost(context.Background(), err)))
				return
			}
			res, failed := d.stream(ctx, f.s.path("/files/watch"), query) //nolint:bodyclose // closed in the next iteration or at the end
			if failed == nil {
				in, body, tries = newLines(res.Body), res.Body, d.tries()
				break
			}
			if !broken(failed) {
				w.end(failed)
				return
			}
		}
	}
}

// errTold reports that the server ended the stream and said why.
var errTold = errors.New("the server ended the watch")

// receive reads lines up to the last one.
func (w *watcher) receive(in lines) error {
	for {
		line, err := in.next()
		switch {
		case err != nil:
			return err
		case line.Error != nil:
			return fmt.Errorf("%w: %w", line.Error.Err(), errTold)
		case line.End:
			return fmt.Errorf("%w: %w", paddock.Unavailable, errTold)
		case line.Change != nil:
			w.keep(paddock.Event{Op: line.Change.Op, Name: string(line.Change.Name), Lost: line.Change.Lost})
		}
	}
}

func (w *watcher) keep(e paddock.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Lost = e.Lost || w.lost
	w.lost = false
	w.events = append(w.events, e)
	if len(w.events) > maxEvents { // keep the newest
		w.events = w.events[1:]
		w.events[0].Lost = true
	}
	w.wake()
}

// skip notes a gap.
func (w *watcher) skip() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = true
}

func (w *watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.wake()
	close(w.done)
}

// wake wakes a reader. w.mu is held.
func (w *watcher) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *watcher) Next(ctx context.Context) (paddock.Event, error) {
	for {
		select {
		case <-w.closed:
			return paddock.Event{}, fmt.Errorf("watch: the watcher was closed: %w", paddock.Canceled)
		default:
		}
		w.mu.Lock()
		if len(w.events) > 0 {
			e := w.events[0]
			w.events = w.events[1:]
			if len(w.events) > 0 {
				w.wake()
			}
			w.mu.Unlock()
			return e, nil
		}
		err := w.err
		w.mu.Unlock()
		if err != nil {
			w.mu.Lock()
			w.wake() // the next reader gets the error too
			w.mu.Unlock()
			return paddock.Event{}, fmt.Errorf("watch: %w", err)
		}
		select {
		case <-w.more:
		case <-w.closed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return paddock.Event{}, fmt.Errorf("watch: no event in time: %w", paddock.Timeout)
			}
			return paddock.Event{}, fmt.Errorf("watch: the call was canceled: %w", paddock.Canceled)
		}
	}
}

func (w *watcher) Close() error {
	w.once.Do(func() {
		close(w.closed)
		w.cancel()
		<-w.done
	})
	return nil
}
