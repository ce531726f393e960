package pattern_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
)

// bash runs a script with the real shell and returns its lines.
func bash(t *testing.T, dir, script string) []string {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to compare with")
	}
	cmd := exec.CommandContext(t.Context(), path, "--norc", "--noprofile", "-s")
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bash: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// operations prints what every use of a pattern makes of a string; the function
// in the shell and its counterpart here print the same line.
const operations = `
op() {
	local s=$1 p=$2 m=n
	case $s in $p) m=y ;; esac
	printf '%s;%s;%s;%s;%s;%s;%s\n' "$m" "${s#$p}" "${s##$p}" "${s%$p}" "${s%%$p}" "${s/$p/<>}" "${s//$p/<>}"
}
`

func line(t *testing.T, s, pat string, o pattern.Options) string {
	t.Helper()
	p := pattern.Compile(pat, o)
	ok, err := p.Match(s, nil)
	m := "n"
	if ok {
		m = "y"
	}
	cut := func(suffix bool, f func(string, pattern.Meter) (int, bool, error)) string {
		n, ok, err := f(s, nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case !ok:
			return s
		case suffix:
			return s[:len(s)-n]
		}
		return s[n:]
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{
		m, cut(false, p.ShortestPrefix), cut(false, p.LongestPrefix), cut(true, p.ShortestSuffix),
		cut(true, p.LongestSuffix), replace(t, p, s, false), replace(t, p, s, true),
	}, ";")
}

func replace(t *testing.T, p *pattern.Pattern, s string, all bool) string {
	t.Helper()
	var b bytes.Buffer
	at := 0
	for from := 0; from < len(s) || s == ""; {
		start, end, ok, err := p.Find(s, from, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok || start == len(s) && s != "" {
			break
		}
		b.WriteString(s[at:start] + "<>")
		at, from = end, end
		if start == end {
			if s == "" {
				break
			}
			n := pattern.Size(s[start:])
			b.WriteString(s[start : start+n])
			at, from = start+n, start+n
		}
		if !all {
			break
		}
	}
	b.WriteString(s[min(at, len(s)):])
	return b.String()
}

func TestPatternsMatchAsInBash(t *testing.T) {
	compare(t, 6000, 1, pattern.Options{ExtGlob: true}, "shopt -s extglob\n",
		[]string{"a", "b", "a", "b", "c", ".", "-", "*", "*", "?", "[ab]", "[!a]", "[^b]", "[a-b]", "[[:alpha:]]", `\*`, `\a`, "[", "]", "é", "[é-ü]"})
}

func TestGroupsMatchAsInBash(t *testing.T) {
	compare(t, 6000, 2, pattern.Options{ExtGlob: true}, "shopt -s extglob\n",
		[]string{"a", "b", "a", "b", "*", "?", "?(", "*(", "+(", "@(", "!(", ")", ")", ")", "|", "|", "[ab]"})
}

func TestCaseIsIgnoredAsInBash(t *testing.T) {
	compare(t, 2000, 3, pattern.Options{ExtGlob: true, IgnoreCase: true}, "shopt -s extglob nocasematch\n",
		[]string{"a", "B", "A", "b", "*", "?", "@(", ")", "|", "[aB]", "[!A]", "[[:upper:]]", "[A-B]", "é", "É"})
}

// outer returns the fields of a line that nocasematch is for.
func outer(line string) string {
	f := strings.Split(line, ";")
	return f[0] + ";" + f[len(f)-2] + ";" + f[len(f)-1]
}

// odd finds groups and alternatives that can match nothing inside of others or
// after a star: what bash makes of them depends on what is around them, and the
// same pattern matches in one place and not in another.
var odd = regexp.MustCompile(`([(|*])(?:[?*!]\(|\*|\||\)|[@+]\([?*!])`)

func compare(t *testing.T, n int, seed uint64, o pattern.Options, setup string, parts []string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	letters := []string{"a", "b", "a", "b", "c", ".", "-", "é", "*", "[", "]", "A", "B", "É", "(", ")", "|"}
	var script strings.Builder
	script.WriteString(setup + operations)
	type pair struct{ s, pat string }
	pairs := make([]pair, n)
	for i := range pairs {
		var s, pat string
		for range rnd.IntN(6) {
			s += letters[min(rnd.IntN(len(letters)), rnd.IntN(len(letters)))]
		}
		for range 1 + rnd.IntN(6) {
			pat += parts[rnd.IntN(len(parts))]
		}
		if strings.Contains(pat, "(") {
			pat += strings.Repeat(")", max(0, strings.Count(pat, "(")-strings.Count(pat, ")")))
		}
		for odd.MatchString(pat) {
			pat = odd.ReplaceAllString(pat, "$1")
		}
		pat = strings.TrimSuffix(pat, "(") // after a star, bash matches any end with it
		pairs[i] = pair{s, pat}
		fmt.Fprintf(&script, "op %s %s\n", single(s), single(pat))
	}
	got := bash(t, t.TempDir(), script.String())
	if len(got) != n {
		t.Fatalf("bash printed %d lines for %d cases", len(got), n)
	}
	bad := 0
	for i, p := range pairs {
		mine, want := line(t, p.s, p.pat, o), got[i]
		if o.IgnoreCase { // which bash does not for prefixes and suffixes
			mine, want = outer(mine), outer(want)
		}
		if mine != want {
			if bad++; bad <= 40 {
				t.Errorf("%s against %s: bash says %s, not %s", strconv.Quote(p.s), strconv.Quote(p.pat), want, mine)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, n)
	}
}
