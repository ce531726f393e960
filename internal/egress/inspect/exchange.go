package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

// longestKept is the longest body that is buffered to determine its new length.
const longestKept = 256 << 10

var (
	errCut     = fmt.Errorf("the rules have changed and no longer allow it: %w", paddock.Denied)
	errNoScrub = fmt.Errorf("the answer is compressed in a way in which secrets could not be found in it: %w", paddock.Unavailable)
	errPart    = fmt.Errorf("the answer is a part, in which secrets could not be found: %w", paddock.Unavailable)
)

// An exchange is one request and its answer.
type exchange struct {
	s         *session
	w         http.ResponseWriter
	r         *http.Request
	flow      decide.Flow
	webSocket bool

	d        Decision
	set      *secret.Set
	tokens   []secret.Token // of logins, to be put in
	ctx      context.Context
	cancel   context.CancelCauseFunc
	status   int
	sent     atomic.Int64
	received atomic.Int64
	note     string
	aborted  bool // within the answer

	mu    sync.Mutex
	names []string // guarded by mu; of the used secrets
	limit error    // guarded by mu; error of the meter
	back  error    // guarded by mu; why a secret must not be used, so that nothing more is sent
	over  bool     // guarded by mu; the answer has begun, so no informational answer may follow
}

// run asks for a verdict and follows it.
func (e *exchange) run() {
	header := e.r.Header.Clone()
	delete(header, "Host")
	removeHops(header)
	q := decide.Request{Scheme: e.s.scheme(), Method: e.r.Method, Path: path(e.r), RawQuery: e.r.URL.RawQuery, Header: header, Trailer: slices.Sorted(maps.Keys(e.r.Trailer))}
	e.d = e.s.p.o.Backend.Request(e.r.Context(), e.flow, q)
	var err error
	defer func() { e.done(err) }()
	switch {
	case !e.d.Allow:
		e.status = http.StatusForbidden
		denied(e.w, e.r, e.flow, e.d.Verdict).give()
	case e.d.Rule.Answer != nil:
		e.status = canned(e.w, *e.d.Rule.Answer)
	default:
		err = e.forward(header.Clone())
	}
}

// done reports the outcome.
func (e *exchange) done(err error) {
	if e.d.Done == nil {
		return
	}
	e.mu.Lock()
	names := sortedNames(e.names)
	e.mu.Unlock()
	e.d.Done(Outcome{Status: e.status, Sent: e.sent.Load(), Received: e.received.Load(), Secrets: names, Note: e.note, Err: err})
}

// forward sends the request to the destination and its answer to the guest.
func (e *exchange) forward(header http.Header) error {
	e.ctx, e.cancel = context.WithCancelCause(e.r.Context())
	var watch sync.WaitGroup
	defer watch.Wait()
	defer e.cancel(nil)
	if e.d.Cut != nil {
		watch.Go(func() {
			select {
			case <-e.d.Cut:
				e.cancel(errCut)
			case <-e.ctx.Done():
			}
		})
	}
	if e.s.tls {
		if answered, err := e.login(); answered {
			return err
		}
	}
	out, err := e.prepare(header)
	if err != nil {
		return e.failed(err)
	}
	response, err := e.s.transport(route{flow: e.flow, via: e.d.Rule.Proxy}).RoundTrip(out)
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	if err != nil {
		return e.failed(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return e.upgrade(response)
	}
	return e.answer(response)
}

// prepare makes the outgoing request.
func (e *exchange) prepare(header http.Header) (*http.Request, error) {
	ctx := httptrace.WithClientTrace(e.ctx, &httptrace.ClientTrace{Got1xxResponse: e.inform})
	out := e.outgoing(ctx, header)
	body := e.r.Body
	if e.r.ContentLength == 0 && len(e.r.Trailer) == 0 {
		body = http.NoBody
	}
	if e.s.tls {
		e.set = e.s.p.o.Backend.Secrets(e.flow).With(e.tokens)
	}
	if e.set != nil {
		// The answer must be complete and uncompressed.
		for _, name := range []string{"Range", "If-Range", "Sec-Websocket-Extensions"} {
			out.Header.Del(name)
		}
		out.Header.Set("Accept-Encoding", "identity")
	}
	if e.webSocket {
		out.Header.Set("Connection", "Upgrade")
		out.Header.Set("Upgrade", "websocket")
	}
	out.Body = body
	if len(out.Trailer) > 0 {
		out.Body = trailerBody{body, e.r, out.Trailer}
	}
	names, err := e.set.Head(out)
	if err != nil {
		return nil, err
	}
	if err := e.use(names...); err != nil {
		return nil, err
	}
	if out.Body != http.NoBody {
		if err := e.putSecrets(out); err != nil {
			return nil, err
		}
		out.Body = &countedBody{e: e, body: out.Body}
	}
	if len(out.Trailer) > 0 {
		out.ContentLength = -1
	}
	return out, e.count(headSize(out.URL.RequestURI(), out.Header), true)
}

// putSecrets puts secrets into the body and updates its length.
func (e *exchange) putSecrets(out *http.Request) error {
	body, keeps, left := e.set.Body(out.Header, out.Body, func(name string) { _ = e.use(name) }) // the reader of the body asks for the error
	out.Body, e.note = body, left
	if keeps {
		return nil
	}
	if out.ContentLength < 0 || out.ContentLength > longestKept {
		out.ContentLength = -1
		out.Header.Del("Content-Length")
		return nil
	}
	whole, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("read the body of the request: %w", err)
	}
	if err := e.kept(); err != nil {
		return err
	}
	if err := body.Close(); err != nil {
		return fmt.Errorf("read the body of the request: %w", err)
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(whole)), int64(len(whole))
	out.Header.Set("Content-Length", strconv.Itoa(len(whole)))
	return nil
}

// use notes that secrets are put in, if the backend agrees. It asks once for each.
func (e *exchange) use(names ...string) error {
	e.mu.Lock()
	fresh := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(e.names, n) })
	e.names = append(e.names, names...)
	e.mu.Unlock()
	if len(fresh) == 0 {
		return e.kept()
	}
	err := e.s.p.o.Backend.Use(e.ctx, e.flow, fresh)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.names = slices.DeleteFunc(e.names, func(n string) bool { return slices.Contains(fresh, n) })
		e.back = errors.Join(e.back, err)
	}
	return e.back
}

// kept returns why the request is kept back, if it is.
func (e *exchange) kept() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.back
}

// inform forwards informational answers.
func (e *exchange) inform(code int, h textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || code == http.StatusContinue || code == http.StatusSwitchingProtocols {
		return nil // the server sends 100 itself when it reads the body
	}
	header := http.Header(h)
	removeHops(header)
	e.set.ScrubHeader(header)
	for name, values := range header {
		e.w.Header()[name] = values
	}
	e.w.WriteHeader(code)
	for name := range header {
		delete(e.w.Header(), name)
	}
	return nil
}

// count counts bytes that are about to be sent.
func (e *exchange) count(n int, sent bool) error {
	if sent {
		e.sent.Add(int64(n))
	} else {
		e.received.Add(int64(n))
	}
	if e.d.Meter == nil || n == 0 {
		return nil
	}
	var err error
	if sent {
		err = e.d.Meter.Sent(e.ctx, n)
	} else {
		err = e.d.Meter.Received(e.ctx, n)
	}
	if err != nil && e.ctx.Err() == nil {
		e.mu.Lock()
		e.limit = err
		e.mu.Unlock()
	}
	return err
}

// failed answers the guest with the reason of a failure.
func (e *exchange) failed(err error) error {
	e.mu.Lock()
	limit := e.limit
	e.mu.Unlock()
	switch cause := context.Cause(e.ctx); {
	case limit != nil:
		err = limit
	case e.kept() != nil:
		err = e.kept()
	case errors.Is(cause, errCut):
		err = cause
	case e.s.front != nil && e.s.front.broken() != nil:
		err = e.s.front.broken()
	}
	a := failure(e.w, e.r, e.flow, err)
	if limit != nil {
		a.status, a.what = http.StatusForbidden, deniedByPolicy
	}
	// An error may quote the destination, so remove secrets from it.
	a.reason = e.set.ScrubText(a.reason)
	clear(e.w.Header())
	if e.webSocket || a.status == http.StatusBadRequest {
		e.w.Header().Set("Connection", "close")
	}
	e.status = a.status
	a.give()
	if a.refused || a.status == http.StatusForbidden {
		return &Failure{Reason: a.reason, Rule: a.rule, Hint: e.set.ScrubText(a.hint), Kind: paddock.KindOf(err)}
	}
	return fmt.Errorf("%s: %w", a.reason, paddock.KindOf(err))
}

// countedBody counts the body of a request.
type countedBody struct {
	e    *exchange
	body io.ReadCloser
}

// Read counts the bytes that it returns.
func (c *countedBody) Read(b []byte) (int, error) {
	n, err := c.body.Read(b)
	if kept := c.e.kept(); kept != nil {
		return 0, kept
	}
	if n > 0 {
		if err := c.e.count(n, true); err != nil {
			return 0, err
		}
	}
	return n, err
}

// Close closes the body.
func (c *countedBody) Close() error { return c.body.Close() }

// answer sends the answer to the guest.
func (e *exchange) answer(response *http.Response) error {
	if err := e.clean(response); err != nil {
		return e.failed(err)
	}
	h := e.w.Header()
	closing := h.Get("Connection")
	clear(h)
	for name, values := range response.Header {
		h[name] = values
	}
	if closing != "" {
		h.Set("Connection", closing)
	}
	for _, name := range []string{"Content-Type", "Date"} {
		if _, ok := h[name]; !ok {
			h[name] = nil // otherwise the server would guess one
		}
	}
	announced := len(response.Trailer)
	for name := range response.Trailer {
		h.Add("Trailer", name)
	}
	if err := e.count(headSize(response.Status, response.Header), false); err != nil {
		return e.failed(err)
	}
	e.status = response.StatusCode
	e.w.WriteHeader(response.StatusCode)
	if err := e.copy(response.Body); err != nil {
		e.aborted = true
		if cause := context.Cause(e.ctx); errors.Is(cause, errCut) {
			return cause
		}
		return fmt.Errorf("carry the answer: %s: %w", e.set.ScrubText(err.Error()), paddock.KindOf(err))
	}
	response.Body.Close() // sets the trailer
	e.set.ScrubHeader(response.Trailer)
	for name, values := range response.Trailer {
		if len(response.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
	return nil
}

// clean removes secrets from an answer.
func (e *exchange) clean(response *http.Response) error {
	removeHops(response.Header)
	if e.set == nil {
		return nil
	}
	e.set.ScrubHeader(response.Header)
	e.set.ScrubHeader(response.Trailer) // the names that are announced
	empty := e.r.Method == http.MethodHead || response.ContentLength == 0 || response.StatusCode == http.StatusNoContent || response.StatusCode == http.StatusNotModified
	if empty {
		return nil
	}
	if response.StatusCode == http.StatusPartialContent {
		return errPart
	}
	switch coding := strings.ToLower(strings.TrimSpace(strings.Join(response.Header.Values("Content-Encoding"), ","))); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		// The client did not ask for compression, so undo it.
		plain, err := gzip.NewReader(response.Body)
		if err != nil {
			return fmt.Errorf("the answer is said to be compressed and is not: %w", paddock.Unavailable)
		}
		response.Body = &unpacked{Reader: plain, body: response.Body}
		response.Header.Del("Content-Encoding")
		response.Header.Del("Content-Length")
	default:
		return errNoScrub
	}
	if !isText(response.Header.Get("Content-Type")) {
		response.Body = e.set.ScrubFrames(response.Body)
		return nil
	}
	response.Body = e.set.Scrub(response.Body)
	if !e.set.KeepsLength() {
		response.Header.Del("Content-Length")
	}
	return nil
}

// isText reports whether the length of a body of this type may change.
func isText(contentType string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	kind = strings.TrimSpace(kind)
	for _, word := range []string{"json", "xml", "javascript", "yaml", "x-www-form-urlencoded"} {
		if strings.Contains(kind, word) {
			return true
		}
	}
	return kind == "" || strings.HasPrefix(kind, "text/")
}

// unpacked is a decompressed body.
type unpacked struct {
	*gzip.Reader

	body io.Closer
}

// Close closes the compressed body.
func (u *unpacked) Close() error { return u.body.Close() }

// copy sends a body to the guest, each piece at once.
func (e *exchange) copy(body io.Reader) error {
	// Send the header at once, because the body may be late.
	if err := e.give(nil); err != nil {
		return err
	}
	buffer := make([]byte, readSize)
	for given := 0; given < muchSize || !e.s.p.much.begin(); {
		n, err := body.Read(buffer)
		if n > 0 {
			if failure := e.give(buffer[:n]); failure != nil {
				return failure
			}
		}
		if err != nil {
			return e.ended(err)
		}
		given = min(given+n, muchSize)
	}
	defer e.s.p.much.end()
	e.s.cork.keep(heldMost)
	defer e.s.cork.keep(0) // connections may stay open after a large answer
	return e.copyMuch(body, buffer)
}

// copyMuch sends the rest of a large body. It reads while it writes, so that both sides use
// a processor, and bytes that arrive meanwhile are written together.
func (e *exchange) copyMuch(body io.Reader, buffer []byte) error {
	q := newQueue()
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { q.fill(body, buffer) })
	var data []byte
	for {
		var err error
		data, err = q.take(data)
		if cut := context.Cause(e.ctx); cut != nil {
			q.close()
			return cut
		}
		if len(data) > 0 {
			if failure := e.give(data); failure != nil {
				q.close()
				e.cancel(nil) // ends the reading
				return failure
			}
		}
		if err != nil {
			return e.ended(err)
		}
	}
}

// ended interprets the end of an answer.
func (e *exchange) ended(err error) error {
	if errors.Is(err, io.EOF) {
		// After a cut, the destination may end an incomplete answer without an error.
		return context.Cause(e.ctx)
	}
	return err
}

// give sends a piece of the body to the guest at once. Nil flushes what was written before.
func (e *exchange) give(data []byte) error {
	if len(data) > 0 {
		if err := e.count(len(data), false); err != nil {
			return err
		}
	}
	e.s.cork.hold()
	var err error
	if len(data) > 0 {
		_, err = e.w.Write(data)
	}
	if err == nil {
		err = http.NewResponseController(e.w).Flush()
	}
	if err = errors.Join(err, e.s.cork.release()); err != nil {
		return fmt.Errorf("give the answer: %w", err)
	}
	return nil
}
