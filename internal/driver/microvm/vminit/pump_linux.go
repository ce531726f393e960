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

// A pump carries the file requests of the kernel to the host, and the answers back. Its
// goroutines are not locked to threads. A locked one could continue only after another
// thread has woken it, which would delay every file.
type pump struct {
	device io.ReadWriter // /dev/fuse: each read or write is one message
	port   reopening

	alone   atomic.Bool // there is no host yet
	request []byte      // buffer of up
	answers []byte      // buffer of down

	due chan struct{} // holds one element when closer has to look

	writing sync.Mutex // held while a request is written

	mu      sync.Mutex
	changed *sync.Cond          // uses mu
	lender  lender              // guarded by mu
	held    bool                // guarded by mu; nothing is sent to the host
	sending int                 // guarded by mu; requests being written, or waiting for that
	ended   bool                // guarded by mu; the host's end is closed, and down waits for the next session
	open    map[uint64]struct{} // guarded by mu; requests that the host has not answered
}

// A reopening is a stream whose other end may close, which is io.EOF, and open again.
type reopening interface {
	io.ReadWriter
	WaitOpen(ctx context.Context) error
}

// Sizes of a message. The kernel requires a buffer for its largest request: a write of
// maxWrite with its headers.
const (
	maxWrite   = 1 << 20
	maxRequest = maxWrite + 4<<10
	maxReply   = maxWrite + 4<<10
	inHeader   = 40 // struct fuse_in_header: len, opcode, unique, …
	outHeader  = 16 // struct fuse_out_header: len, error, unique
)

// Requests without an answer.
const (
	opForget      = 2
	opInterrupt   = 36
	opNotifyReply = 41
	opBatchForget = 42
)

func newPump(device io.ReadWriter, port reopening) *pump {
	p := &pump{
		device: device, port: port, lender: newLender(), open: map[uint64]struct{}{}, due: make(chan struct{}, 1),
		request: make([]byte, maxRequest), answers: make([]byte, 2*maxReply),
	}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// up carries requests until the file system is unmounted.
func (p *pump) up(ctx context.Context) error {
	buf := p.request
	for {
		n, err := p.device.Read(buf)
		switch {
		case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
			continue // the caller was interrupted
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
		if answer := p.lend(buf[:n]); answer != nil {
			err = p.tell(answer)
		} else {
			err = p.ask(ctx, buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// lend returns the answer to a request that the host need not see.
func (p *pump) lend(request []byte) (answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch binary.NativeEndian.Uint32(request[4:]) {
	case opOpen:
		answer = p.lender.open(request, time.Now())
	case opRelease:
		answer = p.lender.release(request, time.Now())
		p.comeBack()
	}
	return answer
}

// comeBack sets a timer to close the next late file. p.mu is held.
func (p *pump) comeBack() {
	at, ok := p.lender.next()
	if !ok || p.lender.timed {
		return
	}
	p.lender.timed = true
	time.AfterFunc(time.Until(at), func() {
		p.mu.Lock()
		p.lender.timed = false
		p.mu.Unlock()
		p.wake()
	})
}

// wake has closer look.
func (p *pump) wake() {
	select {
	case p.due <- struct{}{}:
	default: // it will
	}
}

// closer has the host close what has been idle until its time, until ctx ends.
func (p *pump) closer(ctx context.Context) error {
	for {
		select {
		case <-p.due:
			p.closeLate(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// closeLate makes the host close files that were idle for too long.
func (p *pump) closeLate(ctx context.Context) {
	for {
		p.mu.Lock()
		request := p.lender.late(time.Now())
		if request == nil {
			p.comeBack()
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if err := p.ask(ctx, request); err != nil {
			return // up gets the error too
		}
	}
}

// ask sends a request to the host.
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

// write writes a request. It may have to wait until the host connects again.
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

// admit waits until a request may be sent to the host.
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

// silent reports whether a request has no answer.
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

// answered notes an answered request.
func (p *pump) answered(unique uint64) {
	p.mu.Lock()
	delete(p.open, unique)
	if p.held {
		p.changed.Broadcast()
	}
	p.mu.Unlock()
}

// hold stops sending requests to the host, and waits until all are answered. If ctx ends
// first, hold is undone. It closes idle files first, because the next host may treat a file
// that is not open as replaceable.
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

// wakeAfter wakes all waiters when ctx ends.
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

// down carries answers, in one session after another.
func (p *pump) down(ctx context.Context) error {
	buf := p.answers
	have := 0
	for {
		n, err := p.port.Read(buf[have:])
		if errors.Is(err, io.EOF) {
			have = 0 // drop a partial answer
			// The next session may be with another server, which has not opened these
			// files.
			p.mu.Lock()
			p.lender.end()
			p.mu.Unlock()
			p.setEnded(true)
			if err := p.port.WaitOpen(ctx); err != nil {
				return fmt.Errorf("wait for the host's files: %w", err)
			}
			p.setEnded(false)
			p.wake()
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

// deliver gives complete answers to the kernel, and returns their size in bytes.
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

// tell gives an answer to the kernel.
func (p *pump) tell(answer []byte) error {
	_, err := p.device.Write(answer)
	switch {
	case err == nil, errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EINVAL):
		return nil // the caller was interrupted, or the answer is invalid, which the caller sees
	}
	return fmt.Errorf("give answers about files: %w", err)
}
