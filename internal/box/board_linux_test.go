package box

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestABoardShowsOnlyThatASandboxGoes(t *testing.T) {
	mine, f, err := newBoard()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := readBoard(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if theirs.goes() {
		t.Error("a new board shows that a sandbox goes")
	}
	for _, row := range []struct {
		st   Standing
		err  error
		goes bool
	}{
		{Standing{State: paddock.Ready}, nil, true},
		{Standing{State: paddock.Paused}, nil, false},
		{Standing{State: paddock.Ready}, nil, true},
		{Standing{paddock.Dead, "it was killed"}, nil, false},
		{Standing{State: paddock.Ready}, paddock.Unavailable, false},
		{Standing{}, nil, false},
	} {
		mine.show(row.st, row.err)
		if theirs.goes() != row.goes {
			t.Errorf("%+v, %v: it goes: %t", row.st, row.err, !row.goes)
		}
	}
	if (*statusBoard)(nil).goes() {
		t.Error("nothing shows that a sandbox goes")
	}
}

// lately returns a recently used sandbox of a driver.
func lately(id paddock.ID, made time.Time) *Sandbox {
	return &Sandbox{id: id, owner: remoteOwner{group: noGroup}, about: about{Created: made}, dialing: make(chan struct{}, 1)}
}

func TestRecentsGiveTheLatestOfAName(t *testing.T) {
	var r recents
	t.Cleanup(r.close)
	first, second := lately("a", time.Unix(1, 0)), lately("a", time.Unix(2, 0))
	if r.find("a") != nil {
		t.Error("found before it was there")
	}
	r.use(first)
	r.use(second)
	r.drop(first) // it has lost its name
	if r.find("a") != second {
		t.Error("the second has gone with the first")
	}
	r.drop(second)
	if r.find("a") != nil {
		t.Error("still there")
	}
}

func TestRecentsThatAreClosedKeepNothing(t *testing.T) {
	var r recents
	r.use(lately("a", time.Time{}))
	r.close()
	r.use(lately("b", time.Time{}))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) != 0 || r.timer != nil {
		t.Error("kept")
	}
}

func TestRecentsDropWhatNobodyUsesAgain(t *testing.T) {
	var r recents
	t.Cleanup(r.close)
	r.use(lately("old", time.Time{}))
	r.use(lately("new", time.Time{}))
	r.mu.Lock()
	r.open["old"].used = time.Now().Add(-recentTime)
	r.mu.Unlock()
	if r.find("old") == nil { // a look does not count
		t.Error("it is dropped before its time")
	}
	r.sweep()
	if r.find("old") != nil || r.find("new") == nil {
		t.Error("the wrong one was dropped")
	}
	r.mu.Lock()
	r.open["new"].used = time.Now().Add(-recentTime)
	r.mu.Unlock()
	r.sweep()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) != 0 || r.timer != nil {
		t.Error("a timer runs for nothing")
	}
}

func TestTheSameSandboxIsToldFromOneThatHasItsName(t *testing.T) {
	have := lately("a", time.Unix(1, 0))
	again, other := lately("a", time.Unix(1, 0)), lately("a", time.Unix(2, 0))
	again.about.Labels = map[string]string{"k": "v"}
	if !have.same(again) || have.about.Labels["k"] != "v" {
		t.Errorf("the same: %+v", have.about)
	}
	if have.same(other) {
		t.Error("another one is taken for it")
	}
	have.removed = true
	if have.same(again) {
		t.Error("one that was removed is given again")
	}
}
