package kernel

import (
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A lockKey names a file that has locks.
type lockKey struct {
	dev uint64
	ino vfs.Ino
}

// A fileLock is who holds a file, as flock(2) has it: open files do, not
// tasks.
type fileLock struct {
	owners    map[*Desc]bool
	exclusive bool
	changed   chan struct{} // closed when somebody lets go
}

// A hold is a lock that ends with an open file.
type hold struct {
	k   *Kernel
	key lockKey
}

// Lock takes the advisory lock of an open file, in place of the one it has.
// Where another open file holds it, Lock waits until the deadline (then it is
// ETIMEDOUT), or for ever if there is none, or not at all if try is set (then
// it is EWOULDBLOCK). A file without a number has no lock; taking that
// succeeds.
func (t *Task) Lock(d *Desc, exclusive, try bool, deadline time.Time) error {
	i, err := d.File.Info()
	if err != nil {
		return err
	}
	if i.Ino == 0 {
		return nil
	}
	t.Unlock(d)
	key := lockKey{i.Dev, i.Ino}
	for {
		wait := t.K.take(key, d, exclusive)
		switch {
		case wait == nil:
			d.lock.Store(&hold{t.K, key})
			return nil
		case try:
			return linux.EWOULDBLOCK
		}
		if err := t.Await(wait, deadline); err != nil {
			return err
		}
	}
}

// take gives nil if d has the lock now, or what tells of a change.
func (k *Kernel) take(key lockKey, d *Desc, exclusive bool) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.locks[key]
	if l == nil {
		if k.locks == nil {
			k.locks = map[lockKey]*fileLock{}
		}
		l = &fileLock{owners: map[*Desc]bool{}, changed: make(chan struct{})}
		k.locks[key] = l
	}
	if len(l.owners) > 0 && (exclusive || l.exclusive) {
		return l.changed
	}
	l.owners[d] = true
	l.exclusive = exclusive
	return nil
}

// Unlock releases the lock of an open file, if it has one.
func (*Task) Unlock(d *Desc) { d.letGo() }

func (d *Desc) letGo() {
	h := d.lock.Swap(nil)
	if h == nil {
		return
	}
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	l := h.k.locks[h.key]
	if l == nil {
		return
	}
	delete(l.owners, d)
	close(l.changed)
	l.changed = make(chan struct{})
	if len(l.owners) == 0 {
		delete(h.k.locks, h.key) // who waits asks again
	}
}
