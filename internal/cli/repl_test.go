package cli

import (
	"slices"
	"testing"
)

func TestAScriptIsTakenApartWhereAMarkSaysSo(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              {""},
		"a\nb":                          {"a\nb"},
		"a\n# %% two\nb\n// %%\nc # %%": {"a\n", "b\n", "c # %%"},
	} {
		if got := splitCells(text); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestALineThatIsNotWholeBeginsACellOfSeveral(t *testing.T) {
	for line, want := range map[string]bool{"": false, "x": false, "if x:": true, "f(": true, "a = [1, ": true, `echo \`: true, "{}": false} {
		if got := goesOn(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
