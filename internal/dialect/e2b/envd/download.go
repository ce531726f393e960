package envd

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
)

// chunk is how much of a file is copied at once.
const chunk = 256 << 10

// maxRanges is how many pieces of a file a request may ask for. Each may be a call into
// the sandbox; who asks for more gets the whole, as the web lets a server answer.
const maxRanges = 32

// ofUser gives a request that is about the files of the user that it names, or that is
// named here.
func (b *Box) ofUser(r *http.Request, name string) (*http.Request, error) {
	if name == "" {
		var err error
		if name, err = b.caller(r.Context(), r.Header); err != nil {
			return r, err
		}
		if name != "" && !b.trusts(r) { // what is signed is signed for a user
			return r, refuse(http.StatusUnauthorized, connect.CodeUnauthenticated, unauthorized)
		}
	}
	ctx, err := b.as(r.Context(), name)
	if err != nil {
		return r, err
	}
	return r.WithContext(ctx), nil
}

// failed answers with an error, but where the sandbox is no more.
func (b *Box) failed(w http.ResponseWriter, r *http.Request, err error) {
	b.alive(r.Context(), err)
	fail(w, err)
}

// download answers with a file: GET /files.
func (b *Box) download(w http.ResponseWriter, r *http.Request) {
	r, name, info, err := b.readable(r)
	if err != nil {
		b.failed(w, r, err)
		return
	}
	coding, err := codingOf(r.Header)
	if err != nil {
		fail(w, err)
		return
	}
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": clean(path.Base(name))}))
	if h.Get("Content-Disposition") == "" {
		h.Set("Content-Disposition", "inline")
	}
	f := &file{ctx: r.Context(), fs: b.files(r.Context()), name: name, size: info.Size}
	defer f.close()
	if err := f.begin(); err != nil {
		h.Del("Content-Disposition")
		b.failed(w, r, err)
		return
	}
	switch {
	case coding == "gzip":
		pack(w, r, f)
	case info.Size == 0 && len(f.head) > 0:
		stream(w, r, f) // of a file that does not say its size, as those of the kernel
	default:
		if strings.Count(r.Header.Get("Range"), ",") >= maxRanges {
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, name, info.ModTime, f)
	}
}

// readable finds the file that is asked for, and gives the request as one about its user.
func (b *Box) readable(r *http.Request) (*http.Request, string, paddock.FileInfo, error) {
	none := paddock.FileInfo{}
	if err := b.signed(r); err != nil {
		return r, "", none, err
	}
	r, err := b.ofUser(r, r.URL.Query().Get("username"))
	if err != nil {
		return r, "", none, err
	}
	name, err := b.resolve(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return r, "", none, err
	}
	walk := b.walker()
	info, err := walk.stat(r.Context(), name)
	if err == nil && isLink(info) {
		_, info, err = walk.real(r.Context(), name)
	}
	switch {
	case err != nil && paddock.KindOf(err) == paddock.NotFound:
		b.alive(r.Context(), err)
		return r, "", none, missing(fmt.Sprintf("path '%s' does not exist", clean(name)))
	case err != nil:
		return r, "", none, err
	case info.Mode.IsDir():
		return r, "", none, invalid(fmt.Sprintf("path '%s' is a directory", clean(name)))
	case !info.Mode.IsRegular():
		return r, "", none, invalid(fmt.Sprintf("path '%s' is not a regular file", clean(name)))
	}
	return r, name, info, nil
}

// codingOf chooses how a file is sent. What is packed is slower on a short way, so
// that is for who asks for nothing else.
func codingOf(h http.Header) (string, error) {
	if h.Get("Accept-Encoding") == "" {
		return "", nil
	}
	wants, plain, packed, named := accepted(strings.Join(h.Values("Accept-Encoding"), ","))
	whole := h.Get("Range") == "" && h.Get("If-Range") == "" && h.Get("If-None-Match") == "" && h.Get("If-Modified-Since") == ""
	switch {
	case packed && !plain:
		return "gzip", nil
	case !plain && !packed:
		return "", refuse(http.StatusNotAcceptable, connect.CodeInvalidArgument, "no acceptable encoding: gzip and identity are supported")
	case packed && wants == 1 && named && whole:
		return "gzip", nil
	}
	return "", nil
}

// accepted reads what a client takes: how many codings it names, and whether a plain
// and a packed answer are among them.
func accepted(text string) (wants int, plain, packed, named bool) {
	plain = true
	for item := range strings.SplitSeq(text, ",") {
		name, rest, _ := strings.Cut(strings.TrimSpace(item), ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		ok := true
		if q, found := strings.CutPrefix(strings.ReplaceAll(rest, " ", ""), "q="); found {
			n, err := strconv.ParseFloat(q, 64)
			ok = err == nil && n > 0
		}
		if ok {
			wants++
		}
		switch name {
		case "identity":
			plain = ok
		case "gzip", "x-gzip":
			packed, named = ok, ok
		case "*":
			if !named {
				packed = ok
			}
			if !strings.Contains(text, "identity") {
				plain = ok
			}
		}
	}
	return wants, plain, packed, named
}

// pack sends a file packed.
func pack(w http.ResponseWriter, r *http.Request, f *file) {
	h := w.Header()
	h.Set("Content-Encoding", "gzip")
	setType(h, f)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{z}, struct{ io.Reader }{f}, make([]byte, chunk)); err != nil {
		panic(http.ErrAbortHandler) // half a file is not to look like a whole one
	}
	if err := z.Close(); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// stream sends a file to its end, wherever that is.
func stream(w http.ResponseWriter, r *http.Request, f *file) {
	setType(w.Header(), f)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{f}, make([]byte, chunk)); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func setType(h http.Header, f *file) {
	kind := mime.TypeByExtension(path.Ext(f.name))
	if kind == "" {
		kind = http.DetectContentType(f.head)
	}
	h.Set("Content-Type", kind)
}

// headSize is how much of a file tells what it is.
const headSize = 512

// A file is read from wherever its reader goes to. It is opened anew only where
// that is not the next byte.
type file struct {
	ctx  context.Context
	fs   paddock.FS
	name string
	size int64

	head []byte // the first bytes, which were read already
	at   int64
	r    io.ReadCloser // nil, or open
	next int64         // where r is
}

// begin reads the first bytes.
func (f *file) begin() error {
	r, err := f.fs.Open(f.ctx, f.name, paddock.OpenOptions{})
	if err != nil {
		return err
	}
	f.r = r
	f.head = make([]byte, headSize)
	n, err := io.ReadFull(r, f.head)
	f.head, f.next = f.head[:n], int64(n)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

func (f *file) Read(p []byte) (int, error) {
	if f.at < int64(len(f.head)) {
		n := copy(p, f.head[f.at:])
		f.at += int64(n)
		return n, nil
	}
	if f.r == nil || f.next != f.at {
		f.close()
		r, err := f.fs.Open(f.ctx, f.name, paddock.OpenOptions{Offset: f.at})
		if err != nil {
			return 0, err
		}
		f.r, f.next = r, f.at
	}
	n, err := f.r.Read(p)
	f.at += int64(n)
	f.next = f.at
	return n, err
}

// Seek goes elsewhere. The end is where it was when the file was looked at.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("offset %d: %w", offset, paddock.Invalid)
	}
	f.at = offset
	return offset, nil
}

func (f *file) close() {
	if f.r != nil {
		_ = f.r.Close() // it was only read
		f.r = nil
	}
}
