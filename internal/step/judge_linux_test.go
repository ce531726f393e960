package step

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAnApplicationIsJudgedBeforeAnythingChanges(t *testing.T) {
	r := layered(t, Options{}, map[string]string{"a": "1\n", "b": "2\n", "c": "3\n", "d": "4\n"})
	plant(t, r.upper, map[string]string{"a": "one\n", "b": "two\n", "c": "three\n", "d": "four\n", "new": "5\n"})
	rec := r.propose(t)
	plant(t, r.dir, map[string]string{"c": "mine\n"}) // a conflict
	before := filesOf(t, r.dir)
	denied := errors.New("because of the test")
	var told []string
	judge := func(answer error) func([]*Change) error {
		return func(list []*Change) error {
			if now := filesOf(t, r.dir); now != before {
				t.Errorf("it was changed before the question: %s", now)
			}
			told = nil
			for _, c := range list {
				told = append(told, string(c.Path))
			}
			slices.Sort(told)
			return answer
		}
	}
	pick := func(o *Offer) (Choice, error) { return Choice{All: o.Path != "b"}, nil }
	_, err := r.j.Apply(t.Context(), r.v, Application{Number: rec.Number, Pick: pick, Judge: judge(denied)})
	if !errors.Is(err, denied) || !slices.Equal(told, []string{"a", "d", "new"}) {
		t.Errorf("%v, asked about %v", err, told)
	}
	if now := filesOf(t, r.dir); now != before {
		t.Errorf("it was changed although it was denied: %s", now)
	}
	if steps, err := r.j.List(t.Context(), Filter{}); err != nil || len(steps) > 0 {
		t.Errorf("what was denied is a step: %+v, %v", steps, err)
	}
	if again, err := r.v.Read(t.Context(), rec.Number); err != nil || len(again.Changes) != len(rec.Changes) {
		t.Errorf("the proposal is another one: %+v, %v", again, err)
	}
	a := r.apply(t, Application{Number: rec.Number, Paths: []string{r.dir + "/a"}, Judge: judge(nil)})
	if !slices.Equal(told, []string{"a"}) || content(t, r.dir+"/a") != "one\n" || a.Step == 0 {
		t.Errorf("asked about %v, %+v", told, a)
	}
	told = nil
	if a := r.apply(t, Application{Number: rec.Number, Paths: []string{r.dir + "/c"}, Judge: judge(denied)}); len(a.Conflicts) != 1 || told != nil {
		t.Errorf("where there is nothing to do: asked about %v, %+v", told, a)
	}
}

// filesOf tells the files of a directory that the test above has.
func filesOf(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"a", "b", "c", "d", "new"} {
		b.WriteString(name + "=" + content(t, dir+"/"+name))
	}
	return b.String()
}

func TestWhoJudgedIsKeptWithTheProposal(t *testing.T) {
	words := json.RawMessage(`{"rules":true,"task":"x"}`)
	r := layered(t, Options{}, map[string]string{"a": "1\n"})
	must(t, r.l.Abandon())
	begin := func() {
		t.Helper()
		var err error
		r.l, err = r.v.Begin(t.Context(), About{Roots: []Root{{Path: Text(r.dir)}}, Monitor: words})
		must(t, err)
		plant(t, r.l.Dirs()[r.dir]+"/upper", map[string]string{"a": "one\n", "b": "two\n"})
	}
	begin()
	rec := r.propose(t)
	r.apply(t, Application{Number: rec.Number, Paths: []string{r.dir + "/b"}})
	rest, err := r.v.Read(t.Context(), rec.Number)
	must(t, err)
	begin()
	must(t, r.l.Leave()) // as if it was killed
	list, err := r.v.Salvage(t.Context(), true)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	cut, err := r.v.Read(t.Context(), list[0].Number)
	must(t, err)
	for _, rec := range []*Record{rec, rest, cut} {
		if string(rec.Monitor) != string(words) {
			t.Errorf("proposal %d: %s", rec.Number, rec.Monitor)
		}
	}
	for _, bad := range []string{"{", `"` + strings.Repeat("x", maxMonitor) + `"`} {
		if _, err := r.v.Begin(t.Context(), About{Roots: []Root{{Path: Text(r.dir)}}, Monitor: json.RawMessage(bad)}); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%.10s: %v", bad, err)
		}
	}
}
