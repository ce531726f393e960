package seccomp

import (
	"slices"
	"testing"
)

func TestTheTwoPartsAreTheWholeFilterOfCommands(t *testing.T) {
	held, each := insideParts()
	if all := insideRules(); len(held)+len(each) != len(all) {
		t.Fatalf("%d and %d rules, of %d", len(held), len(each), len(all))
	}
	parts := slices.Concat(held, each)
	for _, r := range insideRules() {
		if !slices.ContainsFunc(parts, func(p rule) bool {
			return p.why == r.why && slices.Equal(p.calls, r.calls) && p.action == r.action && len(p.when) == len(r.when)
		}) {
			t.Errorf("in neither part: %s", r.why)
		}
	}
	// The thread starts commands by it, so it cannot be behind it. Whatever else is in
	// the second part is tried with every number at each start.
	if len(each) != 1 || !slices.Equal(each[0].calls, []string{"clone3"}) {
		t.Errorf("each command is put behind %v", each)
	}
	for _, r := range held {
		if slices.Contains(r.calls, "clone3") {
			t.Errorf("the thread is put behind %s", r.why)
		}
	}
}
