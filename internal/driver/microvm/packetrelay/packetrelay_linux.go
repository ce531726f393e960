package packetrelay

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Relay copies packets between a device and a link.
type Relay struct {
	device, link *end
	closed       atomic.Bool
}

// An end is one of a relay's descriptors.
type end struct {
	file *os.File
	raw  syscall.RawConn
}

func newEnd(f *os.File) (*end, error) {
	f, _, err := sys.NewPoller(f)
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &end{f, raw}, nil
}

// New makes a relay and takes over both descriptors. They are packet sockets: each packet
// of device is an Ethernet frame, each packet of link an IP packet.
func New(device, link *os.File) (*Relay, error) {
	d, err := newEnd(device)
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	l, err := newEnd(link)
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	return &Relay{device: d, link: l}, nil
}

// Run copies packets until one of the ends fails, and closes both. It waits for an end that
// accepts no packets. Meanwhile the queues of the sender fill up, the device's in the
// machine or the link's, and the sender drops packets.
func (r *Relay) Run() error {
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	for _, carry := range []func() error{r.in, r.out} {
		wg.Go(func() {
			err := carry()
			once.Do(func() { // the cause of the other end's failure too
				if !errors.Is(err, io.EOF) && !r.closed.Load() {
					first = err
				}
				r.Close()
			})
		})
	}
	wg.Wait()
	return first
}

// Close ends Run.
func (r *Relay) Close() {
	r.closed.Store(true)
	_ = r.device.file.Close() // closing twice is fine, and written packets are already sent
	_ = r.link.file.Close()
}

// out copies packets from the machine.
func (r *Relay) out() error {
	write := r.link.writer()
	return r.device.each(0, func(frame []byte) error {
		if p := packet(frame); p != nil {
			return write(p)
		}
		return nil
	})
}

// in copies packets to the machine.
func (r *Relay) in() error {
	write := r.device.writer()
	return r.link.each(headSize, func(data []byte) error {
		p, kind := sane(data[headSize:])
		if kind == 0 {
			return nil
		}
		complete(p, kind)
		head(data, kind)
		return write(data[:headSize+len(p)])
	})
}

// each calls do with every packet, with space bytes free before it.
func (e *end) each(space int, do func([]byte) error) error {
	buf := make([]byte, space+maxFrame+1) // one more byte, to detect truncation
	var n int
	var failed error
	take := func(fd uintptr) bool {
		n, failed = syscall.Read(int(fd), buf[space:])
		return !errors.Is(failed, syscall.EAGAIN) && !errors.Is(failed, syscall.EINTR)
	}
	for {
		err := e.raw.Read(take)
		switch {
		case err != nil:
			return err
		case failed != nil:
			return failed
		case n == 0:
			return io.EOF
		}
		if err := do(buf[:space+n]); err != nil {
			return err
		}
	}
}

// writer returns a function that sends a packet. It drops a packet that is too large for
// the other end.
func (e *end) writer() func([]byte) error {
	var data []byte
	var failed error
	try := func(fd uintptr) bool {
		_, failed = syscall.Write(int(fd), data)
		return !errors.Is(failed, syscall.EAGAIN) && !errors.Is(failed, syscall.EINTR)
	}
	return func(p []byte) error {
		data = p
		if err := e.raw.Write(try); err != nil {
			return err
		}
		if errors.Is(failed, syscall.EMSGSIZE) || errors.Is(failed, syscall.ENOBUFS) {
			return nil
		}
		return failed
	}
}
