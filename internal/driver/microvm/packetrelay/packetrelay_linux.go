package packetrelay

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A Relay joins a device and a link.
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
	f, _, err := kernel.NewPoller(f)
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &end{f, raw}, nil
}

// New makes a relay between a device and a link, which belong to it: sockets of
// packets, of which each is a frame, or an IP packet.
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

// Run carries packets until one of the ends does no more, and closes both. The end
// that takes none for a while is waited for: what comes meanwhile fills queues
// that are the sender's to drop from, the device's in the machine or the link's.
func (r *Relay) Run() error {
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	for _, carry := range []func() error{r.in, r.out} {
		wg.Go(func() {
			err := carry()
			once.Do(func() { // it is why the other one ends, too
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
	_ = r.device.file.Close() // twice is fine, and what was written is gone already
	_ = r.link.file.Close()
}

// out carries what the machine sends.
func (r *Relay) out() error {
	write := r.link.writer()
	return r.device.each(0, func(frame []byte) error {
		if p := packet(frame); p != nil {
			return write(p)
		}
		return nil
	})
}

// in carries what the machine gets.
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

// each calls do with every packet, before which there is so much space.
func (e *end) each(space int, do func([]byte) error) error {
	buf := make([]byte, space+maxFrame+1) // one more, so that what was cut is seen
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

// writer gives a function that sends a packet. One that is too large for the
// other end is dropped.
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
