// Command testrun runs go test with its arguments and tells a person: what
// failed in full, what was skipped and why, and as its last line the count.
//
// A test that skips itself proves nothing. With -strict, which continuous
// integration sets, a skip that is not in the table of skip.go is a failure.
//
// With -again a test that failed is tried once more, alone, and told as unsteady
// if it passes then: many of these tests start programs and wait for them, beside
// others on a machine that may be busy.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	strict := flag.Bool("strict", false, "fail on a skipped test that is not allowed to be")
	again := flag.Bool("again", false, "try what failed once more, alone")
	flag.Parse()
	well, err := run(flag.Args(), *strict, *again)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
	}
	if !well || err != nil {
		os.Exit(1)
	}
}

// run runs go test with args and tells whether all is well.
func run(args []string, strict, again bool) (bool, error) {
	out, wait, err := goTest(args...)
	if err != nil {
		return false, err
	}
	t, err := read(out, os.Stdout)
	if err != nil {
		return false, err
	}
	if err := wait(); err != nil && !t.failed() {
		return false, fmt.Errorf("go test: %w, and no test failed", err)
	}
	if again {
		if err := t.again(os.Stdout, alone(args)); err != nil {
			return false, err
		}
	}
	return t.report(os.Stdout, strict), nil
}
