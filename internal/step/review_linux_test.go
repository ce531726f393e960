package step

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A reviewing is a directory with a layer over it, in which a test plays the overlay.
type reviewing struct {
	j     *Journal
	v     *Reviews
	l     *Layers
	dir   string // of the host
	upper string
}

// layered makes a directory with files, and a layer over it.
func layered(t testing.TB, o Options, files map[string]string) *reviewing {
	t.Helper()
	r := &reviewing{j: journal(t, Options{}), dir: workspace(t)}
	plant(t, r.dir, files)
	older(t, r.dir)
	var err error
	r.v, err = OpenReviews(filepath.Join(t.TempDir(), "reviews"), o)
	must(t, err)
	t.Cleanup(func() { r.v.Close() })
	r.begin(t)
	return r
}

func (r *reviewing) begin(t testing.TB) {
	t.Helper()
	var err error
	r.l, err = r.v.Begin(t.Context(), About{Command: []string{"x"}, Roots: []Root{{Path: Text(r.dir), Target: "/w"}}})
	must(t, err)
	r.upper = filepath.Join(r.l.Dirs()[r.dir], "upper")
}

// older waits until what is in a directory is older than what comes.
func older(t testing.TB, dir string) {
	t.Helper()
	start := time.Now().UnixNano()
	probe := dir + ".probe"
	for {
		must(t, os.WriteFile(probe, nil, 0o600))
		a, err := sys.AttrAt(sys.AtCWD, probe)
		must(t, err)
		must(t, os.Remove(probe))
		if a.Change.Sec*1e9+int64(a.Change.Nsec) > start+2*int64(tick) {
			return
		}
	}
}

func (r *reviewing) propose(t testing.TB) *Record {
	t.Helper()
	rec, err := r.l.Propose(t.Context(), Proposer{Sandbox: "sb", Tier: paddock.Jail})
	must(t, err)
	if rec == nil {
		t.Fatal("there is no proposal")
	}
	rec, err = r.v.Read(t.Context(), rec.Number)
	must(t, err)
	return rec
}

func (r *reviewing) apply(t testing.TB, q Application) *Applied {
	t.Helper()
	a, err := r.j.Apply(t.Context(), r.v, q)
	must(t, err)
	return a
}

// paths lists the changes of a record, with a letter for each.
func paths(rec *Record) string {
	var list []string
	for i := range rec.Changes {
		c := &rec.Changes[i]
		mark := "M "
		switch {
		case !c.Before.Exists():
			mark = "D "
		case !c.After.Exists():
			mark = "A "
		}
		list = append(list, mark+string(c.Path))
	}
	return strings.Join(list, ", ")
}

func opaque(t testing.TB, path string) {
	t.Helper()
	attribute(t, path, "user.overlay.opaque", "y")
}

func attribute(t testing.TB, path, key, value string) {
	t.Helper()
	d, err := os.Open(filepath.Dir(path))
	must(t, err)
	defer d.Close()
	must(t, sys.SetAttributeAt(int(d.Fd()), filepath.Base(path), key, value))
}

func whiteout(t testing.TB, path string) {
	t.Helper()
	if err := syscall.Mknod(path, syscall.S_IFCHR, 0); err != nil {
		t.Skip("needs the right to make a whiteout: ", err)
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "(absent)"
	}
	must(t, err)
	return string(b)
}

func TestALayerBecomesAProposal(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"gone": "1", "d/a": "2", "d/b": "3", "o/x": "4", "o/y": "5", "o/s/z": "6", "file": "7", "tree/k": "8", "same": "9"})
	whiteout(t, r.upper+"/gone")
	whiteout(t, r.upper+"/d")
	plant(t, r.upper, map[string]string{"o/x": "new", "o/s/w": "new", "new/deep/f": "n", "tree": "a file now", "file/in": "a directory now", "same": "9"})
	opaque(t, r.upper+"/o")
	whiteout(t, r.upper+"/nothing")
	rec := r.propose(t)
	const want = "M file, A file/in, D gone, D d, D d/a, D d/b, A new, A new/deep, A new/deep/f, M o/x, D o/y, A o/s/w, D o/s/z, M tree, D tree/k"
	got := strings.Split(paths(rec), ", ")
	slices.Sort(got)
	sorted := strings.Split(want, ", ")
	slices.Sort(sorted)
	if !slices.Equal(got, sorted) || len(rec.Left) > 0 || rec.Incomplete {
		t.Errorf("%q, left %+v", got, rec.Left)
	}
	if a := r.apply(t, Application{Number: rec.Number}); len(a.Conflicts) > 0 || a.Stays != 0 || a.Step == 0 {
		t.Errorf("%+v", a)
	}
	for name, text := range map[string]string{"gone": "(absent)", "d/a": "(absent)", "o/x": "new", "o/y": "(absent)", "o/s/w": "new", "o/s/z": "(absent)", "new/deep/f": "n", "tree": "a file now", "file/in": "a directory now", "same": "9"} {
		if got := content(t, r.dir+"/"+name); got != text {
			t.Errorf("%s is %q", name, got)
		}
	}
	if list, err := r.v.List(t.Context(), Filter{}); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	steps, err := r.j.List(t.Context(), Filter{})
	if err != nil || len(steps) != 1 || steps[0].Kind != "apply" || len(steps[0].Undoes) > 0 {
		t.Fatalf("%+v, %v", steps, err)
	}
	if res := undoing(t, r.j, steps[0].Number); len(res.Conflicts) > 0 {
		t.Errorf("%+v", res.Conflicts)
	}
	for name, text := range map[string]string{"gone": "1", "d/a": "2", "d/b": "3", "o/x": "4", "o/y": "5", "o/s/z": "6", "file": "7", "tree/k": "8", "new/deep/f": "(absent)"} {
		if got := content(t, r.dir+"/"+name); got != text {
			t.Errorf("after the undo %s is %q", name, got)
		}
	}
}

func TestAHostileLayerReachesNothing(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	r := layered(t, Options{}, map[string]string{".git/config": "[core]\n", ".git/HEAD": "ref: refs/heads/main\n", "closed/f": "1", "redirected/f": "1"})
	must(t, os.Symlink(filepath.Dir(secret), r.upper+"/outside"))
	must(t, os.Symlink(secret, r.upper+"/link"))
	must(t, syscall.Mkfifo(r.upper+"/fifo", 0o600))
	must(t, syscall.Mknod(r.upper+"/socket", syscall.S_IFSOCK|0o600, 0))
	plant(t, r.upper, map[string]string{
		".git/hooks/post-checkout": "evil", ".envrc": "evil", ".git/config": "[core]\n\tfsmonitor = evil\n", ".paddock/undo-x/f": "x",
		"closed/g": "2", "redirected/g": "3", "bytes/\xff\n": "4", "mode": "5", ".git/info/attributes": "x", "meta": "6",
	})
	must(t, os.Symlink("/", r.upper+"/.git/objects"))
	attribute(t, r.upper+"/redirected", "user.overlay.redirect", "/closed")
	attribute(t, r.upper+"/meta", "user.overlay.metacopy", "")
	must(t, os.Truncate(r.upper+"/mode", 1<<40)) // a hole
	must(t, os.Link(r.upper+"/bytes/\xff\n", r.upper+"/hard"))
	deep, err := os.OpenRoot(r.upper)
	must(t, err)
	for i := range 300 {
		name := strings.Repeat("d", 100)
		must(t, deep.Mkdir(name, 0o700))
		next, err := deep.OpenRoot(name)
		must(t, err)
		must(t, deep.Close())
		if deep = next; i == 299 {
			must(t, deep.WriteFile("bottom", []byte("x"), 0o600))
		}
	}
	must(t, deep.Close())
	must(t, os.Chmod(r.upper+"/mode", 0))
	must(t, os.Chmod(r.upper+"/closed", 0))
	rec := r.propose(t)
	left := map[string]string{}
	for _, l := range rec.Left {
		left[string(l.Path)] = l.Why
	}
	if left["socket"] != whySpecial || left["redirected"] != whyStrange || left["meta"] != whyStrange || !slices.ContainsFunc(rec.Left, func(l Left) bool { return l.Why == whyLong }) {
		t.Errorf("left %+v", left)
	}
	if strings.Contains(paths(rec), ".paddock") || strings.Contains(paths(rec), "outside/") {
		t.Errorf("%s", paths(rec))
	}
	a := r.apply(t, Application{Number: rec.Number})
	var refused []string
	for _, c := range a.Conflicts {
		refused = append(refused, string(c.Path))
		if c.Why == "" || c.Remedy == "" {
			t.Errorf("%+v", c)
		}
	}
	slices.Sort(refused)
	if want := []string{".envrc", ".git/config", ".git/hooks/post-checkout", ".git/info/attributes", ".git/objects"}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, not %q", refused, want)
	}
	if st, err := os.Stat(r.dir + "/closed"); err != nil || st.Mode().Perm() != 0 {
		t.Errorf("%v, %v", st, err)
	}
	must(t, os.Chmod(r.dir+"/closed", 0o700))
	for name, want := range map[string]string{".envrc": "(absent)", ".git/hooks/post-checkout": "(absent)", ".git/config": "[core]\n", "closed/g": "2", "bytes/\xff\n": "4", "hard": "4"} {
		if got := content(t, r.dir+"/"+name); got != want {
			t.Errorf("%q is %q", name, got)
		}
	}
	if st, err := os.Lstat(r.dir + "/mode"); err != nil || st.Mode().Perm() != 0 || st.Size() != 1<<40 {
		t.Errorf("%v, %v", st, err)
	}
	must(t, os.Remove(r.dir+"/mode")) // of which a backup would read a terabyte of zeros
	if to, err := os.Readlink(r.dir + "/link"); err != nil || to != secret || content(t, secret) != "secret" {
		t.Errorf("%q, %v", to, err)
	}
	if names, err := os.ReadDir(r.v.dir + "/" + dirLayers); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestWhatWasChangedMeanwhileIsMergedOrAConflict(t *testing.T) {
	const text = "1\n2\n3\n4\n5\n6\n7\n8\n"
	r := layered(t, Options{}, map[string]string{
		"merge": text, "conflict": text, "binary": "a\x00b", "removed": text, "both": text, "mode": text, "deleted": "x", "kept": "y", "during": text, "same": text,
	})
	plant(t, r.upper, map[string]string{
		"merge": "one\n" + text[2:], "conflict": "one\n" + text[2:], "binary": "a\x00c", "removed": "one\n" + text[2:], "both": "one\n" + text[2:],
		"new": "theirs", "mode": text, "during": "one\n" + text[2:], "same": "one\n" + text[2:], "free": "theirs",
	})
	must(t, os.Chmod(r.upper+"/mode", 0o755))
	must(t, os.WriteFile(r.dir+"/during", []byte(text+"9\n"), 0o644))
	rec := r.propose(t)
	plant(t, r.dir, map[string]string{
		"merge": text + "9\n", "conflict": "ONE\n" + text[2:], "binary": "a\x00d", "both": "one\n" + text[2:], "new": "ours", "mode": text + "9\n", "same": "one\n" + text[2:],
	})
	must(t, os.Remove(r.dir+"/removed"))
	list, err := r.v.Propositions(t.Context(), rec.Number, []string{r.dir + "/merge"})
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Text, "-1\n+one\n 2\n") || strings.Contains(list[0].Text, "+9") {
		t.Errorf("%+v, %v", list, err)
	}
	for name, why := range map[string]string{"conflict": whyBoth, "during": whyWhile} {
		list, err := r.v.Propositions(t.Context(), rec.Number, []string{r.dir + "/" + name})
		if err != nil || len(list) != 1 || list[0].Why != why || !strings.Contains(list[0].Text, "+one\n") {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	a := r.apply(t, Application{Number: rec.Number})
	var conflicts []string
	for _, c := range a.Conflicts {
		conflicts = append(conflicts, string(c.Path))
	}
	slices.Sort(conflicts)
	if want := []string{"binary", "conflict", "during", "new", "removed"}; !slices.Equal(conflicts, want) || a.Stays != len(want) {
		t.Errorf("conflicts %q, %d stay", conflicts, a.Stays)
	}
	for name, want := range map[string]string{
		"merge": "one\n" + text[2:] + "9\n", "conflict": "ONE\n" + text[2:], "binary": "a\x00d", "removed": "(absent)", "both": "one\n" + text[2:], "new": "ours",
		"mode": text + "9\n", "during": text + "9\n", "free": "theirs",
	} {
		if got := content(t, r.dir+"/"+name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if st, err := os.Stat(r.dir + "/mode"); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	for _, x := range a.Restored {
		if merged := x.Path == "merge" || x.Path == "mode"; merged != (x.Note != "") {
			t.Errorf("%s: %q", x.Path, x.Note)
		}
	}
}

func TestPartsOfAProposalAreApplied(t *testing.T) {
	const text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	r := layered(t, Options{}, map[string]string{"a": text, "b": text, "d/gone": "1"})
	plant(t, r.upper, map[string]string{"a": "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n", "b": "changed\n", "new/f": "1", "new/g": "2"})
	whiteout(t, r.upper+"/d")
	rec := r.propose(t)
	a := r.apply(t, Application{Number: rec.Number, Paths: []string{r.dir + "/b"}})
	if got := content(t, r.dir+"/b"); got != "changed\n" || content(t, r.dir+"/a") != text || a.Stays != 6 {
		t.Errorf("b is %q, %+v", got, a)
	}
	asked := map[string]int{}
	a = r.apply(t, Application{Number: rec.Number, Pick: func(o *Offer) (Choice, error) {
		asked[string(o.Path)] = len(o.Hunks)
		switch o.Path {
		case "a":
			return Choice{Hunks: []int{0, 2}}, nil
		case "new/g":
			return Choice{All: true}, nil
		}
		return Choice{}, nil
	}})
	if len(asked) != 4 || asked["a"] != 3 || len(a.Conflicts) > 0 || a.Stays != 4 {
		t.Errorf("asked %v, %+v", asked, a)
	}
	if got := content(t, r.dir+"/a"); got != "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" || content(t, r.dir+"/new/g") != "2" || content(t, r.dir+"/new/f") != "(absent)" || content(t, r.dir+"/d/gone") != "1" {
		t.Errorf("a is %q", got)
	}
	a = r.apply(t, Application{Number: rec.Number, Pick: func(o *Offer) (Choice, error) {
		if o.Path == "a" && len(o.Hunks) != 1 {
			t.Errorf("%d hunks are left", len(o.Hunks))
		}
		return Choice{All: o.Path != "new/f"}, nil
	}})
	if got := content(t, r.dir+"/a"); got != "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n" || content(t, r.dir+"/d/gone") != "(absent)" || a.Stays != 1 || len(a.Conflicts) > 0 {
		t.Errorf("a is %q, %+v", got, a)
	}
	if _, err := os.Lstat(r.dir + "/d"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	must(t, r.v.Discard(t.Context(), rec.Number))
	if _, err := r.j.Apply(t.Context(), r.v, Application{Number: rec.Number}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("after it was discarded: %v", err)
	}
}

func TestAnApplicationThatWasCutOffGoesOn(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"a": "1\n", "b": "2\n", "c/d": "3\n"})
	plant(t, r.upper, map[string]string{"a": "one\n", "b": "two\n", "new/e": "4\n"})
	whiteout(t, r.upper+"/c")
	rec := r.propose(t)
	r.apply(t, Application{Number: rec.Number, Paths: []string{r.dir + "/a", r.dir + "/c"}})
	must(t, r.v.put(t.Context(), rec, 0)) // as if it was killed before it took out what it had applied
	a := r.apply(t, Application{Number: rec.Number})
	if len(a.Conflicts) > 0 || a.Stays != 0 {
		t.Errorf("%+v", a)
	}
	for name, want := range map[string]string{"a": "one\n", "b": "two\n", "c/d": "(absent)", "new/e": "4\n"} {
		if got := content(t, r.dir+"/"+name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestWhatAKilledRunLeftBecomesAProposalOnce(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"a": "1\n"})
	plant(t, r.upper, map[string]string{"a": "one\n"})
	if list, err := r.v.Salvage(t.Context(), true); err != nil || len(list) > 0 {
		t.Errorf("of a run that goes on: %+v, %v", list, err)
	}
	must(t, r.l.Leave())
	if left, err := r.v.Layered(); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	list, err := r.v.Salvage(t.Context(), true)
	if err != nil || len(list) != 1 || !list[0].Incomplete || list[0].Exit != -1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if again, err := r.v.Salvage(t.Context(), true); err != nil || len(again) > 0 {
		t.Errorf("%+v, %v", again, err)
	}
	// It was killed between the proposal and the removal of the layers.
	r.begin(t)
	plant(t, r.upper, map[string]string{"a": "uno\n"})
	must(t, r.v.root.WriteFile(layerPath(r.l.name, fileProposed), fmt.Appendf(nil, "%d", list[0].Number), 0o600))
	must(t, r.l.Leave())
	if again, err := r.v.Salvage(t.Context(), true); err != nil || len(again) > 0 {
		t.Errorf("%+v, %v", again, err)
	}
	if left, err := r.v.Layered(); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	// Nothing was in the layer.
	r.begin(t)
	if rec, err := r.l.Propose(t.Context(), Proposer{}); rec != nil || err != nil {
		t.Errorf("%+v, %v", rec, err)
	}
	r.begin(t)
	must(t, r.l.Abandon())
	if all, err := r.v.List(t.Context(), Filter{}); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A layer of sparse files needs no room, and takes long. It must not hold up what comes.
func TestALayerThatTakesLongHoldsUpNothing(t *testing.T) {
	r := layered(t, Options{}, nil)
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprint("f", i)] = "x"
	}
	plant(t, r.upper, files)
	must(t, r.l.Leave())
	ctx, cancel := context.WithCancel(t.Context())
	kept := 0
	r.v.kept = func() { kept++; cancel() }
	if list, err := r.v.Salvage(ctx, false); !errors.Is(err, context.Canceled) || len(list) > 0 || kept != 1 {
		t.Errorf("%+v, %v, after %d files", list, err, kept)
	}
	r.v.kept = func() { kept++ }
	if list, err := r.v.Salvage(t.Context(), false); err != nil || len(list) > 0 || kept != 1 {
		t.Errorf("by another command: %+v, %v", list, err)
	}
	if list, err := r.v.Salvage(t.Context(), true); err != nil || len(list) != 1 || list[0].Changed != 30 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestHolesAreHashedWithinABound(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Truncate(writeFile(t, dir, "hole"), 1<<20))
	writeFile(t, dir, "data")
	root, err := openTree(dir)
	must(t, err)
	defer root.close()
	root.holes.Store(mostHoles - 1<<19)
	for name, want := range map[string]bool{"hole": false, "data": true} {
		s, err := root.stat(name)
		must(t, err)
		if s, err = root.digest(name, s, 1<<30); err != nil || (s.Digest != "") != want {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func writeFile(t *testing.T, dir, name string) string {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	return filepath.Join(dir, name)
}

func TestALayerForWhichThereIsNoRoomStays(t *testing.T) {
	r := layered(t, Options{Size: 100 << 10, Step: 100 << 10}, nil)
	plant(t, r.upper, map[string]string{"large": strings.Repeat("x", 200<<10)})
	if rec, err := r.l.Propose(t.Context(), Proposer{}); !errors.Is(err, paddock.Exhausted) || rec != nil {
		t.Fatalf("%+v, %v", rec, err)
	}
	if drafts, err := r.v.store.Drafts(); err != nil || len(drafts) > 0 {
		t.Errorf("drafts %v, %v", drafts, err)
	}
	left, err := r.v.Layered()
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	larger, err := OpenReviews(r.v.dir, Options{})
	must(t, err)
	defer larger.Close()
	if list, err := larger.Salvage(t.Context(), true); err != nil || len(list) != 1 || list[0].Changed != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestOldProposalsGo(t *testing.T) {
	r := layered(t, Options{Age: time.Nanosecond}, nil)
	plant(t, r.upper, map[string]string{"a": "1"})
	r.propose(t)
	if _, err := r.v.Salvage(t.Context(), true); err != nil {
		t.Error(err)
	}
	if list, err := r.v.List(t.Context(), Filter{}); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestADirectoryThatWasExchangedIsAConflict(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"a": "1\n"})
	plant(t, r.upper, map[string]string{"a": "one\n"})
	must(t, os.Rename(r.dir, r.dir+".old"))
	must(t, os.Mkdir(r.dir, 0o755))
	plant(t, r.dir, map[string]string{"a": "1\n"})
	rec := r.propose(t)
	a := r.apply(t, Application{Number: rec.Number})
	if len(a.Conflicts) != 1 || a.Conflicts[0].Why != whyOther || content(t, r.dir+"/a") != "1\n" {
		t.Errorf("%+v", a)
	}
}

func TestTextThatWasChangedWhileTheCommandRanIsMergedIfItsBaseWasSaved(t *testing.T) {
	const text = "1\n2\n3\n4\n5\n6\n7\n8\n"
	r := layered(t, Options{}, map[string]string{"told": text, "late": text, "large": strings.Repeat("x", 2<<20), "gone": text, "d/x": text})
	for _, name := range []string{"told", "told", "large", "gone", "d", "missing", "d/x/../../told", "/etc/passwd", ""} {
		r.l.Changing(r.dir, name)
	}
	r.l.Changing("/elsewhere", "told")
	plant(t, r.upper, map[string]string{"told": "one\n" + text[2:], "late": "one\n" + text[2:], "large": "y"})
	whiteout(t, r.upper+"/gone")
	plant(t, r.dir, map[string]string{"told": text + "9\n", "late": text + "9\n", "large": "z", "gone": text + "9\n"})
	r.l.Changing(r.dir, "late") // a forged report: the guest changed it before
	rec := r.propose(t)
	a := r.apply(t, Application{Number: rec.Number})
	var conflicts []string
	for _, c := range a.Conflicts {
		conflicts = append(conflicts, string(c.Path))
	}
	slices.Sort(conflicts)
	if !slices.Equal(conflicts, []string{"gone", "large", "late"}) {
		t.Errorf("conflicts %+v", a.Conflicts)
	}
	for name, want := range map[string]string{"told": "one\n" + text[2:] + "9\n", "late": text + "9\n", "large": "z", "gone": text + "9\n", "d/x": text} {
		if got := content(t, r.dir+"/"+name); got != want {
			t.Errorf("%s is %.100q", name, got)
		}
	}
}

func TestMountsBelowADirectoryAreFound(t *testing.T) {
	const table = "21 1 0:1 / / rw - ext4 a rw\n22 21 0:2 / /work/a\\040b rw shared:1 - tmpfs t rw\n23 21 0:2 / /workshop rw - tmpfs t rw\n24 21 0:3 / /other rw - tmpfs t rw\nx\n"
	for dir, want := range map[string]string{"/work": "/work/a b", "/work/a b": "", "/other": "", "/shop": "", "/workshop/x": "", "/": "/work/a b"} {
		if got := mountBelow(table, dir); got != want {
			t.Errorf("below %q: %q", dir, got)
		}
	}
}
