package jq_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/jq"
)

func small() budget.Limits {
	return budget.Limits{Steps: 20_000_000, Heap: 64 << 20, Record: 8 << 20, String: 16 << 20, Output: 16 << 20, Wall: 20 * time.Second}
}

func FuzzProgram(f *testing.F) {
	for _, s := range []string{".a[0]?.b|=.+1", "[.[]|select(.a>1)]|group_by(.b)", "def f(g;$x):reduce g as [$a,{b:$c}] ($x;.+$a);f(.[];0)", "\"\\(.a|@json) \\u00e9\"", ". as {a:$x,b:[$y]} ?// [$x,$y]|$x", "label $o|foreach range(10) as $i (0;.+$i;if .>9 then .,break $o else empty end)", "try error(\"x\") catch (.,input)", "limit(3;repeat(1))|tojson|fromjson", "paths(..)|getpath(.)", "to_entries|from_entries|del(..|.a?)", "gsub(\"(?<x>a+)\";\"\\(.x)b\")|test(\"[\";\"x\")", "walk(if type==\"object\" then with_entries(.value+=1) else . end)", "strftime(\"%Y %j\")|strptime(\"%Y\")|mktime", ".[2:4]=[1]|.[-1:]|=map(.)", "import \"a\" as a; a::b", "@base64d \"\\(.)\"|ltrimstr(\"x\")|explode|implode", "splits(\", *\")//(1,2)|[.,-.]|combinations", "{(\"a\",\"b\"):(1,2),$__loc__,\"c\",@text \"d\":3}"} {
		f.Add(s, "{\"a\":[{\"b\":1}],\"b\":\"aab\"}")
	}
	f.Fuzz(func(t *testing.T, program, input string) {
		began := time.Now()
		limits := small()
		limits.Steps = 2_000_000
		commandtest.RunWithin(t, jq.Commands(), commandtest.Case{Args: []string{"jq", "-c", "--", program}, Stdin: input}, limits)
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

func FuzzInput(f *testing.F) {
	for _, s := range []string{"{\"a\":[1,2.50,-0,1e400,null,true]}", "\"\\ud83d\\ude00\\ud800\\n\\/\"", "[nan,NaN,Infinity,-Infinity]", "\xef\xbb\xbf1 2\x1e3", "{\"a\" 1}", "[1,,2]", "[[[[[[", "'a'", "\"\xff\xc3\"", "{\"a\":{\"a\":1},\"a\":2}", "123456789012345678901234567890.000", "tru", "01 1. .5 1e", "]"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, input string, stream bool) {
		args := []string{"jq", "-c", "."}
		if stream {
			args = []string{"jq", "-c", "--stream", "."}
		}
		once := commandtest.RunWithin(t, jq.Commands(), commandtest.Case{Args: args, Stdin: input}, small())
		if stream || strings.Contains(once.Stdout, "+308") {
			return // infinity is written as the largest number, which is then read as its text
		}
		again := commandtest.RunWithin(t, jq.Commands(), commandtest.Case{Args: args, Stdin: once.Stdout}, small())
		if again.Stdout != once.Stdout || again.Status != 0 {
			t.Errorf("what was written is read otherwise: %q, %q, %q", once.Stdout, again.Stdout, again.Stderr)
		}
	})
}

func TestEverythingIsBounded(t *testing.T) {
	bomb := "a0: &b0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("a%d: &b%d [%s*b%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*b%d, ", i), 9), i)
	}
	for _, args := range [][]string{{"explode(.)"}, {"-o", "json", "."}, {"-o", "toml", "."}, {"-o", "props", "."}, {"-o", "shell", "."}, {"[..] | length"}} {
		r := commandtest.RunWithin(t, jq.Commands(), commandtest.Case{Args: append([]string{"yq", "-p", "yaml"}, args...), Stdin: bomb}, small())
		if r.Status == 0 || r.Stderr == "" {
			t.Errorf("%q of aliases upon aliases ends by itself: %.80q", args, r.Stdout)
		}
	}
	for _, program := range []string{"def f:f;f", "def f:1+f;f", "[repeat(1)]", "last(repeat(1))", "[range(1e12)]", "last(range(1e12))", "reduce repeat(1) as $x (\"a\";.+.)", "reduce range(1e9) as $x ([];.+[$x])", "\"a\"*1e9", "[limit(1e9;repeat(\"abc\"))]|add", "[recurse([.])]|length", "until(false;.)", "last(while(true;[.]))", "reduce range(1e9) as $i (null;[.])|tojson", "[range(1e6)]|combinations(9)|select(false)", ".[1e9]=1", "reduce range(1e9) as $i ({};.[$i|tostring]=$i)", "def f(x):f(x|x);f(.)", "\"a\"|gsub(\"\";.*1000)|gsub(\"\";.)", "[paths]|repeat(.)|select(false)", "last(inputs,repeat(0))", "[splits(\"a\";repeat(\"g\"))]", "def f:[f,f];f", "repeat(.;.)|.", "range(0;1;0)", "input|repeat(.)", "label $x|repeat(1)"} {
		began := time.Now()
		r := commandtest.RunWithin(t, jq.Commands(), commandtest.Case{Args: []string{"jq", "-n", program}, Stdin: "[\"a\"]"}, small())
		if r.Status == 0 && program != "range(0;1;0)" {
			t.Errorf("%q ends by itself: %.80q", program, r.Stdout)
		}
		if r.Stderr == "" && program != "range(0;1;0)" {
			t.Errorf("%q: nothing is said", program)
		}
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("%q takes %v", program, d)
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	for _, pair := range [][2]string{{"[", "]"}, {"(", ")"}, {"{a:", "}"}, {"-", ""}, {"try ", ""}, {"if ", ""}, {"\"\\(", ")\""}, {"def f:", ";1"}, {"1 as $x|", ""}, {".[", "]"}, {"f(", ")"}, {"1//", ""}, {"reduce ", ""}, {"label $x|", ""}, {". as [", ""}} {
		program := strings.Repeat(pair[0], 300_000) + "1" + strings.Repeat(pair[1], 300_000)
		r := commandtest.RunWithin(t, jq.Commands(), commandtest.Case{Args: []string{"jq", "-n", "-f", "p"}, Files: map[string]string{"p": program}}, budget.Limits{Heap: 256 << 20})
		if r.Status == 0 || r.Stderr == "" {
			t.Errorf("nested %q: status %d, %.200q", pair[0], r.Status, r.Stderr)
		}
	}
	for _, open := range []string{"[", "{\"a\":", "[{\"a\":["} {
		r := commandtest.RunWithin(t, jq.Commands(), commandtest.Case{Args: []string{"jq", "."}, Stdin: strings.Repeat(open, 1_000_000)}, budget.Limits{Heap: 256 << 20})
		if r.Status == 0 || r.Stderr == "" {
			t.Errorf("nested input %q: status %d, %.200q", open, r.Status, r.Stderr)
		}
	}
}

func FuzzYQ(f *testing.F) {
	for _, s := range []string{".a.b |= . + 1", "... comments=\"\" | .. style=\"flow\"", ". as $x ireduce ({}; . *+ $x)", "explode(.) | to_entries | with_entries(.key |= \"x\" + .)", "select(fi == 0) *d load(\"a\")", "with(.a[]; .b = key | .c = path) | sort_keys(..)", "del(.. | select(tag == \"!!null\")) | to_yaml | from_yaml", ".a line_comment=\"x\" | splitDoc", "env(HOME) | sub(\"(a*)*\", \"$1\")"} {
		for i, data := range []string{"a: &x [1, {b: c}] # d\n<<: {e: f}\ng: *x\n", "{\"a\":[1.5,null]}", "a,b\n1,\"2\"\n", "a.b.0 = 1\nc: \\u00e9\n", "<?xml?><a b=\"c\"><d/>e<d>f</d></a>", "a = [1, {b = 2}]\n[[c.d]]\ne = \"\"\"x\"\"\"\n", "[s]\nk = v\n"} {
			f.Add(s, data, uint8(i))
		}
	}
	formats := []string{"yaml", "json", "csv", "props", "xml", "toml", "ini"}
	f.Fuzz(func(t *testing.T, program, data string, format uint8) {
		began := time.Now()
		limits := small()
		limits.Steps = 2_000_000
		in, out := formats[int(format)%len(formats)], formats[int(format)/len(formats)%len(formats)]
		for _, p := range []string{program, "."} {
			commandtest.RunWithin(t, jq.Commands(), commandtest.Case{Args: []string{"yq", "ea", "-p", in, "-o", out, "--expression", p, "a", "a"}, Files: map[string]string{"a": data}}, limits)
		}
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}
