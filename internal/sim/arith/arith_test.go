package arith_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/arith"
)

// store is the plainest set of variables.
type store struct {
	ints  map[string]int64
	text  map[string]string
	arr   map[string]map[int64]string
	keyed map[string]map[string]string
	left  int
	log   []string // what a shell would print and go on
}

var errSpent = errors.New("spent")

func newStore() *store {
	return &store{
		ints: map[string]int64{}, text: map[string]string{}, left: 1 << 20,
		arr: map[string]map[int64]string{}, keyed: map[string]map[string]string{},
	}
}

func (s *store) Int(name string) (int64, bool) {
	n, ok := s.ints[name]
	return n, ok
}

func (s *store) Text(name string) (string, error) {
	if n, ok := s.ints[name]; ok {
		return strconv.FormatInt(n, 10), nil
	}
	if a, ok := s.arr[name]; ok {
		return a[0], nil
	}
	return s.text[name], nil
}

func (s *store) Set(name string, n int64) error {
	if name == "readonly" {
		return errors.New("readonly: readonly variable")
	}
	if a, ok := s.arr[name]; ok {
		a[0] = strconv.FormatInt(n, 10)
		return nil
	}
	s.ints[name] = n
	return nil
}

func (s *store) Keyed(name string) bool {
	_, ok := s.keyed[name]
	return ok
}

func (s *store) index(name string, key arith.Key) (int64, bool) {
	i := key.Index
	if i < 0 {
		for k := range s.arr[name] {
			i = max(i, key.Index+k+1)
		}
	}
	if !key.Numeric || i < 0 {
		s.log = append(s.log, name+"["+key.Text+"]: bad array subscript")
		return 0, false
	}
	return i, true
}

func (s *store) Element(name string, key arith.Key) (string, error) {
	if m, ok := s.keyed[name]; ok {
		return m[key.Text], nil
	}
	i, ok := s.index(name, key)
	if !ok {
		return "", nil
	}
	if s.arr[name] == nil && i == 0 {
		return s.Text(name)
	}
	return s.arr[name][i], nil
}

func (s *store) SetElement(name string, key arith.Key, n int64) error {
	value := strconv.FormatInt(n, 10)
	if m, ok := s.keyed[name]; ok {
		m[key.Text] = value
		return nil
	}
	i, ok := s.index(name, key)
	if !ok {
		return nil
	}
	if s.arr[name] == nil {
		s.arr[name] = map[int64]string{}
		if t, err := s.Text(name); err == nil && t != "" {
			s.arr[name][0] = t
		}
		delete(s.ints, name)
		delete(s.text, name)
	}
	s.arr[name][i] = value
	return nil
}

func (s *store) Expand(sub string, key bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(sub); i++ {
		switch c := sub[i]; {
		case c == '\\' && i+1 < len(sub):
			i++
		case c == '"', c == '\'' && key:
			continue
		}
		b.WriteByte(sub[i])
	}
	return b.String(), nil
}

func (s *store) Step(n int) error {
	if s.left -= n; s.left < 0 {
		return errSpent
	}
	return nil
}

func TestExpressionsHaveTheValuesOfBash(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, " \t\n": 0, "1+2*3": 7, "-2**2": 4, "2**3**2": 512, "7/-2": -3, "-7%3": -1,
		"1<<64": 1, "1<<-1": -1 << 63, "-1>>65": -1, "9223372036854775807+1": -1 << 63,
		"-9223372036854775808/-1": -1 << 63, "-9223372036854775808%-1": 0, "0x": 0, "64#@_": 4031, "36#Z": 35, "37#A": 36,
		"1?2?3:4:5": 3, "0?1:0?2:3": 3, "1,2,3": 3, "!5+1": 1, "5---x": 6, "x=y=3": 3, "(x=1)+x": 2,
		"0&&(1/0)": 0, "1||1/0": 1, "1?2:1/0": 2, "++1": 1, "- -1": 1, "1\n+\t2": 3, "99999999999999999999": 7766279631452241919,
	} {
		n, err := arith.Compile(text).Eval(newStore())
		if n != want || err != nil {
			t.Errorf("%q is %d, %v; want %d", text, n, err, want)
		}
	}
}

func TestErrorsAreInTheWordsOfBash(t *testing.T) {
	for text, want := range map[string]string{
		"1 + ":      `1 + : syntax error: operand expected (error token is "+ ")`,
		"1+08+2":    `1+08: value too great for base (error token is "08")`,
		"1/0 + 5":   `1/0 + 5: division by 0 (error token is "0 + 5")`,
		"2**-1":     `2**-1: exponent less than 0 (error token is "1")`,
		"1 ? 2":     "1 ? 2: `:' expected for conditional expression (error token is \"2\")",
		"++x++":     `++x++: ++: assignment requires lvalue (error token is "++")`,
		"a[1 2]":    `1 2: syntax error in expression (error token is "2")`,
		"a[":        `a[: bad array subscript (error token is "a[")`,
		"(x)=1":     `(x)=1: attempted assignment to non-variable (error token is "=1")`,
		"readonly=": `readonly=: syntax error: operand expected (error token is "=")`,
	} {
		if _, err := arith.Compile(text).Eval(newStore()); err == nil || err.Error() != want {
			t.Errorf("%q ends with %v, want %s", text, err, want)
		}
	}
	if _, err := arith.Compile("readonly=1").Eval(newStore()); err == nil || err.Error() != "readonly: readonly variable" {
		t.Errorf("the error of the store came out as %v", err)
	}
}

func TestKeysOfAssociativeArraysAreStrings(t *testing.T) {
	s := newStore()
	s.keyed["m"] = map[string]string{}
	for _, text := range []string{"m[foo]++", "m[foo]+=5", `m[a b]=m["foo"]`, "m[" + arith.QuoteSubscript(`]"x[`) + "]=7"} {
		if _, err := arith.Compile(text).Eval(s); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := fmt.Sprint(s.keyed["m"]); got != "map[]\"x[:7 a b:6 foo:6]" {
		t.Error(got)
	}
}

func TestHostileExpressionsEnd(t *testing.T) {
	const n = 200_000
	for name, text := range map[string]string{
		"parentheses": strings.Repeat("(", n) + "1", "signs": strings.Repeat("- ", n) + "1", "powers": strings.Repeat("2**", n) + "1",
		"choices": strings.Repeat("1?", n) + "1", "subscripts": strings.Repeat("a[", n) + "1" + strings.Repeat("]", n),
		"assignments": strings.Repeat("x=", n) + "1", "open brackets": strings.Repeat("a[", n), "a long sum": strings.Repeat("1+", n) + "1",
		"steps": strings.Repeat("++x+", n) + "1",
	} {
		if _, err := arith.Compile(text).Eval(newStore()); err != nil && len(err.Error()) < 20 {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newStore()
	for i := range 1000 {
		s.text[fmt.Sprintf("x%d", i)] = fmt.Sprintf("x%d+x%d", i+1, i+1)
	}
	if _, err := arith.Compile("x0").Eval(s); !errors.Is(err, errSpent) {
		t.Errorf("values that double ended with %v", err)
	}
	s = newStore()
	s.text["x"], s.text["y"] = "y", "x"
	_, err := arith.Compile("x").Eval(s)
	if want := `y: expression recursion level exceeded (error token is "y")`; err == nil || err.Error() != want {
		t.Errorf("values that lead to each other ended with %v", err)
	}
}

// one is a store whose lookup costs nothing.
type one struct {
	*store
	n int64
}

func (s *one) Int(string) (int64, bool) { return s.n, true }

func (s *one) Set(_ string, n int64) error {
	s.n = n
	return nil
}

func BenchmarkEval(b *testing.B) {
	for _, text := range []string{"i=i+1", "i<100000", "i++", "x*y+i%7", "a[i]+=1"} {
		b.Run(text, func(b *testing.B) {
			s := newStore()
			s.ints["i"], s.ints["x"], s.ints["y"] = 0, 3, 4
			s.arr["a"] = map[int64]string{}
			e := arith.Compile(text)
			b.ReportAllocs()
			for b.Loop() {
				if text[0] == 'a' {
					s.ints["i"] = 0
				}
				if _, err := e.Eval(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, text := range []string{"i=i+1", "i<100000", "i++"} {
		b.Run("one variable/"+text, func(b *testing.B) {
			s := &one{store: newStore()}
			e := arith.Compile(text)
			for b.Loop() {
				if _, err := e.Eval(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			arith.Compile("i<100000")
		}
	})
}
