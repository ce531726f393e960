package e2b

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of uploads for builds.
const (
	maxUpload  = 1 << 30 // bytes of one file
	maxUploads = 4 << 30 // bytes for one tenant
	uploadTime = time.Hour
	ownUploads = 16 // in progress at once for one tenant
)

// place returns the path of a tenant's upload. Both parts are hashes, so that no text of a
// caller is a part of the path.
func place(tenant, hash string) (dir, file string) {
	sum := sha256.Sum256([]byte(tenant))
	return hex.EncodeToString(sum[:16]), hash + ".tar"
}

// hashed reports whether a text is a hash: 64 hexadecimal digits.
func hashed(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// uploads opens the directory of a tenant's uploads.
func (h *Handler) uploads(tenant string) (*os.Root, error) {
	if h.o.Uploads == "" {
		return nil, cannot("this server accepts no files for builds")
	}
	top, err := os.OpenRoot(h.o.Uploads)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	dir, _ := place(tenant, "")
	if err := top.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return top.OpenRoot(dir)
}

// pass returns the credential in the URL of an upload. It covers the tenant, the ID of the
// key that asked, the file and the expiry in Unix seconds. It is invalid after a restart.
func (h *Handler) pass(tenant, key, template, hash, until string) string {
	m := hmac.New(sha256.New, h.key[:])
	for _, text := range []string{"upload", tenant, key, template, hash, until} {
		_, _ = m.Write([]byte(text + "\x00")) // it never fails
	}
	return hex.EncodeToString(m.Sum(nil))
}

// passes reports whether this process made the URL, and its time is not over.
func (h *Handler) passes(q url.Values, tenant, template, hash string, now time.Time) bool {
	text := q.Get("until")
	until, err := strconv.ParseInt(text, 10, 64)
	return err == nil && now.Unix() < until && same(q.Get("pass"), h.pass(tenant, q.Get("key"), template, hash, text))
}

// An intake counts the bytes that a tenant's uploads in progress may still write.
type intake struct {
	files int
	bytes int64
}

// reserve reserves space for an upload, until release. held is the number of bytes already
// on disk.
func (h *Handler) reserve(tenant string, held, bytes int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.intakes[tenant]
	switch {
	case in.files >= ownUploads:
		return refuse(429, paddock.Exhausted, "%d uploads of files for builds are in progress, which is the maximum", in.files)
	case held+in.bytes+bytes > maxUploads:
		return refuse(413, paddock.Exhausted, "the files of builds have %d bytes and %d are being uploaded, the maximum is %d", held, in.bytes, int64(maxUploads))
	}
	h.intakes[tenant] = intake{in.files + 1, in.bytes + bytes}
	return nil
}

// release returns reserved space.
func (h *Handler) release(tenant string, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.intakes[tenant]
	if in.files--; in.files <= 0 {
		delete(h.intakes, tenant)
		return
	}
	in.bytes -= bytes
	h.intakes[tenant] = in
}

// uploadLink answers whether a file exists, and otherwise with the URL to upload it to.
func (c *call) uploadLink() error {
	if c.caller.ReadOnly { // the URL allows writing
		return refuse(403, paddock.Denied, "this key may only look")
	}
	t, _, err := c.found()
	if err != nil {
		return err
	}
	hash := c.PathValue("hash")
	if !hashed(hash) {
		return invalid("the hash of files has 64 digits of base 16")
	}
	dir, err := c.h.uploads(c.caller.Tenant)
	if err != nil {
		return err
	}
	defer dir.Close()
	_, file := place("", hash)
	if _, err := dir.Stat(file); err == nil {
		return c.json(http.StatusCreated, map[string]any{"present": true})
	}
	u := url.URL{Scheme: "http", Host: c.Host, Path: "/templates/" + t.ID + "/files/" + hash}
	if c.TLS != nil {
		u.Scheme = "https"
	}
	until := strconv.FormatInt(time.Now().Add(uploadTime).Unix(), 10)
	u.RawQuery = url.Values{"pass": {c.h.pass(c.caller.Tenant, c.caller.Who, t.ID, hash, until)}, "key": {c.caller.Who}, "until": {until}}.Encode()
	return c.json(http.StatusCreated, map[string]any{"present": false, "url": u.String()})
}

// upload receives a file from anyone who has the URL.
func (h *Handler) upload(w http.ResponseWriter, r *http.Request) {
	if err := h.uploaded(w, r); err != nil {
		h.fail(w, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (h *Handler) uploaded(w http.ResponseWriter, r *http.Request) error {
	id, hash := r.PathValue("id"), r.PathValue("hash")
	h.mu.Lock()
	t := h.templates[id]
	h.mu.Unlock()
	if t == nil || !hashed(hash) || !h.passes(r.URL.Query(), t.Tenant, id, hash, time.Now()) {
		return refuse(403, paddock.Denied, "the URL is not valid, or not any more: ask for a new one")
	}
	switch live, err := h.o.Live(r.Context(), t.Tenant, r.URL.Query().Get("key")); {
	case err != nil:
		return err
	case !live:
		return refuse(403, paddock.Denied, "the URL ended with the key that asked for it")
	}
	place, err := h.o.Enter(r.Context(), t.Tenant)
	if err != nil {
		return err
	}
	defer place.Leave()
	if r.ContentLength > maxUpload {
		return refuse(413, paddock.Exhausted, "a file for a build may have %d bytes", int64(maxUpload))
	}
	room := r.ContentLength
	if room < 0 { // the length is unknown
		room = maxUpload
	}
	dir, err := h.uploads(t.Tenant)
	if err != nil {
		return err
	}
	defer dir.Close()
	held, err := size(dir)
	if err != nil {
		return err
	}
	if err := h.reserve(t.Tenant, held, room); err != nil {
		return err
	}
	defer h.release(t.Tenant, room)
	if r.ProtoMajor == 1 { // the holder of the URL gets more time than an unknown client
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // HTTP/2 sets its own
	}
	return put(dir, hash, r.Body, room)
}

// put keeps a body as the file of a hash, once it is complete.
func put(dir *os.Root, hash string, body io.Reader, room int64) error {
	part := secret(8) + partSuffix
	f, err := dir.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(body, room+1))
	err = errors.Join(err, f.Close())
	if err == nil && n > room {
		err = refuse(413, paddock.Exhausted, "a file for a build may have %d bytes", int64(maxUpload))
	}
	if err == nil {
		_, file := place("", hash)
		err = dir.Rename(part, file)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(part))
	}
	return nil
}

// partSuffix is the suffix of an upload in progress, whose bytes are reserved.
const partSuffix = ".part"

// size returns the sum of a directory's complete files. It removes uploads that were begun
// more than a day ago.
func size(dir *os.Root) (int64, error) {
	list, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			continue // removed meanwhile
		}
		if time.Since(info.ModTime()) > 24*time.Hour {
			if err := dir.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return 0, err
			}
			continue
		}
		if !strings.HasSuffix(e.Name(), partSuffix) {
			sum += info.Size()
		}
	}
	return sum, nil
}
