package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func TestWithoutANetworkTheToolsSaySo(t *testing.T) {
	for _, c := range []struct {
		args   []string
		stderr string
		status int
	}{
		{[]string{"curl", "https://example.com/x"}, "curl: (6) Could not resolve host: example.com (there is no network in this sandbox)\n", 6},
		{[]string{"curl", "-s", "http://example.com"}, "", 6},
		{[]string{"curl", "http://192.0.2.1/"}, "curl: (7) Failed to connect to 192.0.2.1 port 80: there is no network in this sandbox\n", 7},
		{[]string{"curl", "-s", "http://[2001:db8::1]:8080/"}, "", 7},
		{[]string{"curl", "-sS", "example.com:81"}, "curl: (6) Could not resolve host: example.com (there is no network in this sandbox)\n", 6},
		{[]string{"curl", "ftp://example.com"}, "curl: (1) Protocol \"ftp\" not supported or disabled in libcurl\n", 1},
		{[]string{"curl", "http://x[1-3", "-s"}, "", 3},
		{[]string{"wget", "http://example.com/f"}, "Connecting to example.com... failed: there is no network in this sandbox.\n", 4},
		{[]string{"wget", "-q", "http://example.com/f"}, "", 4},
	} {
		r := commandtest.Run(t, Commands(nil), commandtest.Case{Args: c.args})
		if r.Stderr != c.stderr || r.Status != c.status || r.Stdout != "" {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
}

// serve answers on a connection without a network.
func serve(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body) // what is there
		switch r.URL.Path {
		case "/echo":
			fmt.Fprintf(w, "%s %s %s %q %s", r.Method, r.Host, r.URL.RawQuery, b, r.Header.Get("X-A")+r.Header.Get("Authorization")+r.Header.Get("Content-Type"))
		case "/to":
			http.Redirect(w, r, "/echo?moved", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/bad":
			http.Error(w, "no such", http.StatusNotFound)
		case "/silent":
			<-r.Context().Done()
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		case "/packed", "/packed-endless", "/packed-not":
			w.Header().Set("Content-Encoding", "gzip")
			pack(w, r.URL.Path)
		default:
			fmt.Fprintf(w, "file %s\n", r.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
}

// pack writes what is compressed: a line, or blocks until nobody reads them, or what is not.
func pack(w http.ResponseWriter, what string) {
	z := gzip.NewWriter(w)
	switch what {
	case "/packed":
		fmt.Fprint(z, "packed\n")
		_ = z.Close() // a test sees what comes
	case "/packed-not":
		fmt.Fprint(w, "plain, and longer than a head")
	default:
		block := make([]byte, 64<<10)
		for i := range block {
			block[i] = byte(i * i >> 3)
		}
		for {
			if _, err := z.Write(block); err != nil || z.Flush() != nil {
				return
			}
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
		}
	}
}

// fetched runs a command on a computer with a network.
func fetched(t *testing.T, limits budget.Limits, args ...string) (stdout, stderr string, status int, v *vfs.View, cause error) {
	t.Helper()
	tree := vfs.New(vfs.Options{})
	view := vfs.View{FS: tree, Dir: vfs.Root}
	k := kernel.New(kernel.Options{FS: tree, Limits: limits, Programs: func(string) (kernel.Program, bool) { return nil, false }, Dial: serve(t)})
	run := k.NewRun()
	defer run.End()
	task, err := run.NewTask(view, args, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, stdoutBuffer := kernel.NewBuffer(1 << 30)
	errs, stderrBuffer := kernel.NewBuffer(1 << 30)
	for fd, d := range map[int]*kernel.Desc{1: out, 2: errs} {
		if err := task.SetFD(fd, d, false); err != nil {
			t.Fatal(err)
		}
	}
	task.Go(func(task *kernel.Task) int {
		for _, c := range Commands(nil) {
			if c.Name == args[0] {
				return c.Run(task)
			}
		}
		return 127
	})
	<-task.Done()
	_ = k.Close()
	s, _ := task.Status()
	return string(stdoutBuffer.Bytes()), string(stderrBuffer.Bytes()), s.Shell(), &view, run.Cause()
}

func TestCurlAsksAsItIsTold(t *testing.T) {
	for _, c := range []struct {
		args   string
		stdout string
		status int
	}{
		{"-s http://h/echo?q", `GET h q "" `, 0},
		{"-s -d a=1 -d b=2 http://h/echo", `POST h  "a=1&b=2" application/x-www-form-urlencoded`, 0},
		{"-s -G -d a=1 http://h/echo", `GET h a=1 "" `, 0},
		{"-s --data-urlencode a=b&c http://h/echo", `POST h  "a=b%26c" application/x-www-form-urlencoded`, 0},
		{"-s --json {} -X PUT http://h/echo", `PUT h  "{}" application/json`, 0},
		{"-s -H X-A:1 -u u:p http://h/echo", `GET h  "" 1Basic dTpw`, 0},
		{"-s -H Host:other http://h/echo", `GET other  "" `, 0},
		{"-sL -w %{http_code},%{num_redirects} http://h/to", `GET h moved "" 200,1`, 0},
		{"-s -o /x -w %{http_code} http://h/to", "302", 0},
		{"-sL http://h/loop", "", 47},
		{"-sf http://h/bad", "", 22},
		{"-s --fail-with-body http://h/bad", "no such\n", 22},
		{"-s http://h/bad", "no such\n", 0},
		{"-s http://h/[1-2]{a,b}", "file /1a\nfile /1b\nfile /2a\nfile /2b\n", 0},
		{"-s http://h/[01-03:2]", "file /01\nfile /03\n", 0},
	} {
		stdout, stderr, status, _, _ := fetched(t, budget.Limits{}, append([]string{"curl"}, strings.Fields(c.args)...)...)
		if stdout != c.stdout || status != c.status {
			t.Errorf("%s: %d %q %q", c.args, status, stdout, stderr)
		}
	}
}

func TestAnAnswerFollowsItsHead(t *testing.T) {
	stdout, stderr, status, _, _ := fetched(t, budget.Limits{}, "curl", "-s", "-i", "http://h/a")
	head, body, _ := strings.Cut(stdout, "\r\n\r\n")
	if status != 0 || !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || body != "file /a\n" {
		t.Errorf("%d %q %q", status, stdout, stderr)
	}
	for _, program := range [][]string{{"curl", "-s"}, {"wget", "-q", "-O", "-"}} {
		if stdout, stderr, status, _, _ = fetched(t, budget.Limits{}, append(program, "http://h/a", "http://h/b")...); status != 0 || stdout != "file /a\nfile /b\n" {
			t.Errorf("%q: %d %q %q", program, status, stdout, stderr)
		}
	}
}

func TestFilesAreWrittenInside(t *testing.T) {
	for _, c := range []struct{ args, name string }{
		{"curl -s -O http://h/a/name", "/name"}, {"curl -s -o /o http://h/name", "/o"}, {"wget -q http://h/a/name", "/name"}, {"wget -q -P /d http://h/", "/d/index.html"}, {"wget -q -O /o http://h/x", "/o"},
	} {
		_, stderr, status, v, _ := fetched(t, budget.Limits{}, strings.Fields(c.args)...)
		b, err := v.ReadFile(c.name, 1<<20)
		if status != 0 || err != nil || !strings.HasPrefix(string(b), "file /") {
			t.Errorf("%s: %d %q %v %q", c.args, status, b, err, stderr)
		}
	}
	if _, _, status, _, _ := fetched(t, budget.Limits{}, "wget", "-q", "http://h/bad"); status != 8 {
		t.Errorf("an error of the server: %d", status)
	}
}

func TestAnAnswerWithoutEndReachesALimit(t *testing.T) {
	_, _, status, _, cause := fetched(t, budget.Limits{Download: 1 << 20}, "curl", "-s", "-o", "/x", "http://h/endless")
	if cause == nil || !strings.Contains(cause.Error(), `"download"`) || status != 128+int(linux.SIGKILL) {
		t.Errorf("%d %v", status, cause)
	}
}

func TestAPackedAnswerIsUnpacked(t *testing.T) {
	for _, c := range []struct {
		path, stdout string
		status       int
		cause        string
	}{{"/packed", "packed\n", 0, ""}, {"/packed-not", "", 61, ""}, {"/packed-endless", "", 128 + int(linux.SIGKILL), `"download"`}} {
		stdout, stderr, status, _, cause := fetched(t, budget.Limits{Download: 1 << 20}, "curl", "-s", "--compressed", "-o", map[bool]string{true: "-", false: "/x"}[c.stdout != ""], "http://h"+c.path)
		if stdout != c.stdout || status != c.status || (cause == nil) != (c.cause == "") || cause != nil && !strings.Contains(cause.Error(), c.cause) {
			t.Errorf("%s: %q %q %d %v", c.path, stdout, stderr, status, cause)
		}
	}
}

// A sink tells when n pieces were written to it.
type sink struct {
	n    int
	full chan struct{}
}

func (s *sink) Write(_ *kernel.Task, p []byte) (int, error) {
	if s.n--; s.n == 0 {
		close(s.full)
	}
	return len(p), nil
}

func (*sink) Read(*kernel.Task, []byte) (int, error) { return 0, linux.EBADF }
func (*sink) Info() (vfs.Info, error)                { return vfs.Info{}, linux.EBADF }
func (*sink) Close()                                 {}

// A task whose goroutine ended under a helper that came to a checkpoint took the whole process with it.
func TestATransferCanBeEndedAtAnyTime(t *testing.T) {
	dial := serve(t)
	for i := range 100 {
		tree := vfs.New(vfs.Options{})
		k := kernel.New(kernel.Options{FS: tree, Limits: budget.Limits{Download: 1 << 40}, Programs: func(string) (kernel.Program, bool) { return nil, false }, Dial: dial})
		run := k.NewRun()
		task, err := run.NewTask(vfs.View{FS: tree, Dir: vfs.Root}, []string{"curl", "-s", "--compressed", "http://h/packed-endless"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := &sink{n: 1 + i%10, full: make(chan struct{})}
		if err := task.SetFD(1, kernel.NewDesc(out, "pipe"), false); err != nil {
			t.Fatal(err)
		}
		task.Go(func(task *kernel.Task) int { return curl(task, nil) })
		<-out.full
		if i%2 == 0 {
			task.Signal(linux.SIGTERM)
		} else {
			run.Stop(errors.New("it is enough"))
		}
		<-task.Done()
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		var bug *kernel.Broken
		if errors.As(run.Cause(), &bug) {
			t.Fatal(bug)
		}
	}
}

func TestARequestReachesItsLimits(t *testing.T) {
	_, stderr, status, _, _ := fetched(t, budget.Limits{Redirects: 3}, "curl", "-sSL", "http://h/loop")
	if status != 47 || !strings.Contains(stderr, "redirects followed") {
		t.Errorf("redirects: %d %q", status, stderr)
	}
	if _, stderr, status, _, _ = fetched(t, budget.Limits{Request: 50 * time.Millisecond}, "curl", "-sS", "-o", "/dev/null", "http://h/silent"); status != 28 {
		t.Errorf("a request: %d %q", status, stderr)
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"http://h/{a,b}[1-3:2][a-c]", "[9-1]", "{", "[0001-9999]", "[::1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if list, err := glob(s, 1000); err == nil && len(list) > 1000 {
			t.Errorf("%d", len(list))
		}
	})
}
