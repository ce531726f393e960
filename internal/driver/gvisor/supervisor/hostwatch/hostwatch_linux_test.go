package hostwatch

import (
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// A file is one of a file system that does not exist. It counts how often it is asked for its watches.
type file struct {
	vfs.Dentry
	watches vfs.Watches
	asked   int
}

func newFile() *file {
	f := new(file)
	f.Init(f)
	return f
}

func (*file) IncRef()                { /* it stays */ }
func (*file) TryIncRef() bool        { return true }
func (*file) DecRef(context.Context) { /* it stays */ }
func (*file) InotifyWithParent(context.Context, uint32, uint32, vfs.EventType) {
	/* nothing happens to it */
}
func (*file) OnZeroWatches(context.Context) { /* it stays */ }

func (f *file) Watches() *vfs.Watches {
	f.asked++
	return &f.watches
}

// sinkOf returns a sink that watches a number of files, of which commands watch none any more.
func sinkOf(n int) (*sink, []*file) {
	s := &sink{entries: map[uint32]*entry{}, byDentry: map[*vfs.Dentry]*entry{}, requests: &outbox{ended: true}}
	var list []*file
	for range n {
		f := newFile()
		list = append(list, f)
		s.last++
		e := &entry{id: s.last, dentry: &f.Dentry, ready: make(chan struct{})}
		close(e.ready)
		s.entries[e.id], s.byDentry[e.dentry] = e, e
	}
	return s, list
}

func TestWhatCannotBeWatchedIsNotAskedFor(t *testing.T) {
	s, list := sinkOf(1)
	for what, path := range map[string]string{
		"no path": "", "the root": "/", "what is not reachable": "(unreachable)/x", "too deep": strings.Repeat("/deeper", 1000),
	} {
		s.watch(nil, &newFile().Dentry, path) // it does not get as far as the kernel
		if len(s.entries) != 1 {
			t.Errorf("%s is watched", what)
		}
	}
	if list[0].asked > 0 {
		t.Error("the others were looked at")
	}
}

func TestWatchesThatNobodyHasAnyMoreMakeRoom(t *testing.T) {
	s, _ := sinkOf(boxinit.HostWatchMax)
	if s.makeRoom(); len(s.entries) > 0 {
		t.Errorf("%d are kept", len(s.entries))
	}
}

// A command may watch a tree that is much too large.
func TestWatchesBeyondTheBoundDoNotEachLookAtAllOthers(t *testing.T) {
	s, list := sinkOf(boxinit.HostWatchMax)
	for _, e := range s.entries {
		e.ready = make(chan struct{}) // so that it is not dropped
	}
	sweeps := 0
	for range 4 * sweepAfter {
		before := s.added
		if s.makeRoom(); s.added <= before {
			sweeps++
		}
	}
	if sweeps > 5 {
		t.Errorf("all %d are looked at %d times", len(list), sweeps)
	}
}
