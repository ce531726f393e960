package guest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
)

// A slowDisk is a guard that answers when it is released, as a disk does that is slow.
type slowDisk struct {
	asked    chan struct{}
	released chan struct{}
	now      atomic.Int32
	most     atomic.Int32
}

func (d *slowDisk) Check(string, *os.File, string) (func(), error) {
	n := d.now.Add(1)
	defer d.now.Add(-1)
	for most := d.most.Load(); n > most && !d.most.CompareAndSwap(most, n); most = d.most.Load() {
	}
	d.asked <- struct{}{}
	<-d.released
	return nil, nil
}

func (*slowDisk) Rename(*os.File, string, *os.File, string) error { return nil }

// Each call that waits for a disk holds a thread, and a sandbox that is full has no more.
func TestFewCallsAboutFilesHoldAThreadAtOnce(t *testing.T) {
	const calls, turns = 40, 8
	disk := &slowDisk{asked: make(chan struct{}, calls+1), released: make(chan struct{})}
	fs, dir := guesttest.New(t, guest.Options{Guard: disk}).FS(), t.TempDir()
	var all sync.WaitGroup
	for n := range calls {
		all.Go(func() {
			if err := fs.Mkdir(t.Context(), filepath.Join(dir, fmt.Sprint(n)), paddock.MkdirOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	for range turns {
		<-disk.asked
	}
	ctx, cancel := context.WithCancel(t.Context())
	late := make(chan error)
	go func() { late <- fs.Mkdir(ctx, filepath.Join(dir, "late"), paddock.MkdirOptions{}) }()
	cancel()
	if err := <-late; !errors.Is(err, paddock.Canceled) {
		t.Errorf("a call that is canceled while it waits: %v", err)
	}
	close(disk.released)
	all.Wait()
	if most := disk.most.Load(); most != turns {
		t.Errorf("%d calls were at work at once, and not %d", most, turns)
	}
}
