package agentprofile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Of a settings file of which some keys were given, the user's own keys stay, and so do those that the user changed.
func TestTakeLeavesKeysThatTheSandboxWasNotGiven(t *testing.T) {
	const mine = `{"theme": "light", "hooks": {"PreToolUse": "my guard"}, "permissions": {"deny": ["rm"]}}`
	for _, row := range []struct{ host, inside, want string }{
		{mine, `{"theme": "light", "hooks": {}, "permissions": {}}`, "hooks"},
		{strings.Replace(mine, "light", "mine", 1), `{"theme": "dark"}`, "theme"},
		{strings.Replace(mine, "light", "mine", 1), `{"model": "m"}`, "theme"},
		{mine, "{\"model\": \"\xff\"}", "UTF-8"},
	} {
		p := newPlace(t, map[string]string{".fake/settings.json": mine})
		s := p.open(t)
		save(t, filepath.Join(s.Mounts(fakeProfile(t))[0].Source, "settings.json"), row.inside)
		at := filepath.Join(p.home, ".fake/settings.json")
		save(t, at, row.host)
		sum, err := Changes(p.dir, s.ID, fakeProfile(t))
		if err != nil || len(sum.List) != 1 {
			t.Fatalf("%+v, %v", sum, err)
		}
		if err := Take(p.dir, s.ID, p.home, sum.List[0]); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.inside, err, row.want)
		}
		if got := load(t, at); got != row.host {
			t.Errorf("the host has %s", got)
		}
	}
}

// What was shown is what is written.
func TestTakeRefusesWhatChangedAfterItWasShown(t *testing.T) {
	p := newPlace(t, map[string]string{".fake/settings.json": `{"theme": "light"}`})
	s := p.open(t)
	save(t, filepath.Join(s.Mounts(fakeProfile(t))[0].Source, "settings.json"), `{"theme": "blue"}`)
	sum, err := Changes(p.dir, s.ID, fakeProfile(t))
	if err != nil || len(sum.List) != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	c := sum.List[0]
	if _, _, err := c.Onto(p.home); err == nil {
		save(t, filepath.Join(p.home, ".fake/settings.json"), `{"theme": "light", "more": 1}`)
	} else {
		t.Fatal(err)
	}
	if err := Take(p.dir, s.ID, p.home, c); !errors.Is(err, paddock.Conflict) {
		t.Error(err)
	}
}

// However much a sandbox makes, what it planted elsewhere is shown, and what could not be read is not called removed.
func TestASandboxCannotHideAChangeBehindManyOthers(t *testing.T) {
	for name, fill := range map[string]func(at string) error{
		"links": func(at string) (err error) {
			for i := range 101 {
				err = errors.Join(err, os.Symlink("x", filepath.Join(at, fmt.Sprintf("rules/a%03d", i))))
			}
			return err
		},
		"names": func(at string) error { // links of one file, so that the test needs no space
			for i := range maxNames + 1 {
				if err := os.Link(filepath.Join(at, "rules/mine.md"), filepath.Join(at, fmt.Sprintf("rules/a%05d", i))); err != nil {
					return err
				}
			}
			return nil
		},
		"long names": func(at string) error { // together
			long := strings.Repeat("a", 250)
			dir := filepath.Join(at, "rules", long, long, long)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			for i := range maxText / 900 {
				if err := os.Link(filepath.Join(at, "rules/mine.md"), filepath.Join(dir, fmt.Sprintf("%s%04d", long, i))); err != nil {
					return err
				}
			}
			return nil
		},
		"large": func(at string) error { return os.Truncate(filepath.Join(at, "rules/mine.md"), maxFile+1) },
		"long": func(at string) error {
			top, err := os.OpenRoot(filepath.Join(at, "rules"))
			for range 17 {
				if err != nil {
					return err
				}
				name := strings.Repeat("a", 255)
				if err = top.Mkdir(name, 0o700); err == nil {
					below, wrong := top.OpenRoot(name)
					err = errors.Join(wrong, top.Close())
					top = below
				}
			}
			return errors.Join(err, top.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, map[string]string{".fake/rules/mine.md": "mine"})
			s := p.open(t)
			at := s.Mounts(fakeProfile(t))[0].Source
			if err := fill(at); err != nil {
				t.Fatal(err)
			}
			save(t, filepath.Join(at, "hooks/evil"), "evil")
			sum, err := Changes(p.dir, s.ID, fakeProfile(t))
			if err != nil {
				t.Fatal(err)
			}
			if name == "long names" { // those that were read are shown as well
				sum.List = slices.DeleteFunc(sum.List, func(c Change) bool { return strings.HasPrefix(c.Name, ".fake/rules/a") })
			}
			if len(sum.List) != 1 || sum.List[0].Name != ".fake/hooks/evil" {
				t.Errorf("%d changes: %.300v", len(sum.List), sum.List)
			}
			if cut := len(sum.Cut) > 0; cut != (name != "links") {
				t.Errorf("cut: %q", sum.Cut)
			}
			if len(sum.Notes) == 0 || len(sum.Notes) > maxNotes+1 {
				t.Errorf("%d notes", len(sum.Notes))
			}
		})
	}
}

// What stands beside a change and could not be compared keeps it from being taken.
func TestTakeRefusesAChangeOfAPathThatWasNotReadWhole(t *testing.T) {
	p := newPlace(t, nil)
	s := p.open(t)
	at := s.Mounts(fakeProfile(t))[0].Source
	save(t, filepath.Join(at, "hooks/a"), "a")
	save(t, filepath.Join(at, "hooks/b"), "b")
	if err := os.Truncate(filepath.Join(at, "hooks/b"), maxFile+1); err != nil {
		t.Fatal(err)
	}
	sum, err := Changes(p.dir, s.ID, fakeProfile(t))
	if err != nil || len(sum.List) != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if err := Take(p.dir, s.ID, p.home, sum.List[0]); !errors.Is(err, paddock.Denied) {
		t.Error(err)
	}
}

// Root takes over in the home of another user, whose files stay that user's. Modes stay as they are for everybody.
func TestWhatIsTakenBelongsToItsOwner(t *testing.T) {
	owner := os.Geteuid()
	if owner == 0 {
		owner = 65534
	}
	p := newPlace(t, map[string]string{".fake/settings.json": `{"theme": "light"}`, ".fake/rules/a.md": "a\n"})
	s := p.open(t)
	at := s.Mounts(fakeProfile(t))[0].Source
	save(t, filepath.Join(at, "settings.json"), `{"theme": "blue"}`)
	save(t, filepath.Join(at, "rules/a.md"), "b\n")
	save(t, filepath.Join(at, "hooks/deep/h"), "h\n")
	if err := os.Chmod(filepath.Join(at, "hooks/deep/h"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(filepath.Join(p.home, ".fake/settings.json"), 0o644), os.Chmod(filepath.Join(p.home, ".fake/rules/a.md"), 0o640)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{p.home, p.dir} {
		if err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(name, owner, -1))
		}); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := Changes(p.dir, s.ID, fakeProfile(t))
	if err != nil || len(sum.List) != 3 {
		t.Fatalf("%+v, %v", sum, err)
	}
	for _, c := range sum.List {
		if err := Take(p.dir, s.ID, p.home, c); err != nil {
			t.Error(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"settings.json": 0o644, "rules/a.md": 0o640, "hooks": 0o700, "hooks/deep": 0o700, "hooks/deep/h": 0o700} {
		for _, home := range []string{p.home, filepath.Join(s.dir, baseName)} {
			info, err := os.Lstat(filepath.Join(home, ".fake", name))
			if err != nil {
				t.Error(err)
				continue
			}
			if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != owner || home == p.home && info.Mode().Perm() != mode {
				t.Errorf("%s/%s is %s of %d", home, name, info.Mode(), st.Uid)
			}
		}
	}
	if sum, err := Changes(p.dir, s.ID, fakeProfile(t)); err != nil || len(sum.List) > 0 {
		t.Errorf("afterwards: %+v, %v", sum, err)
	}
}

// A directory that somebody exchanged is not given away.
func TestADirectoryThatWasExchangedIsNotGivenAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives away")
	}
	dir := t.TempDir()
	save(t, filepath.Join(dir, "full/secret"), "x")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o700), os.Chown(dir, 65534, -1)); err != nil {
		t.Fatal(err)
	}
	up, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(up)
	for name, want := range map[string]error{"full": paddock.Conflict, "empty": nil} {
		fd, err := sys.OpenDirAt(up, name)
		if err != nil {
			t.Fatal(err)
		}
		defer sys.Close(fd)
		if err := give(fd, up); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || (st.Uid == 65534) != (want == nil) {
			t.Errorf("%s belongs to %d", name, st.Uid)
		}
	}
}

// A sandbox can make large files that take no room on the disk, in each path.
func TestAComparisonHoldsLittle(t *testing.T) {
	p := newPlace(t, nil)
	profile := fakeProfile(t)
	profile.State.Obeyed = nil
	const paths, files = 8, 16
	for i := range paths {
		profile.State.Obeyed = append(profile.State.Obeyed, fmt.Sprintf("~/.fake/p%d", i))
	}
	s := p.open(t)
	at := s.Mounts(profile)[0].Source
	for i := range paths * files {
		name := filepath.Join(at, fmt.Sprintf("p%d/f%d", i%paths, i))
		save(t, name, "")
		if err := os.Truncate(name, maxFile); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sum, err := Changes(p.dir, s.ID, profile)
	runtime.ReadMemStats(&after)
	if err != nil || len(sum.List) != paths*files || len(sum.Cut) > 0 {
		t.Fatalf("%d changes, cut %q, %v", len(sum.List), sum.Cut, err)
	}
	if all := after.TotalAlloc - before.TotalAlloc; all > 64<<20 {
		t.Errorf("it took %d MiB in all", all>>20)
	}
	c := sum.List[0]
	if err := c.Read(); err != nil || c.Before != nil || len(c.After) != maxFile {
		t.Errorf("it has %d bytes: %v", len(c.After), err)
	}
	other := sum.List[1]
	save(t, filepath.Join(s.dir, homeName, other.Name), "other")
	if err := other.Read(); !errors.Is(err, paddock.Conflict) {
		t.Errorf("what was not compared is read: %v", err)
	}
	if err := Take(p.dir, s.ID, p.home, other); !errors.Is(err, paddock.Conflict) {
		t.Errorf("what was not compared is taken: %v", err)
	}
}

// The version of a program is read of a plain file only. A read that waits would never return.
func TestAVersionIsNotReadOfAPipeOrThroughALink(t *testing.T) {
	p := newPlace(t, map[string]string{"real.json": `{"version": "1.2.3"}`})
	at := filepath.Join(p.work, "bin")
	save(t, filepath.Join(at, "fake"), "x")
	prog := &Program{Real: filepath.Join(at, "fake")}
	file := filepath.Join(at, "package.json")
	if err := os.Symlink(filepath.Join(p.home, "real.json"), file); err != nil {
		t.Fatal(err)
	}
	if got := prog.Version(); got != "" {
		t.Errorf("through a link it is %s", got)
	}
	if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := prog.Version(); got != "" {
		t.Errorf("of a pipe it is %s", got)
	}
}
