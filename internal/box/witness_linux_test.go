package box

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// unread is a witness that cannot tell anything.
type unread struct {
	missed []string
	made   int
}

func (u *unread) Change(boxinit.Change) error { return nil }

func (u *unread) Missed(why string) error {
	u.missed = append(u.missed, why)
	return nil
}

func (u *unread) Unseen(why string, made bool) error {
	u.missed = append(u.missed, why)
	if made {
		u.made++
	}
	return nil
}

// What cannot be told is not changed, whatever else is done without an undo.
func TestAReportThatCannotBeReadStopsACall(t *testing.T) {
	ours, theirs, err := sys.NewChannelPair()
	if err != nil {
		t.Fatal(err)
	}
	box, err := sys.NewChannelOf(theirs)
	if err != nil {
		t.Fatal(err)
	}
	w := &unread{}
	heard := make(chan error, 1)
	go func() { heard <- hearChanges(ours, w) }()
	long := boxinit.Change{Path: strings.Repeat("x/", 2100) + "x"}
	for _, kind := range []boxinit.ChangeKind{boxinit.ChangeMade, boxinit.ChangeContent, boxinit.ChangeMode, boxinit.ChangeRemoved} {
		long.Kind = kind
		if err := box.Send(long.Append(nil)); err != nil {
			t.Fatal(err)
		}
		if !kind.Waits() {
			continue
		}
		data, _, err := box.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if got := syscall.Errno(binary.BigEndian.Uint32(data)); got != syscall.ENAMETOOLONG {
			t.Errorf("a call of kind %d with a path that cannot be told gets %v", kind, got)
		}
	}
	box.Close()
	if err := <-heard; err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	ours.Close()
	if len(w.missed) != 4 || w.made != 1 {
		t.Errorf("missed are %.100q, of which %d were made", w.missed, w.made)
	}
}

// seeing is a watcher that keeps what it is told.
type seeing struct{ told []step.Watched }

func (s *seeing) Change(w step.Watched) error {
	s.told = append(s.told, w)
	return fmt.Errorf("not this: %w", paddock.Denied)
}

func (*seeing) Ended(*step.Record) {}

// noting is a watcher that refuses nothing.
type noting struct{ seeing }

func (s *noting) Change(w step.Watched) error {
	_ = s.seeing.Change(w) // it keeps what it is told
	return nil
}

func TestWhatNobodyRecordsIsToldToTheWatcher(t *testing.T) {
	w := &seeing{}
	s := recordedDir(t, paddock.UndoOn, w)
	if err := s.Unseen("a name is too long", false); !step.Refused(err) {
		t.Errorf("a change that cannot be told: %v", err)
	}
	if err := s.Unseen("a name is too long", true); err != nil {
		t.Error(err)
	}
	s.lose(errors.New("the disk is full"))
	if err := s.Change(boxinit.Change{Kind: boxinit.ChangeContent, Path: "f"}); !step.Refused(err) {
		t.Errorf("a change that nobody records: %v", err)
	}
	if err := s.Change(boxinit.Change{Kind: boxinit.ChangeMoved, Path: "f", To: "AGENTS.md"}); err != nil {
		t.Log(err) // it was made already
	}
	want := []step.Watched{
		{Verb: step.Unseen}, {Verb: step.Unseen, Done: true}, {Path: "f", Verb: step.Edited, Old: true},
		{Path: "f", Verb: step.Edited, Old: true, Done: true}, {Path: "AGENTS.md", Verb: step.Edited, Old: true, Done: true},
	}
	if !slices.Equal(w.told, want) {
		t.Errorf("told %+v, want %+v", w.told, want)
	}
}

func TestAStrictRecordingEndsWithWhatItCannotKnow(t *testing.T) {
	s := recordedDir(t, paddock.UndoStrict, nil)
	if err := s.Unseen("a name is too long", true); err != nil {
		t.Error(err)
	}
	if err := s.Change(boxinit.Change{Kind: boxinit.ChangeContent, Path: "f"}); !errors.Is(err, paddock.Conflict) {
		t.Errorf("a change after it: %v", err)
	}
}

func TestAFileWithoutAKnownNameThatIsOpenIsTold(t *testing.T) {
	held := []boxinit.Change{{Kind: boxinit.ChangeContent, Path: "f"}, {Kind: boxinit.ChangeContent}}
	for _, mode := range []paddock.UndoMode{paddock.UndoOn, paddock.UndoStrict} {
		w := &noting{}
		s := recordedDir(t, mode, w)
		s.ran, s.held = true, func(context.Context) ([]boxinit.Change, error) { return slices.Clone(held), nil }
		end, err := s.command(t.Context(), runStep, []string{"true"})
		if mode == paddock.UndoStrict {
			if !errors.Is(err, paddock.Exhausted) {
				t.Errorf("strict: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(w.told, step.Watched{Verb: step.Unseen, Done: true}) {
			t.Errorf("told %+v", w.told)
		}
		s.held = func(context.Context) ([]boxinit.Change, error) { return nil, nil }
		end(t.Context(), nil)
		list, err := s.journal.List(t.Context(), step.Filter{})
		if err != nil || len(list) == 0 || list[0].Missed == 0 {
			t.Errorf("the record: %+v, %v", list, err)
		}
	}
}
