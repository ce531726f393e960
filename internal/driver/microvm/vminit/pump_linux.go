package vminit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A pump carries what the kernel asks of its file system's server to the host, and
// the answers back. Its goroutines are bound to no thread: one that is can only go on
// after another thread has seen that it may, and every file would wait for that.
type pump struct {
	device io.ReadWriter // /dev/fuse: each read and each write is one message
	port   reopening

	alone   atomic.Bool // there is no host yet
	request []byte      // buffer of up
	answers []byte      // of down

	writing sync.Mutex // held while a request is written

	mu      sync.Mutex
	changed *sync.Cond          // with mu
	lender  lender              // guarded by mu
	held    bool                // guarded by mu: nothing goes to the host
	sending int                 // guarded by mu: requests that are being written, or wait for that
	ended   bool                // guarded by mu: the host's end is closed, and down waits for the next session
	open    map[uint64]struct{} // guarded by mu: requests that the host has and has not answered
}

// A reopening is a stream of bytes whose other end may be closed, which is io.EOF,
// and opened again.
type reopening interface {
	io.ReadWriter
	WaitOpen(ctx context.Context) error
}

// Sizes of a message. The kernel asks for a buffer as large as the largest that it
// may send: a write of maxWrite, with what comes before it.
const (
	maxWrite   = 1 << 20
	maxRequest = maxWrite + 4<<10
	maxReply   = maxWrite + 4<<10
	inHeader   = 40 // struct fuse_in_header: len, opcode, unique, …
	outHeader  = 16 // struct fuse_out_header: len, error, unique
)

// Requests that nobody answers.
const (
	opForget      = 2
	opInterrupt   = 36
	opNotifyReply = 41
	opBatchForget = 42
)

func newPump(device io.ReadWriter, port reopening) *pump {
	p := &pump{
		device: device, port: port, lender: newLender(), open: map[uint64]struct{}{},
		request: make([]byte, maxRequest), answers: make([]byte, 2*maxReply),
	}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// up carries requests, until the file system is not mounted any more.
func (p *pump) up(ctx context.Context) error {
	buf := p.request
	for {
		n, err := p.device.Read(buf)
		switch {
		case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
			continue // who asked went away
		case err != nil:
			return fmt.Errorf("read requests for files: %w", err)
		case n < inHeader || int(binary.NativeEndian.Uint32(buf)) != n:
			return fmt.Errorf("a request for files of %d bytes: %w", n, paddock.Internal)
		}
		if done, err := p.agree(buf[:n]); err != nil {
			return err
		} else if done {
			continue
		}
		if answer := p.lend(ctx, buf[:n]); answer != nil {
			err = p.tell(answer)
		} else {
			err = p.ask(ctx, buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// lend gives the answer to a request that the host need not see.
func (p *pump) lend(ctx context.Context, request []byte) (answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch binary.NativeEndian.Uint32(request[4:]) {
	case opOpen:
		answer = p.lender.open(request, time.Now())
	case opRelease:
		answer = p.lender.release(request, time.Now())
		p.comeBack(ctx)
	}
	return answer
}

// comeBack has what is idle closed when it is late. p.mu is held.
func (p *pump) comeBack(ctx context.Context) {
	at, ok := p.lender.next()
	if !ok || p.lender.timed {
		return
	}
	p.lender.timed = true
	time.AfterFunc(time.Until(at), func() {
		p.mu.Lock()
		p.lender.timed = false
		p.mu.Unlock()
		p.closeLate(ctx)
	})
}

// closeLate has the host close what has been idle until its time.
func (p *pump) closeLate(ctx context.Context) {
	for {
		p.mu.Lock()
		request := p.lender.late(time.Now())
		if request == nil {
			p.comeBack(ctx)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if err := p.ask(ctx, request); err != nil {
			return // as up does soon, who tells of it
		}
	}
}

// ask gives a request to the host.
func (p *pump) ask(ctx context.Context, request []byte) error {
	p.admit(binary.NativeEndian.Uint32(request[4:]), uniqueOf(request))
	p.writing.Lock()
	err := p.write(ctx, request)
	p.writing.Unlock()
	p.sent()
	if err != nil {
		return fmt.Errorf("ask the host for files: %w", err)
	}
	return nil
}

// write writes a request, for which the host may have to come back.
func (p *pump) write(ctx context.Context, request []byte) error {
	for {
		_, err := p.port.Write(request)
		if !errors.Is(err, syscall.EPIPE) {
			return err
		}
		if err := p.port.WaitOpen(ctx); err != nil {
			return err
		}
	}
}

// admit waits until a request may go to the host.
func (p *pump) admit(op uint32, unique uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held {
		p.changed.Wait()
	}
	p.sending++
	if !silent(op) {
		p.open[unique] = struct{}{}
	}
}

// silent tells whether nobody answers a request.
func silent(op uint32) bool {
	return op == opForget || op == opInterrupt || op == opNotifyReply || op == opBatchForget
}

func (p *pump) sent() {
	p.mu.Lock()
	p.sending--
	if p.held {
		p.changed.Broadcast()
	}
	p.mu.Unlock()
}

// answered takes a request as answered.
func (p *pump) answered(unique uint64) {
	p.mu.Lock()
	delete(p.open, unique)
	if p.held {
		p.changed.Broadcast()
	}
	p.mu.Unlock()
}

// hold lets no more requests to the host, and waits until it has answered all
// that it has. Where ctx ends before, nothing is held. What is idle is closed before:
// to who goes on with this a file that nobody has open is one that may be replaced.
func (p *pump) hold(ctx context.Context) error {
	p.mu.Lock()
	p.lender.end()
	p.mu.Unlock()
	p.closeLate(ctx)
	defer p.wakeAfter(ctx)()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
	for len(p.open) > 0 || p.sending > 0 {
		if ctx.Err() != nil {
			p.held = false
			p.changed.Broadcast()
			return fmt.Errorf("%d requests for files are not answered: %w", len(p.open), paddock.Unavailable)
		}
		p.changed.Wait()
	}
	return nil
}

// release undoes hold.
func (p *pump) release() {
	p.mu.Lock()
	p.held = false
	p.changed.Broadcast()
	p.mu.Unlock()
}

// wakeAfter has whoever waits look at ctx when that ends.
func (p *pump) wakeAfter(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() {
		p.mu.Lock()
		p.changed.Broadcast()
		p.mu.Unlock()
	})
}

func (p *pump) setEnded(ended bool) {
	p.mu.Lock()
	p.ended = ended
	p.changed.Broadcast()
	p.mu.Unlock()
}

// waitEnd waits until the host's end is closed.
func (p *pump) waitEnd(ctx context.Context) error {
	defer p.wakeAfter(ctx)()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended {
		if ctx.Err() != nil {
			return fmt.Errorf("the session for files does not end: %w", paddock.Unavailable)
		}
		p.changed.Wait()
	}
	return nil
}

// down carries answers, through one session after another.
func (p *pump) down(ctx context.Context) error {
	buf := p.answers
	have := 0
	for {
		n, err := p.port.Read(buf[have:])
		if errors.Is(err, io.EOF) {
			have = 0 // half an answer is none
			// The next session may be with another server, for which what was opened is
			// to be opened again.
			p.mu.Lock()
			p.lender.end()
			p.mu.Unlock()
			p.setEnded(true)
			if err := p.port.WaitOpen(ctx); err != nil {
				return fmt.Errorf("wait for the host's files: %w", err)
			}
			p.setEnded(false)
			go p.closeLate(ctx) // soon over; ctx ends it with the machine
			continue
		}
		if err != nil {
			return fmt.Errorf("read answers about files: %w", err)
		}
		have += n
		used, err := p.deliver(buf[:have])
		if err != nil {
			return err
		}
		have = copy(buf, buf[used:have])
	}
}

// deliver gives the kernel the answers that are whole, and says how many bytes
// they were.
func (p *pump) deliver(data []byte) (used int, err error) {
	for len(data)-used >= outHeader {
		one := data[used:]
		n := int(binary.NativeEndian.Uint32(one))
		if n < outHeader || n > maxReply {
			return used, fmt.Errorf("an answer about files of %d bytes: %w", n, paddock.Invalid)
		}
		if len(one) < n {
			break
		}
		p.mu.Lock()
		p.lender.opened(one[:n], time.Now())
		p.mu.Unlock()
		unique := uniqueOf(one)
		if unique&ours == 0 {
			if err := p.tell(one[:n]); err != nil {
				return used, err
			}
		}
		p.answered(unique)
		used += n
	}
	return used, nil
}

// tell gives the kernel an answer.
func (p *pump) tell(answer []byte) error {
	_, err := p.device.Write(answer)
	switch {
	case err == nil, errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EINVAL):
		return nil // who asked went away; or the answer makes no sense, which is for who asked
	}
	return fmt.Errorf("give answers about files: %w", err)
}
