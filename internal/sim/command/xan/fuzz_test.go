package xan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/xan"
)

func small() budget.Limits {
	return budget.Limits{Steps: 5_000_000, Heap: 64 << 20, Record: 1 << 20, String: 4 << 20, Output: 16 << 20, Disk: 16 << 20, Wall: 20 * time.Second}
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{"a + 1 > b && not c", "if(contains(a, /x+/i), upper(b), 'q' ++ c) as d, len(a)", "sum(a) as s, count(), values(b, ';'), median(c)", "a | trim | split(_, ',') | get(_, -1)", "col(\"a b\") in [1, 'x', null]", "replace(a, /(.*)*/, '$1$1')", "lpad(a, 1e9, 'xy')", "((((1))))", "-1 ** 2 // 3 % 4", "fmt('{}{x}', a, {x: b})", "map(split(a, ''), x => x ++ b)[1:]", "a.len() as (x, y), {a: [1]}.a[0]", "repeat(a, 1e9)", "range(1e15)", "parse_json(b)", "strftime(a, '%Y')", "substring(a, -2) eq slice(b, 1, 3)", "\"a b\",0:1,!c,*", "a:c,-1"} {
		f.Add(s, "a,b,c\n1,x,\n\"2,\n\",y,3\n")
	}
	verbs := [][]string{{"filter"}, {"map"}, {"agg"}, {"groupby", "a"}, {"transform", "a"}, {"select"}, {"select", "-e"}, {"drop"}, {"explode"}, {"rename"}, {"search", "-r"}, {"implode"}, {"top"}, {"sort", "-N", "-s"}, {"slice", "-S"}, {"join", "a", "f"}}
	f.Fuzz(func(t *testing.T, s, data string) {
		for _, v := range verbs {
			began := time.Now()
			args := append(append([]string{"xan"}, v...), "--", s, "f")
			commandtest.RunWithin(t, xan.Commands(), commandtest.Case{Args: args, Files: map[string]string{"f": data}}, small())
			if d := time.Since(began); d > 30*time.Second {
				t.Errorf("%v took %v", v, d)
			}
		}
	})
}

func FuzzTable(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "\"a\"\"b\",\n\"\n", "\xef\xbb\xbfa\n\n\r\n1\r\n", "a,a\n1\n", "\xff,\x00\n,\n", "[{\"a\":[1,{}]},2]", "{\"a\":1}{\"a\":\"\\ud800\"}"} {
		f.Add(s)
	}
	verbs := [][]string{{"view"}, {"enum"}, {"split"}, {"behead"}, {"to", "html"}, {"from", "-f", "jsonl"}, {"from", "-f", "md"}, {"stats", "-A"}, {"freq", "-A"}, {"to", "json"}, {"to", "md"}, {"from", "-f", "json"}, {"transpose"}, {"fixlengths"}, {"flatten"}, {"dedup"}, {"sort"}, {"tail", "-l", "2"}, {"cat", "cols"}, {"fill"}, {"enum"}, {"headers"}}
	f.Fuzz(func(t *testing.T, data string) {
		for _, v := range verbs {
			commandtest.RunWithin(t, xan.Commands(), commandtest.Case{Args: append(append([]string{"xan"}, v...), "f"), Files: map[string]string{"f": data}}, small())
		}
		once := commandtest.RunWithin(t, xan.Commands(), commandtest.Case{Args: []string{"xan", "fmt", "f"}, Files: map[string]string{"f": data}}, small())
		again := commandtest.RunWithin(t, xan.Commands(), commandtest.Case{Args: []string{"xan", "fmt", "f"}, Files: map[string]string{"f": once.Stdout}}, small())
		if once.Status == 0 && (again.Status != 0 || again.Stdout != once.Stdout) {
			t.Errorf("what was written is read otherwise: %q, %q, %q", once.Stdout, again.Stdout, again.Stderr)
		}
	})
}

func TestEverythingIsBounded(t *testing.T) {
	rows := "a,b\n" + strings.Repeat("1,x\n", 3000)
	for _, args := range [][]string{
		{"join", "--cross", "f", "f"}, {"join", "a", "f", "a", "f"}, {"map", "lpad(a, 1e12) as z", "f"}, {"filter", strings.Repeat("(", 100_000) + "1", "f"}, {"filter", strings.Repeat("!", 100_000) + "1", "f"}, {"filter", strings.Repeat("1+", 100_000) + "1", "f"}, {"filter", strings.Repeat("-", 100_000) + "1", "f"},
		{"map", "replace(lpad('', 2000, 'x'), 'x', lpad('', 4000, 'y')) as z", "f"}, {"sort", "/dev/zero"}, {"from", "-f", "json", "deep"},
	} {
		r := commandtest.RunWithin(t, xan.Commands(), commandtest.Case{Args: append([]string{"xan"}, args...), Files: map[string]string{"f": rows, "deep": strings.Repeat("[", 1_000_000)}}, small())
		if r.Status == 0 || r.Stderr == "" {
			t.Errorf("%.60q: status %d, %.80q", args, r.Status, r.Stderr)
		}
	}
}
