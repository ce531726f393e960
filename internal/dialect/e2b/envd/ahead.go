package envd

import (
	"fmt"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// The memory that a hostile sandbox or a slow client can take, at most, of one that is followed. It
// counts from the beginning, because what comes from a sandbox is in memory before anybody can
// refuse it.
const (
	processCost = 192 << 10 // what its sandbox sends ahead, and one message
	readerCost  = 128 << 10 // pieces for one client: one that arrives, one that waits, one that is encoded and sent
	watchCost   = 384 << 10 // what its sandbox sends ahead, and one message, which may be longer
)

var errAhead = fmt.Errorf("too many processes and directories are followed at the same time, for the owner of this sandbox or in total; disconnect from some: %w", paddock.Exhausted)

// take counts n bytes in the room of what is sent ahead.
func (b *Box) take(n int64) error {
	if b.o.Ahead != nil && !b.o.Ahead.Take(n) {
		return errAhead
	}
	return nil
}

// give returns n bytes that take has counted.
func (b *Box) give(n int64) {
	if b.o.Ahead != nil {
		b.o.Ahead.Give(n)
	}
}

// reserve counts a process that is about to be started or attached, until free.
func (b *Box) reserve() error {
	if err := b.take(processCost); err != nil {
		return err
	}
	if err := b.processes.reserve(); err != nil {
		b.give(processCost)
		return err
	}
	return nil
}

func (b *Box) free() {
	b.processes.free()
	b.give(processCost)
}

// A countedWatcher counts its watch until it is closed.
type countedWatcher struct {
	paddock.Watcher
	b    *Box
	once sync.Once
}

func (w *countedWatcher) Close() error {
	err := w.Watcher.Close()
	w.once.Do(func() { w.b.give(watchCost) })
	return err
}
