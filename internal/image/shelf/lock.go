package shelf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// ErrBusy says that another holds a lock, or removed the file meanwhile.
var ErrBusy = errors.New("another process holds it")

const lockEvery = 25 * time.Millisecond // how often a lock is tried that another holds

// Hold opens a file and locks it, if nobody holds it in a way that forbids that. The file is that which has the name
// then: another's lock of a file that it removes is never taken for one.
func Hold(name string, flags int, shared bool) (*os.File, error) {
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f, shared); err != nil {
		_ = f.Close()
		return nil, err
	}
	mine, err := f.Stat()
	if err == nil {
		var now os.FileInfo
		if now, err = os.Lstat(name); err == nil && os.SameFile(mine, now) {
			return f, nil
		}
	}
	_ = f.Close()
	return nil, ErrBusy
}

// Claim is Hold of what nobody else holds.
func Claim(name string, flags int) (*os.File, error) { return Hold(name, flags, false) }

// Await is Hold that waits for who holds it.
func Await(ctx context.Context, name string, flags int, shared bool) (*os.File, error) {
	for {
		f, err := Hold(name, flags, shared)
		if !errors.Is(err, ErrBusy) {
			return f, err
		}
		t := time.NewTimer(lockEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, fmt.Errorf("another process works on the image for longer than an image may take: %w", paddock.Timeout)
			}
			return nil, fmt.Errorf("it was given up: %w", paddock.Canceled)
		}
	}
}
