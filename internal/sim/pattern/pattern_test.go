package pattern_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
)

func TestBytesThatAreNoCharactersStay(t *testing.T) {
	p := pattern.Compile("a?[\xfe]*", pattern.Options{})
	for s, want := range map[string]bool{"a\xff\xfe": true, "aé\xfe\x00": true, "a\xff\xff": false, "a\ufffd\ufffd": false} {
		if ok, err := p.Match(s, nil); ok != want || err != nil {
			t.Errorf("%q: %v, %v", s, ok, err)
		}
	}
}

func TestQuotedTextMatchesItselfOnly(t *testing.T) {
	for _, s := range []string{"", "a*b", `\`, "[a-z]", "@(a|b)", "!x", "a]", "\xff[", "é?", "x\ny"} {
		p := pattern.Compile(pattern.Quote(s), pattern.Options{ExtGlob: true})
		if ok, err := p.Match(s, nil); !ok || err != nil {
			t.Errorf("%q does not match itself: %v", s, err)
		}
		if lit, ok := p.Literal(); !ok || lit != s {
			t.Errorf("%q quoted is no literal: %q", s, lit)
		}
	}
}

func TestExplosivePatternsStayCheap(t *testing.T) {
	long := strings.Repeat("a", 3000)
	for _, pat := range []string{
		strings.Repeat("*a", 50) + "*b",
		strings.Repeat("?(a)", 50) + "b",
		"+(+(+(a)))b", "*(*(*(a|aa)|a)|a)b", "+(a*)+(a*)+(a*)b", "!(*(a)b)b",
		strings.Repeat("*(a|", 150) + "x" + strings.Repeat(")", 150) + "b",
		strings.Repeat("*[!b]", 40) + "b",
	} {
		p := pattern.Compile(pat, pattern.Options{ExtGlob: true})
		spent := &fuse{left: 100_000_000}
		if ok, err := p.Match(long, spent); ok || err != nil {
			t.Errorf("%.20s…: %v, %v", pat, ok, err)
		}
		if _, _, ok, err := p.Find(long, 0, spent); ok || err != nil {
			t.Errorf("%.20s…: %v, %v", pat, ok, err)
		}
	}
}

func TestTheMeterEndsAMatch(t *testing.T) {
	long := strings.Repeat("ab", 50_000)
	for _, pat := range []string{"!(*!(*a*c)*c)c", "*+(a|b)c", "*!(a)!(b)!(c)*x"} {
		p := pattern.Compile(pat, pattern.Options{ExtGlob: true})
		if _, err := p.Match(long, &fuse{left: 50_000}); !errors.Is(err, errSpent) {
			t.Errorf("%s ended with %v", pat, err)
		}
	}
}

func TestDeepGroupsDoNotOverflow(t *testing.T) {
	for _, n := range []int{199, 200, 201, 100_000} {
		p := pattern.Compile(strings.Repeat("@(", n)+"a"+strings.Repeat(")", n), pattern.Options{ExtGlob: true})
		if ok, err := p.Match("a", nil); err != nil || ok != (n <= 200) {
			t.Errorf("%d groups: %v, %v", n, ok, err)
		}
	}
}

// oracle is the plainest matcher there is: it tries everything.
//
// It gives up when that takes too long.
type oracle struct{ left int }

func (o *oracle) match(pat, s string) bool {
	if o.left--; o.left < 0 {
		return false
	}
	if pat == "" {
		return s == ""
	}
	rest := pat[1:]
	if len(rest) > 0 && rest[0] == '(' && strings.ContainsRune("?*+@!", rune(pat[0])) {
		if end := closing(pat); end > 0 {
			return o.group(pat[0], alternatives(pat[2:end]), pat[end+1:], s)
		}
		return pat == s
	}
	switch pat[0] {
	case '*':
		for i := range len(s) + 1 {
			if o.match(rest, s[i:]) {
				return true
			}
		}
		return false
	case '?':
		return s != "" && o.match(rest, s[1:])
	}
	return s != "" && s[0] == pat[0] && o.match(rest, s[1:])
}

func (o *oracle) group(op byte, alts []string, rest, s string) bool {
	if (op == '?' || op == '*') && o.match(rest, s) {
		return true
	}
	for i := range len(s) + 1 {
		one := false
		for _, alt := range alts {
			one = one || o.match(alt, s[:i])
		}
		if one == (op == '!') {
			continue
		}
		if o.match(rest, s[i:]) || i > 0 && (op == '*' || op == '+') && o.group('*', alts, rest, s[i:]) {
			return true
		}
	}
	return false
}

func closing(pat string) int {
	nest := 0
	for i := range len(pat) {
		switch pat[i] {
		case '(':
			nest++
		case ')':
			if nest--; nest == 0 {
				return i
			}
		}
	}
	return -1
}

func alternatives(body string) []string {
	var list []string
	start, nest := 0, 0
	for i := range len(body) {
		switch body[i] {
		case '(':
			nest++
		case ')':
			nest--
		case '|':
			if nest == 0 {
				list = append(list, body[start:i])
				start = i + 1
			}
		}
	}
	return append(list, body[start:])
}

func FuzzPatternsAgreeWithThePlainestMatcher(f *testing.F) {
	for _, seed := range [][2]string{{"*a*b", "xaxb"}, {"!(a)b", "ab"}, {"+(a|?(b))c", "abac"}, {"@(a", "@(a"}, {"*(*(a))", "aaa"}, {"!(!(a))", "a"}, {"?*!(b)", "ab"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pat, s string) {
		if len(pat) > 14 || len(s) > 8 || strings.ContainsAny(pat, `[]\`) || !ascii(pat+s) {
			p := pattern.Compile(pat, pattern.Options{ExtGlob: true}) // must not panic, nor run long
			m := &fuse{left: 1 << 20}
			_, _ = p.Match(s, m)
			_, _, _, _ = p.Find(s, 0, m)
			_, _, _ = p.LongestSuffix(s, m)
			return
		}
		p := pattern.Compile(pat, pattern.Options{ExtGlob: true})
		o := &oracle{left: 1 << 16}
		want := o.match(pat, s)
		if o.left < 0 {
			return
		}
		if ok, err := p.Match(s, nil); err != nil || ok != want {
			t.Fatalf("%q against %q: %v, %v", s, pat, ok, err)
		}
		o.ends(t, p, pat, s)
	})
}

// ends compares the prefixes and suffixes with what Match says of each.
func (o *oracle) ends(t *testing.T, p *pattern.Pattern, pat, s string) {
	t.Helper()
	var pre, suf []int
	for i := range len(s) + 1 {
		if o.match(pat, s[:i]) {
			pre = append(pre, i)
		}
		if o.match(pat, s[len(s)-i:]) {
			suf = append(suf, i)
		}
	}
	if o.left < 0 {
		return
	}
	check := func(name string, want []int, last bool, f func(string, pattern.Meter) (int, bool, error)) {
		n, ok, err := f(s, nil)
		if err != nil || ok != (len(want) > 0) {
			t.Fatalf("%s of %q against %q: %v, %v", name, s, pat, ok, err)
		}
		if !ok {
			return
		}
		w := want[0]
		if last {
			w = want[len(want)-1]
		}
		if n != w {
			t.Fatalf("%s of %q against %q: %d, want %d", name, s, pat, n, w)
		}
	}
	check("shortest prefix", pre, false, p.ShortestPrefix)
	check("longest prefix", pre, true, p.LongestPrefix)
	check("shortest suffix", suf, false, p.ShortestSuffix)
	check("longest suffix", suf, true, p.LongestSuffix)
	if s == "" {
		return
	}
	start, end, ok, err := p.Find(s, 0, nil)
	for i := range len(s) + 1 {
		for j := len(s); j >= i; j-- {
			if o.match(pat, s[i:j]) && o.left >= 0 {
				if o.left < 0 {
					return
				}
				if !ok || err != nil || start != i || end != j {
					t.Fatalf("%q in %q: %d to %d, %v, %v; want %d to %d", pat, s, start, end, ok, err, i, j)
				}
				return
			}
		}
	}
	if ok && o.left >= 0 {
		t.Fatalf("%q in %q: found at %d to %d", pat, s, start, end)
	}
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func BenchmarkMatch(b *testing.B) {
	for _, c := range []struct{ name, pat, s string }{
		{"suffix", "*.txt", "some/long/path/name.txt"},
		{"set", "[a-z]*", "some"},
		{"stars", "*o*l*name*", "some/long/path/name.txt"},
		{"group", "*.@(jpg|txt)", "some/long/path/name.txt"},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := pattern.Compile(c.pat, pattern.Options{ExtGlob: true})
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := p.Match(c.s, nil); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
	b.Run("trim", func(b *testing.B) {
		p := pattern.Compile("+([[:space:]])", pattern.Options{ExtGlob: true})
		b.ReportAllocs()
		for b.Loop() {
			if n, _, _ := p.LongestPrefix("    some text   ", nil); n != 4 {
				b.Fatal(n)
			}
		}
	})
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pattern.Compile("*.txt", pattern.Options{ExtGlob: true})
		}
	})
}
