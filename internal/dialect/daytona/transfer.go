package daytona

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// Bounds of transfers.
const (
	maxParts = 10_000
	patience = time.Minute // that a piece may take
)

// A patient reader gives each piece of a body its time.
type patient struct {
	c *call
	r io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	_ = http.NewResponseController(p.c.w).SetReadDeadline(time.Now().Add(patience)) // not every server supports it
	return p.r.Read(b)
}

// A patient writer gives each piece of an answer its time.
type patientWriter struct{ c *call }

func (p patientWriter) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.c.w).SetWriteDeadline(time.Now().Add(patience)) // not every server supports it
	return p.c.w.Write(b)
}

// upload handles POST …/files/upload-v2: a form with the field file, or the content itself.
func (c *call) upload() error {
	sb, _, name, err := c.at("path", true)
	if err != nil {
		return err
	}
	var from io.Reader = patient{c, c.Body}
	if kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
		part, err := multipart.NewReader(from, params["boundary"]).NextPart()
		if err != nil {
			return invalid("the form ended early")
		}
		from = part
	}
	if err := c.write(sb, name, from); err != nil {
		return err
	}
	dialect.Arrived(c.w)
	return c.json(http.StatusOK, map[string]string{"path": name})
}

// bulkUpload handles POST …/files/bulk-upload: for each file a field with its path, and later one with its content.
func (c *call) bulkUpload() error {
	sb, rec, err := c.opened(true)
	if err != nil {
		return err
	}
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return invalid("the body is no form")
	}
	form := multipart.NewReader(patient{c, c.Body}, params["boundary"])
	type uploaded struct {
		Path string `json:"path"`
	}
	var faults []string
	all := []uploaded{}
	paths := map[string]string{} // by field; some clients send all of them first
	for range maxParts {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			if len(faults) > 0 {
				return c.json(http.StatusBadRequest, map[string]any{"errors": faults})
			}
			dialect.Arrived(c.w)
			return c.json(http.StatusOK, map[string]any{"files": all})
		}
		if err != nil {
			return invalid("the form ended early")
		}
		switch key := part.FormName(); {
		case strings.HasSuffix(key, ".path"):
			text, err := io.ReadAll(io.LimitReader(part, maxPath+1))
			if err != nil || len(text) == 0 || len(text) > maxPath || bytes.IndexByte(text, 0) >= 0 {
				return coded(400, codeFilePath, paddock.Invalid, "%s is a path of up to %d bytes", dialect.Printable(key), maxPath)
			}
			if err := c.place.Hold(int64(len(key) + len(text))); err != nil {
				return err
			}
			paths[strings.TrimSuffix(key, ".path")] = string(text)
		case strings.HasSuffix(key, ".file"):
			name, ok := paths[strings.TrimSuffix(key, ".file")]
			if !ok {
				return invalid("%s comes before its path", dialect.Printable(key))
			}
			if err := c.write(sb, rec.absolute(name), part); err != nil {
				if c.ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) {
					return invalid("the form ended early")
				}
				faults = append(faults, fmt.Sprintf("%s: %v", name, err))
			}
			all = append(all, uploaded{name})
		}
	}
	return refuse(413, paddock.Exhausted, "the form has more than %d fields", maxParts)
}

// download handles GET …/files/download.
func (c *call) download() error {
	sb, _, name, err := c.at("path", true)
	if err != nil {
		return err
	}
	r, size, err := c.open(sb, name)
	if err != nil {
		return err
	}
	defer r.Close()
	head := c.w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	if size >= 0 {
		head.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	buf, done, err := c.h.o.Buffer(c.caller.Tenant)
	if err != nil {
		return err
	}
	defer done()
	if n, err := io.CopyBuffer(onlyWriter{patientWriter{c}}, onlyReader{r}, buf); err != nil || size >= 0 && n != size {
		panic(http.ErrAbortHandler) // a file that ends early must not look whole
	}
	return nil
}

// open opens a file. The size is negative if it is not known.
func (c *call) open(sb paddock.Sandbox, name string) (io.ReadCloser, int64, error) {
	target, _, err := c.target(sb, name)
	if err != nil {
		return nil, 0, fileError(name, err)
	}
	st, err := sb.FS().Stat(c.ctx, target)
	if err != nil {
		return nil, 0, fileError(name, err)
	}
	o, size := paddock.OpenOptions{}, int64(-1)
	if st.Mode.IsRegular() && st.Size > 0 { // files of /proc have none
		o.Length, size = st.Size, st.Size
	}
	r, err := sb.FS().Open(c.ctx, target, o)
	return r, size, fileError(name, err)
}

// bulkDownload handles POST …/files/bulk-download: a form with a part for each path, which is its content or an error.
func (c *call) bulkDownload() error {
	var q struct {
		Paths []string `json:"paths"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if len(q.Paths) == 0 || len(q.Paths) > maxParts {
		return invalid("paths has 1 to %d paths", maxParts)
	}
	sb, rec, err := c.opened(true)
	if err != nil {
		return err
	}
	buf, done, err := c.h.o.Buffer(c.caller.Tenant)
	if err != nil {
		return err
	}
	defer done()
	form := multipart.NewWriter(patientWriter{c})
	c.w.Header().Set("Content-Type", form.FormDataContentType())
	c.w.Header().Set("X-Content-Type-Options", "nosniff")
	for _, name := range q.Paths {
		if err := c.sendPart(sb, rec, form, name, buf); err != nil {
			panic(http.ErrAbortHandler) // without its last boundary no client takes the form for whole
		}
	}
	_ = form.Close() // or the client has gone
	return nil
}

func (c *call) sendPart(sb paddock.Sandbox, rec record, form *multipart.Writer, name string, buf []byte) error {
	head := textproto.MIMEHeader{}
	part := func(kind string) (io.Writer, error) {
		escape := strings.NewReplacer("\\", "\\\\", `"`, `\"`, "\r", "%0D", "\n", "%0A")
		disposition := fmt.Sprintf(`form-data; name="%s"; filename="%s"`, kind, escape.Replace(name))
		if strings.ContainsFunc(name, func(r rune) bool { return r > 0x7e }) { // Python's client reads the plain form as Latin-1
			disposition += "; filename*=UTF-8''" + url.PathEscape(name)
		}
		head.Set("Content-Disposition", disposition)
		return form.CreatePart(head)
	}
	r, size, err := c.open(sb, rec.absolute(name))
	if err != nil {
		f := faultOf(err)
		data, err := json.Marshal(map[string]any{"message": f.Message, "statusCode": f.StatusCode, "code": f.Code, "source": fromDaemon})
		if err != nil {
			return err
		}
		head.Set("Content-Type", "application/json")
		w, err := part("error")
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	defer r.Close()
	head.Set("Content-Type", "application/octet-stream")
	if size >= 0 {
		head.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	w, err := part("file")
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{w}, onlyReader{r}, buf)
	if err == nil && size >= 0 && n != size {
		err = io.ErrUnexpectedEOF
	}
	return err
}
