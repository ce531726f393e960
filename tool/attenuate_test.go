package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func mustCheck(t *testing.T, g Grant) *checked {
	t.Helper()
	c, err := g.check()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *checked) allows(name string, args any) bool {
	return c.pattern.match(name) && check(c.constraints, args) == nil
}

// The ways in which others were found to let a child do more than its parent.
func TestAChildNeverDoesMoreThanItsParent(t *testing.T) {
	day := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	grant := func(change func(*Grant)) Grant {
		g := Grant{Tools: "pay/*"}
		change(&g)
		return g
	}
	one := func(path string, op Op, v any) Grant {
		return grant(func(g *Grant) { g.Constraints = []Constraint{{Op: op, Path: path, Value: v}} })
	}
	tests := []struct {
		name          string
		parent, child Grant
		// A call that the child asks for and the parent refuses.
		tool, args string
	}{
		{"a child without constraints", one("amount", Le, 5), Grant{Tools: "pay/*"}, "pay/x", `{"amount":6}`},
		{"a child that constrains something else", one("amount", Le, 5), one("other", Le, 5), "pay/x", `{"amount":6,"other":1}`},
		{"a child below ten of a parent that is five", one("amount", Eq, 5), one("amount", Lt, 10), "pay/x", `{"amount":6}`},
		{"a larger bound", one("amount", Le, 5), one("amount", Le, 6), "pay/x", `{"amount":6}`},
		{"the bound itself", one("amount", Lt, 5), one("amount", Le, 5), "pay/x", `{"amount":5}`},
		{"a longer list", one("c", In, []string{"a"}), one("c", In, []string{"a", "b"}), "pay/x", `{"c":"b"}`},
		{"a shorter list of exceptions", one("c", NotIn, []string{"a", "b"}), one("c", NotIn, []string{"a"}), "pay/x", `{"c":"b"}`},
		{"one of two alternatives too many", one("c", Eq, "a"),
			grant(func(g *Grant) {
				g.Constraints = []Constraint{{Op: Or, Of: []Constraint{{Op: Eq, Path: "c", Value: "a"}, {Op: Eq, Path: "c", Value: "b"}}}}
			}), "pay/x", `{"c":"b"}`},
		{"a number for a string", one("c", Eq, "5"), one("c", Eq, 5), "pay/x", `{"c":5}`},
		{"a shorter prefix", one("p", StartsWith, "/api/"), one("p", StartsWith, "/a"), "pay/x", `{"p":"/admin"}`},
		{"a prefix for a directory", one("p", Under, "/api"), one("p", StartsWith, "/api/"), "pay/x", `{"p":"/api/../admin"}`},
		{"a directory for a prefix", one("p", StartsWith, "/api/"), one("p", Under, "/api"), "pay/x", `{"p":"//api/x"}`},
		{"existence for a value", one("p", Eq, "a"), one("p", Exists, nil), "pay/x", `{"p":"b"}`},
		{"another element", one("a/0", Eq, 1), one("a/1", Eq, 1), "pay/x", `{"a":[2,1]}`},
		{"one element for all", one("a/*", Eq, 1), one("a/0", Eq, 1), "pay/x", `{"a":[1,2]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			args, err := parse([]byte(test.args), 1<<10)
			if err != nil {
				t.Fatal(err)
			}
			if !mustCheck(t, test.child).allows(test.tool, args) || mustCheck(t, test.parent).allows(test.tool, args) {
				t.Fatal("the call does not show the difference")
			}
			if ok, reason := Subset(test.child, test.parent); ok || reason == "" {
				t.Errorf("Subset says %v (%s)", ok, reason)
			}
			g, err := test.parent.Attenuate(test.child)
			if err != nil {
				t.Fatal(err)
			}
			if mustCheck(t, g).allows(test.tool, args) {
				t.Error("the attenuated child allows the call")
			}
			if ok, reason := Subset(g, test.parent); !ok {
				t.Errorf("the attenuated child is not seen to be a subset: %s", reason)
			}
		})
	}
	refused := []struct {
		name          string
		parent, child Grant
	}{
		{"more calls", grant(func(g *Grant) { g.MaxCalls = 5 }), grant(func(g *Grant) { g.MaxCalls = 6 })},
		{"more calls than the default", Grant{Tools: "pay/*"}, grant(func(g *Grant) { g.MaxCalls = 101 })},
		{"a later end", grant(func(g *Grant) { g.Expires = day }), grant(func(g *Grant) { g.Expires = day.Add(1) })},
		{"a larger total", grant(func(g *Grant) { g.Budgets = []Budget{{"amount", 5}} }), grant(func(g *Grant) { g.Budgets = []Budget{{"amount", 6}} })},
		{"a larger cost", grant(func(g *Grant) { g.Budgets = []Budget{{"", 5}} }), grant(func(g *Grant) { g.Budgets = []Budget{{"", 6}} })},
		{"more segments", Grant{Tools: "pay/*"}, Grant{Tools: "pay/**"}},
		{"other tools", Grant{Tools: "pay/*"}, Grant{Tools: "*/pay"}},
		{"all tools", Grant{Tools: "pay/*"}, Grant{Tools: "**"}},
		{"tools of any first segment", Grant{Tools: "pay/x"}, Grant{Tools: "*/x"}},
	}
	for _, test := range refused {
		t.Run(test.name, func(t *testing.T) {
			if ok, _ := Subset(test.child, test.parent); ok {
				t.Error("Subset says yes")
			}
			if g, err := test.parent.Attenuate(test.child); !errors.Is(err, paddock.Denied) {
				t.Errorf("Attenuate gave %+v, %v", g, err)
			}
			a, err := Issue(test.parent)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Delegate(test.child); !errors.Is(err, paddock.Denied) {
				t.Errorf("Delegate gave %v", err)
			}
		})
	}
}

func TestWhatAChildLeavesOpenComesFromItsParent(t *testing.T) {
	parent := Grant{
		Tools: "pay/**", MaxCalls: 7, Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		Budgets:     []Budget{{"amount", 10}, {"", 3}},
		Constraints: []Constraint{{Op: Le, Path: "amount", Value: 5}},
	}
	g, err := parent.Attenuate(Grant{Name: "child", Tools: "pay/x", Budgets: []Budget{{"amount", 4}}})
	if err != nil {
		t.Fatal(err)
	}
	if g.MaxCalls != 7 || !g.Expires.Equal(parent.Expires) || len(g.Constraints) != 1 || g.Tools != "pay/x" || g.Name != "child" {
		t.Errorf("%+v", g)
	}
	if want := []Budget{{"amount", 4}, {"", 3}}; !slices.Equal(g.Budgets, want) {
		t.Errorf("budgets %v, want %v", g.Budgets, want)
	}
	if ok, reason := Subset(Grant{Tools: "pay/x"}, Grant{Tools: "pay/x", MaxCalls: 7}); ok {
		t.Error("100 calls by default are within 7", reason)
	}
	if ok, _ := Subset(Grant{Tools: "pay/x"}, Grant{Tools: "pay/x", Budgets: []Budget{{"a", 1}}}); ok {
		t.Error("no budget is within one")
	}
	if ok, _ := Subset(Grant{Tools: "pay/x"}, Grant{Tools: "pay/x", Expires: parent.Expires}); ok {
		t.Error("no end is within one")
	}
}

// A stronger test of Subset than soundness: it must also say yes where people
// expect it to.
func TestWhatFollowsIsProven(t *testing.T) {
	for _, test := range []struct{ child, parent string }{
		{`{"a":"<5"}`, `{"a":"<=5"}`},
		{`{"a":"<=4"}`, `{"a":"<5"}`},
		{`{"a":"<=5"}`, `{"a":"<=5.0"}`},
		{`{"a":"==5"}`, `{"a":[1,5]}`},
		{`{"a":5}`, `{"a":"<=5"}`},
		{`{"a":[1,2]}`, `{"a":">=1"}`},
		{`{"a":"<5"}`, `{"a":"!=5"}`},
		{`{"a":"<5"}`, `{"a":"exists"}`},
		{`{"a":"!=5"}`, `{"a":"not_in:[5]"}`},
		{`{"a":"not_in:[5,6]"}`, `{"a":"!=5"}`},
		{`{"a":"startswith:/api/v1"}`, `{"a":"startswith:/api/"}`},
		{`{"a":"startswith:/api/v1"}`, `{"a":"contains:api"}`},
		{`{"a":"endswith:.txt"}`, `{"a":"endswith:txt"}`},
		{`{"a":"startswith:b"}`, `{"a":"!=c"}`},
		{`{"a":"under:/api/v1/"}`, `{"a":"under:/api"}`},
		{`{"a":"==/api/v1"}`, `{"a":"under:/"}`},
		{`{"a":"<5","b":"exists"}`, `{"a":"<5"}`},
		{`{"a/*/b":["x"]}`, `{"a/*/b":["x","y"]}`},
		{`[{"op":"or","of":[{"op":"lt","path":"a","value":3},{"op":"eq","path":"a","value":4}]}]`, `{"a":"<5"}`},
		{`{"a":"<5"}`, `[{"op":"or","of":[{"op":"lt","path":"a","value":6},{"op":"eq","path":"b","value":4}]}]`},
		{`[{"op":"and","of":[{"op":"lt","path":"a","value":3},{"op":"gt","path":"a","value":1}]}]`, `{"a":">0"}`},
		{`{"a":"not_exists"}`, `{"a":"not_exists"}`},
	} {
		read := func(text string) Grant {
			g, err := ParseGrant([]byte(`{"tools":"x","constraints":` + text + `}`))
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		if ok, reason := Subset(read(test.child), read(test.parent)); !ok {
			t.Errorf("%s is not proven to be within %s: %s", test.child, test.parent, reason)
		}
	}
}

// A world of few names and values, so that grants and calls meet often.
type world struct{ *rand.Rand }

func newWorld(seed uint64) world { return world{rand.New(rand.NewPCG(seed, 2))} }

func pick[T any](w world, list ...T) T { return list[w.IntN(len(list))] }

func (w world) pattern() string {
	n := 1 + w.IntN(3)
	parts := make([]string, n)
	for i := range parts {
		parts[i] = pick(w, "a", "a", "b", "*", "**")
	}
	return strings.Join(parts, "/")
}

func (w world) name() string {
	parts := make([]string, 1+w.IntN(4))
	for i := range parts {
		parts[i] = pick(w, "a", "b", "c")
	}
	return strings.Join(parts, "/")
}

func (w world) scalar() any {
	return pick[any](w, 0, 1, 2, json.Number("1.0"), json.Number("1.5"), json.Number("9007199254740993"), int64(9007199254740992),
		true, false, "5", "", "a", "/a", "/a/b", "/a/../b", "/ab", "b")
}

func (w world) number() any {
	return pick[any](w, -1, 0, 1, 2, 1.5, json.Number("1.0"), json.Number("9007199254740993"))
}

func (w world) text() string { return pick(w, "/a", "/a/", "/a/b", "a", "b", "/") }

func (w world) constraint(depth int) Constraint {
	c := Constraint{Path: pick(w, "x", "x", "x", "y", "l/0", "l/*", "o/x")}
	switch op := pick(w, Lt, Le, Gt, Ge, Eq, Ne, In, NotIn, StartsWith, EndsWith, Contains, Under, Exists, NotExists, And, Or); op {
	case Lt, Le, Gt, Ge:
		c.Op, c.Value = op, w.number()
	case Eq, Ne:
		c.Op, c.Value = op, w.scalar()
	case In, NotIn:
		list := make([]any, 1+w.IntN(4))
		for i := range list {
			list[i] = w.scalar()
		}
		c.Op, c.Value = op, list
	case StartsWith, EndsWith, Contains, Under:
		c.Op, c.Value = op, w.text()
	case And, Or:
		if depth > 2 {
			return w.constraint(depth)
		}
		c = Constraint{Op: op}
		for range 1 + w.IntN(3) {
			c.Of = append(c.Of, w.constraint(depth+1))
		}
	case NotExists:
		c.Op, c.Path = op, pick(w, "x", "y", "o/x")
	default:
		c.Op = op
	}
	return c
}

func (w world) grant() Grant {
	g := Grant{Tools: pick(w, w.pattern(), "**")}
	for range w.IntN(4) {
		g.Constraints = append(g.Constraints, w.constraint(0))
	}
	return g
}

// near changes g a little, so that many pairs are almost subsets.
func (w world) near(g Grant) Grant {
	out := g
	out.Constraints = slices.Clone(g.Constraints)
	for range 1 + w.IntN(2) {
		n := len(out.Constraints)
		switch w.IntN(5) {
		case 0:
			out.Constraints = append(out.Constraints, w.constraint(0))
		case 1:
			if n > 0 {
				out.Constraints = slices.Delete(out.Constraints, 0, 1)
			}
		case 2, 3:
			if n > 0 {
				i := w.IntN(n)
				fresh := w.constraint(0)
				if out.Constraints[i].Of == nil && fresh.Of == nil && fresh.Op != NotExists {
					fresh.Path = out.Constraints[i].Path
				}
				out.Constraints[i] = fresh
			}
		case 4:
			out.Tools = w.pattern()
		}
	}
	return out
}

func (w world) args() any {
	object := map[string]any{}
	put := func(name string) {
		v, err := scalar(w.scalar())
		if err != nil {
			panic(err)
		}
		object[name] = v
	}
	for _, name := range []string{"x", "x", "y"} {
		if w.IntN(2) == 0 {
			put(name)
		}
	}
	if w.IntN(2) == 0 {
		inner := w.scalar()
		v, _ := scalar(inner)
		object["o"] = map[string]any{"x": v}
	}
	if w.IntN(2) == 0 {
		list := make([]any, w.IntN(3))
		for i := range list {
			list[i], _ = scalar(w.scalar())
		}
		object["l"] = list
	}
	return object
}

func TestWhateverAChildAllowsItsParentAllows(t *testing.T) {
	w := newWorld(1)
	var yes, allowed, attenuated, refused int
	for round := range 15_000 {
		parent := w.grant()
		child := w.near(parent)
		if w.IntN(4) == 0 {
			child = w.grant()
		}
		up, err := parent.check()
		if err != nil { // "" and the like are no bounds
			continue
		}
		down, err := child.check()
		if err != nil {
			continue
		}
		subset, _ := Subset(child, parent)
		if subset {
			yes++
		}
		var both *checked
		if g, err := parent.Attenuate(child); err == nil {
			attenuated++
			both = mustCheck(t, g)
		} else {
			refused++
		}
		for range 24 {
			name, args := w.name(), w.args()
			above, below := up.allows(name, args), down.allows(name, args)
			if subset && below {
				allowed++
				if !above {
					t.Fatalf("round %d: Subset holds, but %s %s is allowed by the child only\nparent %+v\nchild %+v", round, name, encode(args), parent, child)
				}
			}
			if both != nil && both.allows(name, args) != (above && below) {
				t.Fatalf("round %d: the attenuation of %s %s is not what both allow\nparent %+v\nchild %+v", round, name, encode(args), parent, child)
			}
		}
	}
	t.Logf("%d subsets with %d allowed calls, %d attenuated, %d refused", yes, allowed, attenuated, refused)
	if yes < 1000 || allowed < 1000 || attenuated < 1000 || refused < 1000 {
		t.Errorf("too few cases to mean anything: %d subsets, %d allowed, %d attenuated, %d refused", yes, allowed, attenuated, refused)
	}
}

func TestOnePatternWithinAnotherIsDecidedExactly(t *testing.T) {
	var names []string
	letters := []string{"a", "b", "z"}
	var grow func(prefix string, n int)
	grow = func(prefix string, n int) {
		for _, l := range letters {
			name := strings.TrimPrefix(prefix+"/"+l, "/")
			names = append(names, name)
			if n > 1 {
				grow(name, n-1)
			}
		}
	}
	grow("", 5)
	w := newWorld(3)
	for range 3000 {
		p, err := parsePattern(w.pattern())
		if err != nil {
			t.Fatal(err)
		}
		other, err := parsePattern(w.pattern())
		if err != nil {
			t.Fatal(err)
		}
		want := true
		for _, name := range names {
			if p.match(name) && !other.match(name) {
				want = false
				break
			}
		}
		if got := p.within(other); got != want {
			t.Fatalf("%s within %s: %v, by enumeration %v", p, other, got, want)
		}
	}
}

func TestPatternsMatchBySegments(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"stripe/*", "stripe/charges", true},
		{"stripe.*", "stripe/charges", true},
		{"stripe/*", "stripe/charges/create", false},
		{"stripe/*", "stripe", false},
		{"stripe/*", "stripes/charges", false},
		{"stripe/**", "stripe/charges/create", true},
		{"stripe/**", "stripe", true},
		{"**/create", "stripe/charges/create", true},
		{"**/create", "create", true},
		{"**", "a", true},
		{"a/**/b/**/c", "a/x/b/b/y/c", true},
		{"a/**/b/**/c", "a/x/y/c", false},
	} {
		p, err := parsePattern(test.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if p.match(test.name) != test.want {
			t.Errorf("%s matches %s: %v", test.pattern, test.name, !test.want)
		}
	}
	for _, bad := range []string{"", "a//b", "a*", "A", "a b", "/a", "a/", "***", "-a", "_a", strings.Repeat("a/", 16) + "a"} {
		if _, err := parsePattern(bad); err == nil {
			t.Errorf("%q is taken for a pattern", bad)
		}
	}
}

func TestAProofThatWouldTakeTooLongIsRefused(t *testing.T) {
	var facts []Constraint
	for i := range 30 {
		path := fmt.Sprintf("p%d", i)
		facts = append(facts, Constraint{Op: Or, Of: []Constraint{{Op: Eq, Path: path, Value: 1}, {Op: Eq, Path: path, Value: 2}}})
	}
	// It does follow, but only the last split shows it.
	goal := Constraint{Op: Or, Of: []Constraint{{Op: Le, Path: "p29", Value: 1}, {Op: Ge, Path: "p29", Value: 2}}}
	ok, reason := Subset(Grant{Tools: "x", Constraints: facts}, Grant{Tools: "x", Constraints: []Constraint{goal}})
	if ok || reason == "" {
		t.Errorf("%v %q", ok, reason)
	}
}
