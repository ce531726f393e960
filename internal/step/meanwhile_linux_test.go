package step

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// whys returns the reason of each change of a record, by its path.
func whys(rec *Record) map[string]string {
	all := map[string]string{}
	for i := range rec.Changes {
		all[string(rec.Changes[i].Path)] = rec.Changes[i].Why
	}
	return all
}

func TestADirectoryThatCameMeanwhileIsNotRemoved(t *testing.T) {
	for _, how := range []string{"whiteout", "opaque", "file"} {
		t.Run(how, func(t *testing.T) {
			r := layered(t, Options{}, map[string]string{"build/o": "1", "mine/p": "2", "mine/q/r": "3", "other/f": "4"})
			switch how {
			case "whiteout":
				whiteout(t, r.upper+"/build")
			case "opaque":
				must(t, os.Mkdir(r.upper+"/build", 0o755))
				opaque(t, r.upper+"/build")
			case "file":
				plant(t, r.upper, map[string]string{"build": "x"})
			}
			must(t, os.Rename(r.dir+"/mine", r.dir+"/build/mine"))
			rec := r.propose(t)
			for name, why := range whys(rec) {
				if why == "" {
					t.Errorf("%s is to go", name)
				}
			}
			a := r.apply(t, Application{Number: rec.Number})
			if got := content(t, r.dir+"/build/mine/p") + content(t, r.dir+"/build/mine/q/r") + content(t, r.dir+"/build/o"); got != "231" || len(a.Restored) > 0 {
				t.Errorf("%q is left, %+v", got, a)
			}
		})
	}
}

func TestExchangedDirectoriesAreNotTakenForEachOther(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"src/f": "1\n", "src/d/f": "1\n", "src/gone": "1", "other/f": "2\n", "other/d/f": "2\n", "other/gone": "2", "calm/f": "1\n"})
	plant(t, r.upper, map[string]string{"src/f": "one\n", "src/d/f": "one\n", "src/new": "1", "calm/f": "one\n"})
	whiteout(t, r.upper+"/src/gone")
	must(t, os.Rename(r.dir+"/src", r.dir+"/old"))
	must(t, os.Rename(r.dir+"/other", r.dir+"/src"))
	rec := r.propose(t)
	for name, why := range whys(rec) {
		if (why == "") != (name == "calm/f") {
			t.Errorf("%s: %q", name, why)
		}
	}
	r.apply(t, Application{Number: rec.Number})
	if got := content(t, r.dir+"/src/f") + content(t, r.dir+"/src/d/f") + content(t, r.dir+"/src/gone") + content(t, r.dir+"/calm/f"); got != "2\n2\n2one\n" {
		t.Errorf("%q", got)
	}
}

func TestTheModeOfADirectoryThatChangedMeanwhileStays(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"keys/a": "1", "open/b": "1"})
	plant(t, r.upper, map[string]string{"keys/new": "2"})
	must(t, os.Mkdir(r.upper+"/open", 0o700))
	must(t, os.Chmod(r.upper+"/keys", 0o755))
	must(t, os.Chmod(r.dir+"/keys", 0o700))
	rec := r.propose(t)
	a := r.apply(t, Application{Number: rec.Number})
	for name, want := range map[string]os.FileMode{"keys": 0o700, "open": 0o700} {
		if st, err := os.Stat(r.dir + "/" + name); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	if len(a.Conflicts) == 0 || a.Conflicts[0].Path != "keys" || a.Conflicts[0].Why != whyWhile {
		t.Errorf("%+v", a.Conflicts)
	}
}

func TestAFileThatChangesWhileTheProposalIsMadeIsAConflict(t *testing.T) {
	for _, size := range []int{10, baseText + 1} {
		r := layered(t, Options{}, map[string]string{"f": strings.Repeat("1", size)})
		plant(t, r.upper, map[string]string{"f": strings.Repeat("2", 1<<20)})
		now := false
		r.v.kept = func() {
			if !now {
				now = true
				plant(t, r.dir, map[string]string{"f": strings.Repeat("3", size)})
			}
		}
		rec := r.propose(t)
		if !now {
			t.Fatal("it did not change")
		}
		if why := whys(rec)["f"]; why != whyWhile {
			t.Errorf("%q", why)
		}
		r.apply(t, Application{Number: rec.Number})
		if got := content(t, r.dir+"/f"); got != strings.Repeat("3", size) {
			t.Errorf("%.20q", got)
		}
	}
}

// mounted mounts the overlay of a layer in a mount namespace, runs a script in it as a guest would, and unmounts it.
func (r *reviewing) mounted(t *testing.T, script string) {
	t.Helper()
	at := t.TempDir()
	options := "userxattr,lowerdir=" + r.dir + ",upperdir=" + r.upper + ",workdir=" + filepath.Dir(r.upper) + "/work"
	c := exec.Command("/bin/sh", "-ec", `mount -t overlay -o "$1" overlay "$2" || exit 77; cd "$2"; eval "$3"`, "sh", options, at, script)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
	out, err := c.CombinedOutput()
	if c.ProcessState != nil && c.ProcessState.ExitCode() == 77 || c.ProcessState == nil {
		t.Skipf("needs the right to mount an overlay: %v: %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestARemovedFileDoesNotComeBackAndAMovedOneDoes(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"a": "1\n", "d/b": "1\n", "d/keep": "1\n", "from": "1\n", "dir/f": "1\n", "e/edit": "1\n", "e/x": "1", "sub/deep/f": "1\n", "sub/deep/g": "1\n"})
	r.mounted(t, `echo guest >> a; echo guest >> d/b; mv from to; echo new > new; echo guest >> dir/f; echo new > e/new; echo guest >> e/edit; mv d/keep d/moved; echo guest >> sub/deep/f`)
	for _, name := range []string{"a", "d/b"} {
		must(t, os.Remove(r.dir+"/"+name))
	}
	must(t, os.RemoveAll(r.dir+"/dir"))
	plant(t, r.dir, map[string]string{"e/mine": "1", "sub/mine": "1"})
	must(t, os.Rename(r.dir+"/sub", r.dir+"/sub2")) // away and back: the same directory
	must(t, os.Rename(r.dir+"/sub2", r.dir+"/sub"))
	rec := r.propose(t)
	want := map[string]string{"a": whyRemoved, "d/b": whyRemoved, "d/keep": "", "d/moved": "", "from": "", "to": "", "new": "", "dir": whyRemoved, "dir/f": whyRemoved, "e/new": "", "e/edit": "", "sub/deep/f": ""}
	got := whys(rec)
	for name, why := range want {
		if is, there := got[name]; !there || is != why {
			t.Errorf("%s: %q, %v", name, is, there)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	r.apply(t, Application{Number: rec.Number})
	for name, want := range map[string]string{"a": "(absent)", "d/b": "(absent)", "to": "1\n", "from": "(absent)", "new": "new\n", "dir/f": "(absent)", "e/edit": "1\nguest\n", "e/mine": "1", "sub/deep/f": "1\nguest\n"} {
		if got := content(t, r.dir+"/"+name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestExchangedDirectoriesOfARealOverlayAreNotTakenForEachOther(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"src/f": "1\n", "other/f": "2\n"})
	r.mounted(t, `echo guest >> src/f`)
	must(t, os.Rename(r.dir+"/src", r.dir+"/old"))
	must(t, os.Rename(r.dir+"/other", r.dir+"/src"))
	rec := r.propose(t)
	if why := whys(rec)["src/f"]; why != whyWhile {
		t.Errorf("%q", why)
	}
	if got := originOf(""); got != "" || originOf("\x00\xfb\x16\x00\x01"+strings.Repeat("u", 16)+"h") != "\x01h" {
		t.Errorf("%q", got)
	}
}

func TestBasesDoNotTakeTheRoomOfChanges(t *testing.T) {
	const part = 300 << 10
	files, change := map[string]string{}, map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		files[name] = strings.Repeat(name, part)
		change[name] = strings.Repeat("new"+name, part/4)
	}
	r := layered(t, Options{Step: 1 << 20}, files)
	plant(t, r.upper, change)
	rec := r.propose(t)
	if len(rec.Changes) != 3 || rec.Changes[0].Kept == 0 || rec.Changes[2].Kept == 0 {
		t.Errorf("%+v", rec.Changes)
	}
	if a := r.apply(t, Application{Number: rec.Number}); len(a.Conflicts) > 0 || content(t, r.dir+"/c") != change["c"] {
		t.Errorf("%+v", a.Conflicts)
	}
}

func TestANewDirectoryHasItsModeBeforeWhatIsInIt(t *testing.T) {
	r := layered(t, Options{}, nil)
	plant(t, r.upper, map[string]string{"open/f": "1", "closed/f": "1"})
	must(t, os.Chmod(r.upper+"/open", 0o775))
	must(t, os.Chmod(r.upper+"/closed", 0o555))
	rec := r.propose(t)
	looked := 0
	r.j.built = func(string) { // what stays if it is killed here
		looked++
		for name, want := range map[string]os.FileMode{"open": 0o775, "closed": 0o755} {
			if st, err := os.Stat(r.dir + "/" + name); err != nil || st.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", name, st, err)
			}
		}
	}
	if a := r.apply(t, Application{Number: rec.Number}); len(a.Conflicts) > 0 || looked != 2 {
		t.Errorf("%+v", a)
	}
	if st, err := os.Stat(r.dir + "/closed"); err != nil || st.Mode().Perm() != 0o555 {
		t.Errorf("%v, %v", st, err)
	}
}

func TestWhatWasLookedAtBeforeItChangedIsKnownWithoutTheKernel(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"d/e": "1\n", "d/gone": "1\n", "x/e": "1\n", "y/e": "2\n", "late/e": "1\n"})
	for _, name := range []string{"d/e", "d/new", "x/e", "x/new"} {
		r.l.Changing(r.dir, name)
	}
	plant(t, r.upper, map[string]string{"d/e": "1\ng\n", "d/new": "n", "d/gone": "g", "x/e": "1\ng\n", "x/new": "n", "late/e": "g"})
	for _, name := range []string{"d/gone", "d/new"} { // as copies of files of which the kernel does not tell which
		attribute(t, r.upper+"/"+name, "user.overlay.origin", "")
	}
	must(t, os.Remove(r.dir+"/d/gone"))
	plant(t, r.dir, map[string]string{"d/mine": "1", "late/mine": "1"})
	must(t, os.Rename(r.dir+"/x", r.dir+"/z"))
	must(t, os.Rename(r.dir+"/y", r.dir+"/x"))
	for _, name := range []string{"x/e", "x/other", "late/e"} { // too late
		r.l.Changing(r.dir, name)
	}
	want := map[string]string{"d/e": "", "d/new": "", "d/gone": whyRemoved, "x/e": whyWhile, "x/new": whyRemoved, "late/e": whyWhile}
	got := whys(r.propose(t))
	for name, why := range want {
		if is, there := got[name]; !there || is != why {
			t.Errorf("%s: %q, %v", name, is, there)
		}
	}
}
