package monitor

import (
	"fmt"
	"slices"
	"testing"
)

func TestWhatAReviewWouldChangeIsJudgedByItsEffects(t *testing.T) {
	many := func(what, name string, n int) (list []Change) {
		for i := range n {
			list = append(list, Change{Path: fmt.Sprintf(name, i), What: what})
		}
		return list
	}
	hook := Change{Path: ".husky/pre-commit", What: Created}
	for _, row := range []struct {
		name    string
		task    string
		list    []Change
		present int // in the directories, before
		want    Verdict
		rule    string
	}{
		{"ordinary changes", "", append(many(Edited, "src/%d", 200), many(Created, "lib/%d", 200)...), 300, Allow, ""},
		{"most of the files", "", many(Removed, "src/%d", 100), 150, Pause, "delete-many"},
		{"some of many files", "", many(Removed, "src/%d", 100), 1000, Allow, ""},
		{"half by removal, half emptied", "", append(many(Removed, "a/%d", 60), many(Emptied, "b/%d", 60)...), 130, Pause, "delete-many"},
		{"what tools rebuild", "", many(Removed, "node_modules/%d", 500), 10, Allow, ""},
		{"a repository", "", []Change{{Path: ".git/HEAD", What: Removed}}, 10, Pause, "delete-repository"},
		{"a file of CI", "", []Change{{Path: ".github/workflows/a.yml", What: Edited}}, 10, Ask, "write-ci"},
		{"a file of CI that the task is about", "fix the CI", []Change{{Path: ".github/workflows/a.yml", What: Edited}}, 10, Allow, ""},
		{"a hook behind many others", "", append(many(Created, ".claude/%d", 3*maxNotable), hook), 10, Pause, "write-hook"},
		{"a hook of a clone", "", []Change{{Path: "clone", What: Created}, {Path: "clone/.husky", What: Created}, {Path: "clone/.husky/pre-commit", What: Created}}, 10, Allow, ""},
		{"a hook in a directory made for it", "", []Change{{Path: ".husky", What: Created}, hook}, 10, Pause, "write-hook"},
		{"a link in the place of a directory", "", []Change{{Path: ".github", What: Created, Link: true}}, 10, Ask, "write-ci"},
		{"a link that goes", "", []Change{{Path: ".github", What: Removed, Link: true}}, 10, Allow, ""},
	} {
		m := New(Options{Task: row.task, Count: func() (int, bool) { return row.present, true }})
		if d := m.Apply(t.Context(), Summarize(row.list)); d.Verdict != row.want || d.Rule != row.rule || d.Moment != Apply {
			t.Errorf("%s: %+v", row.name, d)
		}
	}
}

func TestASummaryIsBoundedAndHasOneOfEachKind(t *testing.T) {
	var list []Change
	for i := range 10 * maxNotable {
		list = append(list, Change{Path: fmt.Sprintf(".claude/%d", i), What: Created})
	}
	list = append(list, Change{Path: ".env", What: Edited}, Change{Path: "a/.git/HEAD", What: Removed})
	s := Summarize(list)
	has := func(kind string) bool {
		return slices.ContainsFunc(s.Notable, func(n Notable) bool { return n.Kind == kind })
	}
	if len(s.Notable) != maxNotable || !s.Cut || !has(kindKey) || !has(kindRepository) || s.Files != (Files{Created: 10 * maxNotable, Changed: 1, Removed: 1}) {
		t.Errorf("%d, %t, %+v", len(s.Notable), s.Cut, s.Files)
	}
	if s := Summarize(nil); len(s.Notable) > 0 || s.Cut || s.Files != (Files{}) {
		t.Errorf("%+v", s)
	}
}
