package hostwatch

import (
	"fmt"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/abi/linux"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// known returns a record that knows of one watched directory.
func known() (*record, *entry) {
	e := &entry{id: 7, dir: true}
	return &record{
		entries: map[int32]*entry{1: e}, watches: map[*entry]int32{e: 1},
		touched: map[place]touch{}, told: map[deed]*count{}, expected: map[deed]int{},
	}, e
}

func since(when time.Time) func() (time.Time, bool) {
	return func() (time.Time, bool) { return when, true }
}

// of returns the report of a change.
func of(at time.Time, name string, mask uint32) arrival {
	return arrival{boxinit.WatchReport{Kind: boxinit.WatchChange, ID: 7, Mask: mask, Name: name}, at}
}

func gone() (time.Time, bool) { return time.Time{}, false }

func TestEachNameThatACommandMadeIsLeftOutOnce(t *testing.T) {
	l, e := known()
	now := time.Now()
	l.note(now, 1, linux.IN_CREATE, "x")
	l.note(now, 1, linux.IN_CREATE|linux.IN_ISDIR, "dir")
	for _, row := range []struct {
		name string
		mask uint32
		made bool
	}{
		{"x", linux.IN_DELETE, false}, {"y", linux.IN_CREATE, false},
		{"x", linux.IN_CREATE, true}, {"x", linux.IN_CREATE, false},
		{"dir", linux.IN_CREATE | linux.IN_ISDIR, true},
	} {
		if got := l.made(e, of(now.Add(10*time.Millisecond), row.name, row.mask), gone); got != row.made {
			t.Errorf("%s %#x: %v", row.name, row.mask, got)
		}
	}
	// What the host should have reported long ago cancels nothing.
	l.note(now.Add(-2*remembered), 1, linux.IN_DELETE, "x")
	if l.made(e, of(now.Add(10*time.Millisecond), "x", linux.IN_DELETE), gone) {
		t.Error("it remembers for too long")
	}
}

func TestAChangeOfContentIsToldUnlessACommandsEventCameAfterIt(t *testing.T) {
	l, e := known()
	now := time.Now()
	l.note(now, 1, linux.IN_CLOSE_WRITE, "x")
	for what, row := range map[string]struct {
		name    string
		changed func() (time.Time, bool)
		made    bool
	}{
		"by the command":               {"x", since(now.Add(-time.Millisecond)), true},
		"by the host, later":           {"x", since(now.Add(time.Millisecond)), false},
		"of a file that is not found":  {"x", gone, false},
		"of a name that is gone again": {"x", since(time.Time{}), true},
		"of another file":              {"y", since(now.Add(-time.Hour)), false},
	} {
		if got := l.made(e, of(now.Add(10*time.Millisecond), row.name, linux.IN_CLOSE_WRITE), row.changed); got != row.made {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestACommandThatWritesAllTheTimeHasNoGoferAsked(t *testing.T) {
	l, e := known()
	now := time.Now()
	l.note(now, 1, linux.IN_MODIFY, "x")
	asked := false
	if !l.made(e, of(now, "x", linux.IN_MODIFY), func() (time.Time, bool) { asked = true; return time.Time{}, true }) || asked {
		t.Errorf("the gofer was asked: %v", asked)
	}
}

func TestOneKindOfChangeByACommandStandsForNoOther(t *testing.T) {
	l, e := known()
	now := time.Now()
	l.note(now, 1, linux.IN_ATTRIB, "x")
	l.note(now, 1, linux.IN_MOVED_TO, "new")
	before := since(now.Add(-time.Millisecond))
	for _, row := range []struct {
		name string
		mask uint32
		made bool
	}{
		{"x", linux.IN_ATTRIB, true}, {"x", linux.IN_MODIFY, false}, {"x", linux.IN_CLOSE_WRITE, false},
		{"new", linux.IN_ATTRIB, true}, {"new", linux.IN_MODIFY, true}, {"new", linux.IN_CLOSE_WRITE, true},
	} {
		if got := l.made(e, of(now.Add(10*time.Millisecond), row.name, row.mask), before); got != row.made {
			t.Errorf("%s %#x: %v", row.name, row.mask, got)
		}
	}
}

// Each change has the file the same new time, whatever its kind.
func TestChangesOfACommandThatFollowEachOtherAreLeftOut(t *testing.T) {
	l, e := known()
	now := time.Now()
	l.note(now, 1, linux.IN_ATTRIB, "x")
	l.note(now.Add(10*time.Millisecond), 1, linux.IN_MODIFY, "x")
	if !l.made(e, of(now.Add(time.Millisecond), "x", linux.IN_ATTRIB), gone) || !l.made(e, of(now.Add(15*time.Millisecond), "x", linux.IN_ATTRIB), since(now.Add(9*time.Millisecond))) {
		t.Error("the first is told twice")
	}
}

// The clock of a file server may be behind, so that the time of a change says nothing.
func TestAChangeLongAfterThatOfACommandIsTold(t *testing.T) {
	l, e := known()
	now := time.Now()
	l.note(now, 1, linux.IN_MODIFY, "x")
	l.note(now, 1, linux.IN_CLOSE_WRITE, "x")
	behind := since(now.Add(-time.Hour))
	for mask, made := range map[uint32]bool{linux.IN_MODIFY: false, linux.IN_CLOSE_WRITE: true} {
		if got := l.made(e, of(now.Add(2*remembered), "x", mask), behind); got != made {
			t.Errorf("%#x: %v", mask, got)
		}
	}
}

func TestNamesOfWhichReportsAreLostCancelNoLaterOnes(t *testing.T) {
	l, e := known()
	now := time.Now()
	for i := range logMax + 1 { // two generations
		l.note(now, 1, linux.IN_CREATE, fmt.Sprint(i))
	}
	l.clear()
	for _, name := range []string{"0", fmt.Sprint(logMax)} {
		if l.made(e, of(now, name, linux.IN_CREATE), gone) {
			t.Errorf("%s is left out", name)
		}
	}
}

func TestItsOwnEventsAreNoCommands(t *testing.T) {
	l, e := known()
	now := time.Now()
	done := l.expect(e, "x", linux.IN_CREATE|linux.IN_ISDIR)
	l.note(now, 1, linux.IN_CREATE|linux.IN_ISDIR, "x")
	done()
	if l.made(e, of(now.Add(10*time.Millisecond), "x", linux.IN_CREATE|linux.IN_ISDIR), gone) {
		t.Error("the event that it made itself counts as a command's")
	}
}

func TestARecordIsBounded(t *testing.T) {
	l, e := known()
	now := time.Now()
	for i := range 10 * logMax {
		l.note(now, 1, linux.IN_CREATE, fmt.Sprint(i))
	}
	if n := len(l.told) + len(l.toldOld); n > 2*logMax {
		t.Errorf("it keeps %d names", n)
	}
	if n := len(l.touched) + len(l.touchedOld); n > 2*logMax {
		t.Errorf("it keeps %d files", n)
	}
	for i := 10*logMax - logMax; i < 10*logMax; i++ {
		if !l.made(e, of(now.Add(10*time.Millisecond), fmt.Sprint(i), linux.IN_CREATE), gone) {
			t.Fatalf("it has forgotten %d", i)
		}
	}
}

func TestAFileThatEndsInsideIsNoLongerWatched(t *testing.T) {
	l, e := known()
	if l.own(e) != 1 {
		t.Error("the record's own watch does not count")
	}
	l.note(time.Now(), 1, linux.IN_IGNORED, "")
	if !e.ended.Load() || l.own(e) != 0 {
		t.Errorf("ended %v, own %d", e.ended.Load(), l.own(e))
	}
}
