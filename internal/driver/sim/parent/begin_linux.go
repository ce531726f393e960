package parent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A child is a process that prepares itself to be a simulated computer, until
// it is told which. It ends with this one.
type child struct {
	process *os.Process   // set before found is closed
	found   chan struct{} // Go's first look at a process takes a while: nobody waits for it
	conn    net.Conn      // to its guest
	control net.Conn
	last    tail // what it wrote to standard error

	ended chan struct{}    // closed when it was waited for
	state *os.ProcessState // written before
}

// begin starts a child, which executes the program at this path.
func begin(program string) (*child, error) {
	type result struct {
		started
		err error
	}
	began, ended := make(chan result), make(chan struct{})
	go func() {
		// The child is killed when the thread ends that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := spawn(program)
		began <- result{p, err}
		<-ended
	}()
	p := <-began
	if p.err != nil {
		close(ended)
		return nil, fmt.Errorf("start the computer's process: %w", p.err)
	}
	return adopt(p.started, ended)
}

// adopt makes a process that was started a child. It closes ended when it was
// waited for.
func adopt(p started, ended chan struct{}) (*child, error) {
	c := &child{ended: ended, found: make(chan struct{})}
	go c.reap(p.PID, os.NewFile(uintptr(p.Stderr), "stderr"))
	var errs [2]error
	c.conn, errs[0] = protocol.FileConn(p.Guest)
	c.control, errs[1] = protocol.FileConn(p.Control)
	if err := errors.Join(errs[:]...); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// lastWords bounds the time to read what a child wrote to standard error, after its end.
const lastWords = time.Second

// reap waits for the child, and for what it has to say. The end of the pipe is not the end of the
// child: one that was taken over can have sent the other end of the pipe over one of its sockets,
// in which it then lives on.
func (c *child) reap(pid int, stderr *os.File) {
	c.process, _ = os.FindProcess(pid) // on Linux it always gives one
	close(c.found)
	var said sync.WaitGroup
	said.Go(func() {
		_, _ = io.Copy(&c.last, stderr) // what could be read is enough
		_ = stderr.Close()              // a child that says too much fails to write
	})
	if f, err := sys.OpenProcess(pid); err == nil {
		if f, p, err := sys.NewPoller(f); err == nil {
			_ = p.Wait() // cheaper than waiting in the system call below
			f.Close()
		}
	}
	c.state, _ = c.process.Wait() // how it ended is looked at in reason
	_ = stderr.SetReadDeadline(time.Now().Add(lastWords))
	said.Wait()
	close(c.ended)
}

// end ends the child, and waits for its end. It closes the sockets first: what the child left in
// them, such as descriptors, goes with them.
func (c *child) end() {
	<-c.found
	_ = c.process.Kill() // it may have ended
	for _, conn := range []net.Conn{c.conn, c.control} {
		if conn != nil {
			_ = conn.Close()
		}
	}
	<-c.ended
}

// A tail keeps the first bytes that were written.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

const tailSize = 16 << 10

// errFull says that no more is listened to: a child has little to say before it
// ends, and one that was taken over could keep its host busy with reading.
var errFull = errors.New("a child says too much")

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p[:min(len(p), tailSize-t.buf.Len())]) // the beginning says what happened
	if t.buf.Len() == tailSize {
		return 0, errFull
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
