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
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of uploads for builds.
const (
	maxUpload  = 1 << 30 // bytes of one file
	maxUploads = 4 << 30 // bytes for one tenant
	maxFiles   = 1000    // of one tenant
	leastSize  = 4 << 10 // bytes that a file counts at least, because an empty one takes space too
	uploadTime = time.Hour
	uploadKept = 24 * time.Hour
	uploadUsed = uploadTime + buildTime // then no build that was begun after the upload needs the file
	ownUploads = 16                     // in progress at once for one tenant
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

// An intake counts the uploads of a tenant that are in progress.
type intake struct {
	users int // guarded by Handler.mu; requests that have it

	mu    sync.Mutex       // also held while the tenant's directory is read, so that no space is given twice
	parts map[string]int64 // guarded by mu; the bytes that uploads may write, by their temporary file
	bytes int64            // guarded by mu; the sum of parts
}

// intake returns a tenant's intake, until leaveIntake.
func (h *Handler) intake(tenant string) *intake {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.intakes[tenant]
	if in == nil {
		in = &intake{parts: map[string]int64{}}
		h.intakes[tenant] = in
	}
	in.users++
	return in
}

func (h *Handler) leaveIntake(tenant string, in *intake) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if in.users--; in.users == 0 {
		delete(h.intakes, tenant)
	}
}

// reserve reserves space for an upload into a tenant's directory, and returns the name of
// its temporary file. The caller calls release when the upload has ended.
func (h *Handler) reserve(tenant string, dir *os.Root, bytes int64) (part string, release func(), err error) {
	in := h.intake(tenant)
	part = secret(8) + partSuffix
	if err = in.add(dir, part, max(bytes, leastSize)); err != nil {
		h.leaveIntake(tenant, in)
		return "", nil, err
	}
	return part, func() {
		in.remove(part)
		h.leaveIntake(tenant, in)
	}, nil
}

// add reserves the bytes of a temporary file.
func (in *intake) add(dir *os.Root, part string, bytes int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if n := len(in.parts); n >= ownUploads {
		return refuse(429, paddock.Exhausted, "%d uploads of files for builds are in progress, which is the maximum", n)
	}
	have, err := stored(dir, in.parts)
	if err != nil {
		return err
	}
	if have.files+len(in.parts) >= maxFiles && time.Since(have.oldest) > uploadUsed {
		if err := dir.Remove(have.name); err != nil {
			return err
		}
		have.files--
		have.bytes -= have.size
	}
	switch n, held := have.files+len(in.parts), have.bytes; {
	case n >= maxFiles:
		return refuse(429, paddock.Exhausted, "%d files of builds are stored or being uploaded, which is the maximum; the oldest is removed for a new one %v after its upload", n, uploadUsed)
	case held+in.bytes+bytes > maxUploads:
		return refuse(413, paddock.Exhausted, "the files of builds have %d bytes and %d are being uploaded, the maximum is %d", held, in.bytes, int64(maxUploads))
	}
	in.parts[part] = bytes
	in.bytes += bytes
	return nil
}

// remove returns the reserved space of a temporary file.
func (in *intake) remove(part string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.bytes -= in.parts[part]
	delete(in.parts, part)
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
	part, release, err := h.reserve(t.Tenant, dir, room)
	if err != nil {
		return err
	}
	defer release()
	// The holder of the URL gets more time than an unknown client.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // not every server supports it
	return put(dir, part, hash, io.LimitReader(r.Body, room+1), room)
}

// put keeps a body of at most room bytes as the file of a hash, once it is complete.
func put(dir *os.Root, part, hash string, body io.Reader, room int64) error {
	f, err := dir.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, body)
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

// A stock is what a directory of uploads holds, besides uploads in progress.
type stock struct {
	files  int
	bytes  int64     // that they count
	name   string    // the oldest of them
	size   int64     // bytes that it counts
	oldest time.Time // when it was uploaded
}

// stored counts a directory's files. It removes those that are too old, and temporary files
// that no process can still be writing. Those in parts are this process's own.
func stored(dir *os.Root, parts map[string]int64) (have stock, err error) {
	list, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return stock{}, err
	}
	for _, e := range list {
		if _, ok := parts[e.Name()]; ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // renamed or removed meanwhile
		}
		kept := uploadKept
		if strings.HasSuffix(e.Name(), partSuffix) {
			kept = uploadTime
		}
		if time.Since(info.ModTime()) > kept {
			if err := dir.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return stock{}, err
			}
			continue
		}
		size := max(info.Size(), leastSize)
		have.files++
		have.bytes += size
		if have.name == "" || info.ModTime().Before(have.oldest) {
			have.name, have.size, have.oldest = e.Name(), size, info.ModTime()
		}
	}
	return have, nil
}
