package box

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// unread is a witness that cannot tell anything.
type unread struct {
	strict bool
	missed []string
}

func (u *unread) Change(boxinit.Change) error { return nil }

func (u *unread) Missed(why string) error {
	u.missed = append(u.missed, why)
	if u.strict {
		return paddock.Exhausted
	}
	return nil
}

func TestAReportThatCannotBeReadStopsACallOnlyIfThatIsAskedFor(t *testing.T) {
	for _, strict := range []bool{false, true} {
		ours, theirs, err := sys.NewChannelPair()
		if err != nil {
			t.Fatal(err)
		}
		box, err := sys.NewChannelOf(theirs)
		if err != nil {
			t.Fatal(err)
		}
		w := &unread{strict: strict}
		heard := make(chan error, 1)
		go func() { heard <- hearChanges(ours, w) }()
		long := boxinit.Change{Path: strings.Repeat("x/", 2100) + "x"}
		for _, kind := range []boxinit.ChangeKind{boxinit.ChangeContent, boxinit.ChangeMade} {
			long.Kind = kind
			if err := box.Send(long.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		data, _, err := box.Receive()
		if err != nil {
			t.Fatal(err)
		}
		want := syscall.Errno(0)
		if strict {
			want = syscall.EDQUOT
		}
		if got := syscall.Errno(binary.BigEndian.Uint32(data)); got != want {
			t.Errorf("strict %v: a call with a path that cannot be recorded gets %v, not %v", strict, got, want)
		}
		box.Close()
		if err := <-heard; err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("strict %v: %v", strict, err)
		}
		ours.Close()
		if len(w.missed) < 2 {
			t.Errorf("strict %v: missed are %.100q", strict, w.missed)
		}
	}
}
