package budget_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

func TestEveryFieldHasANameADefaultAndAPlace(t *testing.T) {
	seen := map[budget.Name]bool{}
	defaults := budget.Limits{}.Filled()
	for _, f := range budget.Fields() {
		if f.Name == "" || seen[f.Name] {
			t.Errorf("%s: the name %q is empty or twice there", f.Go, f.Name)
		}
		seen[f.Name] = true
		if f.In(defaults) <= 0 {
			t.Errorf("%s has no default: a zero would mean that nothing is allowed", f.Name)
		}
		var l budget.Limits
		f.Set(&l, 7)
		if f.In(l) != 7 || f.In(l.Filled()) != 7 {
			t.Errorf("%s: a value that was set is not kept", f.Name)
		}
		f.Set(&l, 0)
		if l != (budget.Limits{}) {
			t.Errorf("%s sets another limit too: %+v", f.Name, l)
		}
	}
}
