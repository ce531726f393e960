package regex

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// A countdown is a Meter that runs out.
type countdown struct{ left int }

var errSpent = errors.New("spent")

func (c *countdown) Step(n int) error {
	if c.left -= n; c.left < 0 {
		return errSpent
	}
	return nil
}

func (*countdown) Grow(int) error { return nil }

func FuzzEnginesAgree(f *testing.F) {
	for _, s := range []struct {
		pattern, text string
		flavour       uint8
	}{
		{`\(a*\)*\1`, "aab\xff\n\x00", 0},
		{`(a|ab)(c|bcd)(d*)`, "abcd", 1},
		{`^a|b$|\<é\>`, "é b\nab", 2},
		{`[[:alpha:]-z]{2,3}`, "éab", 4},
		{`(?<=a)(?>b+)\K\w*?(?=c)`, "abbxc", 8},
		{`((((a{30}){30}){30}){30})`, "a", 1},
		{`(a*)*b`, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 8},
		{"a\\", "", 3},
		{`\xff.`, "\xff\xc3\xa9", 0},
	} {
		f.Add(s.pattern, []byte(s.text), s.flavour, uint8(0))
	}
	f.Fuzz(func(t *testing.T, pattern string, text []byte, flavour, bits uint8) {
		if len(pattern) > 200 || len(text) > 2000 {
			return
		}
		opt := Options{
			Flavour: Flavour(flavour % 9), IgnoreCase: bits&1 != 0, Multiline: bits&2 != 0, Lines: bits&4 != 0, NULSep: bits&8 != 0,
			WholeLine: bits&16 != 0, Word: bits&32 != 0, Bytes: bits&64 != 0, Meter: &countdown{20_000_000},
		}
		r, err := Compile(pattern, opt)
		if err != nil {
			return
		}
		if opt.Lines {
			checkLines(t, r, text)
		}
		checkEngines(t, r, text)
	})
}

// checkEngines compares the automata with the engine that runs all ways at
// once.
func checkEngines(t *testing.T, r *Regexp, text []byte) {
	t.Helper()
	for from := range min(len(text)+1, 4) {
		r.subject.b = text
		if !r.subject.boundary(from) {
			continue
		}
		got, err := r.Find(text, from, nil)
		if err != nil {
			return
		}
		ok, err := r.Match(text)
		if err != nil {
			return
		}
		if got != nil && !ok || from == 0 && ok != (got != nil) {
			t.Fatalf("Find from %d: %v, but Match: %v", from, got, ok)
		}
		if r.special {
			continue
		}
		p, err := r.program()
		if err != nil {
			return
		}
		r.subject.b = text
		want, err := r.pike.run(p, &r.subject, from, -1, false, &r.gauge)
		if err != nil {
			return
		}
		if !slices.Equal(got, want) {
			t.Fatalf("Find from %d: %v, want %v", from, got, want)
		}
	}
}

// checkLines compares FindLine with a search in each line alone.
func checkLines(t *testing.T, r *Regexp, text []byte) {
	t.Helper()
	sep := byte(r.subject.sep)
	at := 0
	next := func() (int, int) {
		start, end, err := r.FindLine(text, at)
		if err != nil {
			t.Skip(err)
		}
		at = end + 1
		return start, end
	}
	start, end := next()
	for from := 0; from < len(text); {
		to := len(text)
		if i := bytes.IndexByte(text[from:], sep); i >= 0 {
			to = from + i
		}
		ok, err := r.Match(text[from:to:to])
		if err != nil {
			return
		}
		if ok {
			if start != from || end != to {
				t.Fatalf("FindLine: %d, %d; want %d, %d", start, end, from, to)
			}
			start, end = next()
		}
		from = to + 1
	}
	if start >= 0 {
		t.Fatalf("FindLine: %d, %d; want nothing", start, end)
	}
}
