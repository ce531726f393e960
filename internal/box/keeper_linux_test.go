package box

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestABoardThatIsHiddenShowsNothingUntilAllHaveEnded(t *testing.T) {
	mine, f, err := newBoard()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := &Box{ended: make(chan struct{})}
	k := &keeper{board: mine, life: &Life{current: b}}
	check := func(when string, want bool) {
		t.Helper()
		if mine.goes() != want {
			t.Errorf("%s: it shows that the sandbox goes: %t", when, !want)
		}
	}
	k.show()
	check("at first", true)
	paused, removed := k.hide(), k.hide()
	check("hidden", false)
	k.show() // like the end of a resume that began before
	check("shown meanwhile", false)
	paused()
	check("hidden once more", false)
	removed()
	check("both have ended", true)
	close(b.ended)
	k.show()
	check("the box has ended", false)
	if st, err := k.life.Standing(t.Context()); err != nil || st.State != paddock.Dead {
		t.Errorf("%+v, %v", st, err)
	}
}
