package regex

import (
	"fmt"
	"testing"
)

func TestFindGivesTheSubmatchesOfGNU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f             Flavour
		pattern, text string
		want          string
	}{
		{ERE, "(a|ab)(c|bcd)(d*)", "abcd", "[0 4 0 1 1 4 4 4]"},
		{ERE, "((a)|b)*", "ab", "[0 2 1 2 0 1]"},
		{ERE, "(a*)*", "b", "[0 0 0 0]"},
		{ERE, "(a*)+", "aab", "[0 2 0 2]"},
		{BRE, `\(.*\)\1`, "abab", "[0 4 0 2]"},
		{BRE, `a\{2\}`, "caab", "[1 3]"},
		{ERE, `(^|,)([^,]*)`, "ab,c", "[0 2 0 0 0 2]"},
		{ERE, `\<é+\>`, "x éé y", "[2 6]"},
		{ERE, `abcd|bc`, "abcd", "[0 4]"},
		{ERE, `b*`, "abb", "[0 0]"},
		{ERE, `x$`, "axbx", "[3 4]"},
		{BRE, `a.b`, "a\xffb", "[]"},
		{BRE, `.`, "\xffé", "[1 3]"},
		{ERE, `[[:alpha:]]+`, "1éa", "[1 4]"},
		{ERE, `(.)(.)`, "éa", "[0 3 0 2 2 3]"},
	} {
		r, err := Compile(c.pattern, Options{Flavour: c.f})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		got, err := r.Find([]byte(c.text), 0, nil)
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%q on %q: %v, %v; want %s", c.pattern, c.text, got, err, c.want)
		}
	}
}
