package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// mostAgain is the maximum number of failed tests to retry. More failures are not chance.
const mostAgain = 3

// An attempt runs tests of a package alone and returns the output of go test -json.
type attempt func(pkg string, names []string) (io.Reader, error)

// goTest starts go test -json with arguments. Call wait after the end of the output.
func goTest(args ...string) (out io.Reader, wait func() error, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	if out, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	return out, cmd.Wait, cmd.Start()
}

// alone runs go test with those arguments of this run that affect the test program.
func alone(args []string) attempt {
	same := []string{}
	for _, arg := range []string{"-race", "-short"} {
		if slices.Contains(args, arg) {
			same = append(same, arg)
		}
	}
	return func(pkg string, names []string) (io.Reader, error) { return runAlone(same, pkg, names) }
}

func runAlone(args []string, pkg string, names []string) (io.Reader, error) {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	out, wait, err := goTest(append(args, "-count=1", "-timeout=15m", "-run=^("+strings.Join(quoted, "|")+")$", pkg)...)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(out)
	_ = wait() // the events report failures
	return bytes.NewReader(all), err
}

// again retries failed tests and forbidden skips, each package alone. A test that passes then is unsteady: it
// is reported with its first output, and does not count as failed. A test that reported an
// escape or a race is not retried, because a rare escape is still an escape. Nothing is
// retried if a package failed as a whole, or if more tests failed than chance explains.
func (t *tally) again(w io.Writer, try attempt) error {
	failed := map[string][]string{}
	count := 0
	for _, one := range t.tests {
		if !one.bad() || one.parent && t.childFailed(one) {
			continue
		}
		if one.escaped {
			return nil
		}
		top, _, _ := strings.Cut(one.name, "/")
		if !slices.Contains(failed[one.pkg], top) {
			failed[one.pkg] = append(failed[one.pkg], top)
			count++
		}
	}
	if count == 0 || count > mostAgain || slices.ContainsFunc(t.packages, func(pkg string) bool { return !t.blamed(pkg) }) {
		return nil
	}
	for pkg, names := range failed {
		fmt.Fprintf(w, "again, alone: %s %s\n", pkg, strings.Join(names, " "))
		out, err := try(pkg, names)
		if err != nil {
			return fmt.Errorf("try %s again: %w", pkg, err)
		}
		second, err := read(out, w, t.strict)
		if err != nil {
			return err
		}
		for _, name := range names {
			t.settle(pkg, name, second)
		}
	}
	return nil
}

// skipped reports whether a test was skipped in the first run too.
func (t *tally) skipped(second *test) bool {
	return slices.ContainsFunc(t.tests, func(one *test) bool {
		return one.pkg == second.pkg && one.name == second.name && one.outcome == "skip" && !one.bad()
	})
}

// settle takes over the second outcome of a failed test and its subtests, if all of them
// passed.
func (t *tally) settle(pkg, name string, second *tally) {
	below := func(one *test) bool {
		return one.pkg == pkg && (one.name == name || strings.HasPrefix(one.name, name+"/"))
	}
	good := false
	for _, one := range second.tests {
		if below(one) {
			if one.bad() || one.outcome == "skip" && !t.skipped(one) {
				return
			}
			good = good || one.name == name
		}
	}
	if !good {
		return
	}
	for _, one := range t.tests {
		if below(one) && one.bad() {
			if !one.parent || !t.childFailed(one) {
				t.unsteady = append(t.unsteady, one)
			}
		}
	}
	for _, one := range t.tests {
		if below(one) && one.bad() {
			one.outcome = "pass"
		}
	}
	t.packages = slices.DeleteFunc(t.packages, func(p string) bool { return p == pkg && !t.blamed(p) })
}

// tellUnsteady prints the tests that passed only at the second attempt.
func (t *tally) tellUnsteady(w io.Writer) {
	slices.SortFunc(t.unsteady, func(a, b *test) int { return cmp.Or(strings.Compare(a.pkg, b.pkg), strings.Compare(a.name, b.name)) })
	for _, one := range t.unsteady {
		fmt.Fprintf(w, "unsteady: %s %s passed alone; before, it said:\n%s", one.pkg, one.name, strings.Join(one.output, ""))
	}
	if n := len(t.unsteady); n > 0 {
		fmt.Fprintf(w, "%d passed at the second attempt only\n", n)
	}
}

// events reads go test -json line by line, and copies lines that are not events.
func events(r io.Reader, w io.Writer, each func(event)) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil || e.Action == "" {
			fmt.Fprintln(w, in.Text())
			continue
		}
		each(e)
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("read test events: %w", err)
	}
	return nil
}
