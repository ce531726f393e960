//go:build linux

package guestclient_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A fake is a guest that does what a test makes it do.
type fake struct {
	guestpb.UnimplementedGuestHandler
	start     func(context.Context, *guestpb.StartRequest, *connect.ServerStream[guestpb.ProcessEvent]) error
	processes func(context.Context) (*guestpb.ProcessesResponse, error)
	input     func(context.Context, *guestpb.InputRequest) error
}

// Input answers that it has written everything, where input returns no error.
func (f *fake) Input(ctx context.Context, s *connect.ClientStream[guestpb.InputRequest]) (*connect.Response[guestpb.InputResponse], error) {
	if !s.Receive() {
		return nil, s.Err()
	}
	if err := f.input(ctx, s.Msg()); err != nil {
		return nil, err
	}
	return connect.NewResponse(&guestpb.InputResponse{Written: int64(len(s.Msg().GetData()))}), nil
}

func (f *fake) Start(ctx context.Context, r *connect.Request[guestpb.StartRequest], s *connect.ServerStream[guestpb.ProcessEvent]) error {
	return f.start(ctx, r.Msg, s)
}

func (f *fake) Processes(ctx context.Context, _ *connect.Request[guestpb.ProcessesRequest]) (*connect.Response[guestpb.ProcessesResponse], error) {
	m, err := f.processes(ctx)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(m), nil
}

func (f *fake) serve(t *testing.T, o guestclient.Options) *guestclient.Guest {
	t.Helper()
	_, h := guestpb.NewGuestHandler(f)
	return serve(t, h, o)
}

// serve gives the host's side of a guest that is any HTTP/2 server.
func serve(t *testing.T, h http.Handler, o guestclient.Options) *guestclient.Guest {
	t.Helper()
	g, _ := serveCounted(t, h, o)
	return g
}

// A countedConn counts the bytes that were read from it.
type countedConn struct {
	net.Conn
	taken atomic.Int64
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.taken.Add(int64(n))
	return n, err
}

// serveCounted is serve, and gives the connection of the host's side.
func serveCounted(t *testing.T, h http.Handler, o guestclient.Options) (*guestclient.Guest, *countedConn) {
	t.Helper()
	end, inside := guesttest.Pair(t)
	host := &countedConn{Conn: end}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: h, Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000}}
	l := &listener{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- inside
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-served
	})
	g, err := guestclient.New(host, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g, host
}

type listener struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}
func (l *listener) Addr() net.Addr { return &net.UnixAddr{} }

// A guest that starts nothing holds up no more than a bounded number of starts, and
// whoever waits behind them can give up.
func TestAGuestIsNotAskedForAllStartsAtOnce(t *testing.T) {
	var asked atomic.Int32
	free := make(chan struct{})
	g := (&fake{start: func(ctx context.Context, _ *guestpb.StartRequest, s *connect.ServerStream[guestpb.ProcessEvent]) error {
		asked.Add(1)
		select {
		case <-free:
		case <-ctx.Done():
		}
		return connect.NewError(connect.CodeNotFound, errors.New("no such program"))
	}}).serve(t, guestclient.Options{})
	var all sync.WaitGroup
	const more = 3 * guestclient.StartsAtOnce
	for range more {
		all.Go(func() {
			if _, err := g.Start(t.Context(), paddock.Cmd{Args: []string{"x"}}); paddock.KindOf(err) != paddock.NotFound {
				t.Errorf("a start: %v", err)
			}
		})
	}
	for asked.Load() < guestclient.StartsAtOnce {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := g.Start(ctx, paddock.Cmd{Args: []string{"x"}}); paddock.KindOf(err) != paddock.Timeout {
		t.Errorf("a start behind them: %v", err)
	}
	if n := asked.Load(); n != guestclient.StartsAtOnce {
		t.Errorf("the guest was asked for %d at once", n)
	}
	close(free)
	all.Wait()
	if n := asked.Load(); n != more {
		t.Errorf("the guest was asked %d times", n)
	}
}

// raw gives the host's side of a guest that sends these bytes, over and over
// if again is set, and takes whatever comes.
func raw(t testing.TB, o guestclient.Options, b []byte, again []byte) *guestclient.Guest {
	t.Helper()
	host, inside := guesttest.Pair(t)
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(io.Discard, inside) })
	both.Go(func() {
		_, err := inside.Write(b)
		for err == nil && len(again) > 0 {
			_, err = inside.Write(again)
		}
	})
	t.Cleanup(func() {
		_ = inside.Close()
		both.Wait()
	})
	g, err := guestclient.New(host, o)
	if err != nil {
		t.Skipf("the guest is refused at once: %v", err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// frame is one of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameSettings     = 0x4
	framePush         = 0x5
	framePing         = 0x6
	frameGoAway       = 0x7
	frameContinuation = 0x9
	endStream         = 0x1
	endHeaders        = 0x4
)

// header is a line that stays out of the table of headers.
func header(name, value string) []byte {
	b := append([]byte{0x00}, byte(len(name)))
	b = append(b, name...)
	return append(append(b, byte(len(value))), value...)
}

var (
	settings  = frame(frameSettings, 0, 0, nil)
	okHeaders = append([]byte{0x88}, header("content-type", "application/connect+proto")...) // :status 200
)

func TestAGuestThatBreaksHTTPEndsItsConnection(t *testing.T) {
	many := func(b []byte) []byte { return bytes.Repeat(b, 1000) }
	long := header("x-long", strings.Repeat("x", 100))
	for name, tt := range map[string]struct{ first, again []byte }{
		"silence after the end":  {[]byte{}, nil},
		"junk":                   {many([]byte("HTTP/1.1 200 OK\r\n")), many([]byte("junk"))},
		"no settings":            {frame(framePing, 0, 0, make([]byte, 8)), nil},
		"a frame of 16 MB":       {append(settings[:9:9], 0xff, 0xff, 0xff, frameData, 0, 0, 0, 0, 1), make([]byte, 1<<16)},
		"a pushed answer":        {append(settings[:9:9], frame(framePush, endHeaders, 1, append([]byte{0, 0, 0, 2}, okHeaders...))...), nil},
		"headers without end":    {append(settings[:9:9], frame(frameHeaders, 0, 1, okHeaders)...), many(frame(frameContinuation, 0, 1, long))},
		"empty headers for ever": {append(settings[:9:9], frame(frameHeaders, 0, 1, okHeaders)...), many(frame(frameContinuation, 0, 1, nil))},
		"a goodbye":              {append(settings[:9:9], frame(frameGoAway, 0, 0, make([]byte, 8))...), nil},
		"another's stream":       {append(settings[:9:9], frame(frameData, 0, 999, []byte("x"))...), nil},
		"a window of 2 GB twice": {append(settings[:9:9], append(frame(8, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff}), frame(8, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff})...)...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := raw(t, guestclient.Options{Gone: func() string { return "it went mad" }}, tt.first, tt.again)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := g.Start(ctx, paddock.Cmd{Args: []string{"true"}})
			if k := paddock.KindOf(err); err == nil || (k != paddock.Unavailable && k != paddock.Timeout && k != paddock.Internal) {
				t.Errorf("it answers %v", err)
			}
			if errors.Is(err, paddock.Unavailable) && !strings.Contains(err.Error(), "it went mad") {
				t.Errorf("it does not say why: %v", err)
			}
		})
	}
}

func TestTheHostsMemoryDoesNotGrowWithWhatTheGuestSends(t *testing.T) {
	body := frame(frameData, 0, 1, append([]byte{0, 0xff, 0xff, 0xff, 0xff}, make([]byte, 16000)...))
	for name, tt := range map[string]struct{ first, again []byte }{
		"early hints":      {settings, bytes.Repeat(frame(frameHeaders, endHeaders, 1, append([]byte{0x08, 3, '1', '0', '3'}, header("link", strings.Repeat("x", 100))...)), 100)},
		"a message of 4GB": {append(settings[:9:9], frame(frameHeaders, endHeaders, 1, okHeaders)...), body},
		"settings":         {settings, bytes.Repeat(settings, 1000)},
		"pings":            {settings, bytes.Repeat(frame(framePing, 0, 0, make([]byte, 8)), 1000)},
		"trailers":         {append(settings[:9:9], append(frame(frameHeaders, endHeaders, 1, okHeaders), frame(frameHeaders, endStream, 1, nil)...)...), bytes.Repeat(frame(frameContinuation, 0, 1, header("x", strings.Repeat("x", 100))), 100)},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			g := raw(t, guestclient.Options{}, tt.first, tt.again)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if _, err := g.Start(ctx, paddock.Cmd{Args: []string{"true"}}); err == nil {
				t.Error("it answers without an error")
			}
			if after := heap(); after > before+(32<<20) {
				t.Errorf("the heap grew from %d to %d bytes", before, after)
			}
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAnAnswerThatIsTooLongOrOfOtherFormIsRefused(t *testing.T) {
	endless := func(contentType, encoding string, first, rest []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
				w.Header().Set("Connect-Content-Encoding", encoding)
			}
			_, err := w.Write(first)
			for err == nil && len(rest) > 0 && r.Context().Err() == nil {
				_, err = w.Write(rest)
			}
		}
	}
	zeros := make([]byte, 1<<16)
	for name, h := range map[string]http.HandlerFunc{
		"no end":            endless("application/proto", "", nil, zeros),
		"a message of 4 GB": endless("application/connect+proto", "", []byte{0, 0xff, 0xff, 0xff, 0xff}, zeros),
		"empty messages":    endless("application/connect+proto", "", []byte{0, 0, 0, 0, 0}, bytes.Repeat([]byte{0, 0, 0, 0, 0}, 1000)),
		"compressed":        endless("application/connect+proto", "gzip", []byte{1, 0, 0, 0, 4, 0x1f, 0x8b, 8, 0}, nil),
		"compressed whole":  endless("application/proto", "gzip", []byte{0x1f, 0x8b, 8, 0}, zeros),
		"after the end":     endless("application/connect+proto", "", []byte{2, 0, 0, 0, 2, '{', '}'}, zeros),
		"another type":      endless("text/html", "", []byte("<html>"), nil),
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
		"a long refusal": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, err := w.Write([]byte(`{"code":"not_found","message":"`))
			for err == nil {
				_, err = w.Write(bytes.Repeat([]byte("x"), 1<<16))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := serve(t, h, guestclient.Options{})
			before := heap()
			if _, err := g.Start(limit(t), paddock.Cmd{Args: []string{"true"}}); err == nil || errors.Is(err, paddock.Timeout) {
				t.Errorf("Start answers %v", err)
			}
			if _, err := g.Processes(limit(t)); err == nil || errors.Is(err, paddock.Timeout) {
				t.Errorf("Processes answers %v", err)
			}
			if after := heap(); after > before+(64<<20) {
				t.Errorf("the heap grew from %d to %d bytes", before, after)
			}
		})
	}
}

func TestAnEndWithoutAnExitIsAnError(t *testing.T) {
	for name, end := range map[string]error{"quietly": nil, "with an error": connect.NewError(connect.CodeNotFound, errors.New("\x1b[1mlost"))} {
		t.Run(name, func(t *testing.T) {
			f := &fake{start: func(_ context.Context, _ *guestpb.StartRequest, s *connect.ServerStream[guestpb.ProcessEvent]) error {
				_ = s.Send(started(7))
				return end
			}}
			exit, err := start(t, f.serve(t, guestclient.Options{}), paddock.Cmd{Args: []string{"x"}}).Wait(limit(t))
			if err == nil || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%+v, %v", exit, err)
			}
		})
	}
}

func TestAFalseEventIsRefusedAtOnce(t *testing.T) {
	hang := func(events ...*guestpb.ProcessEvent) *guestclient.Guest {
		return (&fake{start: func(ctx context.Context, _ *guestpb.StartRequest, s *connect.ServerStream[guestpb.ProcessEvent]) error {
			for _, ev := range events {
				_ = s.Send(ev)
			}
			<-ctx.Done()
			return ctx.Err()
		}}).serve(t, guestclient.Options{})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // shorter than any bound of the call itself
	defer cancel()
	if _, err := hang(started(-1)).Start(ctx, paddock.Cmd{Args: []string{"x"}}); !errors.Is(err, paddock.Internal) || !strings.Contains(err.Error(), "protocol") {
		t.Errorf("Start answers %v", err)
	}
	p, err := hang(started(7), output(-5, []byte("x"))).Start(ctx, paddock.Cmd{Args: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(ctx); !errors.Is(err, paddock.Internal) || !strings.Contains(err.Error(), "protocol") {
		t.Errorf("Wait answers %+v, %v", exit, err)
	}
}

func started(pid int32) *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Started{Started: &guestpb.Started{Pid: pid}}}
}

func output(offset int64, data []byte) *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Output{Output: &guestpb.Output{Offset: offset, Data: data}}}
}

func TestAGuestThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	g := (&fake{
		start: func(ctx context.Context, _ *guestpb.StartRequest, _ *connect.ServerStream[guestpb.ProcessEvent]) error {
			return silent(ctx)
		},
		processes: func(ctx context.Context) (*guestpb.ProcessesResponse, error) { return nil, silent(ctx) },
	}).serve(t, guestclient.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := g.Start(ctx, paddock.Cmd{Args: []string{"x"}}); !errors.Is(err, paddock.Timeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start answers %v", err)
	}
	if _, err := g.Processes(ctx); !errors.Is(err, paddock.Timeout) {
		t.Errorf("Processes answers %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Processes(canceled); !errors.Is(err, paddock.Canceled) {
		t.Errorf("with a context that was canceled it answers %v", err)
	}
}

func TestAGuestThatReadsNothingIsNotWaitedFor(t *testing.T) {
	host, _ := guesttest.Pair(t)
	g, err := guestclient.New(host, guestclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	big := paddock.Cmd{Args: []string{"x", strings.Repeat("x", 4<<20)}}
	for range 3 {
		if _, err := g.Start(ctx, big); !errors.Is(err, paddock.Timeout) {
			t.Errorf("it answers %v", err)
		}
	}
}

func TestALateExitEndsTheWaitAndIsTold(t *testing.T) {
	var events = map[string]func(ctx context.Context, s *connect.ServerStream[guestpb.ProcessEvent]) error{
		"silence": func(ctx context.Context, _ *connect.ServerStream[guestpb.ProcessEvent]) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"a trickle": func(ctx context.Context, s *connect.ServerStream[guestpb.ProcessEvent]) error {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := int64(0); ; i++ {
				if err := s.Send(output(i, []byte("x"))); err != nil {
					return err
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		},
		"a flood": func(ctx context.Context, s *connect.ServerStream[guestpb.ProcessEvent]) error {
			for i := int64(0); ; i += 64 << 10 {
				if err := s.Send(output(i, make([]byte, 64<<10))); err != nil {
					return err
				}
			}
		},
	}
	for name, after := range events {
		t.Run(name, func(t *testing.T) {
			stuck := make(chan struct{}, 1)
			g := (&fake{start: func(ctx context.Context, _ *guestpb.StartRequest, s *connect.ServerStream[guestpb.ProcessEvent]) error {
				if err := s.Send(started(7)); err != nil {
					return err
				}
				return after(ctx, s)
			}}).serve(t, guestclient.Options{Stuck: func() { stuck <- struct{}{} }})
			g.SetGrace(100 * time.Millisecond)
			exit := wait(t, start(t, g, paddock.Cmd{Args: []string{"x"}, Timeout: 50 * time.Millisecond}))
			if exit.Cause != paddock.TimedOut || exit.Code != 137 || !strings.Contains(exit.Reason, "did not say") {
				t.Errorf("%+v", exit)
			}
			<-stuck
		})
	}
}

// A stalled writer takes nothing until it is closed.
type stalled chan struct{}

func (s stalled) Write(p []byte) (int, error) {
	<-s
	return 0, io.ErrClosedPipe
}

func TestAFloodOfManyProcessesFillsNoMoreThanTheRoomOfEach(t *testing.T) {
	// What a server counts for each process: followCost of package server, processCost of E2B's agent. Heads of messages
	// and frames come in addition.
	const many, counted, heads = 500, 192 << 10, 8 << 10
	var pid atomic.Int32
	_, h := guestpb.NewGuestHandler(&fake{
		start: func(_ context.Context, _ *guestpb.StartRequest, s *connect.ServerStream[guestpb.ProcessEvent]) error {
			if err := s.Send(started(pid.Add(1))); err != nil {
				return err
			}
			data := make([]byte, 64<<10)
			for i := int64(0); ; i += int64(len(data)) {
				if err := s.Send(output(i, data)); err != nil {
					return err
				}
			}
		},
		processes: func(context.Context) (*guestpb.ProcessesResponse, error) { return &guestpb.ProcessesResponse{}, nil },
	})
	g, conn := serveCounted(t, h, guestclient.Options{})
	writer := make(stalled)
	defer close(writer)
	for range many {
		if _, err := g.Start(limit(t), paddock.Cmd{Args: []string{"yes"}, Output: paddock.Output{Stdout: writer}}); err != nil {
			t.Fatal(err)
		}
	}
	taken := int64(-1)
	for quiet := false; !quiet; { // until nothing comes between calls that go over the same connection
		before := conn.taken.Load()
		for range 100 {
			if _, err := g.Processes(limit(t)); err != nil {
				t.Fatal(err)
			}
		}
		taken = conn.taken.Load()
		quiet = before >= many*64<<10 && taken-before < 64<<10 // the answers
	}
	if most := int64(many * (counted + heads)); taken > most {
		t.Errorf("%d bytes were taken from the sandbox, %d of each process; at most %d", taken, taken/many, most/many)
	}
}

func TestAPausedGuestIsNotTakenForStuck(t *testing.T) {
	var looks atomic.Int32
	resumed := make(chan struct{})
	g := (&fake{start: func(ctx context.Context, _ *guestpb.StartRequest, s *connect.ServerStream[guestpb.ProcessEvent]) error {
		_ = s.Send(started(7))
		select {
		case <-resumed:
		case <-ctx.Done():
			return ctx.Err()
		}
		return s.Send(&guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Exited{Exited: &guestpb.Exited{Cause: guestpb.Cause_CAUSE_TIMED_OUT, Code: 137, Signal: 9}}})
	}}).serve(t, guestclient.Options{
		Stuck: func() { t.Error("it is taken for stuck") },
		Paused: func() bool {
			if looks.Add(1) == 20 { // five times the grace
				close(resumed)
			}
			return true
		},
	})
	g.SetGrace(40 * time.Millisecond)
	if exit := wait(t, start(t, g, paddock.Cmd{Args: []string{"x"}, Timeout: time.Millisecond})); exit.Cause != paddock.TimedOut || strings.Contains(exit.Reason, "did not say") {
		t.Errorf("%+v", exit)
	}
}

func TestErrorsOfTheGuestAreChecked(t *testing.T) {
	detail := func(kind uint32, start int32) *connect.ErrorDetail {
		d, err := connect.NewErrorDetail(&guestpb.ErrorDetail{Kind: kind, StartCode: start})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	other, err := connect.NewErrorDetail(&guestpb.StartRequest{Timeout: 1 << 60})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		code    connect.Code
		details []*connect.ErrorDetail
		kind    paddock.Kind
		start   int
	}{
		{connect.CodeNotFound, []*connect.ErrorDetail{detail(uint32(paddock.Denied), 0)}, paddock.Denied, 0},
		{connect.CodeNotFound, []*connect.ErrorDetail{detail(uint32(paddock.NotFound), 127)}, paddock.NotFound, 127},
		{connect.CodeNotFound, []*connect.ErrorDetail{detail(999, 99)}, paddock.Internal, 0},
		{connect.CodeNotFound, []*connect.ErrorDetail{detail(1<<32-1, -127)}, paddock.Internal, 0},
		{connect.CodeNotFound, []*connect.ErrorDetail{other}, paddock.NotFound, 0},
		{connect.CodeUnimplemented, nil, paddock.Unsupported, 0},
		{connect.CodeDataLoss, nil, paddock.Internal, 0},
	} {
		g := (&fake{start: func(context.Context, *guestpb.StartRequest, *connect.ServerStream[guestpb.ProcessEvent]) error {
			err := connect.NewError(tt.code, errors.New("\x1b]0;evil\a"+strings.Repeat("x", 10_000)))
			for _, d := range tt.details {
				err.AddDetail(d)
			}
			return err
		}}).serve(t, guestclient.Options{})
		_, err := g.Start(limit(t), paddock.Cmd{Args: []string{"prog"}})
		var start *paddock.StartError
		if errors.As(err, &start) != (tt.start != 0) || (start != nil && (start.Code != tt.start || start.Path != "prog")) {
			t.Errorf("%v: start code of %v", tt, err)
		}
		if !errors.Is(err, tt.kind) || len(err.Error()) > 5000 || strings.ContainsAny(err.Error(), "\x1b\a") {
			t.Errorf("%v: kind %v, %d bytes", tt, paddock.KindOf(err), len(err.Error()))
		}
	}
}

// By a kind a caller learns what the driver says of the sandbox. So the guest has none of these in a call that names
// nothing inside.
func TestAGuestHasNoKindThatTheDriverSays(t *testing.T) {
	of := func(kind paddock.Kind) error {
		err := connect.NewError(connect.CodeUnknown, errors.New("as the guest says"))
		d, e := connect.NewErrorDetail(&guestpb.ErrorDetail{Kind: uint32(kind)})
		if e != nil {
			t.Fatal(e)
		}
		err.AddDetail(d)
		return err
	}
	for _, kind := range []paddock.Kind{paddock.NotFound, paddock.Exists, paddock.Denied, paddock.Unavailable, paddock.Canceled} {
		g := (&fake{
			processes: func(context.Context) (*guestpb.ProcessesResponse, error) { return nil, of(kind) },
			start: func(context.Context, *guestpb.StartRequest, *connect.ServerStream[guestpb.ProcessEvent]) error {
				return of(kind)
			},
		}).serve(t, guestclient.Options{})
		if _, err := g.Processes(limit(t)); paddock.KindOf(err) != paddock.Internal || !strings.Contains(err.Error(), "as the guest says") {
			t.Errorf("processes, %v: %v", kind, err)
		}
		want := kind
		if kind == paddock.Exists || kind == paddock.Canceled {
			want = paddock.Internal
		}
		if _, err := g.Start(limit(t), paddock.Cmd{Args: []string{"x"}}); paddock.KindOf(err) != want {
			t.Errorf("start, %v: %v", kind, err)
		}
	}
	// Nor by a code, which a guest of another release sends alone.
	g := (&fake{processes: func(context.Context) (*guestpb.ProcessesResponse, error) {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such sandbox"))
	}}).serve(t, guestclient.Options{})
	if _, err := g.Processes(limit(t)); paddock.KindOf(err) != paddock.Internal {
		t.Error(err)
	}
}

func TestListsOfTheGuestAreChecked(t *testing.T) {
	for _, m := range []*guestpb.Process{
		{Pid: 0}, {Pid: -5}, {Pid: 1 << 30}, {Pid: 1, First: -1}, {Pid: 1, First: 2, Next: 1}, {Pid: 1, Next: 1<<63 - 1},
		{Pid: 1, Exited: &guestpb.Exited{}},
	} {
		g := (&fake{processes: func(context.Context) (*guestpb.ProcessesResponse, error) {
			return &guestpb.ProcessesResponse{Processes: []*guestpb.Process{m}}, nil
		}}).serve(t, guestclient.Options{})
		if list, err := g.Processes(limit(t)); !errors.Is(err, paddock.Internal) {
			t.Errorf("%v gives %v, %v", m, list, err)
		}
	}
}

func TestTheEndOfTheConnectionIsToldInTheDriversWords(t *testing.T) {
	host, inside := guesttest.Pair(t)
	go func() { _, _ = io.Copy(io.Discard, inside) }()
	g, err := guestclient.New(host, guestclient.Options{Gone: func() string { return "the sandbox was struck by lightning" }})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	_ = inside.Close()
	<-g.Done()
	for name, call := range map[string]func() error{
		"start":     func() error { _, err := g.Start(limit(t), paddock.Cmd{Args: []string{"x"}}); return err },
		"attach":    func() error { _, err := g.Attach(limit(t), 1, paddock.Output{}); return err },
		"processes": func() error { _, err := g.Processes(limit(t)); return err },
		"hello":     func() error { _, err := g.Hello(limit(t)); return err },
		"refusals":  func() error { _, err := g.Refusals(limit(t)); return err },
	} {
		if err := call(); !errors.Is(err, paddock.Unavailable) || !strings.Contains(err.Error(), "lightning") {
			t.Errorf("%s answers %v", name, err)
		}
	}
}

// FuzzWire lets the guest's side of the connection be any bytes.
func FuzzWire(f *testing.F) {
	answer := append(append([]byte{}, settings...), frame(frameHeaders, endHeaders, 1, okHeaders)...)
	f.Add(append(answer[:len(answer):len(answer)], frame(frameData, 0, 1, []byte{0, 0, 0, 0, 4, 0x0a, 0x02, 0x08, 0x07})...))
	f.Add(append(answer[:len(answer):len(answer)], frame(frameData, endStream, 1, []byte{2, 0, 0, 0, 2, '{', '}'})...))
	f.Add(append(settings[:9:9], frame(frameGoAway, 0, 0, make([]byte, 8))...))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		host, inside := guesttest.Pair(t)
		g, err := guestclient.New(host, guestclient.Options{})
		if err != nil {
			return
		}
		defer g.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		var guest sync.WaitGroup
		defer guest.Wait()
		defer inside.Close()
		guest.Go(func() {
			var preface [24]byte
			_, _ = io.ReadFull(inside, preface[:])
			_, _ = inside.Write(b)
			_ = inside.(*net.UnixConn).CloseWrite()
			_, _ = io.Copy(io.Discard, inside)
		})
		p, err := g.Start(ctx, paddock.Cmd{Args: []string{"x"}, Output: paddock.Output{Stdout: io.Discard}})
		if err == nil {
			_, err = p.Wait(ctx)
			p.Release()
		}
		if errors.Is(err, paddock.Timeout) {
			t.Fatalf("it hangs: %v", err)
		}
	})
}
