package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// files implements paddock.FS for a sandbox.
type files struct{ s *sandbox }

func (f files) do(ctx context.Context, what, name string, c call) error {
	c.path = "/files" + c.path
	return f.s.call(ctx, fmt.Sprintf("%s %q", what, name), c)
}

func (f files) Stat(ctx context.Context, name string) (paddock.FileInfo, error) {
	var info api.File
	err := f.do(ctx, "stat", name, call{method: "GET", path: "/stat", query: url.Values{"path": {name}}, answer: &info, repeat: true})
	if err != nil {
		return paddock.FileInfo{}, err
	}
	return info.Info(), nil
}

func (f files) Mkdir(ctx context.Context, name string, o paddock.MkdirOptions) error {
	query := url.Values{"path": {name}, "parents": {strconv.FormatBool(o.Parents)}}
	if o.Mode != 0 {
		query.Set("mode", api.Mode(o.Mode).String())
	}
	return f.do(ctx, "mkdir", name, call{method: "POST", path: "/mkdir", query: query})
}

func (f files) Rename(ctx context.Context, from, to string) error {
	return f.do(ctx, "rename", from, call{method: "POST", path: "/move", query: url.Values{"from": {from}, "to": {to}}})
}

func (f files) Remove(ctx context.Context, name string, all bool) error {
	return f.do(ctx, "remove", name, call{
		method: "DELETE", query: url.Values{"path": {name}, "all": {strconv.FormatBool(all)}}, repeat: all,
	})
}

func (f files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return f.do(ctx, "chmod", name, call{
		method: "POST", path: "/chmod", query: url.Values{"path": {name}, "mode": {api.Mode(mode).String()}}, repeat: true,
	})
}

func (f files) Symlink(ctx context.Context, target, name string) error {
	return f.do(ctx, "symlink", name, call{method: "POST", path: "/symlink", query: url.Values{"path": {name}, "target": {target}}})
}

func (f files) Open(ctx context.Context, name string, o paddock.OpenOptions) (io.ReadCloser, error) {
	if o.Offset < 0 || o.Length < 0 {
		return nil, fmt.Errorf("open %q: a negative offset or length: %w", name, paddock.Invalid)
	}
	query := url.Values{"path": {name}}
	if o.Offset > 0 {
		query.Set("offset", strconv.FormatInt(o.Offset, 10))
	}
	if o.Length > 0 {
		query.Set("length", strconv.FormatInt(o.Length, 10))
	}
	res, cancel, err := f.s.d.begin(ctx, f.s.path("/files"), query) //nolint:bodyclose // the reader closes it
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", name, err)
	}
	return &reader{d: f.s.d, name: name, res: res, cancel: cancel}, nil
}

// begin starts a request whose answer outlives ctx. ctx bounds only the start.
func (d *Driver) begin(ctx context.Context, path string, query url.Values) (*http.Response, context.CancelFunc, error) {
	if err := d.open(); err != nil {
		return nil, nil, err
	}
	long, cancel := context.WithCancel(d.ctx)
	stop := context.AfterFunc(ctx, cancel)
	res, err := d.stream(long, path, query)
	if !stop() || err != nil {
		cancel()
		if ctx.Err() != nil {
			err = d.lost(ctx, ctx.Err())
		}
		if res != nil {
			_ = res.Body.Close() // the answer is not needed
		}
		return nil, nil, err
	}
	return res, cancel, nil
}

// A reader is an open file.
type reader struct {
	d      *Driver
	name   string
	res    *http.Response
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.res.Body.Read(p)
	if err == nil {
		return n, nil
	}
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	switch {
	case closed:
		return n, fmt.Errorf("read %q: %w: %w", r.name, io.ErrClosedPipe, paddock.Canceled)
	case !errors.Is(err, io.EOF):
		return n, fmt.Errorf("read %q: %w", r.name, r.d.lost(context.Background(), err))
	}
	if told := r.res.Trailer.Get(api.ErrorTrailer); told != "" {
		var e api.Error
		if err := decode([]byte(told), &e); err != nil {
			return n, fmt.Errorf("read %q: %w", r.name, err)
		}
		return n, fmt.Errorf("read %q: %w", r.name, e.Err())
	}
	return n, io.EOF
}

func (r *reader) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	_ = r.res.Body.Close() // the body was only read
	return nil
}

func (f files) Create(ctx context.Context, name string, o paddock.CreateOptions) (io.WriteCloser, error) {
	query := url.Values{"path": {name}}
	for key, set := range map[string]bool{"append": o.Append, "exclusive": o.Exclusive, "parents": o.Parents} {
		if set {
			query.Set(key, "true")
		}
	}
	if o.Mode != 0 {
		query.Set("mode", api.Mode(o.Mode).String())
	}
	w, err := f.create(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("create %q: %w", name, err)
	}
	w.name = name
	return w, nil
}

// create starts to send a file. The server asks for the content after it has opened the
// file.
func (f files) create(ctx context.Context, query url.Values) (*writer, error) {
	d := f.s.d
	if err := d.open(); err != nil {
		return nil, err
	}
	long, cancel := context.WithCancel(d.ctx)
	opened := make(chan struct{})
	once := sync.OnceFunc(func() { close(opened) })
	traced := httptrace.WithClientTrace(long, &httptrace.ClientTrace{Got100Continue: once})
	req, err := d.request(traced, "PUT", f.s.path("/files"), query)
	if err != nil {
		cancel()
		return nil, err
	}
	body, pipe := io.Pipe()
	req.Body, req.ContentLength = body, -1
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Expect", "100-continue")
	w := &writer{pipe: pipe, cancel: cancel, done: make(chan struct{})}
	if !d.run(func() { w.send(d, req, body) }) {
		cancel()
		return nil, d.open()
	}
	select {
	case <-opened:
		return w, nil
	case <-w.done:
		cancel()
		if w.err != nil {
			return nil, w.err
		}
		return w, nil // the server accepted an empty file
	case <-ctx.Done():
		cancel()
		<-w.done
		return nil, d.lost(ctx, ctx.Err())
	}
}

// A writer is a file being written.
type writer struct {
	name   string
	pipe   *io.PipeWriter
	cancel context.CancelFunc
	done   chan struct{} // closed when the server has answered, or the connection has ended
	err    error         // set before done is closed

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (w *writer) send(d *Driver, req *http.Request, body *io.PipeReader) {
	defer close(w.done)
	res, err := d.do(req) //nolint:bodyclose // drain closes it
	if err == nil {
		drain(res.Body)
	}
	w.err = err
	if err == nil {
		err = io.ErrClosedPipe
	}
	_ = body.CloseWithError(err) // wakes a pending Write; it never fails
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.pipe.Write(p)
	if err == nil {
		return n, nil
	}
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return n, fmt.Errorf("write %q: %w: %w", w.name, io.ErrClosedPipe, paddock.Canceled)
	}
	<-w.done // the error of the pipe has no cause; w.err has
	if w.err != nil {
		err = w.err
	}
	return n, fmt.Errorf("write %q: %w", w.name, err)
}

// Close waits until the server has written everything.
func (w *writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	_ = w.pipe.Close() // it never fails
	<-w.done
	w.cancel()
	if w.err != nil {
		return fmt.Errorf("write %q: %w", w.name, w.err)
	}
	return nil
}
