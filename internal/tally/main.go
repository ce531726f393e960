// Command tally reads what go test -json prints and tells it to a person: what
// failed in full, what was skipped and why, and as its last line the count.
//
// A test that skips itself proves nothing. With -strict, which continuous
// integration sets, a skip that is not in the table of skip.go is a failure.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	strict := flag.Bool("strict", false, "fail on a skipped test that is not allowed to be")
	flag.Parse()
	t, err := read(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	if !t.report(os.Stdout, *strict) {
		os.Exit(1)
	}
}
