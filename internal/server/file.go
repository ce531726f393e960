package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Sizes of the copy buffer of a file. With many files in progress, each gets the smaller
// one.
const (
	fileChunk  = 256 << 10
	smallChunk = 16 << 10
)

// piece returns a buffer to copy a file with, and counts it as held. Call done when the
// buffer is no longer used.
func (a *account) piece() (buf []byte, done func(), err error) {
	b := &a.files
	n := int64(fileChunk)
	if b.scarce() || b.above.scarce() {
		n = smallChunk
	}
	got, _ := b.take(n)
	if got < smallChunk {
		b.give(got)
		return nil, nil, fmt.Errorf("too many file transfers in progress: %w", paddock.Exhausted)
	}
	return make([]byte, got), func() { b.give(got) }, nil
}

// path returns a parameter that names a file. It does not check the bytes, because the
// guest does.
func (q *request) path(name string) string { return q.URL.Query().Get(name) }

// mode parses permission bits in octal.
func (q *request) mode() (fs.FileMode, error) {
	text := q.URL.Query().Get("mode")
	if text == "" {
		return 0, nil
	}
	mode, err := api.ParseMode(text)
	return fs.FileMode(mode), err
}

// readFile handles GET /v1/sandboxes/{id}/files. It reports an error after the start of the
// content in a trailer.
func (q *request) readFile() error {
	offset, err := q.number("offset")
	if err != nil {
		return err
	}
	length, err := q.number("length")
	if err != nil {
		return err
	}
	buf, done, err := q.account.piece()
	if err != nil {
		return err
	}
	defer done()
	return q.with(func(sb paddock.Sandbox) error {
		r, err := sb.FS().Open(q.Context(), q.path("path"), paddock.OpenOptions{Offset: offset, Length: length})
		if err != nil {
			return err
		}
		defer r.Close()
		defer q.cutAtEnd()()
		h := q.w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Trailer", api.ErrorTrailer)
		q.w.WriteHeader(http.StatusOK)
		if err := q.flush(); err != nil { // tell the client that the file is open
			return nil
		}
		if err := q.send(r, buf); err != nil {
			e := api.FromError(err)
			e.Request = q.id
			data, err := json.Marshal(e)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			h.Set(api.ErrorTrailer, string(data))
		}
		return nil
	})
}

// send copies a file to the client. It returns errors of the file only.
func (q *request) send(r io.Reader, buf []byte) error {
	for {
		n, err := r.Read(buf)
		if n > 0 {
			q.deadline(fileStall)
			if q.s.ctx.Err() != nil { // checked after setting the deadline, because Close sets a nearer one
				panic(http.ErrAbortHandler)
			}
			if _, err := q.w.Write(buf[:n]); err != nil {
				return nil //nolint:nilerr // the client has gone
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// writeFile handles PUT /v1/sandboxes/{id}/files. It opens the file before it reads the
// body, so a client that sends "Expect: 100-continue" learns of an error first.
func (q *request) writeFile() error {
	o := paddock.CreateOptions{}
	var err error
	if o.Mode, err = q.mode(); err != nil {
		return err
	}
	for name, to := range map[string]*bool{"append": &o.Append, "exclusive": &o.Exclusive, "parents": &o.Parents} {
		if *to, err = q.flag(name); err != nil {
			return err
		}
	}
	buf, done, err := q.account.piece()
	if err != nil {
		return err
	}
	defer done()
	return q.with(func(sb paddock.Sandbox) error {
		w, err := sb.FS().Create(q.Context(), q.path("path"), o)
		if err != nil {
			return err
		}
		came, err := q.receive(w, buf)
		if closed := w.Close(); err == nil {
			err = closed
		}
		if !came {
			panic(http.ErrAbortHandler) // the client has gone
		}
		if err == nil {
			return q.none()
		}
		q.fail(err)
		q.swallow()
		return nil
	})
}

// cutAtEnd makes reads from the client fail when the server ends. Call stop when no read is
// pending any more.
func (q *request) cutAtEnd() (stop func() bool) {
	return context.AfterFunc(q.s.ctx, func() {
		control := http.NewResponseController(q.w)
		_ = control.SetReadDeadline(time.Unix(1, 0)) // HTTP/2 sets its own
		_ = control.SetWriteDeadline(time.Unix(1, 0))
	})
}

// receive copies the body into a file. came is false if the client has gone or the server
// ends.
func (q *request) receive(w io.Writer, buf []byte) (came bool, _ error) {
	defer q.cutAtEnd()()
	for {
		n, err := q.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return true, err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, nil // the client has gone
		}
	}
}

// swallow reads the rest of a body after an error was sent. If the connection were cut
// instead, the client might never see the answer.
func (q *request) swallow() {
	control := http.NewResponseController(q.w)
	_ = control.Flush()                                       // the client may have gone
	_ = control.SetReadDeadline(time.Now().Add(q.s.bodyTime)) // HTTP/2 sets its own
	defer q.cutAtEnd()()
	_, _ = io.Copy(io.Discard, q.Body)
	_ = control.SetReadDeadline(time.Time{})
}

func (q *request) statFile() error {
	return q.with(func(sb paddock.Sandbox) error {
		info, err := sb.FS().Stat(q.Context(), q.path("path"))
		if err != nil {
			return err
		}
		return q.json(http.StatusOK, api.FromFile(info))
	})
}

// listFiles handles GET /v1/sandboxes/{id}/files/list. It sends one line for each file.
func (q *request) listFiles() error {
	depth := 1
	if text := q.URL.Query().Get("depth"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("depth: %q is not a number: %w", text, paddock.Invalid)
		}
		depth = n
	}
	return q.with(func(sb paddock.Sandbox) error {
		var out *lines
		for info, err := range sb.FS().List(q.Context(), q.path("path"), depth) {
			if err != nil {
				if out == nil {
					return err
				}
				return out.end(err)
			}
			if out == nil {
				l := q.lines()
				out = &l
			}
			file := api.FromFile(info)
			if err := out.put(api.Line{File: &file}); err != nil {
				return nil // the client has gone
			}
		}
		if out == nil {
			l := q.lines()
			out = &l
		}
		return out.end(nil)
	})
}

// watchFiles handles GET /v1/sandboxes/{id}/files/watch. It sends a first line when the
// watch is active, and then one line for each change.
func (q *request) watchFiles() error {
	recursive, err := q.flag("recursive")
	if err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
		done, err := q.account.ahead(watchCost)
		if err != nil {
			return err
		}
		defer done()
		w, err := sb.FS().Watch(q.Context(), q.path("path"), paddock.WatchOptions{Recursive: recursive})
		if err != nil {
			return err
		}
		defer w.Close()
		out := q.lines()
		if err := out.send(api.Line{Alive: true}); err != nil {
			return nil // the client has gone
		}
		return q.tell(out, w)
	})
}

func (q *request) makeDir() error {
	mode, err := q.mode()
	if err != nil {
		return err
	}
	parents, err := q.flag("parents")
	if err != nil {
		return err
	}
	return q.files(func(f paddock.FS) error {
		return f.Mkdir(q.Context(), q.path("path"), paddock.MkdirOptions{Mode: mode, Parents: parents})
	})
}

func (q *request) moveFile() error {
	return q.files(func(f paddock.FS) error { return f.Rename(q.Context(), q.path("from"), q.path("to")) })
}

func (q *request) removeFile() error {
	all, err := q.flag("all")
	if err != nil {
		return err
	}
	return q.files(func(f paddock.FS) error { return f.Remove(q.Context(), q.path("path"), all) })
}

func (q *request) changeMode() error {
	mode, err := q.mode()
	if err != nil {
		return err
	}
	return q.files(func(f paddock.FS) error { return f.Chmod(q.Context(), q.path("path"), mode) })
}

func (q *request) makeLink() error {
	return q.files(func(f paddock.FS) error { return f.Symlink(q.Context(), q.path("target"), q.path("path")) })
}

// files runs an operation whose answer has no body.
func (q *request) files(do func(paddock.FS) error) error {
	return q.with(func(sb paddock.Sandbox) error {
		if err := do(sb.FS()); err != nil {
			return err
		}
		return q.none()
	})
}
