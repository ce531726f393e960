package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/fileserver"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A fileServer is the process that serves the box's files to its machine. It is a separate
// process because the broker, which runs in this process, supervises it.
type fileServer struct {
	process *os.Process
	channel *sys.Channel
	said    *tail
	ended   chan struct{} // closed when it has ended
	end     error         // the reason, after ended
}

// Requests to it: packets that begin with this byte.
const (
	askServe = 'S' // the accompanying descriptor is a connection
	askKeep  = 'K' // the accompanying descriptor receives the state
)

// A fileOrder is the first packet to it. A descriptor with a state may accompany it.
type fileOrder struct {
	UID   int            `json:"uid"`
	GID   int            `json:"gid"`
	Binds []boxinit.Bind `json:"binds"`
}

// stateMax bounds the state of a file server in bytes.
const stateMax = 64 << 20

// filesFD is the process's end of the channel.
const filesFD = 3

// startFiles starts the process, and returns when the broker supervises it. state is that
// of a saved machine, or nil for a new one.
func startFiles(o fileOrder, state []byte, job func(func())) (*fileServer, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	channel, theirs, err := sys.NewChannelPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	s := &fileServer{channel: channel, ended: make(chan struct{})}
	var with []*os.File
	if state != nil {
		f, err := sys.SealedData("state", state)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		with = append(with, f)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	said, stderr, err := newTail()
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	s.said = said
	s.process, err = os.StartProcess(self, []string{argvFiles}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"}, Files: []*os.File{null, null, stderr, theirs},
	})
	if err != nil {
		return nil, err
	}
	stderr.Close()
	theirs.Close()
	job(s.reap)
	if err := s.channel.Send(data, with...); err != nil {
		return nil, s.explain(err)
	}
	return s, s.answered(stubTime)
}

// kill ends the process.
func (s *fileServer) kill() {
	_ = s.process.Kill() // or it has ended
}

// reap waits for its end.
func (s *fileServer) reap() {
	state, err := s.process.Wait()
	s.said.end()
	if err == nil {
		err = fmt.Errorf("the server of the box's files ended: %v: %s: %w", state, s.said.lines(3), paddock.Unavailable)
	}
	s.end = err
	close(s.ended)
}

// answered waits for an answer.
func (s *fileServer) answered(most time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	defer s.channel.Until(ctx)()
	text, files, err := s.channel.Receive()
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		return s.explain(err)
	}
	if string(text) != filesDone {
		return fmt.Errorf("the server of the box's files: %s: %w", text, paddock.Unavailable)
	}
	return nil
}

// filesDone is the answer without an error.
const filesDone = "ok"

// explain adds how the process ended, if it did.
func (s *fileServer) explain(err error) error {
	select {
	case <-s.ended:
		return s.end
	case <-time.After(time.Second):
		return fmt.Errorf("the server of the box's files: %w", err)
	}
}

// serve makes it serve a connection.
func (s *fileServer) serve(conn *os.File) error {
	if err := s.channel.Send([]byte{askServe}, conn); err != nil {
		return s.explain(err)
	}
	return s.answered(stubTime)
}

// keep returns the state for a later server of the same machine.
func (s *fileServer) keep() ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	err = s.channel.Send([]byte{askKeep}, w)
	w.Close()
	if err != nil {
		return nil, s.explain(err)
	}
	_ = r.SetReadDeadline(time.Now().Add(stubTime))
	data, err := io.ReadAll(io.LimitReader(r, stateMax+1))
	if err = errors.Join(err, s.answered(stubTime)); err != nil {
		return nil, err
	}
	if len(data) > stateMax {
		return nil, fmt.Errorf("the machine has too many files open to be saved: %w", paddock.Exhausted)
	}
	return data, nil
}

// serveFiles runs the process. It stays dumpable, because the broker, which makes its
// changes, opens its directories through /proc. QEMU has neither /proc nor a system call
// for that.
//
// The order comes from outside. A state comes from a machine, so it is parsed after the
// restrictions are in place.
func serveFiles() error {
	if err := sys.CloseFrom(filesFD + 1); err != nil {
		return err
	}
	sys.Umask(0) // the machine's kernel has applied the umask of the caller
	channel, err := sys.NewChannel(filesFD)
	if err != nil {
		return err
	}
	data, files, err := channel.Receive()
	if err != nil {
		return err
	}
	root, err := confineFiles()
	var server *fileserver.Server
	if err == nil {
		server, err = newServer(root, data, files)
	}
	for {
		text := filesDone
		if err != nil {
			text = err.Error()
		}
		if err := channel.Send([]byte(text)); err != nil {
			return err
		}
		if server == nil {
			return err
		}
		data, files, e := channel.Receive()
		if e != nil {
			return e
		}
		if len(data) != 1 || len(files) != 1 {
			return fmt.Errorf("a request of %d bytes and %d descriptors: %w", len(data), len(files), paddock.Internal)
		}
		if data[0] == askServe {
			err = serveOn(server, files[0])
		} else {
			err = keepTo(server, files[0])
		}
	}
}

// confineFiles sets up this process's restrictions and returns the root of the tree that it
// serves. The process sees only that tree, is supervised by the broker, and has only the
// system calls that it needs.
func confineFiles() (root *os.File, err error) {
	guard, err := boxinit.DialGuard()
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	// The broker, outside this root, sees the same files by its own paths.
	if err := errors.Join(syscall.Chroot(boxinit.Root), syscall.Chdir("/")); err != nil {
		return nil, fmt.Errorf("enter the tree: %w", err)
	}
	if root, err = os.Open("/"); err != nil {
		return nil, err
	}
	if err := errors.Join(sys.DropCapabilities(), sys.NoNewPrivs()); err != nil {
		return nil, err
	}
	if _, err := sys.SetResource(sys.ResourceCore, 1); err != nil { // 1 byte: see boxinit
		return nil, err
	}
	if err := boxinit.EnlistOn(guard); err != nil {
		return nil, err
	}
	return root, sys.ConfineFiles()
}

// newServer makes a server from the first packet.
func newServer(root *os.File, data []byte, files []*os.File) (*fileserver.Server, error) {
	var o fileOrder
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	options := fileserver.Options{Root: root, UID: o.UID, GID: o.GID, Begun: true, Binds: o.Binds}
	if len(files) == 0 {
		return fileserver.New(options)
	}
	defer files[0].Close()
	state, err := io.ReadAll(io.NewSectionReader(files[0], 0, stateMax))
	if err != nil {
		return nil, err
	}
	return fileserver.Restore(options, state)
}

// serveOn serves a connection. An invalid request ends the process.
func serveOn(s *fileserver.Server, f *os.File) error {
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return err
	}
	go func() {
		if err := s.Serve(conn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	return nil
}

// keepTo writes a server's state.
func keepTo(s *fileserver.Server, f *os.File) error {
	defer f.Close()
	data, err := s.State()
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return err
}
