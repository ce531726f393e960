package envd

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of one upload.
const (
	maxParts = 10_000
	maxHead  = 64 << 10 // bytes of a part's header, and between two parts

	// uploadCost is the memory of an upload while it lasts: its copy buffer, the head of a part, and what unpacks it.
	uploadCost  = chunk + maxHead + 64<<10
	writtenCost = 200 // bytes that a written file takes until the answer is sent, beside its texts

	swallowFor = 30 * time.Second
	turnedAway = time.Second // time to read the body of a refused client
)

// A written describes a written file to the client.
type written struct {
	Path     string            `json:"path"`
	Name     string            `json:"name"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// upload handles POST /files.
func (b *Box) upload(w http.ResponseWriter, r *http.Request) {
	if err := b.signed(r); err != nil {
		turnAway(w, r, err)
		return
	}
	memory := &held{b: b} // also counts the answer, which describes each file
	defer func() { _ = memory.set(0) }()
	if memory.set(uploadCost) != nil {
		turnAway(w, r, full())
		return
	}
	body := &patient{Reader: r.Body, control: http.NewResponseController(w), end: b.ctx}
	list, err := b.receive(r, body, memory)
	body.wait(swallowFor) // package http reads the rest before it sends the answer
	if err != nil {
		b.failed(w, r, err)
		swallow(w, r.Body)
		return
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(data) // the client may have gone
}

// swallow reads the rest of a body after an error was sent. If the connection were cut
// instead, the client might never see the answer.
func swallow(w http.ResponseWriter, body io.Reader) {
	_ = http.NewResponseController(w).Flush() // the client may have gone
	_, _ = io.Copy(io.Discard, body)
}

// turnAway refuses a client that may not send a body. It sets a short deadline for the
// rest, because package http reads on after the handler.
func turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(turnedAway)) // HTTP/2 sets its own
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
	}
	fail(w, err)
}

// A patient reader waits a bounded time for a slow client.
type patient struct {
	io.Reader
	control *http.ResponseController
	end     context.Context //nolint:containedctx // the Box's life, which ends every wait
}

func (p *patient) Read(b []byte) (int, error) {
	p.wait(stall)
	if err := p.end.Err(); err != nil {
		return 0, err
	}
	return p.Reader.Read(b)
}

// forever is a wait without a deadline.
const forever time.Duration = 0

// wait sets a deadline for the rest of the body. The next reader sets its own, and package
// http does so for the next request.
func (p *patient) wait(d time.Duration) {
	var at time.Time
	if d != forever {
		at = time.Now().Add(d)
	}
	_ = p.control.SetReadDeadline(at) // not every server supports it
	// Check after setting the deadline, because Close sets a nearer one.
	if p.end.Err() != nil {
		_ = p.control.SetReadDeadline(time.Unix(1, 0))
	}
}

func (b *Box) receive(r *http.Request, from io.Reader, memory *held) ([]written, error) {
	r, err := b.ofUser(r, r.URL.Query().Get("username"))
	if err != nil {
		return nil, err
	}
	tags, err := about(r.Header)
	if err != nil {
		return nil, err
	}
	body, err := unpacked(r.Header, from)
	if err != nil {
		return nil, err
	}
	text := r.Header.Get("Content-Type")
	kind, params, err := mime.ParseMediaType(text)
	if err != nil {
		kind = ""
	}
	switch {
	case kind == "application/octet-stream":
		return b.receiveRaw(r, body, tags)
	case strings.HasPrefix(kind, "multipart/") && params["boundary"] != "":
		return b.receiveParts(r, newForm(body, params["boundary"]), memory, tags)
	}
	return nil, invalid(fmt.Sprintf("unsupported content type: %q, expected multipart/form-data or application/octet-stream", text))
}

// unpacked returns the decompressed body.
func unpacked(h http.Header, body io.Reader) (io.Reader, error) {
	switch coding := h.Get("Content-Encoding"); strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return body, nil
	case "gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, invalid(fmt.Sprintf("error decompressing request body: %v", err))
		}
		return z, nil
	default:
		return nil, invalid(fmt.Sprintf("unsupported Content-Encoding: %q, supported: gzip, identity", coding))
	}
}

func (b *Box) receiveRaw(r *http.Request, body io.Reader, tags map[string]string) ([]written, error) {
	if r.URL.Query().Get("path") == "" {
		return nil, invalid("path query parameter is required for raw body upload")
	}
	name, err := b.resolve(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return nil, err
	}
	one, err := b.write(r.Context(), name, body, tags)
	return []written{one}, err
}

// A formBody reads a form part by part. It bounds the header of a part, because the library
// holds it in memory up to some megabytes and does not count it.
type formBody struct {
	parts *multipart.Reader
	body  *heads
}

// heads bounds what is read of a body to find a part's header.
type heads struct {
	io.Reader
	bounded bool
	left    int
}

var errHead = fmt.Errorf("the head of a part has more than %d bytes", maxHead)

func (h *heads) Read(p []byte) (int, error) {
	if !h.bounded {
		return h.Reader.Read(p)
	}
	if h.left == 0 {
		return 0, errHead
	}
	n, err := h.Reader.Read(p[:min(len(p), h.left)])
	h.left -= n
	return n, err
}

func newForm(body io.Reader, boundary string) *formBody {
	h := &heads{Reader: body}
	return &formBody{multipart.NewReader(h, boundary), h}
}

// next returns the next part, after the last one was read to its end.
func (f *formBody) next() (*multipart.Part, error) {
	f.body.bounded, f.body.left = true, maxHead
	part, err := f.parts.NextRawPart()
	f.body.bounded = false
	return part, err
}

// receiveParts writes the files of a form, and counts what it tells of them.
func (b *Box) receiveParts(r *http.Request, parts *formBody, memory *held, tags map[string]string) ([]written, error) {
	list, seen := []written{}, map[string]bool{}
	for range maxParts {
		part, err := parts.next()
		if err == io.EOF { //nolint:errorlint // a wrapped one means that the form was cut off
			return list, nil
		}
		if err != nil {
			return nil, invalid(fmt.Sprintf("error reading form: %v", err))
		}
		field, file := named(part)
		if field != "file" {
			if _, err := io.Copy(io.Discard, part); err != nil {
				return nil, invalid(fmt.Sprintf("error reading form: %v", err))
			}
			continue
		}
		if own := r.URL.Query().Get("path"); own != "" {
			file = own
		}
		if file == "" {
			return nil, invalid("a part of the form has no file name, and the request no path")
		}
		name, err := b.resolve(r.Context(), file)
		if err != nil {
			return nil, err
		}
		if seen[clean(name)] {
			return nil, invalid(fmt.Sprintf("you cannot upload multiple files to the same path '%s' in one upload request, only the first specified file was uploaded", clean(name)))
		}
		one, err := b.write(r.Context(), name, part, tags)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		if err := memory.set(memory.n + int64(2*len(text)+len(name)) + writtenCost); err != nil {
			return nil, full()
		}
		list, seen[one.Path] = append(list, one), true
	}
	return nil, invalid(fmt.Sprintf("more than %d files in one upload", maxParts))
}

// named returns the field and the file name of a part, with the directory, which the
// library would remove.
func named(part *multipart.Part) (field, file string) {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return "", ""
	}
	return params["name"], params["filename"]
}

// A bodyError reports that the body ended early: the client has gone, or the body is
// malformed.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return fmt.Sprintf("reading the body: %v", e.err) }
func (e *bodyError) Unwrap() error { return e.err }

// write writes what it reads to a file.
func (b *Box) write(ctx context.Context, name string, from io.Reader, tags map[string]string) (written, error) {
	files := b.files(ctx)
	info, err := b.behind(ctx, name)
	isNew := err != nil && paddock.KindOf(err) == paddock.NotFound
	switch {
	case err != nil && !isNew:
		return written{}, err
	case err == nil && info.Mode.IsDir():
		return written{}, invalid(fmt.Sprintf("path is a directory: %s", clean(name)))
	case err == nil && !info.Mode.IsRegular():
		return written{}, invalid(fmt.Sprintf("path is not a regular file: %s", clean(name)))
	}
	w, err := files.Create(ctx, name, paddock.CreateOptions{Parents: true})
	if err != nil {
		return written{}, err
	}
	if isNew {
		// E2B's agent changes the owner of a new file, which watchers see as this event.
		_ = files.Chmod(ctx, name, 0o644) // ignore a file removed meanwhile
	}
	err = fill(w, from)
	if closed := w.Close(); err == nil {
		err = closed
	}
	var body *bodyError
	if errors.As(err, &body) {
		return written{}, invalid(body.Error())
	}
	if err != nil {
		return written{}, err
	}
	if len(tags) > 0 || !b.metadata.empty() {
		b.metadata.set(b.target(ctx, name), tags)
	}
	return written{Path: clean(name), Name: clean(path.Base(name)), Type: "file", Metadata: tags}, nil
}

// behind describes the file to be replaced, after resolving links.
func (b *Box) behind(ctx context.Context, name string) (paddock.FileInfo, error) {
	walk := b.walker()
	info, err := walk.stat(ctx, name)
	if err == nil && isLink(info) {
		_, info, err = walk.real(ctx, name)
	}
	return info, err
}

// target returns the resolved path of an existing file.
func (b *Box) target(ctx context.Context, name string) string {
	at, _, err := b.walker().real(ctx, name)
	if err != nil {
		return name
	}
	return at
}

// fill copies in pieces as large as possible, because each is a call into the sandbox.
func fill(w io.Writer, from io.Reader) error {
	buf := make([]byte, chunk)
	for {
		n, err := 0, error(nil)
		for n < len(buf) && err == nil {
			var got int
			got, err = from.Read(buf[n:])
			n += got
		}
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &bodyError{err}
		}
	}
}
