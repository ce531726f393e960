package step

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAClosedDirectoryOfALayerDoesNotEndTheProposal(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o100, 0o200, 0o300, 0o400, 0o600} {
		t.Run(mode.String(), func(t *testing.T) {
			r := layered(t, Options{}, nil)
			plant(t, r.upper, map[string]string{"work": "1", "e/f": "2", "e/d/g": "3"})
			for _, name := range []string{"/e/d", "/e", "/"} {
				must(t, os.Chmod(r.upper+name, mode))
			}
			ordinary(t)
			rec := r.propose(t)
			if got := paths(rec); got != "A e, A e/d, A e/d/g, A e/f, A work" || len(rec.Left) > 0 {
				t.Errorf("%s, left %+v", got, rec.Left)
			}
			for i := range rec.Changes {
				if c := &rec.Changes[i]; c.Before.Kind == Dir && c.Before.Mode != uint32(mode) {
					t.Errorf("%s has mode %o", c.Path, c.Before.Mode)
				}
			}
			r.apply(t, Application{Number: rec.Number})
			if st, err := os.Stat(r.dir + "/e"); err != nil || st.Mode().Perm() != mode {
				t.Errorf("%v, %v", st, err)
			}
			must(t, os.Chmod(r.dir+"/e", 0o700))
			must(t, os.Chmod(r.dir+"/e/d", 0o700))
		})
	}
}

func TestALayerOfWhichThereIsAnErrorIsLeftAloneUntilItIsAskedFor(t *testing.T) {
	r := layered(t, Options{Size: 100 << 10, Step: 100 << 10}, nil)
	plant(t, r.upper, map[string]string{"large": strings.Repeat("x", 200<<10)})
	must(t, r.l.Leave())
	for i, want := range []bool{true, false, false} {
		if _, err := r.v.Salvage(t.Context(), false); (err != nil) != want {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := r.v.Salvage(t.Context(), true); err == nil {
		t.Error("it was not tried again")
	}
	left, err := r.v.Layered()
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	must(t, r.v.DiscardLayer(left[0]))
	if list, err := r.v.Salvage(t.Context(), true); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestALayerThatCannotBeReadStays(t *testing.T) {
	for name, about := range map[string]string{"version": `{"v":2,"roots":[{"path":"/x"}]}`, "cut": `{"v":1`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			r := layered(t, Options{}, nil)
			plant(t, r.upper, map[string]string{"a": "1"})
			must(t, r.v.root.WriteFile(layerPath(r.l.name, fileAbout), []byte(about), 0o600))
			must(t, r.l.Leave())
			if list, err := r.v.Salvage(t.Context(), true); err == nil || len(list) > 0 {
				t.Errorf("%+v, %v", list, err)
			}
			if left, err := r.v.Layered(); err != nil || len(left) != 1 || content(t, r.upper+"/a") != "1" {
				t.Errorf("%v, %v", left, err)
			}
		})
	}
	r := layered(t, Options{}, nil)
	must(t, r.v.root.WriteFile(layerPath(r.l.name, fileAbout), []byte("{"), 0o600))
	must(t, r.l.Leave())
	must(t, os.MkdirAll(r.v.dir+"/"+dirLayers+"/"+goneLayer+"x/0/upper", 0o700))
	if list, err := r.v.Salvage(t.Context(), true); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if names, err := os.ReadDir(r.v.dir + "/" + dirLayers); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestTheSearchEndsWhereAProposalIsFull(t *testing.T) {
	r := layered(t, Options{Changes: 10}, map[string]string{"gone/f": "1"})
	files := map[string]string{}
	for _, dir := range []string{"a", "b", "c", "d", "e"} {
		for i := range 9 {
			files[dir+"/"+strings.Repeat("f", i+1)] = "1"
		}
	}
	plant(t, r.upper, files)
	must(t, os.Symlink("x", r.upper+"/e/special"))
	attribute(t, r.upper+"/e", "user.overlay.redirect", "/closed")
	whiteout(t, r.upper+"/gone")
	rec := r.propose(t)
	// The strange directory comes after the bound, so it is not come upon.
	if len(rec.Changes) != 10 || !rec.Incomplete || len(rec.Left) != 1 || rec.Left[0].Why != whyMany {
		t.Errorf("%d changes, left %+v", len(rec.Changes), rec.Left)
	}
	// Of a directory that is not read to its end nothing is taken for removed.
	r = layered(t, Options{Changes: 2}, map[string]string{"d/0": "1", "d/z": "1"})
	must(t, os.Mkdir(r.upper+"/d", 0o755))
	opaque(t, r.upper+"/d")
	for i := range 20 {
		must(t, os.WriteFile(r.upper+"/d/"+string(rune('a'+i)), nil, 0o600))
	}
	plant(t, r.upper, map[string]string{"d/0": "1", "d/z": "1"})
	rec = r.propose(t)
	if slices.ContainsFunc(rec.Changes, func(c Change) bool { return !c.Before.Exists() }) {
		t.Errorf("%s", paths(rec))
	}
}
