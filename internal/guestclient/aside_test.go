//go:build linux

package guestclient_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// sideBox is box where further connections can be made, which are counted and may be
// changed.
func sideBox(t *testing.T, o guest.Options, change func(net.Conn) net.Conn) (fsys paddock.FS, dir string, made *atomic.Int32) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	made = &atomic.Int32{}
	var server *guest.Server
	g, server := guesttest.Both(t, o, guestclient.Options{Aside: func(context.Context) (net.Conn, error) {
		made.Add(1)
		host, inside := guesttest.Pair(t)
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(t.Context(), inside)
		}()
		t.Cleanup(func() {
			_ = host.Close()
			<-served
		})
		if change != nil {
			host = change(host)
		}
		return host, nil
	}})
	return g.FS(), dir, made
}

func TestALargeFileGoesPastTheCalls(t *testing.T) {
	fsys, dir, made := sideBox(t, guest.Options{}, nil)
	for _, c := range []struct{ size, made int }{
		{0, 0}, {guestpb.AsideAfter - 1, 0},
		{guestpb.AsideAfter, 1}, // who reads does not know that it ends there
		{guestpb.AsideAfter + 1, 2}, {5<<20 + 77, 2},
	} {
		made.Store(0)
		data := noise(c.size)
		put(t, fsys, dir+"/f", data, paddock.CreateOptions{})
		if got := get(t, fsys, dir+"/f", paddock.OpenOptions{}); !bytes.Equal(got, data) {
			t.Errorf("%d bytes: %d came back", c.size, len(got))
		}
		if n := int(made.Load()); n != c.made {
			t.Errorf("%d bytes: %d connections, not %d", c.size, n, c.made)
		}
	}
	data := noise(5 << 20)
	put(t, fsys, dir+"/f", data[:2<<20], paddock.CreateOptions{})
	put(t, fsys, dir+"/f", data[2<<20:], paddock.CreateOptions{Append: true})
	part := get(t, fsys, dir+"/f", paddock.OpenOptions{Offset: 77, Length: 4 << 20})
	if !bytes.Equal(part, data[77:77+4<<20]) {
		t.Errorf("a part: %d bytes", len(part))
	}
	w, err := fsys.Create(t.Context(), dir+"/g", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(w, bytes.NewReader(data)); err != nil || n != int64(len(data)) {
		t.Error(n, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(dir + "/g"); err != nil || !bytes.Equal(got, data) {
		t.Error(len(got), err)
	}
}

// deaf is a connection that takes nothing.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestALargeFileGoesByTheCallWhereAConnectionTakesNothing(t *testing.T) {
	fsys, dir, made := sideBox(t, guest.Options{}, func(c net.Conn) net.Conn { return deaf{c} })
	data := noise(5 << 20)
	for range 2 { // the end of a call closes its connection, also one that failed
		put(t, fsys, dir+"/f", data, paddock.CreateOptions{})
		if got, err := os.ReadFile(dir + "/f"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes were written, %v", len(got), err)
		}
	}
	if made.Load() != 2 {
		t.Errorf("%d connections were made", made.Load())
	}
}

func TestAReaderOfALargeFileCanBeClosed(t *testing.T) {
	fsys, _, made := sideBox(t, guest.Options{}, nil)
	r, err := fsys.Open(t.Context(), "/dev/zero", paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, r, 4<<20); err != nil || made.Load() != 1 {
		t.Error(err, made.Load())
	}
	done := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, r) // without end
		done <- err
	}()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wantKind(t, <-done, paddock.Canceled)
}

func TestTheEndOfAGuestEndsWhatGoesPastTheCalls(t *testing.T) {
	var server *guest.Server
	g, server := guesttest.Both(t, guest.Options{}, guestclient.Options{Aside: func(context.Context) (net.Conn, error) {
		host, inside := guesttest.Pair(t)
		go func() { _ = server.Serve(t.Context(), inside) }()
		return host, nil
	}})
	r, err := g.FS().Open(t.Context(), "/dev/zero", paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, 4<<20); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	_, err = io.Copy(io.Discard, r) // without end
	wantKind(t, err, paddock.Unavailable)
}

func TestWithoutAConnectionAFileGoesByTheCalls(t *testing.T) {
	g, _ := guesttest.Both(t, guest.Options{}, guestclient.Options{Aside: func(context.Context) (net.Conn, error) {
		return nil, errors.New("there is none to be had")
	}})
	dir, data := t.TempDir(), noise(3<<20)
	put(t, g.FS(), dir+"/f", data, paddock.CreateOptions{})
	if got, err := os.ReadFile(dir + "/f"); err != nil || !bytes.Equal(got, data) {
		t.Error(len(got), err)
	}
	// Who reads has been told by then that it comes over one.
	r, err := g.FS().Open(t.Context(), dir+"/f", paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); err == nil || n >= int64(len(data)) {
		t.Error(n, err)
	}
}

// short is a connection that ends after so many bytes of what is written to it, or read.
type short struct {
	net.Conn

	left atomic.Int64
}

func (s *short) Write(p []byte) (int, error) {
	if s.left.Add(-int64(len(p))) < 0 {
		_ = s.Close()
	}
	return s.Conn.Write(p)
}

func (s *short) Read(p []byte) (int, error) {
	if s.left.Add(-int64(len(p))) < 0 {
		_ = s.Close()
	}
	return s.Conn.Read(p)
}

func TestAConnectionThatBreaksIsAnError(t *testing.T) {
	fsys, dir, _ := sideBox(t, guest.Options{}, func(conn net.Conn) net.Conn {
		s := &short{Conn: conn}
		s.left.Store(1 << 20)
		return s
	})
	w, err := fsys.Create(t.Context(), dir+"/f", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(noise(8 << 20))
	wantKind(t, errors.Join(err, w.Close()), paddock.Unavailable)

	if err := os.WriteFile(dir+"/g", noise(8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := fsys.Open(t.Context(), dir+"/g", paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	if err == nil || n >= 8<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// reading is a guest that answers every Read like this, and says on the connection
// for the content what side does.
func reading(t *testing.T, answer func(*connect.ServerStream[guestpb.ReadResponse]) error, side func(net.Conn)) paddock.FS {
	t.Helper()
	_, h := guestpb.NewGuestHandler(&reads{answer: answer})
	return serve(t, h, guestclient.Options{Aside: func(context.Context) (net.Conn, error) {
		host, inside := guesttest.Pair(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer inside.Close()
			if _, err := io.ReadFull(inside, make([]byte, 1+guestpb.AsideNumber)); err == nil {
				side(inside)
			}
		}()
		t.Cleanup(func() {
			_ = host.Close()
			<-done
		})
		return host, nil
	}}).FS()
}

type reads struct {
	guestpb.UnimplementedGuestHandler

	answer func(*connect.ServerStream[guestpb.ReadResponse]) error
}

func (r *reads) Read(_ context.Context, _ *connect.Request[guestpb.ReadRequest], s *connect.ServerStream[guestpb.ReadResponse]) error {
	if err := s.Send(&guestpb.ReadResponse{}); err != nil {
		return err
	}
	return r.answer(s)
}

func TestAGuestThatLiesOnAConnectionOfItsOwnIsNotBelieved(t *testing.T) {
	aside := func(s *connect.ServerStream[guestpb.ReadResponse]) error {
		return s.Send(&guestpb.ReadResponse{Aside: true})
	}
	block := func(n int) func(net.Conn) {
		return func(c net.Conn) { _ = guestpb.WriteBlock(c, make([]byte, n)) }
	}
	for _, c := range []struct {
		name   string
		answer func(*connect.ServerStream[guestpb.ReadResponse]) error
		side   func(net.Conn)
	}{
		{"a block that is too long", aside, func(c net.Conn) {
			_, _ = c.Write(binary.BigEndian.AppendUint32(nil, guestpb.AsideBlock+1))
		}},
		{"the longest block there is", aside, func(c net.Conn) { _, _ = c.Write([]byte{255, 255, 255, 255}) }},
		{"half a block", aside, func(c net.Conn) { _, _ = c.Write([]byte{0, 0, 0, 9, 1}) }},
		{"no end", aside, block(5)},
		{"nothing", aside, func(net.Conn) {}},
		{"more than was asked for", aside, func(c net.Conn) { block(11)(c); block(0)(c) }},
		{"data with the word", func(s *connect.ServerStream[guestpb.ReadResponse]) error {
			return s.Send(&guestpb.ReadResponse{Aside: true, Data: []byte("x")})
		}, block(0)},
		{"the word twice", func(s *connect.ServerStream[guestpb.ReadResponse]) error {
			return errors.Join(aside(s), aside(s))
		}, block(0)},
		{"data after the word", func(s *connect.ServerStream[guestpb.ReadResponse]) error {
			return errors.Join(aside(s), s.Send(&guestpb.ReadResponse{Data: []byte("x")}))
		}, block(0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := reading(t, c.answer, c.side).Open(t.Context(), "/f", paddock.OpenOptions{Length: 10})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			n, err := io.Copy(io.Discard, r)
			if kind := paddock.KindOf(err); err == nil || n > 10 || kind == paddock.Canceled || kind == paddock.Timeout {
				t.Errorf("%d bytes, %v", n, err) // nobody gave it up
			}
		})
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 'h', 'i', 0, 0, 0, 0})
	f.Add([]byte{0, 4, 0, 1})
	f.Add([]byte{255, 255, 255, 255, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, buf, sum := bytes.NewReader(data), make([]byte, guestpb.AsideBlock), 0
		for {
			n, err := guestpb.ReadBlock(r, buf)
			if n > len(buf) || err != nil && n != 0 {
				t.Fatal(n, err)
			}
			if sum += n; sum > len(data) {
				t.Fatal(sum)
			}
			if err != nil || n == 0 {
				return
			}
		}
	})
}
