package sample_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

func TestWithoutATurnEverySuiteIsWhole(t *testing.T) {
	t.Setenv(sample.TurnVariable, "")
	for _, s := range sample.Suites() {
		if seed := sample.Seed(s.Name); seed != "" {
			t.Errorf("%s is sampled by %q", s.Name, seed)
		}
		if list := sample.Subjects(s.Name, "pause"); list != nil {
			t.Errorf("%s leaves out all but %q", s.Name, list)
		}
	}
}

func TestASuiteThatIsNamedIsWhole(t *testing.T) {
	t.Setenv(sample.TurnVariable, "abc")
	t.Setenv(sample.WholeVariable, "lease,pool")
	if seed := sample.Seed("lease"); seed != "" {
		t.Errorf("it is sampled by %q", seed)
	}
	if seed := sample.Seed("tenant"); seed != "abc" {
		t.Errorf("another one is sampled by %q", seed)
	}
}

func TestNamesAreUniqueAndFitTheVariable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sample.Suites() {
		if seen[s.Name] || strings.Contains(s.Name, ",") || s.Sampled == "" || s.Cost <= 0 {
			t.Errorf("%+v", s)
		}
		seen[s.Name] = true
	}
}

func TestEachIsPickedAboutAsOftenAsAnother(t *testing.T) {
	const n, draws = 4, 4000
	var count [n]int
	for i := range draws {
		count[sample.Pick(fmt.Sprint("commit ", i), "row", n)]++
	}
	for i, c := range count {
		if c < draws/n*8/10 || c > draws/n*12/10 {
			t.Errorf("%d was picked %d times of %d", i, c, draws)
		}
	}
	if a, b := sample.Pick("x", "row", 1000), sample.Pick("x", "row", 1000); a != b {
		t.Errorf("the same seed gives %d and %d", a, b)
	}
}

func TestEachOfAListIsInOnePart(t *testing.T) {
	list := []string{"a", "b", "c", "d", "e"}
	if tried, left := sample.Part("", "key", list, 3); len(tried) != len(list) || len(left) != 0 {
		t.Errorf("without a seed %q are tried, and not %q", tried, left)
	}
	seen := map[string]bool{}
	for i := range 100 {
		tried, left := sample.Part(fmt.Sprint("commit ", i), "key", list, 3)
		if len(tried)+len(left) != len(list) || len(tried) == 0 || len(tried) > 2 {
			t.Fatalf("%q are tried, and not %q", tried, left)
		}
		for _, one := range tried {
			seen[one] = true
		}
	}
	if len(seen) != len(list) {
		t.Errorf("100 commits try only %v", seen)
	}
}
