package shell_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// TestScriptsThatDoNotEndAreEnded runs what a hostile script tries; each is
// ended by the limit that is named.
func TestScriptsThatDoNotEndAreEnded(t *testing.T) {
	t.Parallel()
	const n = 100_000
	small := budget.Limits{Iterations: 10_000, Commands: 100_000, String: 1 << 20, Heap: 64 << 20, Array: 10_000, Brace: 10_000}
	for _, c := range []struct {
		name   string
		script string
		limit  budget.Name
	}{
		{"a loop", "while :; do :; done", "iterations"},
		{"a loop in C's way", "for ((;;)); do :; done", "iterations"},
		{"doubling", "x=x; while :; do x=$x$x; done", "string"},
		{"recursion", "f() { f; }; f", "calls"},
		{"recursion in substitutions", "f() { x=$(f); }; f", "substitution"},
		{"eval of eval", "e='eval \"$e\"'; eval \"$e\"", "sources"},
		{"a file that sources itself", "echo . ./s > s; . ./s", "sources"},
		{"a program that starts itself", "echo 'bash s' > s; bash s", "shells"},
		{"braces", "echo {1..100000000}", "brace"},
		{"parentheses", strings.Repeat("( ", n) + "echo" + strings.Repeat(" )", n), "nesting"},
		{"substitutions", "echo " + strings.Repeat("$(", n) + strings.Repeat(")", n), "nesting"},
		{"expansions", "echo " + strings.Repeat("${x:-", n) + strings.Repeat("}", n), "nesting"},
		{"quotes in substitutions", strings.Repeat(`echo "$(`, n), "nesting"},
		{"arithmetic in arithmetic", "echo " + strings.Repeat("$((", 2000), "nesting"},
		{"if in if", strings.Repeat("if ", n), "nesting"},
		{"braces of groups", strings.Repeat("{ ", n), "nesting"},
		{"conditions", "[[ " + strings.Repeat("( ", n), "nesting"},
		{"here-documents", "cat <<E\n" + strings.Repeat("$(", n) + "\nE\n", "nesting"},
		{"functions of functions", strings.Repeat("f() { ", n), "nesting"},
		{"a script without end of words", strings.Repeat("a ", 4<<20), "heap"},
		{"traps that cause themselves", "trap 'kill -USR1 $$' USR1; kill -USR1 $$; :", "commands"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c.script, small)
			var e *budget.Exceeded
			if !errors.As(r.cause, &e) || e.Name != c.limit {
				t.Fatalf("ended by %v with status %d, want the limit %q\n%.300s", r.cause, r.status, c.limit, r.err)
			}
		})
	}
}

func TestAPipelineEndsWithItsReader(t *testing.T) {
	t.Parallel()
	r := run(t, "while :; do echo y; done | head -2; echo ${PIPESTATUS[@]}", budget.Limits{})
	if r.out != "y\ny\n141 0\n" {
		t.Errorf("got %q", r.out)
	}
}

func TestTheRestOfTheScriptIsACommandsInput(t *testing.T) {
	t.Parallel()
	r := run(t, "read x\ninput\necho \"<$x>\"; cat\nmore\n", budget.Limits{})
	if want := "<input>\nmore\n"; r.out != want {
		t.Errorf("got %q, want %q", r.out, want)
	}
}
