package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// serving starts a server over the simulated tier and returns its address.
func serving(t testing.TB) string {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Caller: caller(d)})
	if err != nil {
		t.Fatal(err)
	}
	l, address, err := onTCP("")
	if err != nil {
		t.Fatal(err)
	}
	web := s.HTTP()
	var wg sync.WaitGroup
	wg.Go(func() { _ = web.Serve(l) }) // always http.ErrServerClosed
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), web.Close(), d.Close()); err != nil {
			t.Errorf("stop the server: %v", err)
		}
		wg.Wait()
	})
	return address
}

func connect(t testing.TB, o client.Options) *client.Driver {
	t.Helper()
	if o.Key == "" {
		o.Key = key
	}
	d, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newBox(t testing.TB, d paddock.Driver) paddock.Sandbox {
	t.Helper()
	sb, err := d.Create(bounded(t), paddock.Spec{})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return sb
}

// A cutter forwards connections to a server, and cuts each after a number of bytes.
type cutter struct {
	to    string
	after int64

	mu  sync.Mutex
	cut int // guarded by mu; connections
}

func (c *cutter) listen(t testing.TB) string {
	t.Helper()
	l, address, err := onTCP("")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { c.pass(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return address
}

// pass copies both ways until c.after bytes came back, and then cuts the connection, in the
// middle of a message or not.
func (c *cutter) pass(conn net.Conn) {
	defer conn.Close()
	far, err := new(net.Dialer).Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer far.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(far, conn)
		_ = far.Close()
	})
	if _, err := io.CopyN(conn, far, c.after); err == nil {
		c.mu.Lock()
		c.cut++
		c.mu.Unlock()
	}
	_ = conn.Close()
	_ = far.Close()
	wg.Wait()
}

func TestAConnectionThatIsCutOverAndOverLosesAndDoublesNothing(t *testing.T) {
	c := &cutter{to: strings.TrimPrefix(serving(t), "http://"), after: 20_000}
	d := connect(t, client.Options{Address: c.listen(t)})
	sb := newBox(t, d)
	const n = 40_000
	var out bytes.Buffer
	p, err := sb.Start(bounded(t), paddock.Cmd{
		Args:  []string{"/bin/sh", "-c", fmt.Sprintf("seq 1 %d; while read -r line; do echo \"got $line\"; done", n)},
		Input: true, Output: paddock.Output{Stdout: &out},
	})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	var want strings.Builder
	for i := range n {
		fmt.Fprintln(&want, i+1)
	}
	for i := range 50 {
		line := fmt.Sprintf("line %d of the input", i)
		if _, err := io.WriteString(p.Input(), line+"\n"); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		fmt.Fprintln(&want, "got "+line)
	}
	if err := p.Input().Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	exit, err := p.Wait(bounded(t))
	if err != nil || exit.Code != 0 || exit.Dropped != 0 {
		t.Fatalf("exit %+v, %v", exit, err)
	}
	if out.String() != want.String() {
		t.Errorf("%d bytes came, want %d", out.Len(), want.Len())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut < 5 {
		t.Errorf("only %d connections were cut: this shows nothing", c.cut)
	}
}

func TestACreationWhoseAnswerNobodyGotLeavesNothing(t *testing.T) {
	address := serving(t)
	c := &cutter{to: strings.TrimPrefix(address, "http://"), after: 100} // fewer than in any answer
	cut := connect(t, client.Options{Address: c.listen(t), Patience: 50 * time.Millisecond})
	if _, err := cut.Create(bounded(t), paddock.Spec{ID: "lost"}); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("create: %v", err)
	}
	d := connect(t, client.Options{Address: address})
	for ctx := bounded(t); ; {
		all, err := d.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			break
		}
	}
}

func TestAClientThatNeverReadsHoldsUpItsProcessAlone(t *testing.T) {
	address := serving(t)
	d := connect(t, client.Options{Address: address})
	sb := newBox(t, d)
	conn, err := new(net.Dialer).DialContext(bounded(t), "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"args":["/bin/sh","-c","yes"]}`
	fmt.Fprintf(conn, "POST /v1/sandboxes/%s/processes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		sb.ID(), key, len(body), body)
	ctx := bounded(t)
	for { // until the process runs
		all, err := sb.Processes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && all[0].Next > 0 {
			break
		}
	}
	for range 20 {
		var out bytes.Buffer
		p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"echo", "here"}, Output: paddock.Output{Stdout: &out}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(ctx); err != nil || out.String() != "here\n" {
			t.Errorf("%q, %v", &out, err)
		}
	}
}

func TestAThousandIdleConnectionsHoldUpNobody(t *testing.T) {
	address := serving(t)
	for range 1000 {
		conn, err := new(net.Dialer).DialContext(bounded(t), "tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	d := connect(t, client.Options{Address: address})
	if _, err := d.Info(bounded(t), paddock.Auto); err != nil {
		t.Error(err)
	}
}

func TestAnAddressThatIsNoneIsInvalid(t *testing.T) {
	for _, address := range []string{"", "x", "ftp://x", "http://", "unix://", "unix://host/path", "http://a/b", "http://u:p@a", "http://a?b", "http://\x00"} {
		if _, err := client.New(client.Options{Address: address}); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestAWrongKeyIsDenied(t *testing.T) {
	d := connect(t, client.Options{Address: serving(t), Key: "wrong"})
	if _, err := d.Info(bounded(t), paddock.Auto); !errors.Is(err, paddock.Denied) {
		t.Error(err)
	}
}

func TestAServerThatIsNotThereIsUnavailable(t *testing.T) {
	l, address, err := onTCP("")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	d := connect(t, client.Options{Address: address, Patience: time.Millisecond})
	if _, err := d.Info(bounded(t), paddock.Auto); !errors.Is(err, paddock.Unavailable) {
		t.Error(err)
	}
}

func TestAKeyDoesNotFollowARedirect(t *testing.T) {
	asked := make(chan string, 10)
	l, address, err := onTCP("")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = web.Serve(l) }) // always http.ErrServerClosed
	defer wg.Wait()
	defer web.Close()
	d := connect(t, client.Options{Address: address})
	if _, err := d.Info(bounded(t), paddock.Auto); err == nil {
		t.Error("no error")
	}
	if len(asked) != 1 {
		t.Errorf("%d requests", len(asked))
	}
}

func TestAProcessIsAttachedAgainWhereItsServerWasReplaced(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l, address, err := onTCP("")
	if err != nil {
		t.Fatal(err)
	}
	serve := func(l net.Listener) func() {
		s, err := server.New(server.Options{Caller: caller(d)})
		if err != nil {
			t.Fatal(err)
		}
		web := s.HTTP()
		var wg sync.WaitGroup
		wg.Go(func() { _ = web.Serve(l) }) // always http.ErrServerClosed
		return func() {
			if err := errors.Join(s.Close(), web.Close()); err != nil {
				t.Error(err)
			}
			wg.Wait()
		}
	}
	stop := serve(l)
	c := connect(t, client.Options{Address: address})
	sb := newBox(t, c)
	var out bytes.Buffer
	p, err := sb.Start(bounded(t), paddock.Cmd{
		Args:  []string{"/bin/sh", "-c", `while read -r line; do echo "got $line"; done`},
		Input: true, Output: paddock.Output{Stdout: &out},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.Input(), "before\n"); err != nil {
		t.Fatal(err)
	}
	stop()
	l, err = new(net.ListenConfig).Listen(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer serve(l)()
	// Use a new writer: after a cut in the middle of a write, nothing could tell how much
	// of it the first server accepted.
	q, err := sb.Attach(bounded(t), p.ID(), paddock.Output{Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Release()
	if _, err := io.WriteString(q.Input(), "after\n"); err != nil {
		t.Fatal(err)
	}
	if err := q.Input().Close(); err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(bounded(t)); err != nil || exit.Code != 0 || out.String() != "got before\ngot after\n" {
		t.Errorf("%q, %+v, %v", &out, exit, err)
	}
}

func TestTheTLSConfigurationOfTheCallerIsNotChanged(t *testing.T) {
	given := &tls.Config{MinVersion: tls.VersionTLS12}
	c := connect(t, client.Options{Address: serving(t), TLS: given})
	if _, err := c.Info(t.Context(), paddock.Sim); err != nil {
		t.Fatal(err)
	}
	if given.NextProtos != nil || given.ServerName != "" {
		t.Errorf("changed: protocols %q, name %q", given.NextProtos, given.ServerName)
	}
}

// followed follows process 7 of a server whose stream is written here, because a real one is quiet for a
// quarter of a minute before it says so. The stream is "hello", then the frames, and then the end, which
// waits for an acknowledgement if await is set, and tells it. It returns the acknowledgements that came
// besides.
func followed(t *testing.T, quiet time.Duration, await bool, frames func([]byte) []byte) (paddock.Exit, []string) {
	t.Helper()
	real, err := url.Parse(serving(t))
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(real)
	acked := make(chan string, 100)
	mux := http.NewServeMux()
	mux.Handle("/", forward)
	mux.HandleFunc("POST /v1/attachments/{token}/ack", func(_ http.ResponseWriter, r *http.Request) {
		acked <- r.URL.Query().Get("offset")
	})
	mux.HandleFunc("GET /v1/sandboxes/{id}/processes/7/output", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.FrameType)
		b, _ := api.AppendJSON(nil, api.Begin, api.Begun{PID: 7})
		b = frames(api.AppendFrame(b, api.Stdout, []byte("hello")))
		_, _ = w.Write(b)
		_ = http.NewResponseController(w).Flush()
		var end paddock.Exit
		if await {
			select {
			case end.Reason = <-acked:
			case <-bounded(t).Done():
				end.Reason = "nothing was acknowledged"
			}
		}
		b, _ = api.AppendJSON(nil, api.End, end)
		_, _ = w.Write(b)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	d := connect(t, client.Options{Address: s.URL})
	d.SetQuiet(quiet)
	var out bytes.Buffer
	p, err := newBox(t, d).Attach(bounded(t), 7, paddock.Output{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(bounded(t))
	if err != nil || !strings.HasPrefix(out.String(), "hello") {
		t.Errorf("%q: %v", out.String(), err)
	}
	var more []string
	for {
		select {
		case offset := <-acked:
			more = append(more, offset)
		default:
			return exit, more
		}
	}
}

func TestTheServerNeedNotHoldWhatAQuietProcessWrote(t *testing.T) {
	alive := func(b []byte) []byte {
		b = api.AppendFrame(b, api.Alive, nil)
		return api.AppendFrame(b, api.Alive, nil) // nothing is left to acknowledge
	}
	if exit, more := followed(t, time.Hour, true, alive); exit.Reason != "5" || len(more) > 0 {
		t.Errorf("after the server said so: acknowledged up to %q, and then %q", exit.Reason, more)
	}
	much := func(b []byte) []byte { return api.AppendFrame(b, api.Stdout, make([]byte, 4<<10-5)) }
	if exit, more := followed(t, time.Millisecond, true, much); exit.Reason != "4096" || len(more) > 0 {
		t.Errorf("after a moment: acknowledged up to %q, and then %q", exit.Reason, more)
	}
}

func TestOutputThatGoesOnIsNotAcknowledgedLineByLine(t *testing.T) {
	lines := func(b []byte) []byte {
		for range 100 {
			b = api.AppendFrame(b, api.Stdout, []byte("a line\n"))
		}
		return b
	}
	if _, more := followed(t, 0, false, lines); len(more) > 0 {
		t.Errorf("acknowledged %q", more)
	}
}
