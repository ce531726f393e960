package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A cost is the duration of a package or suite.
type cost struct {
	name    string
	seconds float64
}

// tellCosts prints the durations of the slowest packages and suites. A suite is a top-level
// test. Packages run in parallel, so the sum exceeds the duration of the run.
func (t *tally) tellCosts(w io.Writer) {
	var suites []cost
	for _, one := range t.tests {
		if one.seconds > 0 && !strings.Contains(one.name, "/") {
			suites = append(suites, cost{strings.TrimPrefix(one.pkg, module+"/") + " " + one.name, one.seconds})
		}
	}
	tell(w, "packages", t.costs, t.most)
	tell(w, "suites", suites, t.most)
}

func tell(w io.Writer, what string, costs []cost, most int) {
	slices.SortFunc(costs, func(a, b cost) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.name, b.name))
	})
	sum := 0.0
	for _, c := range costs {
		sum += c.seconds
	}
	fmt.Fprintf(w, "seconds of %d %s, %.0f in all; the most expensive:\n", len(costs), what, sum)
	for _, c := range costs[:min(len(costs), most)] {
		fmt.Fprintf(w, "%8.1f %s\n", c.seconds, c.name)
	}
}

// tellSamples prints how much each sampled suite left out.
func (t *tally) tellSamples(w io.Writer) {
	for _, one := range t.tests {
		if one.left > 0 {
			fmt.Fprintf(w, "sampled: %s %s left out %d\n", strings.TrimPrefix(one.pkg, module+"/"), one.name, one.left)
		}
	}
}
