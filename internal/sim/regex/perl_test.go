package regex

import (
	"fmt"
	"strings"
	"testing"
)

// perlPatterns are what people give to grep -P. PCRE2 10.42 does not find a match
// of \S, \W or \D that starts beyond ASCII, so these stand in brackets.
var perlPatterns = []string{
	`\d+`, `(?<=a)b`, `(?<!a)b`, `a(?=b)`, `a(?!b)`, `a.*?b`, `a++b`, `(?>a|ab)c`, `a\Kb`, `\Qa.b\E`, `(?<n>a)\k<n>`,
	`(a)\g1`, `(a)\g{-1}`, `(?i)ABC`, `a(?i:B)c`, `(?x) a b # c`, `\bfoo\b`, `\Bo`, `^\s*\w+`, `[\d.]+`, `[^\w\s]`, `\p{L}+`,
	`\p{Lu}`, `\P{L}`, `(a|b)*?c`, `x*`, `(?:a|b){2,3}`, `(?:a|b){2,3}?`, `a{,2}`, `a{2`, `\x41`, `\x{e9}`, `\t`, `[[:alpha:]]+`,
	`(?P<y>\d{4})-(?P<m>\d\d)`, `(?<=\d{3})x`, `(?<=a|bc)d`, `^(?!.*foo).*$`, `^(?=.*a)(?=.*b)`, `(a+)+$`, `\h+`, `[^\s]+`, `\N+`,
	`[a-c]{2}`, `(\w)\1`, `(?|(a)|(b))\1`, `é`, `(?i)É`, `[é-ü]`, `.`, `a|ab|abc`, `(a|ab)(c|bcd)`, `"[^"]*"`, `(?<=")[^"]*(?=")`,
	`a?+a`, `(?s).`, `\R`, `\Aa`, `c\z`, `c\Z`, `[\]]`, `[]a]`, `[a\-c]`, `\.`, `a(?#comment)b`, `(?:(?=(\w+))\1):`, `key=\K\S+`,
	`\b[A-Z]\w*`, `(?<![\w.])\d+(?!\w)`, `(x(y)?z)+`, `((a)|b)+`, `\e|\$`, `[\x00-\x20]`, `(?-i)a`, `[^a]`, `[^\w]`, `[^\d]`, `(foo|bar)baz`,
}

var perlTexts = []string{
	"", "abc", "aab", "ab.a.b", "aa bb", "foo bar baz", "x1y22z333", "2024-05-06", `say "hi" "yo"`, "éÉüa", "ABC abc", "aaab",
	"abcd bcd", "key=value other=2", "foobarbaz xyzxz", "a-b_c", "123x bcd ad", "  lead", "tab\there", "aaaaaaaaaaaaaaaaaaaaaaaa!", "word:", "] [ - \\", "a{2 a{,2}", "$5",
}

func TestPerlMatchesAreThoseOfGrep(t *testing.T) {
	t.Parallel()
	bash := realTool(t, "bash")
	var in strings.Builder
	for _, p := range perlPatterns {
		in.WriteString(p + "\n")
	}
	file := t.TempDir() + "/texts"
	write(t, file, strings.Join(perlTexts, "\n")+"\n")
	script := `while IFS= read -r p; do echo "# $p"; grep -onP -e "$p" "$1"; done`
	want := strings.Join(runReal(t, bash, in.String(), "-c", script, "bash", file), "") + "\n"
	var got strings.Builder
	for _, p := range perlPatterns {
		fmt.Fprintf(&got, "# %s\n", p)
		r, err := Compile(p, Options{Flavour: Perl, Lines: true})
		if err != nil {
			t.Errorf("%q: %v", p, err)
			continue
		}
		for i, text := range perlTexts {
			for _, m := range every(t, r, text) {
				fmt.Fprintf(&got, "%d:%s\n", i+1, m)
			}
		}
	}
	a, b := strings.Split(got.String(), "\n"), strings.Split(want, "\n")
	pattern := ""
	for i := range min(len(a), len(b)) {
		if strings.HasPrefix(b[i], "# ") {
			pattern = b[i]
		}
		if a[i] != b[i] {
			t.Fatalf("%s: got %q, want %q", pattern, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d lines, want %d", len(a), len(b))
	}
}

// every lists what grep -o prints.
func every(t *testing.T, r *Regexp, text string) []string {
	t.Helper()
	b := []byte(text)
	var out []string
	for at := 0; at <= len(b); {
		from, to, err := r.Span(b, at)
		if err != nil {
			t.Fatal(err)
		}
		if from < 0 {
			break
		}
		if to > from {
			out = append(out, text[from:to])
		}
		at = max(to, at)
		if from == to {
			at = next(b, to)
		}
	}
	return out
}

func TestPerlRefusesWhatPCRERefuses(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		`a)`: pcreClose, `(a`: pcreOpen, `[a`: pcreClass, `a{2,1}`: pcreOrder, `*a`: pcreRepeat, `(?<n`: pcreName, `\`: pcreEnd,
		`(?<=a+)b`: pcreBehind, `(?z)`: pcreFlag, `\p{Foo}`: pcreProperty, `(a)\2`: pcreReference, `[[:foo:]]`: pcreClassName,
		`[b-a]`: pcreRange, `a**`: pcreRepeat, `\k<x>`: pcreReference,
	} {
		if _, err := Compile(pattern, Options{Flavour: Perl}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", pattern, err, want)
		}
	}
}
