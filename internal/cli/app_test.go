package cli

import "testing"

func TestACommandIsBuiltAloneAsItIsBuiltAmongAll(t *testing.T) {
	whole := (&App{}).Root()
	if n := len(whole.Commands()); n != len(commandsOfThisPackage()) {
		t.Errorf("the tree has %d commands, and %d are listed", n, len(commandsOfThisPackage()))
	}
	for _, c := range commandsOfThisPackage() {
		a := &App{Args: []string{c.name}}
		alone := a.tree(a.only()).Commands()
		if len(alone) != 1 || alone[0].Name() != c.name {
			t.Fatalf("%s: the tree for it has %d commands", c.name, len(alone))
		}
		among, _, err := whole.Find([]string{c.name})
		if err != nil || among.UsageString() != alone[0].UsageString() {
			t.Errorf("%s: its usage alone is not that among all: %v", c.name, err)
		}
	}
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"serve"}, {"no-such"}, {"__complete", "run", ""}} {
		if only := (&App{Args: args}).only(); only != "" {
			t.Errorf("%q: only %s is built", args, only)
		}
	}
}
