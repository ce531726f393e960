package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

const (
	// maxWaiting is how many connections of the host may wait at one socket. An older one makes room for a new one: the
	// other end of it may be gone, as after a sandbox was saved and restored.
	maxWaiting = 16
	// hostTime is how long a program that has connected waits for a connection of the host.
	hostTime = 5 * time.Second
	// takeTime is how long the host may take to answer on a connection that waits.
	takeTime = 2 * time.Second
)

// sockets are the Unix sockets on which the agent listens for the host, by path.
type sockets struct {
	mu   sync.Mutex
	open map[string]*socket // guarded by mu
}

// A socket is one.
type socket struct {
	listener *net.UnixListener
	waiting  chan *waiting
}

// waiting is a connection of the host that waits for a program.
type waiting struct {
	conn net.Conn
	over chan struct{} // closed when the connection is not needed any more
	once sync.Once
}

func (w *waiting) end() {
	w.once.Do(func() {
		w.conn.Close()
		close(w.over)
	})
}

// listenFor serves a connection of the host, of which the first byte was read, to its end.
func (s *Server) listenFor(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	path, err := guestpb.ReadListenText(conn)
	if err != nil {
		return err
	}
	if !s.pass(ctx.Done()) {
		return context.Cause(ctx)
	}
	at, err := s.socketAt(path)
	if err != nil {
		return guestpb.WriteListenText(conn, guestpb.ListenFailed, err.Error())
	}
	if _, err := conn.Write([]byte{guestpb.Listening}); err != nil {
		return err
	}
	w := &waiting{conn: conn, over: make(chan struct{})}
	defer w.end()
	for queued := false; !queued; {
		select {
		case at.waiting <- w:
			queued = true
		default:
			select {
			case old := <-at.waiting:
				old.end()
			default:
			}
		}
	}
	select {
	case <-w.over:
		return nil
	case <-s.stop:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// socketAt returns the socket at a path, and makes it if there is none yet.
func (s *Server) socketAt(path string) (*socket, error) {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	if at := s.sockets.open[path]; at != nil {
		return at, nil
	}
	// Nobody else needs the directory, and gpg warns of one that others may read.
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make the directory of a socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on a socket: %w", err)
	}
	at := &socket{listener: l, waiting: make(chan *waiting, maxWaiting)}
	if s.sockets.open == nil {
		s.sockets.open = map[string]*socket{}
	}
	s.sockets.open[path] = at
	s.wg.Go(func() {
		<-s.stop
		l.Close()
	})
	s.wg.Go(func() { s.acceptFor(at) })
	return at, nil
}

// acceptFor joins the programs that connect to a socket with connections of the host, until the agent ends.
func (s *Server) acceptFor(at *socket) {
	for {
		conn, err := at.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for want of a descriptor
			select {
			case <-time.After(10 * time.Millisecond):
			case <-s.stop:
				return
			}
			continue
		}
		if w := s.host(at); w != nil {
			s.wg.Go(func() { s.join(conn, w) })
		} else {
			conn.Close()
		}
	}
}

// host returns a connection on which the host answers; nil if there is none in time.
func (s *Server) host(at *socket) *waiting {
	late := time.NewTimer(hostTime)
	defer late.Stop()
	for {
		select {
		case w := <-at.waiting:
			if took(w.conn) == nil {
				return w
			}
			w.end()
		case <-late.C:
			return nil
		case <-s.stop:
			return nil
		}
	}
}

// took tells the host that a program has connected, and waits for its answer.
func took(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(takeTime)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{guestpb.ListenCame}); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if answer[0] != guestpb.ListenTaken {
		return fmt.Errorf("the host answers %q: %w", answer[0], paddock.Internal)
	}
	return conn.SetDeadline(time.Time{})
}

// join copies between a program and the host until one of them has ended.
func (s *Server) join(conn *net.UnixConn, w *waiting) {
	over := make(chan struct{}, 2)
	s.wg.Go(func() { _, _ = io.Copy(w.conn, conn); over <- struct{}{} })
	s.wg.Go(func() { _, _ = io.Copy(conn, w.conn); over <- struct{}{} })
	select {
	case <-over:
	case <-s.stop:
	}
	conn.Close()
	w.end()
}
