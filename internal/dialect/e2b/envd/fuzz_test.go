package envd

import (
	"bufio"
	"bytes"
	"io/fs"

	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
)

// nothing is a sandbox in which nothing is.
type nothing struct{ paddock.Sandbox }

func (nothing) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{State: paddock.Ready, User: "user"}, nil
}

func (nothing) Start(_ context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	return nil, &paddock.StartError{Path: cmd.Args[0], Code: 127, Err: paddock.NotFound}
}

func (nothing) Processes(context.Context) ([]paddock.ProcessInfo, error) { return nil, nil }
func (nothing) FS() paddock.FS                                           { return noFiles{} }

type noFiles struct{ paddock.FS }

func (noFiles) Open(context.Context, string, paddock.OpenOptions) (io.ReadCloser, error) {
	return nil, paddock.NotFound
}

func (noFiles) Create(context.Context, string, paddock.CreateOptions) (io.WriteCloser, error) {
	return nil, paddock.Denied
}

func (noFiles) Stat(_ context.Context, name string) (paddock.FileInfo, error) {
	if !strings.HasPrefix(name, "/") || strings.Contains(name, "\x00") || len(name) > 2*maxName {
		panic("a name that no sandbox is to be asked for: " + name)
	}
	return paddock.FileInfo{}, paddock.NotFound
}

func (noFiles) List(context.Context, string, int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) { yield(paddock.FileInfo{}, paddock.NotFound) }
}

func (noFiles) Mkdir(context.Context, string, paddock.MkdirOptions) error { return paddock.Denied }
func (noFiles) Rename(context.Context, string, string) error              { return paddock.NotFound }
func (noFiles) Remove(context.Context, string, bool) error                { return nil }

func (noFiles) Watch(context.Context, string, paddock.WatchOptions) (paddock.Watcher, error) {
	return nil, paddock.NotFound
}

// FuzzRequestsHaveAnAnswer sends any bytes to any method in any form: the answer is
// one of the protocol's, and nothing panics.
func FuzzRequestsHaveAnAnswer(f *testing.F) {
	paths := []string{
		"/process.Process/List", "/process.Process/Start", "/process.Process/Connect", "/process.Process/Update", "/process.Process/StreamInput",
		"/process.Process/SendInput", "/process.Process/SendSignal", "/process.Process/CloseStdin",
		"/filesystem.Filesystem/Stat", "/filesystem.Filesystem/MakeDir", "/filesystem.Filesystem/Move", "/filesystem.Filesystem/ListDir",
		"/filesystem.Filesystem/Remove", "/filesystem.Filesystem/WatchDir", "/filesystem.Filesystem/CreateWatcher",
		"/filesystem.Filesystem/GetWatcherEvents", "/filesystem.Filesystem/RemoveWatcher", "/files/compose", "/files?path=x", "/files",
	}
	kinds := []string{
		"application/json", "application/connect+json", "application/proto", "application/connect+proto", "application/grpc", "application/octet-stream",
		"multipart/form-data; boundary=x",
	}
	for i := range paths {
		for k := range kinds {
			f.Add(uint8(i), uint8(k), []byte(frame(0, `{"process":{"pid":1,"cmd":"x","args":["y"]},"path":"~/x","source":"a","destination":"b"}`)), "", "")
			f.Add(uint8(i), uint8(k), []byte(`{"process":{"cmd":"x"},"path":"/x","watcherId":"w","source_paths":["a"],"destination":"b"}`), "Basic dXNlcjo=", "100")
		}
	}
	f.Add(uint8(19), uint8(6), []byte("--x\r\nContent-Disposition: form-data; name=file; filename=y\r\n\r\nz\r\n--x--\r\n"), "", "")
	b, err := New(Options{Sandbox: nothing{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { b.Close() })
	f.Fuzz(func(t *testing.T, path, kind uint8, body []byte, user, timeout string) {
		r := httptest.NewRequest("POST", paths[int(path)%len(paths)], strings.NewReader(string(body)))
		r.Header.Set("Content-Type", kinds[int(kind)%len(kinds)])
		r.Header.Set("Authorization", user)
		r.Header.Set("Connect-Timeout-Ms", timeout)
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		answer := w.Body.Bytes()
		switch got := w.Header().Get("Content-Type"); {
		case w.Code < 200 || w.Code > 599:
			t.Errorf("%s: %d", r.URL, w.Code)
		case strings.HasPrefix(got, "application/json"):
			if !json.Valid(answer) {
				t.Errorf("%s: %q", r.URL, answer)
			}
		case got == "application/connect+json":
			for len(answer) > 0 {
				if len(answer) < 5 || int(binary.BigEndian.Uint32(answer[1:5])) > len(answer)-5 {
					t.Fatalf("%s: %q", r.URL, answer)
				}
				n := 5 + int(binary.BigEndian.Uint32(answer[1:5]))
				if !json.Valid(answer[5:n]) || (answer[0]&2 != 0) != (n == len(answer)) {
					t.Fatalf("%s: %q", r.URL, answer)
				}
				answer = answer[n:]
			}
		}
	})
}

// FuzzQueriesOfFilesAreRead asks for files by any query.
func FuzzQueriesOfFilesAreRead(f *testing.F) {
	f.Add("path=a&username=user&signature=v1_x&signature_expiration=1")
	f.Add("path=%00&signature=" + url.QueryEscape(e2b.Signature(token, "GET", url.Values{"path": {"\x00"}})))
	b, err := New(Options{Sandbox: nothing{}, Token: token})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { b.Close() })
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest("GET", "/files", nil)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		if q := r.URL.Query(); w.Code != http.StatusUnauthorized && !e2b.Signed(token, "GET", q) {
			t.Errorf("%s: %d without a signature", query, w.Code)
		}
	})
}

// FuzzLinksLeadSomewhere follows links that a guest made, which say anything.
func FuzzLinksLeadSomewhere(f *testing.F) {
	f.Add("/a/b", "c", "/d", "../..")
	f.Add("/l", "l", ".", "/l/l")
	f.Fuzz(func(t *testing.T, name, one, two, three string) {
		if len(name) > maxName || strings.IndexByte(name, 0) >= 0 || !strings.HasPrefix(name, "/") {
			return
		}
		b, err := New(Options{Sandbox: maze{links: []string{one, two, three}}})
		if err != nil {
			t.Fatal(err)
		}
		at, info, err := b.walker().real(t.Context(), name)
		if err == nil && (!strings.HasPrefix(at, "/") || isLink(info)) {
			t.Errorf("%q leads to %q, %v", name, at, info)
		}
	})
}

// What a command tells of files is the guest's: it is read or refused, and never more
// than was told.
func FuzzDescribed(f *testing.F) {
	f.Add([]byte("f 644 4 1700000000.5 0 0 root root\x00/a\x00\x00d 1777 60 1.0 1000 1000 1000 user\x00/b\nc\x00\x00l 777 1 -1.0 0 0 root root\x00/l\x00to\x00"))
	f.Add([]byte("f 644\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, otherEntry)
		lines.Split(records)
		size := 0
		for lines.Scan() {
			size += len(lines.Bytes())
			info, err := described(lines.Bytes())
			if err != nil {
				continue
			}
			if info.Size < 0 || info.Name[0] != '/' || info.Mode.Perm() > 0o777 || info.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				t.Errorf("%q: %+v", lines.Bytes(), info)
			}
		}
		if size > len(data) {
			t.Errorf("%d of %d bytes", size, len(data))
		}
	})
}
