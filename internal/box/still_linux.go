package box

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// takePrivate keeps the directory of the box's private files, which its init sends before any command ran.
func (b *Box) takePrivate(fds []*os.File) error {
	if len(fds) != 1 || b.plan.Layout.Config.GuestKernel != nil {
		return fmt.Errorf("the box sent %d private directories that nobody asked for: %w", len(fds), paddock.Internal)
	}
	fs, err := sys.FileSystemOf(fds[0])
	if err != nil {
		return err
	}
	st, err := fds[0].Stat()
	if err != nil {
		return err
	}
	if fs.Type != sys.TypeTmpfs || !st.IsDir() {
		return fmt.Errorf("the private directory of the box is on a file system of type %#x: %w", fs.Type, paddock.Internal)
	}
	own, err := sys.Duplicate(fds[0])
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.ended:
		return own.Close()
	default:
	}
	if b.private != nil {
		return errors.Join(fmt.Errorf("the box sent two private directories: %w", paddock.Internal), own.Close())
	}
	b.private = own
	return nil
}

// Still calls do with the directory of the box's private files while no process of the box runs. A box that was paused
// stays so.
func (b *Box) Still(ctx context.Context, do func(private *os.File) error) (err error) {
	if b.Group == nil {
		return fmt.Errorf("its processes cannot be stopped meanwhile, because there is no control group here; `paddock doctor` tells why: %w", paddock.Unsupported)
	}
	b.mu.Lock()
	paused := b.paused
	var private *os.File
	if b.private != nil {
		private, err = sys.Duplicate(b.private)
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if private == nil {
		return fmt.Errorf("the box has ended: %w", paddock.Unavailable)
	}
	defer private.Close()
	if err := b.Group.Freeze(ctx); err != nil {
		if !paused {
			err = errors.Join(err, b.Group.Thaw()) // some of its processes may be stopped
		}
		return fmt.Errorf("stop its processes: %w", err)
	}
	defer func() {
		if !paused {
			if thaw := b.Group.Thaw(); thaw != nil {
				err = errors.Join(err, fmt.Errorf("let its processes go on: %w", thaw))
			}
		}
	}()
	return do(private)
}
