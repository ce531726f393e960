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

// How much of a file is copied at once: where many are, each gets less.
const (
	fileChunk  = 256 << 10
	smallChunk = 16 << 10
)

// piece gives what a file is copied with, which counts among what is held. The result
// is to be called when nothing uses it any more.
func (a *account) piece() (buf []byte, done func(), err error) {
	b := &a.files
	n := int64(fileChunk)
	if b.scarce() || b.above.scarce() {
		n = smallChunk
	}
	got, _ := b.take(n)
	if got < smallChunk {
		b.give(got)
		return nil, nil, fmt.Errorf("too many files are on their way already: %w", paddock.Exhausted)
	}
	return make([]byte, got), func() { b.give(got) }, nil
}

// path reads the parameter that names a file. Its bytes are the guest's to judge.
func (q *request) path(name string) string { return q.URL.Query().Get(name) }

// mode reads permission bits, in octal.
func (q *request) mode() (fs.FileMode, error) {
	text := q.URL.Query().Get("mode")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return 0, fmt.Errorf("mode: %q is not up to four octal digits: %w", text, paddock.Invalid)
	}
	mode := fs.FileMode(n & 0o777)
	for bit, flag := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if n&bit != 0 {
			mode |= flag
		}
	}
	return mode, nil
}

// readFile sends a file, or a part of one: GET /v1/sandboxes/{id}/files. What
// goes wrong on the way is told behind it, in a trailer.
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
		if err := q.flush(); err != nil { // it is open: the client waits to know
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

// send copies a file to the client. Its error is the file's; a client that has
// gone wants none.
func (q *request) send(r io.Reader, buf []byte) error {
	for {
		n, err := r.Read(buf)
		if n > 0 {
			q.deadline(fileStall)
			if q.s.ctx.Err() != nil { // asked after the deadline was set: what ends the server sets a nearer one
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

// writeFile makes a file of the body: PUT /v1/sandboxes/{id}/files. Nothing of
// the body is read before the file is open: with "Expect: 100-continue" the
// client knows by then.
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
			panic(http.ErrAbortHandler) // nobody is there to be answered
		}
		if err == nil {
			return q.none()
		}
		q.fail(err)
		q.swallow()
		return nil
	})
}

// cutAtEnd has what waits for the client end with the server. The result is to be
// called when nothing does any more.
func (q *request) cutAtEnd() (stop func() bool) {
	return context.AfterFunc(q.s.ctx, func() {
		control := http.NewResponseController(q.w)
		_ = control.SetReadDeadline(time.Unix(1, 0)) // what has none has its own
		_ = control.SetWriteDeadline(time.Unix(1, 0))
	})
}

// receive copies the body into a file. came is false where the client went away,
// or the server ends.
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

// swallow reads what a client still sends that was told of an error: cut off in
// the middle of it, it might never see the answer.
func (q *request) swallow() {
	control := http.NewResponseController(q.w)
	_ = control.Flush()                                       // the client may have gone
	_ = control.SetReadDeadline(time.Now().Add(q.s.bodyTime)) // what has none has its own
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

// listFiles gives one line for each file: GET /v1/sandboxes/{id}/files/list.
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

// watchFiles gives one line for each change: GET /v1/sandboxes/{id}/files/watch.
// The first line says that it watches.
func (q *request) watchFiles() error {
	recursive, err := q.flag("recursive")
	if err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
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

// files does something that has no answer but that it was done.
func (q *request) files(do func(paddock.FS) error) error {
	return q.with(func(sb paddock.Sandbox) error {
		if err := do(sb.FS()); err != nil {
			return err
		}
		return q.none()
	})
}
