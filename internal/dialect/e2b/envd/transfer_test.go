package envd

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

func TestASignatureOpensOneFileForOneThing(t *testing.T) {
	tr := newTrial(t, func(o *Options) { o.Token = token })
	tr.box.now = func() time.Time { return time.Unix(1000, 0) }
	if code, body, _ := tr.ask("POST", "/files?path=a", "text", "Content-Type", "application/octet-stream", "X-Access-Token", token); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	query := func(path, op, user, expires string) string {
		q := url.Values{}
		for k, v := range map[string]string{"path": path, "username": user, "signature_expiration": expires} {
			if v != "" {
				q.Set(k, v)
			}
		}
		q.Set("signature", e2b.Signature(token, map[string]string{"read": "GET", "write": "POST"}[op], q))
		return q.Encode()
	}
	for _, c := range []struct {
		method, query string
		code          int
		message       string
	}{
		{"GET", query("a", "read", "", ""), 200, ""},
		{"HEAD", query("a", "read", "", ""), 200, ""},
		{"GET", query("a", "read", "user", ""), 200, ""},
		{"GET", query("a", "read", "user", "1000"), 200, ""},
		{"GET", query("a", "read", "user", "999"), 401, "signature is already expired"},
		{"GET", query("a", "read", "", "999") + "x", 401, "invalid signature"},
		{"GET", "path=a", 401, "missing signature query parameter"},
		{"GET", "path=b&" + query("a", "read", "", ""), 401, "invalid signature"},
		{"GET", query("a", "write", "", ""), 401, "invalid signature"},
		{"POST", query("a", "read", "", ""), 401, "invalid signature"},
		{"GET", "path=a&signature=v1_x", 401, "invalid signature"},
		{"GET", "path=a&username=root&" + query("a", "read", "", ""), 401, "invalid signature"},
		{"GET", query("a", "read", "", "not a number"), 401, "invalid signature"},
		{"GET", query("a", "read", "zork", ""), 401, "invalid username: 'zork'"},
		{"POST", query("a", "write", "", ""), 200, ""},
	} {
		code, body, _ := tr.ask(c.method, "/files?"+c.query, "new", "Content-Type", "application/octet-stream")
		if code != c.code || !strings.Contains(body, c.message) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.query, code, body, c.code, c.message)
		}
	}
}

// The threat model says so: E2B's clients upload several files by one link without a path.
func TestASignatureToWriteWithoutAPathOpensWhatTheFormNames(t *testing.T) {
	tr := newTrial(t, func(o *Options) { o.Token = token })
	form := "--x\r\nContent-Disposition: form-data; name=file; filename=named\r\n\r\ntext\r\n--x--\r\n"
	for _, c := range []struct{ path, written string }{{"signed", "signed"}, {"", "named"}} {
		q := url.Values{"path": {c.path}}
		q.Set("signature", e2b.Signature(token, "POST", q))
		code, body, _ := tr.ask("POST", "/files?"+q.Encode(), form, "Content-Type", "multipart/form-data; boundary=x")
		if code != 200 || !strings.Contains(body, `/`+c.written+`"`) || strings.Count(body, `"path"`) != 1 {
			t.Errorf("%q: %d %s", c.path, code, body)
		}
	}
}

func TestAFileIsServedAsTheWebHasIt(t *testing.T) {
	tr := newTrial(t)
	text := strings.Repeat("0123456789", 100)
	tr.put("a.txt", text)
	tr.put("page", "<html><body>x")
	tr.put("empty", "")
	code, body, h := tr.ask("GET", "/files?path=a.txt", "")
	if code != 200 || body != text || h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("Content-Disposition") != "inline; filename=a.txt" ||
		h.Get("Accept-Ranges") != "bytes" || h.Get("Content-Length") != "1000" || h.Get("Last-Modified") == "" {
		t.Errorf("%d %.20s %v", code, body, h)
	}
	if _, _, h := tr.ask("GET", "/files?path=page", ""); h.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("sniffed: %v", h)
	}
	if code, body, h := tr.ask("GET", "/files?path=empty", ""); code != 200 || body != "" || h.Get("Content-Length") != "0" {
		t.Errorf("empty: %d %q %v", code, body, h)
	}
	since := h.Get("Last-Modified")
	for _, c := range []struct {
		name, value string
		code        int
		want        string
	}{
		{"Range", "bytes=0-3", 206, "0123"},
		{"Range", "bytes=995-", 206, "56789"},
		{"Range", "bytes=-2", 206, "89"},
		{"Range", "bytes=600-603", 206, "0123"},
		{"Range", "bytes=2000-", 416, ""},
		{"If-Modified-Since", since, 304, ""},
		{"If-Unmodified-Since", "Mon, 02 Jan 2006 15:04:05 GMT", 412, ""},
	} {
		code, body, _ := tr.ask("GET", "/files?path=a.txt", "", c.name, c.value)
		if code != c.code || c.code < 300 && body != c.want {
			t.Errorf("%s %s: %d %q", c.name, c.value, code, body)
		}
	}
	tr.run("mkfifo pipe; ln -s a.txt l; ln -s l2 l2; mkdir 'sp ace'; cp a.txt 'sp ace/ü\"x'")
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"l":           {200, text},
		"nope":        {404, `{"code":404,"message":"path '/home/user/nope' does not exist"}`},
		"/home":       {400, `{"code":400,"message":"path '/home' is a directory"}`},
		"":            {400, `{"code":400,"message":"path '/home/user' is a directory"}`},
		"pipe":        {400, `{"code":400,"message":"path '/home/user/pipe' is not a regular file"}`},
		"l2":          {400, `{"code":400,"message":"too many levels of symbolic links: /home/user/l2"}`},
		"sp ace/ü\"x": {200, text},
		"a\x00b":      {400, ""},
	} {
		code, body, _ := tr.ask("GET", "/files?path="+url.QueryEscape(path), "")
		if code != want.code || want.body != "" && body != want.body {
			t.Errorf("%q: %d %.100s", path, code, body)
		}
	}
}

func TestAFileIsPackedForWhoAsksForNothingElse(t *testing.T) {
	tr := newTrial(t)
	text := strings.Repeat("packed ", 100000)
	tr.put("a.txt", text)
	for coding, want := range map[string]string{
		"gzip": "gzip", "gzip;q=1.0": "gzip", "gzip, deflate, br": "", "gzip, identity;q=0": "gzip", "*": "", "identity": "", "br": "",
		"identity;q=0, *;q=0.5": "gzip", "gzip;q=0": "", "*;q=0": "406", "br, identity;q=0": "406", "gzip;q=x": "",
	} {
		res := tr.do("GET", "/files?path=a.txt", nil, "Accept-Encoding", coding)
		data, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if want == "406" {
			if res.StatusCode != 406 {
				t.Errorf("%s: %d", coding, res.StatusCode)
			}
			continue
		}
		if got := res.Header.Get("Content-Encoding"); got != want || res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %v", coding, res.StatusCode, res.Header)
		}
		if want == "gzip" {
			data = unzip(t, data)
		}
		if string(data) != text {
			t.Errorf("%s: %d bytes", coding, len(data))
		}
	}
	if res := tr.do("GET", "/files?path=a.txt", nil, "Accept-Encoding", "gzip", "Range", "bytes=0-3"); res.StatusCode != 206 || res.Header.Get("Content-Encoding") != "" {
		t.Errorf("a part: %d %v", res.StatusCode, res.Header)
	}
}

func unzip(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func zip(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// form makes a body of files, each with its name.
func form(t testing.TB, files ...string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.WriteField("other", "ignored"); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		part, err := w.CreateFormFile("file", files[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(part, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func TestFilesAreUploadedInEveryForm(t *testing.T) {
	tr := newTrial(t)
	big := strings.Repeat("0123456789abcdef", 40000)
	body, kind := form(t, "one", "1", "/tmp/deep/two", big, "~/three", "")
	code, answer, h := tr.ask("POST", "/files", body, "Content-Type", kind)
	if want := `[{"path":"/home/user/one","name":"one","type":"file"},{"path":"/tmp/deep/two","name":"two","type":"file"},{"path":"/home/user/three","name":"three","type":"file"}]`; code != 200 || answer != want || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %s %v", code, answer, h)
	}
	body, kind = form(t, "ignored", "named")
	tr.ask("POST", "/files?path=four", body, "Content-Type", kind)
	tr.ask("POST", "/files?path=five", zip(t, big), "Content-Type", "application/octet-stream", "Content-Encoding", "gzip")
	body, kind = form(t, "six", big)
	tr.ask("POST", "/files", zip(t, body), "Content-Type", kind, "Content-Encoding", "gzip")
	for name, want := range map[string]string{"one": "1", "/tmp/deep/two": big, "three": "", "four": "named", "five": big, "six": big} {
		if _, got, _ := tr.ask("GET", "/files?path="+name, ""); got != want {
			t.Errorf("%s: %.40q", name, got)
		}
	}
	tr.put("one", "shorter than before? no")
	tr.put("one", "x")
	if _, got, _ := tr.ask("GET", "/files?path=one", ""); got != "x" {
		t.Errorf("written over: %q", got)
	}
}

func TestAnUploadThatCannotBeIsRefused(t *testing.T) {
	tr := newTrial(t)
	tr.must("filesystem.Filesystem/MakeDir", `{"path":"dir"}`)
	raw := "application/octet-stream"
	twice, kind := form(t, "same", "1", "./same", "2")
	half, halfKind := form(t, "half", strings.Repeat("x", 1000))
	for _, c := range []struct {
		path, body, kind, coding string
		code                     int
		want                     string
	}{
		{"", "x", raw, "", 400, "path query parameter is required for raw body upload"},
		{"?path=dir", "x", raw, "", 400, "path is a directory: /home/user/dir"},
		{"?path=/dev/null", "x", raw, "", 400, "path is not a regular file: /dev/null"},
		{"?path=a", "x", "text/plain", "", 400, "unsupported content type"},
		{"?path=a", "x", "", "", 400, "unsupported content type"},
		{"?path=a", "not packed", raw, "gzip", 400, "error decompressing request body"},
		{"?path=a", zip(t, "cut off")[:20], raw, "gzip", 400, "reading the body"},
		{"?path=a", "x", raw, "br", 400, "unsupported Content-Encoding"},
		{"", twice, kind, "", 400, "you cannot upload multiple files to the same path '/home/user/same'"},
		{"", "--x\r\n: no\r\n\r\n", "multipart/form-data; boundary=x", "", 400, "error reading form"},
		{"", half[:len(half)-500], halfKind, "", 400, "reading the body"},
		{"", "--x\r\nContent-Disposition: form-data; name=file\r\n\r\nx\r\n--x--\r\n", "multipart/form-data; boundary=x", "", 400, "no file name"},
		{"?username=zork&path=a", "x", raw, "", 401, "invalid username: 'zork'"},
		{"?path=/proc/nothing/x", "x", raw, "", 0, ""},
		{"?path=/etc/passwd", "x", raw, "", 403, ""},
	} {
		code, body, _ := tr.ask("POST", "/files"+c.path, c.body, "Content-Type", c.kind, "Content-Encoding", c.coding)
		if c.code == 0 && code >= 400 && code < 600 {
			continue
		}
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.kind, code, body)
		}
	}
}

func TestAFullDiskIsSaid(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Disk: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	tr := serve(t, d, sb)
	code, body, _ := tr.ask("POST", "/files?path=big", strings.Repeat("x", 4<<20), "Content-Type", "application/octet-stream")
	if code != http.StatusInsufficientStorage || !strings.HasPrefix(body, `{"code":507,"message":"`) {
		t.Errorf("%d %s", code, body)
	}
	if out, _, _, _ := tr.run("echo on"); out != "on\n" {
		t.Errorf("afterwards: %q", out)
	}
}

func TestFilesArePutTogether(t *testing.T) {
	tr := newTrial(t)
	tr.put("p1", "one ", "X-Metadata-A", "b")
	tr.put("p2", "two")
	tr.put("whole", "before", "X-Metadata-A", "b")
	ask := func(body string) (int, string) {
		code, answer, _ := tr.ask("POST", "/files/compose", body, "Content-Type", "application/json")
		return code, answer
	}
	for body, want := range map[string]struct {
		code int
		text string
	}{
		`{"source_paths":["p1","nope"],"destination":"whole"}`:      {404, "source file not found: nope"},
		`{"source_paths":["p1","/tmp"],"destination":"whole"}`:      {400, "source path is not a regular file: /tmp"},
		`{"source_paths":["p1","./whole"],"destination":"whole"}`:   {400, "cannot be the same as destination"},
		`{"source_paths":[],"destination":"whole"}`:                 {400, "source_paths must not be empty"},
		`{"source_paths":["p1"]}`:                                   {400, "destination is required"},
		`{"source_paths":["p1"],"destination":"w","username":"zo"}`: {401, "invalid username: 'zo'"},
		`{`: {400, "invalid request body"},
	} {
		if code, answer := ask(body); code != want.code || !strings.Contains(answer, want.text) {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	if code, answer := ask(`{"source_paths":["p1","p2"],"destination":"whole"}`); code != 200 || answer != `{"path":"/home/user/whole","name":"whole","type":"file"}` {
		t.Errorf("%d %s", code, answer)
	}
	if _, got, _ := tr.ask("GET", "/files?path=whole", ""); got != "one two" {
		t.Errorf("%q", got)
	}
	list, _ := tr.must("filesystem.Filesystem/ListDir", `{"path":"."}`)["entries"].([]any)
	if s := fmt.Sprint(list); strings.Contains(s, "p1") || strings.Contains(s, "p2") || strings.Contains(s, "compose") {
		t.Errorf("left over: %s", s)
	}
	if e := tr.entry("Stat", `{"path":"whole"}`); e["metadata"] != nil {
		t.Errorf("%v", e)
	}
}

func FuzzAcceptedCodingsAreRead(f *testing.F) {
	for _, s := range []string{"", "gzip", "gzip;q=0.5, *;q=0", "identity;q=0", ",,;;q="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		coding, err := codingOf(http.Header{"Accept-Encoding": {text}})
		if err != nil && coding != "" || coding != "" && coding != "gzip" {
			t.Errorf("%q: %q %v", text, coding, err)
		}
		if coding == "gzip" && !strings.Contains(text, "*") && !strings.Contains(strings.ToLower(text), "gzip") {
			t.Errorf("%q is packed", text)
		}
	})
}

func TestWhoIsNotLetInHoldsNoConnection(t *testing.T) {
	tr := newTrial(t, func(o *Options) { o.Token = token })
	for _, query := range []string{"", "?path=a&signature=v1_x"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", tr.web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "POST /files"+query+" HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\nx"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 401 ") {
			t.Errorf("%q: %.60q, then %v", query, answer, err)
		}
	}
}

func TestABodyThatStopsBehindItsFormIsNotWaitedForForEver(t *testing.T) {
	tr := newTrial(t)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	body, kind := form(t, "a", "text")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/files", strings.NewReader(body+"epilogue"))
	r.Header.Set("Content-Type", kind)
	tr.box.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.read.IsZero() {
		t.Errorf("%d, deadline %v", w.Code, w.read)
	}
}

// deadlines notes until when a body may be read.
type deadlines struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.read = at
	return nil
}

func TestAFileIsNotPutTogetherWithItself(t *testing.T) {
	tr := newTrial(t)
	if err := tr.sb.FS().Mkdir(t.Context(), "/tmp/dir", paddock.MkdirOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := tr.sb.FS().Symlink(t.Context(), "/tmp/dir", "/tmp/link"); err != nil {
		t.Fatal(err)
	}
	tr.put("/tmp/dir/a", "one")
	tr.put("/tmp/dir/b", "two")
	code, answer, _ := tr.ask("POST", "/files/compose", `{"source_paths":["/tmp/link/a","/tmp/dir/b"],"destination":"/tmp/dir/a"}`, "Content-Type", "application/json")
	if code != 400 || !strings.Contains(answer, "cannot be the same as destination") {
		t.Errorf("%d %s", code, answer)
	}
	if _, got, _ := tr.ask("GET", "/files?path=/tmp/dir/a", ""); got != "one" {
		t.Errorf("%q is left", got)
	}
}
