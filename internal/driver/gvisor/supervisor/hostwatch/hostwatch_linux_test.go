package hostwatch

import (
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// A file is one of a file system that does not exist. It counts how often it is asked for its watches.
type file struct {
	vfs.Dentry
	watches *vfs.Watches
	asked   int
}

func newFile() *file {
	f := &file{watches: new(vfs.Watches)}
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
	return f.watches
}

// sinkOf returns a sink that watches a number of files, of which commands watch none any more.
func sinkOf(n int) (*sink, []*file) {
	s := &sink{entries: map[uint32]*entry{}, byWatches: map[*vfs.Watches]*entry{}, late: map[*entry]bool{}, requests: &outbox{ended: true}}
	var list []*file
	for range n {
		f := newFile()
		list = append(list, f)
		s.last++
		e := &entry{id: s.last, dentry: &f.Dentry, watches: f.watches, ready: make(chan struct{})}
		close(e.ready)
		s.entries[e.id], s.byWatches[e.watches] = e, e
	}
	return s, list
}

func TestWhatCannotBeWatchedIsNotAskedFor(t *testing.T) {
	s, list := sinkOf(1)
	for what, path := range map[string]string{
		"no path": "", "the root": "/", "what is not reachable": "(unreachable)/x", "too deep": strings.Repeat("/deeper", 1000),
	} {
		s.watch(nil, &newFile().Dentry, "/", path, false) // it does not get as far as the kernel
		if len(s.entries) != 1 {
			t.Errorf("%s is watched", what)
		}
	}
	if list[0].asked > 0 {
		t.Error("the others were looked at")
	}
}

func TestHardLinksOfAFileAreOneWatch(t *testing.T) {
	s, _ := sinkOf(0)
	s.quiet = true // so that the kernel is not needed
	a, b := newFile(), newFile()
	b.watches = a.watches
	first, second := s.watch(nil, &a.Dentry, "/work", "/work/a", false), s.watch(nil, &b.Dentry, "/work", "/work/b", false)
	if first == nil || first != second || len(s.entries) != 1 {
		t.Errorf("%v and %v of %d", first, second, len(s.entries))
	}
}

// The sink's own watches cannot be saved with the memory.
func TestNothingIsWatchedWhenNobodyTellsChangesAnyMore(t *testing.T) {
	s, list := sinkOf(2)
	for _, e := range s.entries {
		e.ready = make(chan struct{})
		s.late[e] = true
	}
	waiting := s.entries[1].ready
	s.leave()
	<-waiting
	if len(s.entries)+len(s.byWatches)+len(s.late) > 0 {
		t.Errorf("it keeps %v, %v and %v", s.entries, s.byWatches, s.late)
	}
	if e := s.watch(nil, &list[0].Dentry, "/work", "/work/a", false); e != nil {
		t.Error("it watches again")
	}
}

// gVisor makes no event for a watch that has none of its bits.
func TestWhoeverWatchesLearnsThatChangesWereLost(t *testing.T) {
	for what, watched := range map[string]uint32{
		"new names": linux.IN_CREATE, "new and old names": linux.IN_MOVED_FROM | linux.IN_MOVED_TO, "removed names": linux.IN_DELETE,
		"written files": linux.IN_CLOSE_WRITE, "content": linux.IN_MODIFY, "attributes": linux.IN_ATTRIB,
	} {
		if lostMask&watched == 0 {
			t.Errorf("who watches %s is not told", what)
		}
	}
	if lostMask&(linux.IN_DELETE_SELF|linux.IN_MOVE_SELF|linux.IN_IGNORED) != 0 {
		t.Error("the watch seems to end")
	}
}

func TestALateWatchMayHaveMissedChanges(t *testing.T) {
	s, _ := sinkOf(2)
	s.late[s.entries[1]] = true
	for _, row := range []struct {
		r      boxinit.WatchReport
		missed bool
	}{
		{boxinit.WatchReport{Kind: boxinit.WatchAdded, ID: 1}, true}, {boxinit.WatchReport{Kind: boxinit.WatchAdded, ID: 1}, false},
		{boxinit.WatchReport{Kind: boxinit.WatchAdded, ID: 2}, false}, {boxinit.WatchReport{Kind: boxinit.WatchAdded, ID: 3}, false},
	} {
		if got := s.answered(row.r); got != row.missed {
			t.Errorf("%+v: %v", row.r, got)
		}
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
