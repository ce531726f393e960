package fileserver

import (
	"bufio"
	"container/list"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

const (
	workers   = 16 // requests answered at the same time
	smallSize = 4096 + 512
	pageSize  = 128<<10 + 512
)

// A Server serves one directory to one machine. The umask of its process must be 0, because
// the machine's kernel has applied the right one.
type Server struct {
	options Options
	pages   sync.Pool // buffers of pageSize
	larges  sync.Pool // buffers of maxMessage

	nodeMax, nameMax, handleMax, dirMax int
	stillTime                           time.Duration // the constant, except in tests

	mu        sync.Mutex
	settled   *sync.Cond    // signalled when moving decreases
	begun     bool          // INIT was answered; guarded by mu, as everything below
	conn      net.Conn      // the served connection, or nil
	ended     chan struct{} // closed when conn has ended
	nodes     map[uint64]*node
	names     map[entry]*node
	files     map[file]*node // files of binds with several names
	nameBytes int
	last      uint64 // last number of a node or handle
	handles   map[uint64]*handle
	dirs      *list.List // nodes with a kept directory, latest first
	moving    int        // renames in progress
	moves     uint64     // finished renames
	root      *node
}

// New makes a server for a machine that has not mounted anything yet.
func New(o Options) (*Server, error) {
	if uid, gid := os.Geteuid(), os.Getegid(); uid != o.UID || gid != o.GID {
		return nil, fmt.Errorf("share files as %d:%d for %d:%d: %w", uid, gid, o.UID, o.GID, paddock.Internal)
	}
	fd, err := sys.Descriptor(o.Root)
	if err != nil {
		return nil, err
	}
	// A descriptor of its own, as a location.
	if fd, err = sys.OpenDirAt(fd, "."); err != nil {
		return nil, fmt.Errorf("share %s: %w", o.Root.Name(), err)
	}
	d := newDescriptor(fd)
	a, err := sys.AttrAt(fd, "")
	var files syscall.Rlimit
	if err == nil {
		err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	}
	if err != nil {
		d.done()
		return nil, fmt.Errorf("share %s: %w", o.Root.Name(), err)
	}
	room := int(min(files.Cur, 1<<20))
	s := &Server{
		options: o, begun: o.Begun, nodeMax: nodeLimit, nameMax: nameLimit, dirMax: min(dirLimit, room/4), stillTime: stillTime,
		nodes: map[uint64]*node{}, names: map[entry]*node{}, files: map[file]*node{}, handles: map[uint64]*handle{}, dirs: list.New(), last: rootID,
	}
	// Reserve some for short openings, and for the process itself.
	s.handleMax = max(min(handleLimit, room-s.dirMax-4*workers), 1)
	s.settled = sync.NewCond(&s.mu)
	s.pages.New = func() any { return new([pageSize]byte) }
	s.larges.New = func() any { return new([maxMessage]byte) }
	s.root = &node{
		id: rootID, kind: syscall.S_IFDIR, region: regionsOf(o.Binds), dir: d,
		known: true, dev: a.Dev, ino: a.Ino, lookups: 1,
	}
	s.nodes[rootID] = s.root
	return s, nil
}

// Close closes all open files of the machine. Call it after Serve has returned.
func (s *Server) Close() {
	s.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root.dir != nil {
		s.root.dir.done()
		s.root.dir = nil
	}
}

// reset forgets everything that the machine knew.
func (s *Server) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.handles {
		h.close()
	}
	s.forgetDirs()
	clear(s.handles)
	clear(s.names)
	clear(s.files)
	clear(s.nodes)
	s.nameBytes = 0
	s.root.refs, s.root.handles = 0, nil
	s.nodes[rootID] = s.root
}

// Serve answers requests on a connection until it ends, and closes it. The machine may
// continue on another connection with its open files. That ends the earlier connection. The
// end of a connection between two requests is not an error.
func (s *Server) Serve(conn net.Conn) error {
	defer conn.Close()
	done := make(chan struct{})
	defer close(done)
	s.mu.Lock()
	before, ended := s.conn, s.ended
	s.conn, s.ended = conn, done
	s.mu.Unlock()
	if before != nil {
		before.Close()
		<-ended
	}
	c := &session{server: s, conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	c.mu.Lock()
	c.hire()
	c.mu.Unlock()
	c.wg.Wait()
	s.mu.Lock()
	over := s.conn != conn // another connection has replaced it
	if !over {
		s.conn, s.ended = nil, nil
	}
	s.mu.Unlock()
	if over || errors.Is(c.err, io.EOF) {
		return nil
	}
	return c.err
}

// A session is one connection. Its workers take turns at reading: the worker that has read
// a request answers it, while the next one reads.
type session struct {
	server *Server
	conn   net.Conn
	wg     sync.WaitGroup

	free atomic.Int32 // idle workers

	mu    sync.Mutex // held while a request is read
	in    *bufio.Reader
	hired int
	err   error

	writing sync.Mutex // held while a reply is written
}

// hire starts a worker. mu is held.
func (c *session) hire() {
	c.free.Add(1)
	c.hired++
	c.wg.Go(c.work)
}

func (c *session) work() {
	r := &request{server: c.server}
	for c.next(r) {
		reply := r.answer()
		if reply != nil && !c.write(reply) {
			return
		}
		r.done()
		c.free.Add(1)
	}
}

// next reads a request, and starts another worker if none is idle.
func (c *session) next(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	if c.err = r.read(c.in); c.err != nil {
		c.conn.Close() // this ends writes too
		return false
	}
	if c.free.Add(-1) == 0 && c.hired < workers {
		c.hire()
	}
	return true
}

func (c *session) write(reply []byte) bool {
	c.writing.Lock()
	_, err := c.conn.Write(reply)
	c.writing.Unlock()
	if err == nil {
		return true
	}
	c.conn.Close() // so that the reader ends
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil || errors.Is(c.err, net.ErrClosed) {
		c.err = err
	}
	return false
}

// A request is a request in progress, with its buffers.
type request struct {
	server *Server
	head   head
	node   uint64
	body   body
	out    writer // the reply, with room for its header

	small [2][smallSize]byte // for the body, and for the reply
	lent  []any              // buffers to return
}

// buffer returns n bytes that are valid until done. Small buffer i has one user at a time.
func (r *request) buffer(i, n int) []byte {
	switch {
	case n <= smallSize:
		return r.small[i][:n]
	case n <= pageSize:
		if b, ok := r.server.pages.Get().(*[pageSize]byte); ok {
			r.lent = append(r.lent, b)
			return b[:n]
		}
	case n <= maxMessage:
		if b, ok := r.server.larges.Get().(*[maxMessage]byte); ok {
			r.lent = append(r.lent, b)
			return b[:n]
		}
	}
	return make([]byte, n)
}

func (r *request) done() {
	for _, b := range r.lent {
		switch b := b.(type) {
		case *[pageSize]byte:
			r.server.pages.Put(b)
		case *[maxMessage]byte:
			r.server.larges.Put(b)
		}
	}
	r.lent = r.lent[:0]
}

// read reads a request. The end of the stream before it is io.EOF.
func (r *request) read(in *bufio.Reader) error {
	data, err := in.Peek(headIn)
	if err != nil {
		if len(data) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if r.head, err = readHead(data); err != nil {
		return err
	}
	_, _ = in.Discard(headIn) // these bytes are buffered
	data = r.buffer(0, int(r.head.length)-headIn)
	if _, err := io.ReadFull(in, data); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	r.node, r.body = r.head.node, body{data: data}
	return nil
}

// answer executes the request and returns the reply, or nil if there is none.
func (r *request) answer() []byte {
	s := r.server
	switch r.head.op {
	case opForget:
		if times := r.body.u64(); r.body.end() == nil {
			s.forget(r.node, times)
		}
		return nil
	case opBatchForget:
		r.forgetMany()
		return nil
	case opInterrupt, opNotifyReply:
		return nil
	}
	r.out.data = r.buffer(1, smallSize)[:headOut]
	err := r.do()
	if err != nil {
		r.out.data = r.out.data[:headOut]
	}
	putHead(r.out.data, r.head.unique, errnoOf(err))
	return r.out.data
}

func (r *request) forgetMany() {
	count := r.body.u32()
	r.body.skip(4)
	if r.body.short || uint64(len(r.body.data)) != 16*uint64(count) {
		return
	}
	for range count {
		id := r.body.u64()
		r.server.forget(id, r.body.u64())
	}
}

func (r *request) do() error {
	if r.head.op == opInit {
		return r.begin()
	}
	r.server.mu.Lock()
	begun := r.server.begun
	r.server.mu.Unlock()
	if !begun {
		return syscall.EIO
	}
	switch r.head.op {
	case opLookup:
		return r.lookup()
	case opGetattr:
		return r.getattr()
	case opSetattr:
		return r.setattr()
	case opReadlink:
		return r.readlink()
	case opSymlink:
		return r.symlink()
	case opMknod:
		return r.mknod()
	case opMkdir:
		return r.mkdir()
	case opUnlink, opRmdir:
		return r.remove()
	case opRename, opRename2:
		return r.rename()
	case opLink:
		return r.link()
	case opOpen, opOpendir:
		return r.open()
	case opRead:
		return r.pread()
	case opWrite:
		return r.pwrite()
	case opStatfs:
		return r.statfs()
	case opRelease, opReleasedir:
		return r.release()
	case opFsync, opFsyncdir:
		return r.fsync()
	case opReaddir, opReaddirplus:
		return r.readdir()
	case opAccess:
		return r.access()
	case opCreate:
		return r.create()
	case opFallocate:
		return r.fallocate()
	case opLseek:
		return r.lseek()
	case opCopyFileRange:
		return r.copyRange()
	case opDestroy:
		r.server.reset()
		return nil
	}
	// The machine's kernel sends none of these a second time. It keeps locks itself, and
	// the server has no attributes, no unnamed files and nothing to flush.
	return syscall.ENOSYS
}

// begin answers INIT.
func (r *request) begin() error {
	reply, err := protocol.AppendInit(r.out.data, r.body.data)
	switch {
	case errors.Is(err, paddock.Invalid):
		return syscall.EINVAL
	case err != nil:
		return syscall.EPROTO
	}
	r.out.data = reply
	r.server.mu.Lock()
	r.server.begun = true
	r.server.mu.Unlock()
	return nil
}
