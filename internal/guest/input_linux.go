package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/paddock-sandbox/paddock"
)

// An input is the way to a process's standard input or terminal.
type input struct {
	f        *os.File
	terminal bool
	turn     chan struct{} // holds one: whoever has it may write

	mu     sync.Mutex
	closed bool // guarded by mu; by the host
	ended  bool // guarded by mu; by the end of the process
}

func newInput(f *os.File, terminal bool) *input {
	return &input{f: f, terminal: terminal, turn: make(chan struct{}, 1)}
}

// write writes all of p, or less with an error. The end of ctx ends the wait
// for a process that does not read.
func (in *input) write(ctx context.Context, p []byte) (int, error) {
	select {
	case in.turn <- struct{}{}:
		defer func() { <-in.turn }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	in.mu.Lock()
	closed := in.closed
	in.mu.Unlock()
	if closed {
		return 0, fmt.Errorf("input is closed: %w", paddock.Conflict)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = in.f.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := in.f.Write(p)
	if !stop() {
		<-interrupted
		_ = in.f.SetWriteDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, context.Cause(ctx)
	case errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EIO):
		return n, fmt.Errorf("input of a process that has ended: %w", paddock.NotFound)
	case errors.Is(err, syscall.EPIPE):
		return n, fmt.Errorf("the process has closed its input: %w", paddock.Conflict)
	}
	return n, fmt.Errorf("write input: %w", err)
}

// close is the end of file: for a terminal, its end-of-file character.
func (in *input) close(ctx context.Context) error {
	if in.terminal {
		if _, err := in.write(ctx, []byte{in.eof()}); err != nil {
			in.mu.Lock()
			defer in.mu.Unlock()
			if in.closed || in.ended {
				return nil
			}
			return err
		}
	} else {
		select {
		case in.turn <- struct{}{}:
			defer func() { <-in.turn }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed && !in.ended && !in.terminal {
		_ = in.f.Close()
	}
	in.closed = true
	return nil
}

// end closes the input because the process has ended, and frees who writes. A
// terminal is closed by whoever reads it.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed && !in.terminal {
		_ = in.f.Close()
	}
	in.ended = true
}

// eof gives the terminal's end-of-file character.
func (in *input) eof() byte {
	var t syscall.Termios
	if err := control(in.f, syscall.TCGETS, unsafe.Pointer(&t)); err != nil || t.Cc[syscall.VEOF] == 0 {
		return 4
	}
	return t.Cc[syscall.VEOF]
}
