package xan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/xan"
)

// The messages are our own: the real ones quote its libraries.
func TestMessages(t *testing.T) {
	var cases []commandtest.Case
	for _, c := range []struct{ line, stdout, stderr string }{
		{"nosuch", "", "xan: unknown command \"nosuch\"; try 'xan --help'\n"},
		{"count nosuch", "", "xan: count: nosuch: No such file or directory\n"},
		{"behead nosuch", "", "xan: behead: nosuch: No such file or directory\n"},
		{"fmt bad.csv", "a,b\n", "xan: fmt: bad.csv: line 2: found record with 3 fields, but the previous record has 2 fields\n"},
		{"select zz p.csv", "", "xan: select: column \"zz\" does not exist; there are name, age, city\n"},
		{"select 7 p.csv", "", "xan: select: column 7 is out of range: there are 3\n"},
		{"select name:age:city p.csv", "", "xan: select: selection \"name:age:city\": ':' is not expected\n"},
		{"map 'age >' p.csv", "", "xan: map: expression \"age >\": it ends too early\n"},
		{"map 'nosuch(age)' p.csv", "", "xan: map: unknown function \"nosuch\"\n"},
		{"map 'upper()' p.csv", "", "xan: map: upper takes 1 to 1 arguments, not 0\n"},
		{"map 'name + 1' p.csv", "name,age,city,name + 1\n", "xan: map: row 0: add: cannot take \"ann\", a bytes, as number\n"},
		{"agg 'nosuch(x)' p.csv", "", "xan: agg: unknown aggregation \"nosuch\"\n"},
		{"head -l x p.csv", "", "xan: invalid number 'x'\n"},
		{"select", "", "xan: missing columns\n"},
		{"search -r ( p.csv", "", "xan: search: error parsing regexp: missing closing ): `(`\n"},
		{"rename a p.csv", "", "xan: rename: there are 1 names for 3 columns\n"},
		{"sort --check -s city p.csv", "", "xan: sort: file is NOT sorted: row 2 comes before its predecessor\n"},
		{"from p.csv", "", "xan: unknown format 'csv': json, jsonl, md, ndjson or txt\n"},
	} {
		x := row{line: c.line}.commandCase(t)
		x.Stderr, x.Want = true, &commandtest.Result{Stdout: c.stdout, Stderr: c.stderr, Status: 1}
		cases = append(cases, x)
	}
	commandtest.Compare(t, xan.Commands(), cases)
}

// A seed gives the same rows each time, and another seed others.
func TestSeeds(t *testing.T) {
	for _, verb := range []string{"sample 2", "shuffle"} {
		run := func(seed string) string {
			return commandtest.Run(t, xan.Commands(), row{line: verb + " --seed " + seed + " p.csv"}.commandCase(t)).Stdout
		}
		if a, b := run("1"), run("1"); a != b {
			t.Errorf("%s: %q, then %q", verb, a, b)
		}
		others := 0
		for _, seed := range []string{"2", "3", "4", "5"} {
			if run(seed) != run("1") {
				others++
			}
		}
		if others == 0 {
			t.Errorf("%s: all seeds give the same", verb)
		}
	}
}

// taken reports whether got has the head of the file and some of its rows, each
// as often as the file has it at most.
func taken(got, file string, bare bool) bool {
	rows := strings.SplitAfter(file, "\n")
	for i, line := range slices.DeleteFunc(strings.SplitAfter(got, "\n"), func(s string) bool { return s == "" }) {
		at := slices.Index(rows, line)
		if at < 0 || i == 0 && !bare && at != 0 {
			return false
		}
		rows = slices.Delete(rows, at, at+1)
	}
	return true
}
