package fileserver

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// A client makes requests as a machine's kernel does, one at a time.
type client struct {
	t      testing.TB
	server *Server
	conn   net.Conn
	in     *bufio.Reader
	unique uint64
	ended  chan error
}

func options(t testing.TB, dir string, binds ...boxinit.Bind) Options {
	t.Helper()
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return Options{Root: root, UID: os.Geteuid(), GID: os.Getegid(), Binds: binds}
}

// pair returns two ends of a stream.
func pair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return ends[0], ends[1]
}

// connect starts serving and returns a client.
func connect(t testing.TB, s *Server) *client {
	t.Helper()
	ours, theirs := pair(t)
	c := &client{t: t, server: s, conn: ours, in: bufio.NewReader(ours), ended: make(chan error, 1)}
	go func() { c.ended <- s.Serve(theirs) }()
	t.Cleanup(func() { c.close() })
	return c
}

func (c *client) close() error {
	c.conn.Close()
	err := <-c.ended
	c.ended <- err
	return err
}

// begin makes a server for a directory, and a client that has sent INIT.
func begin(t testing.TB, dir string, binds ...boxinit.Bind) *client {
	t.Helper()
	s, err := New(options(t, dir, binds...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c := connect(t, s)
	c.init()
	return c
}

func (c *client) init() []byte {
	c.t.Helper()
	return c.must(opInit, 0, new(message).u32(7, 38, 1<<20, 0xffffffff, 0).zero(11*4))
}

type message struct{ writer }

func (m *message) u32(v ...uint32) *message {
	for _, v := range v {
		m.writer.u32(v)
	}
	return m
}

func (m *message) u64(v ...uint64) *message {
	for _, v := range v {
		m.writer.u64(v)
	}
	return m
}

func (m *message) zero(n int) *message { m.writer.zero(n); return m }

func (m *message) text(s ...string) *message {
	for _, s := range s {
		m.data = append(append(m.data, s...), 0)
	}
	return m
}

func names(s ...string) *message { return new(message).text(s...) }

// frame encodes a request.
func frame(o op, unique, node uint64, body []byte) []byte {
	m := new(message).u32(uint32(headIn+len(body)), uint32(o)).u64(unique, node).zero(16)
	return append(m.data, body...)
}

func (c *client) send(o op, node uint64, m *message) {
	c.t.Helper()
	if m == nil {
		m = &message{}
	}
	c.unique += 2
	if _, err := c.conn.Write(frame(o, c.unique, node, m.data)); err != nil {
		c.t.Fatal(err)
	}
}

// reply reads a reply.
func (c *client) reply() (uint64, syscall.Errno, []byte) {
	c.t.Helper()
	head := make([]byte, headOut)
	if _, err := io.ReadFull(c.in, head); err != nil {
		c.t.Fatal(err)
	}
	data := make([]byte, binary.LittleEndian.Uint32(head)-headOut)
	if _, err := io.ReadFull(c.in, data); err != nil {
		c.t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(head[8:]), syscall.Errno(-int32(binary.LittleEndian.Uint32(head[4:]))), data
}

func (c *client) call(o op, node uint64, m *message) (syscall.Errno, []byte) {
	c.t.Helper()
	c.send(o, node, m)
	unique, errno, data := c.reply()
	if unique != c.unique {
		c.t.Fatalf("the answer to %d is for %d", c.unique, unique)
	}
	if errno != 0 && len(data) != 0 {
		c.t.Fatalf("%v with %d bytes", errno, len(data))
	}
	return errno, data
}

func (c *client) must(o op, node uint64, m *message) []byte {
	c.t.Helper()
	errno, data := c.call(o, node, m)
	if errno != 0 {
		c.t.Fatalf("operation %d: %v", o, errno)
	}
	return data
}

// A told is an entry in a reply.
type told struct {
	id    uint64
	name  uint64 // validity of the name
	valid uint64 // validity of the attributes
	attr
}

type attr struct {
	ino, size   uint64
	mode, links uint32
}

func attrOf(data []byte) attr {
	e := binary.LittleEndian
	return attr{e.Uint64(data), e.Uint64(data[8:]), e.Uint32(data[60:]), e.Uint32(data[64:])}
}

func entryOf(data []byte) told {
	e := binary.LittleEndian
	return told{e.Uint64(data), e.Uint64(data[16:]), e.Uint64(data[24:]), attrOf(data[40:])}
}

func (c *client) lookup(node uint64, name string) (told, syscall.Errno) {
	c.t.Helper()
	errno, data := c.call(opLookup, node, names(name))
	if errno != 0 {
		return told{}, errno
	}
	return entryOf(data), 0
}

// walk looks names up, starting at the root.
func (c *client) walk(path ...string) told {
	c.t.Helper()
	at := told{id: rootID}
	for _, name := range path {
		var errno syscall.Errno
		if at, errno = c.lookup(at.id, name); errno != 0 {
			c.t.Fatalf("look %q up: %v", name, errno)
		}
	}
	return at
}

func (c *client) attr(node uint64) (attr, syscall.Errno) {
	c.t.Helper()
	errno, data := c.call(opGetattr, node, new(message).u32(0, 0).u64(0))
	if errno != 0 {
		return attr{}, errno
	}
	return attrOf(data[16:]), 0
}

func (c *client) open(o op, node uint64, flags int) (handle uint64, how uint32, errno syscall.Errno) {
	c.t.Helper()
	errno, data := c.call(o, node, new(message).u32(uint32(flags), 0))
	if errno != 0 {
		return 0, 0, errno
	}
	return binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint32(data[8:]), 0
}

func readBody(handle, offset uint64, size uint32) *message {
	return new(message).u64(handle, offset).u32(size, 0).u64(0).u32(0, 0)
}

func (c *client) read(handle, offset uint64, size uint32) (string, syscall.Errno) {
	c.t.Helper()
	errno, data := c.call(opRead, 0, readBody(handle, offset, size))
	return string(data), errno
}

func (c *client) write(handle, offset uint64, flags int, data string) syscall.Errno {
	c.t.Helper()
	m := new(message).u64(handle, offset).u32(uint32(len(data)), 0).u64(0).u32(uint32(flags), 0)
	m.data = append(m.data, data...)
	errno, _ := c.call(opWrite, 0, m)
	return errno
}

func (c *client) release(o op, handle uint64) syscall.Errno {
	c.t.Helper()
	errno, _ := c.call(o, 0, new(message).u64(handle, 0, 0))
	return errno
}

func (c *client) forget(node, times uint64) {
	c.t.Helper()
	c.send(opForget, node, new(message).u64(times))
	_, _ = c.attr(rootID) // the server has read everything before it
}

// createBody returns the body of CREATE.
func createBody(flags int, mode uint32, name string) *message {
	return new(message).u32(uint32(flags), mode, 0, 0).text(name)
}

// list reads a whole directory.
func (c *client) list(o op, node uint64, size uint32) map[string]told {
	c.t.Helper()
	handle, _, errno := c.open(opOpendir, node, 0)
	if errno != 0 {
		c.t.Fatal(errno)
	}
	found := map[string]told{}
	for offset := uint64(0); ; {
		data := c.must(o, node, readBody(handle, offset, size))
		if len(data) == 0 {
			break
		}
		if len(data) > int(size) {
			c.t.Fatalf("%d bytes for %d", len(data), size)
		}
		for len(data) > 0 {
			var at told
			if o == opReaddirplus {
				at = entryOf(data)
				data = data[entrySize:]
			}
			n := binary.LittleEndian.Uint32(data[16:])
			name := string(data[direntSize : direntSize+n])
			if _, twice := found[name]; twice {
				c.t.Errorf("%q is there twice", name)
			}
			found[name] = at
			offset = binary.LittleEndian.Uint64(data[8:])
			data = data[direntSize+(n+7)&^7:]
		}
	}
	if errno := c.release(opReleasedir, handle); errno != 0 {
		c.t.Error(errno)
	}
	return found
}

// together runs all functions concurrently, and waits.
func together(all ...func()) {
	var wg sync.WaitGroup
	for _, f := range all {
		wg.Go(f)
	}
	wg.Wait()
}
