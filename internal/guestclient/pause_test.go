//go:build linux

package guestclient_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A stopper is the guest's end of a connection. While it is stopped, it takes nothing and sends nothing.
type stopper struct {
	net.Conn
	mu sync.Mutex
	on chan struct{} // guarded by mu; closed while it goes
}

func newStopper(c net.Conn) *stopper {
	s := &stopper{Conn: c, on: make(chan struct{})}
	close(s.on)
	return s
}

func (s *stopper) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	<-s.goes()
	return n, err
}

func (s *stopper) Write(p []byte) (int, error) {
	<-s.goes()
	return s.Conn.Write(p)
}

func (s *stopper) goes() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}

func (s *stopper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = make(chan struct{})
}

func (s *stopper) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.on:
	default:
		close(s.on)
	}
}

// A busy guest opens everything, sends files without end, and takes all that is written.
type busy struct {
	fake
	end chan struct{} // closed when its process ends
}

func (*busy) Read(_ context.Context, _ *connect.Request[guestpb.ReadRequest], out *connect.ServerStream[guestpb.ReadResponse]) error {
	for {
		if err := out.Send(&guestpb.ReadResponse{}); err != nil {
			return err
		}
	}
}

func (*busy) List(_ context.Context, _ *connect.Request[guestpb.ListRequest], out *connect.ServerStream[guestpb.ListResponse]) error {
	for {
		if err := out.Send(&guestpb.ListResponse{Files: []*guestpb.File{file("/d/f")}}); err != nil {
			return err
		}
	}
}

func (*busy) Watch(ctx context.Context, _ *connect.Request[guestpb.WatchRequest], out *connect.ServerStream[guestpb.WatchResponse]) error {
	_ = out.Send(&guestpb.WatchResponse{})
	<-ctx.Done()
	return ctx.Err()
}

func (*busy) Write(_ context.Context, s *connect.BidiStream[guestpb.WriteRequest, guestpb.WriteResponse]) error {
	n := int64(0)
	for first := true; ; first = false {
		m, err := s.Receive()
		if errors.Is(err, io.EOF) {
			return s.Send(&guestpb.WriteResponse{Written: n})
		}
		if err == nil && first {
			err = s.Send(&guestpb.WriteResponse{})
		}
		if err != nil {
			return err
		}
		n += int64(len(m.GetData()))
	}
}

func (*busy) Dial(_ context.Context, s *connect.BidiStream[guestpb.DialRequest, guestpb.DialResponse]) error {
	for {
		if _, err := s.Receive(); err != nil {
			return err
		}
		if err := s.Send(&guestpb.DialResponse{}); err != nil {
			return err
		}
	}
}

func (b *busy) Start(_ context.Context, _ *connect.Request[guestpb.StartRequest], s *connect.ServerStream[guestpb.ProcessEvent]) error {
	if err := s.Send(started(7)); err != nil {
		return err
	}
	<-b.end
	return s.Send(exited())
}

// serve gives the host's side of the guest, and what stops it.
func (b *busy) serve(t *testing.T, o guestclient.Options) (*guestclient.Guest, *stopper) {
	t.Helper()
	b.end = make(chan struct{})
	host, there := net.Pipe() // it has no buffer: nothing is sent that is not taken
	inside := newStopper(there)
	_, h := guestpb.NewGuestHandler(b)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: h, Protocols: &protocols}
	l := &listener{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- inside
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		inside.goOn()
		_ = srv.Close()
		<-served
	})
	g, err := guestclient.New(host, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g, inside
}

// waits are calls that wait for the guest. Each is prepared while the guest goes.
func waits(t *testing.T, g *guestclient.Guest) map[string]func() error {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fsys, ctx := g.FS(), t.Context()
	create := func() io.WriteCloser {
		t.Helper()
		w, err := fsys.Create(ctx, "/f", paddock.CreateOptions{})
		must(err)
		return w
	}
	large, small := create(), create()
	r, err := fsys.Open(ctx, "/f", paddock.OpenOptions{})
	must(err)
	w, err := fsys.Watch(ctx, "/d", paddock.WatchOptions{})
	must(err)
	conn, err := g.Dial(ctx, 80)
	must(err)
	return map[string]func() error{
		"a write":              func() error { return endless(large) },
		"the end of a write":   func() error { return errors.Join(one(small.Write([]byte("x"))), small.Close()) },
		"a read":               func() error { return one(io.Copy(io.Discard, r)) },
		"an opening to read":   func() error { return one(fsys.Open(ctx, "/g", paddock.OpenOptions{})) },
		"an opening to write":  func() error { return one(fsys.Create(ctx, "/g", paddock.CreateOptions{})) },
		"an opening to watch":  func() error { return one(fsys.Watch(ctx, "/g", paddock.WatchOptions{})) },
		"a description":        func() error { return one(fsys.Stat(ctx, "/g")) },
		"a list":               func() error { return one(list(ctx, fsys, "/d", 1)) },
		"a new directory":      func() error { return fsys.Mkdir(ctx, "/g", paddock.MkdirOptions{}) },
		"a removal":            func() error { return fsys.Remove(ctx, "/g", false) },
		"the end of a watch":   func() error { return ends(w.Close()) },
		"the end of a port":    func() error { go func() { _, _ = conn.Write(make([]byte, 1<<20)) }(); return ends(conn.Close()) },
		"a list of what runs":  func() error { return one(g.Processes(ctx)) },
		"a list of what's not": func() error { return one(g.Refusals(ctx)) },
	}
}

func one[T any](_ T, err error) error { return err }

// errEnded is of a call that has no error of the guest's.
var errEnded = errors.New("it has ended")

func ends(err error) error { return errors.Join(errEnded, err) }

func endless(w io.Writer) error {
	for {
		if _, err := w.Write(make([]byte, 100_000)); err != nil {
			return err
		}
	}
}

// answers waits for all calls.
func answers(t *testing.T, calls map[string]func() error) map[string]error {
	t.Helper()
	type told struct {
		what string
		err  error
	}
	all := make(chan told, len(calls))
	for what, call := range calls {
		go func() { all <- told{what, call()} }()
	}
	got := map[string]error{}
	for range calls {
		select {
		case a := <-all:
			got[a.what] = a.err
		case <-limit(t).Done():
			for what := range calls {
				if _, ok := got[what]; !ok {
					t.Errorf("%s waits for the guest", what)
				}
			}
			t.FailNow()
		}
	}
	return got
}

func TestNothingWaitsForAGuestThatTakesNothing(t *testing.T) {
	g, inside := (&busy{}).serve(t, guestclient.Options{Paused: func() bool { return false }})
	calls := waits(t, g)
	inside.stop()
	g.SetPatience(200 * time.Millisecond)
	for what, err := range answers(t, calls) {
		if !errors.Is(err, paddock.Timeout) && !errors.Is(err, paddock.Unavailable) && !errors.Is(err, errEnded) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestNothingWaitsForAPausedGuestThatKeepsItsConnection(t *testing.T) {
	for name, tells := range map[string]bool{"paused by this driver": true, "paused by another": false} {
		t.Run(name, func(t *testing.T) {
			var paused atomic.Bool
			b := &busy{}
			g, inside := b.serve(t, guestclient.Options{Paused: paused.Load, Stuck: func() { t.Error("it is taken for stuck") }})
			p := start(t, g, paddock.Cmd{Args: []string{"x"}})
			calls := waits(t, g)
			inside.stop()
			paused.Store(true)
			if tells {
				g.Rest()
			} else {
				g.SetPatience(200 * time.Millisecond)
			}
			delete(calls, "a list of what runs") // their time is the same, whether it is paused or not
			delete(calls, "a list of what's not")
			for what, err := range answers(t, calls) {
				if !errors.Is(err, paddock.Conflict) && !errors.Is(err, errEnded) {
					t.Errorf("%s: %v", what, err)
				}
			}
			close(b.end)
			paused.Store(false)
			inside.goOn()
			if exit := wait(t, p); exit.Cause != paddock.Exited {
				t.Errorf("what ran is lost: %+v", exit)
			}
			g.SetPatience(time.Minute)
			if err := one(g.FS().Open(t.Context(), "/f", paddock.OpenOptions{})); err != nil {
				t.Errorf("after it goes on: %v", err)
			}
		})
	}
}

func TestACallGoesOnAfterAShortPause(t *testing.T) {
	var paused atomic.Bool
	g, inside := (&busy{}).serve(t, guestclient.Options{Paused: paused.Load})
	w, err := g.FS().Create(t.Context(), "/f", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inside.stop()
	paused.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := w.Write(make([]byte, 1<<20))
		done <- errors.Join(err, w.Close())
	}()
	paused.Store(false)
	inside.goOn()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheTimeOfAPauseIsNotThatOfAGuestThatDoesNotAnswer(t *testing.T) {
	for _, c := range []struct {
		paused, looks int32
		want          paddock.Kind
	}{{2, 5, paddock.Timeout}, {3, 3, paddock.Conflict}} {
		var looks atomic.Int32
		g, inside := (&busy{}).serve(t, guestclient.Options{Paused: func() bool { return looks.Add(1) <= c.paused }})
		inside.stop()
		g.SetPatience(200 * time.Millisecond)
		_, err := g.FS().Stat(t.Context(), "/f")
		if !errors.Is(err, c.want) || looks.Load() < c.looks {
			t.Errorf("paused at %d looks: %v after %d looks", c.paused, err, looks.Load())
		}
	}
}
