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

// chunk is the size of a copy buffer.
const chunk = 256 << 10

// packCost is the memory of a gzip writer, about.
const packCost = 1 << 20

func crowded() error {
	return refuse(http.StatusTooManyRequests, connect.CodeResourceExhausted, "too many files of this sandbox's owner are being sent; try again")
}

// maxRanges is the number of ranges that a request may ask for, because each may need a
// call into the sandbox. For more, the answer is the whole file, as HTTP permits.
const maxRanges = 32

// ofUser returns the request for the files of a user: the one that the request names, or
// name.
func (b *Box) ofUser(r *http.Request, name string) (*http.Request, error) {
	if name == "" {
		var err error
		if name, err = b.caller(r.Context(), r.Header); err != nil {
			return r, err
		}
		if name != "" && !b.trusts(r) { // the signature covers the user
			return r, refuse(http.StatusUnauthorized, connect.CodeUnauthenticated, unauthorized)
		}
	}
	ctx, err := b.as(r.Context(), name)
	if err != nil {
		return r, err
	}
	return r.WithContext(ctx), nil
}

// failed answers with an error, or as for a sandbox that is gone.
func (b *Box) failed(w http.ResponseWriter, r *http.Request, err error) {
	b.alive(r.Context(), err)
	fail(w, err)
}

// download handles GET /files.
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
	a := answering(r.Context())
	if coding == "gzip" && a.hold(packCost) != nil {
		if _, plain, _, _ := accepted(strings.Join(r.Header.Values("Accept-Encoding"), ",")); plain {
			coding = ""
		} else {
			fail(w, crowded())
			return
		}
	}
	if !a.lend() {
		fail(w, crowded())
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
		stream(w, r, f) // a file without a size, such as in /proc
	default:
		if strings.Count(r.Header.Get("Range"), ",") >= maxRanges {
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, name, info.ModTime, f)
	}
}

// readable returns the requested file, and the request for the files of its user.
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

// codingOf chooses the coding of a file. gzip is slower on a fast connection, so it is used
// only if the client accepts nothing else.
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

// accepted parses Accept-Encoding: the number of codings, and whether identity and gzip are
// acceptable.
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

// pack sends a file with gzip.
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
	if _, err := io.CopyBuffer(struct{ io.Writer }{z}, struct{ io.Reader }{f}, answering(r.Context()).buffer()); err != nil {
		panic(http.ErrAbortHandler) // a partial file must not pass for a whole one
	}
	if err := z.Close(); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// stream sends a file up to its end, whatever its size.
func stream(w http.ResponseWriter, r *http.Request, f *file) {
	setType(w.Header(), f)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{f}, answering(r.Context()).buffer()); err != nil {
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

// headSize is how many bytes determine the content type.
const headSize = 512

// A file is a seekable reader of a sandbox's file. It opens the file again only if the next
// byte is not where the last read ended.
type file struct {
	ctx  context.Context
	fs   paddock.FS
	name string
	size int64

	head []byte // the first bytes, already read
	at   int64
	r    io.ReadCloser // nil if not open
	next int64         // position of r
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

// Seek implements io.Seeker. The end is that of the last stat.
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
		_ = f.r.Close() // the file was only read
		f.r = nil
	}
}
