package agentlogin

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestOneBoxAtATimeHasALoginInAState(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	prepare := func(state string) (*Login, error) {
		return Prepare(Options{Sections: []Section{s.section()}, Home: home, Lock: filepath.Join(home, "locks"), Client: s.Client(), State: state})
	}
	for range 2 { // without a login outside there is nothing to take
		l, err := prepare("a")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	s.write(t, home, 0, time.Hour)
	first, err := prepare("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prepare("a"); paddock.KindOf(err) != paddock.Conflict {
		t.Errorf("a second one: %v", err)
	}
	other, err := prepare("b")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := prepare("a")
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	defer next.Close()
}
