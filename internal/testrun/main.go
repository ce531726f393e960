// Command testrun runs go test with its arguments and prints a readable report: the full output of
// failed tests, the skipped tests with their reasons, the slowest packages and suites, and the count
// as the last line.
//
// A test that skips itself proves nothing. With -strict, which continuous integration sets, a skip
// that is not in the table of skip.go is a failure.
//
// With -sample the heavy suites of package sample run as samples, chosen by the hash of the commit or
// by PADDOCK_TEST_TURN. Those whose dependencies changed run whole as long as they fit into -budget.
// The commit to compare with is PADDOCK_TEST_BASE, or else the merge base with origin's main branch.
// In a clone that cannot know it, every suite counts as changed.
//
// With -again a failed test is tried once more, alone, and is listed as unsteady if it passes then.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

func main() {
	strict := flag.Bool("strict", false, "fail on a skipped test that is not allowed to be")
	again := flag.Bool("again", false, "try what failed once more, alone")
	some := flag.Bool("sample", false, "try samples of the heavy suites")
	budget := flag.Duration("budget", 0, "how long suites may take that are tried whole although -sample is given")
	costs := flag.Int("costs", 20, "how many packages, and how many suites, to list with their seconds")
	flag.Parse()
	well, err := run(flag.Args(), options{strict: *strict, again: *again, sample: *some, budget: *budget, costs: *costs})
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if !well || err != nil {
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	strict, again, sample bool
	budget                time.Duration
	costs                 int
}

// run runs go test with args and reports whether everything passed.
func run(args []string, o options) (bool, error) {
	var p *plan
	if o.sample {
		var err error
		if p, err = choose(o.budget); err != nil {
			return false, err
		}
		fmt.Printf("samples are chosen by %s=%s\n", sample.TurnVariable, p.turn)
		for _, v := range p.environ() {
			name, value, _ := strings.Cut(v, "=")
			if err := os.Setenv(name, value); err != nil {
				return false, err
			}
		}
	}
	out, wait, err := goTest(args...)
	if err != nil {
		return false, err
	}
	t, err := read(out, os.Stdout, o.strict)
	if err != nil {
		return false, err
	}
	if err := wait(); err != nil && !t.failed() {
		return false, fmt.Errorf("go test: %w, and no test failed", err)
	}
	t.most = o.costs
	if o.again {
		if err := t.again(os.Stdout, alone(args)); err != nil {
			return false, err
		}
	}
	if p != nil {
		p.report(os.Stdout)
	}
	return t.report(os.Stdout), nil
}
