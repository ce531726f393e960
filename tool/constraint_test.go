package tool

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestConstraintsCompareByTypeAndExactly(t *testing.T) {
	for _, test := range []struct {
		constraint, args string
		want             bool
	}{
		{`{"a":"<=100"}`, `{"a":100}`, true},
		{`{"a":"<=100"}`, `{"a":100.0}`, true},
		{`{"a":"<=100"}`, `{"a":1e2}`, true},
		{`{"a":"<=100"}`, `{"a":100.0000000000000000000001}`, false},
		{`{"a":"<=100"}`, `{"a":true}`, false},
		{`{"a":"<=100"}`, `{"a":"5"}`, false},
		{`{"a":"<=100"}`, `{"a":null}`, false},
		{`{"a":"<=100"}`, `{"a":[5]}`, false},
		{`{"a":"<=100"}`, `{"A":5}`, false},
		{`{"a":"<=100"}`, `{}`, false},
		{`{"a":"==1"}`, `{"a":1.0}`, true},
		{`{"a":"==1"}`, `{"a":true}`, false},
		{`{"a":"==1"}`, `{"a":"1"}`, false},
		{`{"a":"==true"}`, `{"a":true}`, true},
		{`{"a":"==true"}`, `{"a":1}`, false},
		{`{"a":"==true"}`, `{"a":"true"}`, false},
		{`{"a":"==\"true\""}`, `{"a":"true"}`, true},
		{`{"a":"==9007199254740993"}`, `{"a":9007199254740992}`, false},
		{`{"a":"==9007199254740993"}`, `{"a":9007199254740993}`, true},
		{`{"a":"<100000000000000000000000000000001"}`, `{"a":100000000000000000000000000000000}`, true},
		{`{"a":"!=5"}`, `{"a":6}`, true},
		{`{"a":"!=5"}`, `{"a":5.0}`, false},
		{`{"a":"!=5"}`, `{"a":"5"}`, false}, // a tool may read it as 5
		{`{"a":"!=5"}`, `{}`, false},
		{`{"a":"not_in:[5,\"x\"]"}`, `{"a":"y"}`, true},
		{`{"a":"not_in:[5,\"x\"]"}`, `{"a":false}`, false},
		{`{"a":"not_in:[5,\"x\"]"}`, `{"a":"x"}`, false},
		{`{"a":["x",5]}`, `{"a":5}`, true},
		{`{"a":["x",5]}`, `{"a":"5"}`, false},
		{`{"a":[1]}`, `{"a":[1]}`, false},
		{`{"a":"startswith:/api/"}`, `{"a":"/api/../admin"}`, true}, // textual, as documented
		{`{"a":"under:/api/"}`, `{"a":"/api/../admin"}`, false},
		{`{"a":"under:/api"}`, `{"a":"/api"}`, true},
		{`{"a":"under:/api"}`, `{"a":"/api/x/../y"}`, true},
		{`{"a":"under:/api"}`, `{"a":"/apix"}`, false},
		{`{"a":"under:/api"}`, `{"a":"api/x"}`, false},
		{`{"a":"under:/api"}`, `{"a":"/api/%2e%2e/admin"}`, false},
		{`{"a":"under:/api"}`, `{"a":"/api/%252e%252e/admin"}`, false},
		{`{"a":"under:/api"}`, `{"a":"/api/..\\admin"}`, false},
		{`{"a":"under:/api"}`, `{"a":"/api/..;/admin"}`, false},
		{`{"a":"under:/api"}`, `{"a":"/api/x\u0000/../../.."}`, false},
		{`{"a":"under:/api"}`, `{"a":"/api/a%20b"}`, true},
		{`{"a":"under:/"}`, `{"a":"/etc"}`, true},
		{`{"a":"under:/"}`, `{"a":"etc"}`, false},
		{`{"a":"under:data"}`, `{"a":"./data/x"}`, true},
		{`{"a":"under:data"}`, `{"a":"data/../../data"}`, false},
		{`{"a":"endswith:.txt"}`, `{"a":"a.txt"}`, true},
		{`{"a":"endswith:.txt"}`, `{"a":"a.txt.exe"}`, false},
		{`{"a":"contains:@example.org"}`, `{"a":"x@example.org"}`, true},
		{`{"a":"contains:x"}`, `{"a":["x"]}`, false},
		{`{"a":"exists"}`, `{"a":null}`, true},
		{`{"a":"exists"}`, `{}`, false},
		{`{"a":"not_exists"}`, `{}`, true},
		{`{"a":"not_exists"}`, `{"a":null}`, false},
		{`{"a/b/0":"==1"}`, `{"a":{"b":[1]}}`, true},
		{`{"a/b/0":"==1"}`, `{"a":{"b":{"0":1}}}`, true},
		{`{"a/b/0":"==1"}`, `{"a":{"b":[]}}`, false},
		{`{"a/b/00":"==1"}`, `{"a":{"b":[1]}}`, false},
		{`{"a/b/-1":"==1"}`, `{"a":{"b":[1]}}`, false},
		{`{"a/b":"==1"}`, `{"a":5}`, false},
		{`{"a/*":["x"]}`, `{"a":["x","x"]}`, true},
		{`{"a/*":["x"]}`, `{"a":["x","y"]}`, false},
		{`{"a/*":["x"]}`, `{"a":[]}`, false},
		{`{"a/*":["x"]}`, `{"a":{"k":"x","l":"y"}}`, false},
		{`[{"op":"or","of":[{"op":"eq","path":"a","value":1},{"op":"exists","path":"b"}]}]`, `{"b":0}`, true},
		{`[{"op":"or","of":[{"op":"eq","path":"a","value":1},{"op":"exists","path":"b"}]}]`, `{"a":2}`, false},
		{`[{"op":"and","of":[{"op":"eq","path":"a","value":1},{"op":"exists","path":"b"}]}]`, `{"a":1}`, false},
		{`[{"op":"and","of":[{"op":"eq","path":"a","value":1},{"op":"exists","path":"b"}]}]`, `{"a":1,"b":2}`, true},
	} {
		g, err := ParseGrant([]byte(`{"tools":"x","constraints":` + test.constraint + `}`))
		if err != nil {
			t.Errorf("%s: %v", test.constraint, err)
			continue
		}
		args, err := parse([]byte(test.args), 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		if got := mustCheck(t, g).allows("x", args); got != test.want {
			t.Errorf("%s holds for %s: %v", test.constraint, test.args, got)
		}
	}
}

func TestAConstraintThatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, text := range []string{
		"", "1000", "USD", "=5", "=<5", "=>5", "<= ", "<=", "<=abc", "<=0x10", "<=1_000", "<=+5", "<=1000 USD", "<=NaN", "<=\"5\"", "<=true",
		"<=1e999999999", "==", "==5EUR", "==2024-01-01", "==True", "==None", "==null", "==NaN", "==[1]", "=={}", "==\"a", "!=", "!==5", "<>5", "~a",
		"startswith:", "starts:a", "StartsWith:a", "under:", "under:a/../b", "under:..", "under:.", "under:/a//b", "regex:.*",
		"in:", "in:[]", "in:[[1]]", "in:[null]", "in:5", "in:[1", "not_in:{}", "exists:1", "not exists", "contains:",
	} {
		if c, err := ParseConstraint("amount", text); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q is taken for %+v, %v", text, c, err)
		}
		whole, err := json.Marshal(map[string]any{"tools": "x", "constraints": map[string]any{"amount": text}})
		if err != nil {
			t.Fatal(err)
		}
		if g, err := ParseGrant(whole); !errors.Is(err, paddock.Invalid) {
			t.Errorf("a grant with %q is taken for %+v, %v", text, g, err)
		}
	}
	for _, path := range []string{"", "/a", "a/", "a//b", strings.Repeat("a", 300), "a\xff"} {
		if _, err := ParseConstraint(path, "<=5"); err == nil {
			t.Errorf("the path %q is taken", path)
		}
	}
	if _, err := ParseConstraint("a/*", "not_exists"); err == nil {
		t.Error("that all elements are absent is taken")
	}
	for _, c := range []Constraint{
		{}, {Op: "xor", Path: "a"}, {Op: Lt, Path: "a"}, {Op: Lt, Path: "a", Value: math.NaN()}, {Op: Lt, Path: "a", Value: math.Inf(1)},
		{Op: Lt, Path: "a", Value: "5"}, {Op: Eq, Path: "a", Value: []int{1}}, {Op: Eq, Path: "a", Value: struct{}{}},
		{Op: Eq, Path: "a", Value: "\xff"}, {Op: Eq, Path: "a", Value: json.Number("5x")},
		{Op: In, Path: "a"}, {Op: In, Path: "a", Value: []string{}}, {Op: In, Path: "a", Value: "abc"},
		{Op: Exists, Path: "a", Value: 1}, {Op: And}, {Op: Or, Of: []Constraint{}}, {Op: Or, Path: "a", Of: []Constraint{{Op: Exists, Path: "a"}}},
		{Op: Exists, Path: "a", Of: []Constraint{{Op: Exists, Path: "a"}}}, {Op: Or, Of: []Constraint{{Op: Exists, Path: "a"}, {}}},
		deep(20),
	} {
		g := Grant{Tools: "x", Constraints: []Constraint{c}}
		if err := g.Check(); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%+v is taken: %v", c, err)
		}
		if _, err := Issue(g); err == nil {
			t.Errorf("%+v is issued", c)
		}
		if _, err := (Grant{Tools: "x"}).Attenuate(g); err == nil {
			t.Errorf("%+v is attenuated to", c)
		}
		if _, err := g.Attenuate(Grant{Tools: "x"}); err == nil {
			t.Errorf("%+v is attenuated from", c)
		}
		if ok, _ := Subset(g, Grant{Tools: "x"}); ok {
			t.Errorf("%+v is a subset", c)
		}
	}
}

func TestEachOfTooManyIsRefused(t *testing.T) {
	g := Grant{Tools: "x", Constraints: []Constraint{{Op: Exists, Path: "a/*/*"}}}
	list := make([]any, 70)
	for i := range list {
		list[i] = make([]any, 70)
	}
	if mustCheck(t, g).allows("x", map[string]any{"a": list}) {
		t.Error("4900 values are walked")
	}
	if !mustCheck(t, g).allows("x", map[string]any{"a": list[:50]}) {
		t.Error("3500 values are refused")
	}
}

func deep(n int) Constraint {
	c := Constraint{Op: Exists, Path: "a"}
	for range n {
		c = Constraint{Op: And, Of: []Constraint{c}}
	}
	return c
}

func TestAGrantInJSONIsReadStrictly(t *testing.T) {
	for _, text := range []string{
		``, `null`, `[]`, `{}`, `{"tools":""}`, `{"tools":"a*"}`, `{"tools":5}`, `{"tools":"x"} {}`,
		`{"tools":"x","tools":"**"}`, `{"Tools":"x"}`, `{"tools":"x","input_schema":{}}`,
		`{"tools":"x","max_calls":0}`, `{"tools":"x","max_calls":-1}`, `{"tools":"x","max_calls":1.5}`, `{"tools":"x","max_calls":"5"}`, `{"tools":"x","max_calls":null}`, `{"tools":"x","max_calls":1e30}`,
		`{"tools":"x","expires":"tomorrow"}`, `{"tools":"x","expires":""}`, `{"tools":"x","expires":0}`, `{"tools":"x","expires":"0001-01-01T00:00:00Z"}`, `{"tools":"x","expires":null}`,
		`{"tools":"x","constraints":null}`, `{"tools":"x","constraints":"<5"}`, `{"tools":"x","constraints":{"a":null}}`, `{"tools":"x","constraints":{"a":{"b":"<5"}}}`,
		`{"tools":"x","constraints":{"a":[]}}`, `{"tools":"x","constraints":{"a":"<5","a":"<50"}}`, `{"tools":"x","constraints":["a<5"]}`,
		`{"tools":"x","constraints":[{"op":"lt","path":"a","value":5,"note":1}]}`, `{"tools":"x","constraints":[{"op":"LT","path":"a","value":5}]}`,
		`{"tools":"x","constraints":[{"op":"eq","path":"a","value":null}]}`, `{"tools":"x","constraints":[{"path":"a","value":5}]}`, `{"tools":"x","constraints":[{}]}`,
		`{"tools":"x","budgets":[]}`, `{"tools":"x","budgets":[{"argument":"a"}]}`, `{"tools":"x","budgets":[{"total":0}]}`, `{"tools":"x","budgets":[{"argument":"a","total":-1}]}`,
		`{"tools":"x","budgets":[{"argument":"a/*","total":1}]}`, `{"tools":"x","budgets":[{"total":1},{"total":2}]}`, `{"tools":"x","budgets":[{"argument":"","total":2}]}`,
		`{"tools":"x","name":"` + strings.Repeat("n", 65) + `"}`, `{"tools":"x","name":"\ud800"}`, "{\"tools\":\"x\",\"name\":\"\xff\"}",
		`{"tools":"x","constraints":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`{"tools":"x","name":"` + strings.Repeat("n", 70_000) + `"}`,
		`{"tools":"x","constraints":[` + strings.TrimSuffix(strings.Repeat(`{"op":"exists","path":"a"},`, 300), ",") + `]}`,
	} {
		if g, err := ParseGrant([]byte(text)); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%.80s is taken for %+v, %v", text, g, err)
		}
	}
	var into struct{ Grant Grant }
	if err := json.Unmarshal([]byte(`{"Grant":{"tools":"x","max_call":5}}`), &into); err == nil {
		t.Error("encoding/json goes round the strict reading")
	}
}

func TestAGrantSurvivesJSON(t *testing.T) {
	w := newWorld(5)
	for range 2000 {
		g := w.grant()
		if g.Check() != nil {
			continue
		}
		if w.IntN(2) == 0 {
			g.Budgets = []Budget{{"x", 5}, {"", 6}}
			g.MaxCalls = 1 << 60
		}
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseGrant(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		second, err := json.Marshal(again)
		if err != nil || string(text) != string(second) {
			t.Fatalf("%s becomes %s, %v", text, second, err)
		}
		for range 10 {
			name, args := w.name(), w.args()
			if mustCheck(t, g).allows(name, args) != mustCheck(t, again).allows(name, args) {
				t.Fatalf("%s means something else when read again", text)
			}
		}
	}
}

func FuzzShortForm(f *testing.F) {
	for _, text := range []string{"<=1000", "==EUR", `=="5"`, "in:[1,\"a\"]", "under:/api", "startswith:x", "exists", "!=true", "==5x", "<=1e400"} {
		f.Add("a/b", text)
	}
	f.Fuzz(func(t *testing.T, path, text string) {
		c, err := ParseConstraint(path, text)
		if err != nil {
			if c.Op != "" {
				t.Fatalf("an error and %+v", c)
			}
			return
		}
		g := Grant{Tools: "x", Constraints: []Constraint{c}}
		out, err := json.Marshal(g)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", c, err)
		}
		again, err := ParseGrant(out)
		if err != nil {
			t.Fatalf("%s cannot be read: %v", out, err)
		}
		if ok, reason := Subset(again, g); !ok {
			t.Fatalf("%s is not within itself: %s", out, reason)
		}
		if c.Op != NotExists && mustCheck(t, g).allows("x", map[string]any{}) {
			t.Fatalf("%s allows a call without arguments", out)
		}
	})
}

func FuzzGrant(f *testing.F) {
	for _, text := range []string{
		`{"tools":"stripe/*","max_calls":10,"expires":"2027-01-01T00:00:00Z","constraints":{"amount":"<=1000","c":["EUR"]},"budgets":[{"argument":"amount","total":5000}]}`,
		`{"tools":"**","name":"n","constraints":[{"op":"or","of":[{"op":"lt","path":"a","value":1e2},{"op":"not_exists","path":"b"}]}]}`,
		`{"tools":"a","constraints":{"x":true,"y":1.50,"z":"under:/a"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := ParseGrant(text)
		if err != nil {
			if !errors.Is(err, paddock.Invalid) {
				t.Fatalf("the kind of %v", err)
			}
			return
		}
		out, err := json.Marshal(g)
		if err != nil {
			if len(text) > maxGrantBytes/4 {
				return // the written form of a short one may be too long
			}
			t.Fatalf("%s cannot be written: %v", text, err)
		}
		again, err := ParseGrant(out)
		if err != nil {
			t.Fatalf("%s cannot be read: %v", out, err)
		}
		second, err := json.Marshal(again)
		if err != nil || string(second) != string(out) {
			t.Fatalf("%s becomes %s, %v", out, second, err)
		}
		child, err := g.Attenuate(Grant{Tools: g.Tools})
		if err != nil {
			t.Fatalf("%s: nothing more cannot be delegated: %v", out, err)
		}
		if ok, reason := Subset(child, g); !ok && !strings.Contains(reason, "does not follow") {
			t.Fatalf("%s: its own attenuation is not within it: %s", out, reason)
		}
	})
}
