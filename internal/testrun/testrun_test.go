package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestTheLastLineIsTheCount(t *testing.T) {
	tests := []struct {
		name   string
		events string
		strict bool
		well   bool
		last   string
		says   string
	}{
		{
			name: "a test with subtests counts as its subtests",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"run","Package":"p","Test":"TestA/x"}
				{"Action":"pass","Package":"p","Test":"TestA/x"}
				{"Action":"run","Package":"p","Test":"TestA/y"}
				{"Action":"pass","Package":"p","Test":"TestA/y"}
				{"Action":"pass","Package":"p","Test":"TestA"}
				{"Action":"pass","Package":"p","Elapsed":1.5}`,
			well: true, last: "2 passed, 0 failed, 0 skipped", says: "ok    p 1.5 s",
		},
		{
			name: "a failed test is shown in full",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:3: two is not three\n"}
				{"Action":"fail","Package":"p","Test":"TestA"}
				{"Action":"fail","Package":"p"}`,
			last: "0 passed, 1 failed, 0 skipped", says: "failed: p TestA: two is not three\n0 passed",
		},
		{
			name: "a parent that fails on its own counts",
			events: `{"Action":"pass","Package":"p","Test":"TestA/x"}
				{"Action":"fail","Package":"p","Test":"TestA"}`,
			last: "1 passed, 1 failed, 0 skipped",
		},
		{
			name: "a package that does not build is a failure",
			events: `{"ImportPath":"p","Action":"build-output","Output":"p.go:1: undefined: x\n"}
				{"Action":"fail","Package":"p"}`,
			last: "0 passed, 1 failed, 0 skipped", says: "failed: p: the package, outside its tests\n0 passed",
		},
		{
			name: "a test that never ended is a failure",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}
				{"Action":"fail","Package":"p"}`,
			last: "0 passed, 1 failed, 0 skipped", says: "panic: boom",
		},
		{
			name: "a test that never ended after its subtests is a failure",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"run","Package":"p","Test":"TestA/x"}
				{"Action":"pass","Package":"p","Test":"TestA/x"}
				{"Action":"fail","Package":"p"}`,
			last: "1 passed, 1 failed, 0 skipped", says: "failed: p TestA: it never ended\n1 passed",
		},
		{
			name: "what a process says when it dies after its last test is shown",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"pass","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"SIGQUIT: quit\n"}
				{"Action":"fail","Package":"p"}`,
			last: "1 passed, 1 failed, 0 skipped", says: "SIGQUIT: quit",
		},
		{
			name: "a skip is told with its reason",
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: needs root\n"}
				{"Action":"skip","Package":"p","Test":"TestA"}`,
			well: true, last: "0 passed, 0 failed, 1 skipped", says: "skipped: p TestA: needs root",
		},
		{
			name:   "a skip that is not allowed fails a strict run",
			events: `{"Action":"skip","Package":"p","Test":"TestA"}`,
			strict: true, last: "0 passed, 1 failed, 0 skipped", says: "failed: p TestA: skipped, and not among those of internal/testrun/skip.go: it does not say why\n0 passed",
		},
		{
			name: "a test whose turn it is not may be skipped",
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: left out of the sample: one commit in 3 tries it\n"}
				{"Action":"skip","Package":"p","Test":"TestA"}`,
			strict: true, well: true, last: "0 passed, 0 failed, 1 skipped", says: "one commit in 3 tries it",
		},
		{
			name:   "a run without a test is not a success",
			events: `{"Action":"skip","Package":"p"}`,
			last:   "no test ran",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			got, err := read(strings.NewReader(tt.events), &out, tt.strict)
			if err != nil {
				t.Fatal(err)
			}
			if well := got.report(&out); well != tt.well {
				t.Errorf("well is %v, want %v", well, tt.well)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; last != tt.last {
				t.Errorf("last line %q, want %q", last, tt.last)
			}
			if !strings.Contains(out.String(), tt.says) {
				t.Errorf("%q is not in:\n%s", tt.says, out.String())
			}
		})
	}
}

func TestWhatFailsIsTriedOnceMoreAlone(t *testing.T) {
	const first = `{"Action":"output","Package":"p","Test":"TestA/x","Output":"at first\n"}
		{"Action":"fail","Package":"p","Test":"TestA/x"}
		{"Action":"fail","Package":"p","Test":"TestA"}
		{"Action":"pass","Package":"p","Test":"TestB"}
		{"Action":"fail","Package":"p"}`
	const passes = `{"Action":"pass","Package":"p","Test":"TestA/x"}
		{"Action":"pass","Package":"p","Test":"TestA"}
		{"Action":"pass","Package":"p"}`
	tests := []struct {
		name          string
		first, second string
		tries         int
		well          bool
		last          string
	}{
		{"what passes then is well", first, passes, 1, true, "2 passed, 0 failed, 0 skipped"},
		{"what fails again failed", first, first, 1, false, "1 passed, 1 failed, 0 skipped"},
		{"a skip that is not allowed is tried again", strings.Replace(first, `{"Action":"fail","Package":"p","Test":"TestA/x"}
		{"Action":"fail","Package":"p","Test":"TestA"}`, `{"Action":"skip","Package":"p","Test":"TestA/x"}
		{"Action":"pass","Package":"p","Test":"TestA"}`, 1), passes, 1, true, "2 passed, 0 failed, 0 skipped"},
		{"what is not there any more failed", first, `{"Action":"pass","Package":"p"}`, 1, false, "1 passed, 1 failed, 0 skipped"},
		{"a skip is no pass", first, `{"Action":"skip","Package":"p","Test":"TestA"}`, 1, false, "1 passed, 1 failed, 0 skipped"},
		{"an escape is not tried again", strings.Replace(first, "at first", "ESCAPED: x", 1), passes, 0, false, "1 passed, 1 failed, 0 skipped"},
		{"nor is a race", strings.Replace(first, "at first", "WARNING: DATA RACE", 1), passes, 0, false, "1 passed, 1 failed, 0 skipped"},
		{"names with slashes are no tests of their own", `{"Action":"pass","Package":"p","Test":"TestC/a/b"}
			` + first, passes + `{"Action":"pass","Package":"p","Test":"TestA/y/z"}`, 1, true, "3 passed, 0 failed, 0 skipped"},
		{"a package that does not build is not either", first + `
			{"Action":"fail","Package":"q"}`, passes, 0, false, "1 passed, 2 failed, 0 skipped"},
		{"nor is anything where all is well", passes, "", 0, true, "1 passed, 0 failed, 0 skipped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			got, err := read(strings.NewReader(tt.first), &out, true)
			if err != nil {
				t.Fatal(err)
			}
			tries := 0
			err = got.again(&out, func(pkg string, names []string) (io.Reader, error) {
				tries++
				if pkg != "p" || len(names) != 1 || names[0] != "TestA" {
					t.Errorf("tried %s %q", pkg, names)
				}
				return strings.NewReader(tt.second), nil
			})
			if err != nil || tries != tt.tries {
				t.Errorf("%d tries, %v", tries, err)
			}
			if well := got.report(&out); well != tt.well {
				t.Errorf("well is %v", well)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; last != tt.last {
				t.Errorf("last line %q, want %q", last, tt.last)
			}
			if said := strings.Contains(out.String(), "unsteady: p TestA/x passed alone; before, it said:\nat first"); said != (tt.well && tt.tries > 0) {
				t.Errorf("it says:\n%s", out.String())
			}
		})
	}
}

func TestWhatFailsALotIsNotChance(t *testing.T) {
	var first strings.Builder
	for i := range mostAgain + 1 {
		fmt.Fprintf(&first, `{"Action":"fail","Package":"p","Test":"Test%d"}`+"\n", i)
	}
	got, err := read(strings.NewReader(first.String()), io.Discard, false)
	if err != nil {
		t.Fatal(err)
	}
	err = got.again(io.Discard, func(string, []string) (io.Reader, error) {
		t.Error("tried again")
		return nil, nil
	})
	if err != nil || got.report(io.Discard) {
		t.Errorf("%v, or well", err)
	}
}

func TestASkipIsAllowedByPackageAndName(t *testing.T) {
	table := []allowance{{pkg: "internal/x", test: "TestA", why: "there is no such machine here"}}
	tests := []struct {
		pkg, test string
		want      bool
	}{
		{module + "/internal/x", "TestA", true},
		{module + "/internal/x", "TestA/sub", true},
		{module + "/internal/x", "TestAB", false},
		{module + "/internal/y", "TestA", false},
		{"internal/x", "TestA", false},
	}
	for _, tt := range tests {
		if got := allowed(table, tt.pkg, tt.test); got != tt.want {
			t.Errorf("allowed(%s, %s) = %v, want %v", tt.pkg, tt.test, got, tt.want)
		}
	}
}

func TestEveryAllowedSkipHasAReason(t *testing.T) {
	for _, a := range allowances() {
		if a.why == "" {
			t.Errorf("%s %s: no reason", a.pkg, a.test)
		}
	}
}
