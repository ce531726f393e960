package relay

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
	machine      MAC
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

// New makes a relay between a device's stream and a link of packets, which belong
// to it. Machine is the device's address.
func New(device, link *os.File, machine MAC) (*Relay, error) {
	d, err := newEnd(device)
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	l, err := newEnd(link)
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	return &Relay{device: d, link: l, machine: machine}, nil
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
	buf, kept := make([]byte, 4*(lengthSize+maxFrame)), 0
	write := r.link.writer()
	var s splitter
	for {
		n, err := r.device.file.Read(buf[kept:])
		if err != nil {
			return err
		}
		rest := buf[:kept+n]
		for {
			frame, after, ok := s.next(rest)
			if rest = after; !ok {
				break
			}
			if p := packet(frame); p != nil {
				if err := write(p); err != nil {
					return err
				}
			}
		}
		kept = copy(buf, rest)
	}
}

// writer gives a function that sends a packet. One that the other side does not
// take as it is, is dropped.
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

// in carries what the machine gets: all packets that are there at once.
func (r *Relay) in() error {
	const room = headSize + MaxPacket + 1 // one more, so that what was cut is seen
	buf := make([]byte, 4*room)
	used := 0
	var failed error
	take := func(fd uintptr) bool {
		for len(buf)-used >= room {
			n, err := syscall.Read(int(fd), buf[used+headSize:used+room])
			switch {
			case errors.Is(err, syscall.EINTR):
				continue
			case errors.Is(err, syscall.EAGAIN):
				return used > 0
			case err != nil:
				failed = err
				return true
			case n == 0:
				failed = io.EOF
				return true
			}
			p, kind := sane(buf[used+headSize : used+headSize+n])
			if kind == 0 {
				continue
			}
			head(buf[used:], len(p), kind, r.machine, peer)
			used += headSize + len(p)
		}
		return true
	}
	for {
		used = 0
		err := r.link.raw.Read(take)
		if err == nil && used > 0 {
			_, err = r.device.file.Write(buf[:used])
		}
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
}
