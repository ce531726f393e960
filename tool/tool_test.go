package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

type user struct {
	Name string `json:"name"`
	Age  *int   `json:"age"`
}

type everything struct {
	A      int64             `json:"a" doc:"a number"`
	Small  int8              `json:"small,omitempty"`
	U      uint64            `json:"u,omitempty"`
	F      float64           `json:"f,omitempty"`
	F32    float32           `json:"f32,omitempty"`
	Exact  json.Number       `json:"exact,omitempty"`
	Live   bool              `json:"live,omitempty"`
	S      string            `json:"s,omitempty"`
	Tags   []string          `json:"tags,omitempty"`
	Users  []user            `json:"users,omitempty"`
	User   *user             `json:"user"`
	Labels map[string]string `json:"labels,omitempty"`
	Any    any               `json:"any,omitempty"`
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Data   []byte            `json:"data,omitempty"`
	Addr   netip.Addr        `json:"addr,omitzero"`
	When   *time.Time        `json:"when"`
	hidden int
	Not    int `json:"-"`
}

func define[In, Out any](t testing.TB, name string, f func(context.Context, In) (Out, error)) Tool {
	t.Helper()
	made, err := Define(name, "About "+name+".", f)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func echo(t testing.TB) Tool {
	return define(t, "echo", func(_ context.Context, in everything) (everything, error) { return in, nil })
}

func open(t testing.TB, tools ...Tool) *Set {
	t.Helper()
	s, err := NewSet(Options{Tools: tools, Grants: []Grant{{Tools: "**", MaxCalls: 1 << 40}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestArgumentsAreHeldAgainstTheTypes(t *testing.T) {
	var got everything
	s := open(t, define(t, "t", func(_ context.Context, in everything) (int, error) { got = in; return 0, nil }))
	for _, args := range []string{
		``, `null`, `[]`, `5`, `{`, `{"a":1}x`, `{}`, `{"a":null}`, `{"a":1,"b":2}`, `{"A":1}`, `{"a":1,"A":2}`, `{"a":1,"a":2}`,
		`{"a":"1"}`, `{"a":true}`, `{"a":1.5}`, `{"a":9223372036854775808}`, `{"a":1e99}`, `{"a":01}`, `{"a":+1}`, `{"a":NaN}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`,
		`{"a":1,"small":128}`, `{"a":1,"u":-1}`, `{"a":1,"u":18446744073709551616}`, `{"a":1,"f":1e309}`, `{"a":1,"f":"1"}`, `{"a":1,"f32":1e39}`,
		`{"a":1,"live":1}`, `{"a":1,"live":"true"}`, `{"a":1,"s":1}`, `{"a":1,"tags":"x"}`, `{"a":1,"tags":[1]}`, `{"a":1,"tags":[null]}`, `{"a":1,"tags":{}}`,
		`{"a":1,"user":{}}`, `{"a":1,"user":{"name":"x","x":1}}`, `{"a":1,"users":[{"name":1}]}`, `{"a":1,"user":"x"}`, `{"a":1,"labels":{"k":1}}`, `{"a":1,"labels":[]}`,
		`{"a":1,"data":"!"}`, `{"a":1,"addr":"x"}`, `{"a":1,"when":"now"}`, `{"a":1,"Not":1}`, `{"a":1,"hidden":1}`, `{"a":1,"-":1}`,
		`{"a":1,"s":"\ud800"}`, `{"a":1,"s":"\ud800\u0041"}`, "{\"a\":1,\"s\":\"\xff\"}", "{\"a\":1,\"s\":\"\n\"}", `{"a":1,"s":"\x"}`,
		`{"a":1,"any":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`{"a":1,"any":[` + strings.Repeat("[],", 1<<16) + `[]]}`,
		`{"a":1,"s":"` + strings.Repeat("x", maxArgumentBytes) + `"}`,
		`{"a":1,"exact":` + strings.Repeat("9", 500) + `}`, `{"a":1,"exact":1e500}`, `{"a":1,"exact":1e-99999999999999999999}`,
	} {
		if _, err := s.Call(t.Context(), "t", json.RawMessage(args)); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%.60s is taken: %v", args, err)
		} else if len(err.Error()) > 400 {
			t.Errorf("%.60s is repeated at length: %d bytes", args, len(err.Error()))
		}
	}
	_, err := s.Call(t.Context(), "t", json.RawMessage(`{"a":1.0,"small":-128,"u":18446744073709551615,"f":0.1,"exact":1.10,"live":true,"s":"\u00e9\ud83d\ude00\u0000",
		"tags":["x"],"users":[{"name":"n"}],"user":{"name":"m","age":9},"labels":{"k/.":"v"},"any":{"n":12345678901234567890.5},"raw":{"z":1, "a":[2]},"data":"AP8=","addr":"::ffff:1.2.3.4","when":null}`))
	if err != nil {
		t.Fatal(err)
	}
	nine := 9
	want := everything{hidden: 0, A: 1, Small: -128, U: 1<<64 - 1, F: 0.1, Exact: "1.10", Live: true, S: "é😀\x00",
		Tags: []string{"x"}, Users: []user{{Name: "n"}}, User: &user{"m", &nine}, Labels: map[string]string{"k/.": "v"},
		Any: map[string]any{"n": json.Number("12345678901234567890.5")}, Raw: json.RawMessage(`{"a":[2],"z":1}`), Data: []byte{0, 255}, Addr: netip.MustParseAddr("::ffff:1.2.3.4")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A constraint must judge what the function sees, not what was written.
func TestNoSpellingPassesAConstraintAndMeansSomethingElse(t *testing.T) {
	type input struct {
		N    float64    `json:"n,omitempty"`
		I    *int64     `json:"i"`
		Addr netip.Addr `json:"addr,omitzero"`
		Data []byte     `json:"data,omitempty"`
		P    *string    `json:"p"`
	}
	called := false
	made := define(t, "t", func(context.Context, input) (int, error) { called = true; return 0, nil })
	for _, test := range []struct{ constraint, args string }{
		{`{"n":"<1000"}`, `{"n":999.99999999999999999999999}`},
		{`{"n":"!=0.1"}`, `{"n":0.10000000000000000000001}`},
		{`{"n":"<1000"}`, `{"n":1,"N":5000}`},
		{`{"n":"<1000"}`, `{"n":1,"n":5000}`},
		{`{"i":"!=1"}`, `{"i":1.0}`},
		{`{"addr":"!=::1"}`, `{"addr":"0:0:0:0:0:0:0:1"}`},
		{`{"data":"!=AP8="}`, `{"data":"AP8=\n"}`},
		{`{"p":"exists"}`, `{"p":null}`},
	} {
		g, err := ParseGrant([]byte(`{"tools":"t","constraints":` + test.constraint + `}`))
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSet(Options{Tools: []Tool{made}, Grants: []Grant{g}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Call(t.Context(), "t", json.RawMessage(test.args)); err == nil || called {
			t.Errorf("%s lets %s through", test.constraint, test.args)
		}
	}
}

func TestWhatHasNoReadingIsNotDefined(t *testing.T) {
	type loop struct {
		Next *loop `json:"next"`
	}
	refuse := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s is defined: %v", what, err)
		}
	}
	refuse("a recursive type", tryDefine[loop]("x"))
	refuse("a map", tryDefine[map[string]int]("x"))
	refuse("a pointer", tryDefine[*user]("x"))
	refuse("a time", tryDefine[time.Time]("x"))
	refuse("a channel", tryDefine[struct{ C chan int }]("x"))
	refuse("a function", tryDefine[struct{ F func() }]("x"))
	refuse("a complex number", tryDefine[struct{ C complex128 }]("x"))
	refuse("an interface", tryDefine[struct{ R io.Reader }]("x"))
	refuse("a map by numbers", tryDefine[struct{ M map[int]int }]("x"))
	refuse("an array", tryDefine[struct{ A [3]int }]("x"))
	refuse("two pointers", tryDefine[struct{ P **int }]("x"))
	refuse("an embedded struct", tryDefine[struct{ user }]("x"))
	refuse("a quoted number", tryDefine[struct {
		A int `json:"a,string"`
	}]("x"))
	refuse("an argument help", tryDefine[struct {
		A int `json:"help"`
	}]("x"))
	refuse("an argument json", tryDefine[struct {
		A int `json:"json"`
	}]("x"))
	refuse("a dotted argument", tryDefine[struct {
		A int `json:"a.b"`
	}]("x"))
	refuse("two of one name", tryDefine[struct {
		A int `json:"B"`
		B int
	}]("x"))
	for _, name := range []string{"", "A", "a//b", "a b", "a/", ".a", "-a", "a-", "_a", "é", "a/*", strings.Repeat("a", 65), strings.Repeat("a/", 16) + "a"} {
		refuse("the name "+name, tryDefine[user](name))
	}
	if _, err := Define[user, int]("x", "", nil); !errors.Is(err, paddock.Invalid) {
		t.Errorf("nothing is defined: %v", err)
	}
	for _, name := range []string{"math/add", "math.add", "a-b_c/d0", "0"} {
		if err := tryDefine[user](name); err != nil {
			t.Error(err)
		}
	}
}

func tryDefine[In any](name string) error {
	_, err := Define(name, "", func(context.Context, In) (int, error) { return 0, nil })
	return err
}

func TestAResultIsJSONWithoutLoss(t *testing.T) {
	type none struct{}
	for _, test := range []struct {
		out  any
		want string // "" is an error
	}{
		{"<&>\u2028\ufffd", "\"<&>\\u2028\ufffd\""},
		{`\ufffd`, `"\\ufffd"`},
		{int64(9007199254740993), "9007199254740993"},
		{big.NewInt(5), "5"},
		{nil, "null"},
		{[]byte{255}, `"/w=="`},
		{"\xff", ""},
		{map[string]string{"a\xff": ""}, ""},
		{func() {}, ""},
	} {
		s := open(t, define(t, "t", func(context.Context, none) (any, error) { return test.out, nil }))
		out, err := s.Call(t.Context(), "t", nil)
		if (err != nil) != (test.want == "") || string(out) != test.want {
			t.Errorf("%v becomes %s, %v; want %s", test.out, out, err, test.want)
		}
	}
}

func TestTheSchemaIsClosedAndSaysWhatIsRequired(t *testing.T) {
	const want = `{"type":"object","properties":{` +
		`"a":{"type":"integer","description":"a number"},` +
		`"small":{"type":"integer","minimum":-128,"maximum":127},` +
		`"u":{"type":"integer","minimum":0},` +
		`"f":{"type":"number"},"f32":{"type":"number"},"exact":{"type":"number"},"live":{"type":"boolean"},"s":{"type":"string"},` +
		`"tags":{"type":"array","items":{"type":"string"}},` +
		`"users":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false}},` +
		`"user":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false},` +
		`"labels":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"any":{},"raw":{},"data":{"type":"string","contentEncoding":"base64"},"addr":{"type":"string"},"when":{"type":"string","format":"date-time"}},` +
		`"required":["a"],"additionalProperties":false}`
	got := echo(t).Schema()
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !json.Valid(got) {
		t.Error("it is not JSON")
	}
	documented := define(t, "t", func(_ context.Context, in struct {
		X any `json:"x" doc:"any \"thing\""`
	}) (int, error) {
		return 0, nil
	})
	if got := documented.Schema(); !json.Valid(got) || !strings.Contains(string(got), `"x":{"description":"any \"thing\""}`) {
		t.Errorf("%s", got)
	}
}

func TestWordsBecomeArguments(t *testing.T) {
	made := echo(t)
	tests := []struct{ words, want string }{
		{"--a 1", `{"a":1}`},
		{"--a=1", `{"a":1}`},
		{"--a -5", `{"a":-5}`},
		{"--a 1e2", `{"a":100}`},
		{"--a 9007199254740993", `{"a":9007199254740993}`},
		{"--a 1 --live", `{"a":1,"live":true}`},
		{"--live --a 1", `{"a":1,"live":true}`},
		{"--a 1 --live=false", `{"a":1,"live":false}`},
		{"--a 1 --tags x --tags=y=z --tags --a", `{"a":1,"tags":["x","y=z","--a"]}`},
		{"--a 1 --user.name x --user.age 3", `{"a":1,"user":{"age":3,"name":"x"}}`},
		{`--a 1 --user {"name":"x"}`, `{"a":1,"user":{"name":"x"}}`},
		{`--a 1 --users {"name":"x"} --users {"name":"y"}`, `{"a":1,"users":[{"name":"x"},{"name":"y"}]}`},
		{"--a 1 --labels.k v --labels.a.b=c", `{"a":1,"labels":{"a.b":"c","k":"v"}}`},
		{`--a 1 --labels {"k":"v"}`, `{"a":1,"labels":{"k":"v"}}`},
		{`--a 1 --any [1,"x"]`, `{"a":1,"any":[1,"x"]}`},
		{"--a 1 --data \xff\x00", `{"a":1,"data":"/wA="}`},
		{"--a 1 --s=", `{"a":1,"s":""}`},
		{"--a 1 --s -", `{"a":1,"s":"-"}`},
		{"--a 1 --s 5", `{"a":1,"s":"5"}`},
		{"--a 1 --when 2027-01-01T00:00:00Z", `{"a":1,"when":"2027-01-01T00:00:00Z"}`},
		{`--json {"a":1,"live":true}`, `{"a":1,"live":true}`},
		{`--json={"a":1}`, `{"a":1}`},
		{"--json -", `{"a":7}`},
		{"-", `{"a":7}`},
	}
	for _, test := range tests {
		got, err := made.Arguments(strings.Split(test.words, " "), strings.NewReader(` {"a": 7} `))
		if err != nil || string(got) != test.want {
			t.Errorf("%q gives %s, %v; want %s", test.words, got, err, test.want)
		}
	}
	for _, words := range []string{
		"", "--a", "--a x", "--a 1.5", "--a 0x10", "--a NaN", "--a 1 --a 2", "--a 1 x", "a=1", "-a 1", "--", "--a 1 --", "--b 1", "--A 1", "--a.x 1", "--a. 1", "--.a 1", "--=1",
		"--a 1 --live true", "--a 1 --live=yes", "--a 1 --live=", "--a 1 --user.name x --user.name y", `--a 1 --user {"name":"x"} --user.age 3`, `--a 1 --user.name x --user {"name":"y"}`,
		`--a 1 --user x`, "--a 1 --user.x y", "--a 1 --user.age 3", "--a 1 --labels.k v --labels.k w", "--a 1 --labels. v", "--a 1 --tags.0 x", "--a 1 --f NaN", "--a 1 --f Inf", "--a 1 --small 128",
		`--json {"a":1} --a 1`, `--a 1 --json {"a":1}`, "--json [1]", `--json {"a":1} --json {"a":1}`, "--json", `--json {"a":1} -`, "--json {", "--a 1 --s \xff", "--a 1 --labels.\xff v", "--a 1 --any x", "--help=x --b",
	} {
		var list []string
		if words != "" {
			list = strings.Split(words, " ")
		}
		if got, err := made.Arguments(list, nil); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q gives %s, %v", words, got, err)
		}
	}
	for _, words := range []string{"--help", "-h", "--a 1 --help", "--a 1 -h"} {
		if _, err := made.Arguments(strings.Split(words, " "), nil); !errors.Is(err, HelpWanted) {
			t.Errorf("%q gives %v", words, err)
		}
	}
	if _, err := made.Arguments([]string{"--user-name"}, nil); err == nil || strings.Contains(err.Error(), "but there is") {
		t.Error(err)
	}
	if _, err := made.Arguments([]string{"--Live"}, nil); err == nil || !strings.Contains(err.Error(), "but there is live") {
		t.Error(err)
	}
	if _, err := made.Arguments([]string{"-"}, io.LimitReader(zeros{}, 1<<40)); !errors.Is(err, paddock.Invalid) {
		t.Errorf("an endless input: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestHelpNamesEveryArgument(t *testing.T) {
	const want = `Usage: echo --a integer [--small integer] [--u integer] [--f number] [--f32 number] [--exact number] [--live] [--s string] [--tags string...] [--users json...] [--user.name string [--user.age integer]] [--labels.KEY string] [--any json] [--raw json] [--data bytes] [--addr text] [--when time]
       echo --json '{…}'    all arguments as JSON; - reads them from standard input

About echo.

Arguments:
  --a integer          a number (required)
  --small integer
`
	if got := echo(t).Help(); !strings.HasPrefix(got, want) || !strings.Contains(got, "\n  --user.age integer\n") {
		t.Errorf("%s", got)
	}
}

func TestAgentNamesAreReadBack(t *testing.T) {
	w := newWorld(9)
	seen := map[string]string{}
	for range 20_000 {
		n := 1 + w.IntN(5)
		b := make([]byte, n)
		for i := range b {
			b[i] = pick(w, byte('a'), 'b', '_', '-', '/', '_')
		}
		name, err := cleanName(string(b))
		if err != nil {
			continue
		}
		agent := agentName(name)
		if other, ok := seen[agent]; ok && other != name {
			t.Fatalf("%s and %s are both %s", name, other, agent)
		}
		seen[agent] = name
		if back, err := FromAgentName(agent); err != nil || back != name {
			t.Fatalf("%s is %s, which is read as %s, %v", name, agent, back, err)
		}
	}
	if len(seen) < 100 {
		t.Fatalf("only %d names", len(seen))
	}
	for _, bad := range []string{"", "_", "a_", "_a", "a___b", "a/b", "A", "a.b", "a____", "a-_b"} {
		if name, err := FromAgentName(bad); err == nil {
			t.Errorf("%s is read as %s", bad, name)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, words := range []string{"--a\n1", "--a=1\n--live", "--a\n1\n--user.name\nx\n--labels.k=v", "--json\n{\"a\":1}", "--users={\"name\":\"x\"}\n--a=2", "-", "--any=[1]\n--data=x"} {
		f.Add(words)
	}
	made := echo(f)
	s := open(f, made)
	f.Fuzz(func(t *testing.T, text string) {
		args, err := made.Arguments(strings.Split(text, "\n"), strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, HelpWanted) && !errors.Is(err, paddock.Invalid) {
				t.Fatalf("the kind of %v", err)
			}
			return
		}
		if !json.Valid(args) {
			t.Fatalf("%q gives %q", text, args)
		}
		if _, err := s.Call(context.Background(), "echo", args); err != nil {
			t.Fatalf("%q gives %s, which the tool refuses: %v", text, args, err)
		}
		again, err := made.Arguments([]string{"--json", string(args)}, nil)
		if err != nil || !bytes.Equal(again, args) {
			t.Fatalf("%s becomes %s, %v", args, again, err)
		}
	})
}

// encoding/json is the referee: what is taken means the same there.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2.5e3,"x\n\u00e9\ud83d\ude00",true,false,null]}`, `[]`, ` "\/" `, `1e5`, `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", `-0`, `01`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := parse(text, 1<<16)
		if err != nil {
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&want); err != nil || !json.Valid(text) {
			t.Fatalf("%q is taken, and is not JSON: %v", text, err)
		}
		if got := plain(v); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %#v, not %#v", text, got, want)
		}
		again, err := parse(encode(v), 1<<20)
		if err != nil || !reflect.DeepEqual(again, v) {
			t.Fatalf("%q is written as %s: %v", text, encode(v), err)
		}
	})
}
