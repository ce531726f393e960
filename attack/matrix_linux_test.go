package attack

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestEachCaseHasItsTurn(t *testing.T) {
	for _, n := range []int{2, 3, 4, 16} {
		tried := map[string]int{}
		for part := range n {
			for _, id := range partOf(part, n) {
				tried[id]++
			}
		}
		for _, c := range Cases() {
			if tried[c.ID] != 1 {
				t.Errorf("of %d parts %d try %s", n, tried[c.ID], c.ID)
			}
		}
	}
}

func TestATurnIsTheSameAgainAndAnotherForTheOtherCaller(t *testing.T) {
	h := Harness{Tier: paddock.GVisor, Turn: "0123abcd", Turns: 4}
	root, user := h.turn("root"), h.turn("user")
	if len(root) == 0 || len(root) > len(Cases())/4+1 || !slices.Equal(root, h.turn("root")) {
		t.Errorf("root tries %q", root)
	}
	for _, id := range user {
		if slices.Contains(root, id) {
			t.Errorf("both try %s", id)
		}
	}
	h.Unconfined = true
	if !slices.Equal(h.turn("user"), root) {
		t.Error("without a sandbox the callers do not try the same")
	}
	h.Only = []string{"A01"}
	if got := h.turn("root"); !slices.Equal(got, h.Only) {
		t.Errorf("who asks for one row gets %q", got)
	}
}

func TestAnEscapeIsFatalWhateverIsExpected(t *testing.T) {
	m := Matrix{"user": {"A01": {Verdict: Escaped}}}
	d := m.Compare("user", Column{"A01": {Verdict: Escaped}})
	if len(d) != 1 || !d[0].Fatal {
		t.Errorf("got %+v", d)
	}
}

func TestOnlyAWeakerVerdictIsFatal(t *testing.T) {
	for _, c := range []struct {
		want, got Verdict
		fatal     bool
	}{
		{Denied, Denied, false},
		{Contained, Denied, false},
		{Denied, NotApplicable, false},
		{Denied, Contained, true},
		{Contained, ByDesign, true},
		{NotApplicable, Contained, true},
	} {
		m := Matrix{"user": {"A01": {Verdict: c.want, Errnos: "EPERM"}}}
		d := m.Compare("user", Column{"A01": {Verdict: c.got, Errnos: "EACCES"}})
		if len(d) != 1 || d[0].Fatal != c.fatal {
			t.Errorf("%s after %s: got %+v", c.got, c.want, d)
		}
	}
}

func TestACaseThatIsMissingOnEitherSideIsFatal(t *testing.T) {
	m := Matrix{"user": {"A01": {Verdict: Denied}}}
	d := m.Compare("user", Column{"A02": {Verdict: Denied}})
	if len(d) != 2 || !d[0].Fatal || !d[1].Fatal {
		t.Errorf("got %+v", d)
	}
}

func TestAMatrixIsReadAsItWasWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jail.golden")
	m := Matrix{"user": {"A01": {Denied, "EACCES EROFS", ""}}, "root": {"A01": {ByDesign, "", "because"}}}
	if err := m.Write(name); err != nil {
		t.Fatal(err)
	}
	back, err := ReadMatrix(name)
	if err != nil {
		t.Fatal(err)
	}
	for caller, column := range m {
		if back[caller]["A01"] != column["A01"] {
			t.Errorf("%s: got %+v", caller, back[caller])
		}
	}
}

func TestTheTableStandsBetweenTheMarkers(t *testing.T) {
	table := Table(map[paddock.Tier]Matrix{paddock.Jail: {"user": {"A01": {ByDesign, "", "because"}}}})
	doc, err := Splice("before\n"+tableBegin+"\nSTALE\n"+tableEnd+"\nafter\n", table)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(doc, "STALE") || !strings.Contains(doc, "| allowed by design [1] |") || !strings.Contains(doc, "1. because") || !strings.HasSuffix(doc, "\nafter\n") {
		t.Errorf("got %s", doc)
	}
	if _, err := Splice("no markers", table); err == nil {
		t.Error("a document without markers was taken")
	}
}

func TestATechniqueIsFoundByTheBeginningOfItsNameOrPart(t *testing.T) {
	table := map[string]string{"told: ": "a", "memory": "b", "memory files": "c"}
	for name, want := range map[string]string{"told: append": "a", "memory balloon": "b", "memory files": "c", "round 1: told: x": "a", "untold: append": ""} {
		if got, _ := technique(table, name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
