package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// An event is a line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string // for build events
	Test       string
	Elapsed    float64
	Output     string
}

// A test is a test of the run: its output until it ends, and its outcome.
type test struct {
	pkg, name string
	output    []string
	outcome   string // "pass", "fail", "skip", forbidden, or empty if it did not end
	ran       bool   // it started; else it is only the beginning of names of subtests
	parent    bool
	escaped   bool // it reported an escape from a sandbox
	seconds   float64
	left      int // number of promises that it reported as left out
}

// forbidden is the outcome of a test that was skipped in a strict run although the table of skip.go does not have it.
const forbidden = "forbidden"

// A tally is the outcome of a run.
type tally struct {
	strict   bool
	tests    []*test // in order of their start
	byName   map[string]*test
	packages []string // failed packages
	unsteady []*test  // passed only at the second attempt
	costs    []cost   // of packages
	most     int      // how many costs to print
}

// read reads events to the end, and prints each package when it ends, and failures. It
// copies lines that are not events, such as messages of tools. In a strict run a skip must be allowed.
func read(r io.Reader, w io.Writer, strict bool) (*tally, error) {
	t := &tally{strict: strict, byName: map[string]*test{}}
	if err := events(r, w, func(e event) { t.add(e, w) }); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *tally) add(e event, w io.Writer) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(w, e.Output)
	case e.Package == "":
	case e.Test == "":
		t.addPackage(e, w)
	default:
		t.addTest(e, w)
	}
}

func (t *tally) addPackage(e event, w io.Writer) {
	own := t.test(e.Package, "")
	if e.Elapsed > 0 {
		t.costs = append(t.costs, cost{strings.TrimPrefix(e.Package, module+"/"), e.Elapsed})
	}
	switch e.Action {
	case "output":
		own.output = append(own.output, e.Output)
	case "pass":
		fmt.Fprintf(w, "ok    %s %.1f s\n", e.Package, e.Elapsed)
		own.output = nil
	case "fail":
		fmt.Fprintf(w, "FAIL  %s %.1f s\n", e.Package, e.Elapsed)
		fmt.Fprint(w, strings.Join(own.output, "")) // why its process died, if it did
		t.packages = append(t.packages, e.Package)
	case "skip": // no test files
		own.output = nil
	}
}

func (t *tally) addTest(e event, w io.Writer) {
	one := t.test(e.Package, e.Test)
	one.seconds += e.Elapsed
	switch e.Action {
	case "run":
		one.ran = true
	case "output":
		if one.outcome != "" { // of a process that died later; go test counts it as the last test's
			fmt.Fprint(w, e.Output)
			return
		}
		one.output = append(one.output, e.Output)
		one.escaped = one.escaped || strings.Contains(e.Output, "ESCAPED") || strings.Contains(e.Output, "WARNING: DATA RACE")
		one.left += strings.Count(e.Output, sample.LeftOut)
	case "pass":
		one.outcome, one.output = e.Action, nil
	case "skip":
		one.outcome = e.Action
		if t.strict && !allowed(allowances(), one.pkg, one.name) && !strings.HasPrefix(reason(one.output), sample.LeftOut) {
			one.outcome = forbidden
		}
	case "fail":
		one.outcome = e.Action
		fmt.Fprint(w, strings.Join(one.output, ""))
		one.output = one.output[max(0, len(one.output)-lastWords):]
	}
}

// lastWords is how many lines of a failed test are repeated at the end, where a person
// looks first.
const lastWords = 20

// test returns the record of a test, and marks its parents.
func (t *tally) test(pkg, name string) *test {
	key := pkg + " " + name
	if one, ok := t.byName[key]; ok {
		return one
	}
	one := &test{pkg: pkg, name: name}
	t.byName[key] = one
	if name == "" {
		return one
	}
	t.tests = append(t.tests, one)
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		t.test(pkg, name[:i]).parent = true
	}
	return one
}

// blamed reports whether a test of a package failed or did not end.
func (t *tally) blamed(pkg string) bool {
	return slices.ContainsFunc(t.tests, func(one *test) bool { return one.pkg == pkg && one.bad() })
}

// failed reports whether anything failed, including a build.
func (t *tally) failed() bool {
	return len(t.packages) > 0 || slices.ContainsFunc(t.tests, func(one *test) bool { return one.outcome == "fail" })
}

// bad reports whether a test did not pass.
func (one *test) bad() bool {
	return one.outcome == "fail" || one.outcome == forbidden || one.outcome == "" && (one.ran || !one.parent)
}

// report prints the tests that did not end, the skips and the count, and reports whether
// everything passed. Of a test with subtests only the subtests count.
func (t *tally) report(w io.Writer) bool {
	var passed, failed, skipped int
	for _, pkg := range t.packages {
		if !t.blamed(pkg) {
			failed++
		}
	}
	for _, one := range t.tests {
		if one.outcome == "" && one.bad() {
			fmt.Fprintf(w, "never ended: %s %s\n%s", one.pkg, one.name, strings.Join(one.output, ""))
		}
		if one.parent && (!one.bad() || t.childFailed(one)) {
			continue
		}
		switch one.outcome {
		case "pass":
			passed++
		case "skip":
			skipped++
			fmt.Fprintf(w, "skipped: %s %s: %s\n", one.pkg, one.name, reason(one.output))
		case forbidden:
			failed++
			fmt.Fprintf(w, "forbidden skip: %s %s: %s\n", one.pkg, one.name, reason(one.output))
		default:
			failed++
		}
	}
	t.tellSamples(w)
	t.tellCosts(w)
	t.tellUnsteady(w)
	t.tellFailed(w)
	if passed+failed+skipped == 0 {
		fmt.Fprintln(w, "no test ran")
		return false
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return failed == 0
}

// tellFailed prints the failed tests, with the last words of each, and then the names once more. A service that keeps only
// the end of a log keeps those.
func (t *tally) tellFailed(w io.Writer) {
	var names []string
	for _, pkg := range t.packages {
		if !t.blamed(pkg) {
			names = append(names, pkg+": the package, outside its tests")
		}
	}
	for _, one := range t.tests {
		switch {
		case one.parent && (!one.bad() || t.childFailed(one)):
		case one.outcome == forbidden:
			names = append(names, one.pkg+" "+one.name+": skipped, and not among those of internal/testrun/skip.go: "+short(reason(one.output)))
		case one.outcome == "fail":
			fmt.Fprintf(w, "failed: %s %s\n%s", one.pkg, one.name, strings.Join(one.output, ""))
			names = append(names, one.pkg+" "+one.name+": "+short(reason(one.output)))
		case one.bad():
			names = append(names, one.pkg+" "+one.name+": it never ended")
		}
	}
	for _, name := range names[:min(len(names), mostNames)] {
		fmt.Fprintln(w, "failed:", name)
	}
	if more := len(names) - mostNames; more > 0 {
		fmt.Fprintf(w, "failed: %d more\n", more)
	}
}

// mostNames is how many names are repeated above the count.
const mostNames = 10

// short bounds the words of a line.
func short(words string) string {
	const most = 300
	if len(words) > most {
		return words[:most] + "..."
	}
	return words
}

func (t *tally) childFailed(parent *test) bool {
	return slices.ContainsFunc(t.tests, func(one *test) bool {
		return one.pkg == parent.pkg && strings.HasPrefix(one.name, parent.name+"/") && one.bad()
	})
}

// reason returns the message of a skipped test from its output.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		// "file_test.go:12: why"
		if _, rest, ok := strings.Cut(line, ".go:"); ok {
			if _, why, found := strings.Cut(rest, ": "); found {
				line = why
			}
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return "it does not say why"
	}
	return strings.Join(said, " ")
}
