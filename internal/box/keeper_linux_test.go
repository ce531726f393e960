package box

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
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

func TestAKeeperForgetsOnlyItsOwnDirectoryOfANewSandbox(t *testing.T) {
	for name, row := range map[string]struct {
		saved   string
		another bool // has the path by now
		stays   bool
	}{
		"new":              {},
		"resumed":          {saved: "/somewhere", stays: true},
		"the name is used": {another: true, stays: true},
	} {
		dir := filepath.Join(t.TempDir(), "sandbox")
		prepare := func() {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, socketName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		prepare()
		held, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if row.another {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			prepare()
		}
		k := &keeper{dir: dir, directory: newDirectory(dir, held), about: about{Saved: row.saved}}
		k.forget()
		if _, err := os.Stat(dir); os.IsNotExist(err) == row.stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatCannotBeForgottenIsStillDescribed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	if err := os.MkdirAll(filepath.Join(dir, auditName, "x"), 0o700); err != nil { // cannot be removed
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, aboutName), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := forgetDir(dir); err == nil {
		t.Error("it was forgotten")
	}
	if _, err := os.Stat(filepath.Join(dir, aboutName)); err != nil {
		t.Error(err)
	}
}

// A keeper that is late finds another sandbox at the path of the one that it was to make.
func TestALateKeeperMakesNothingInTheDirectoryOfAnotherSandbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandbox")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := sys.LockDir(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := forgetDir(path); err != nil { // the maker has given up
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := sys.LockDir(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	at, err := holdDirectory(path, lock)
	if err != nil {
		t.Fatal(err)
	}
	defer at.held.Close()
	k := &keeper{dir: path, directory: at}
	if l, err := k.listen(); err == nil {
		l.Close()
		t.Error("it listens")
	}
	if l, err := openAuditLog(at.inside(auditName), "sandbox"); err == nil {
		_ = l.close()
		t.Error("it has a file of events")
	}
	if k.write() == nil {
		t.Error("it has stored what is known of the sandbox")
	}
	k.forget()
	if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
		t.Errorf("the directory of the next sandbox: %v, %v", entries, err)
	}
}
