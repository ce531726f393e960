package regex

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What is wrong, or looks it.
var oddPatterns = []string{
	`*a`, `a{1`, `a{1,2}{3}`, `a|*b`, `(*a)`, `()`, `a||b`, `(|a)`, `a**`, `a+*`, `^*`, `+a`, `{1}a`, `a{,2}`, `a{2,1}`, `a{99999}`,
	`a{1a}`, `a)`, `(a`, `[[:foo:]]`, `[b-a]`, `\1`, `(a)\2`, `[a-[:digit:]]`, `[[.hyphen.]]`, `[[=ab=]]`, `[[=a=]-c]`, `a^b`, `a$b`,
	`\<*`, `(^*a)`, `[]a]`, `[^]a]`, `[a-c-e]`, `[--a]`, `[a-]`, `[[:alpha:]-z]`, `\{1\}`, `a{1,2`, `x{32768}`, `x{0}`, `a\{1`,
	`[:space:]`, `a\|*b`, `\(*a\)`, `\(^a\)`, `a\(^b\)`, `\(^*ab\)`, `\+a`, `\?a`, `\)`, `\(`, `a\{2`, `a\{x\}`, `a\{2,1\}`, `\{1\}a`,
	`a\{1,2\}\{2\}`, `a*\{2\}`, `a\+*`, `\(a\)\|\1`, `(a)|\1`, `\(a\1\)`, `a{}`, `a\{\}`, `a{,}`, `[[.a.]-c]`, `[a-[.c.]]`,
	`$*`, `a$*`, `(()`, `)`, `a{1}{`, `({1})`, `a{{1}`, `a{,1}{`, `[[.-.]]`, `[[=-=]]`, `[%--]`, `\(a\)\(b\)\3`,
}

func TestErrorsAreThoseOfGNU(t *testing.T) {
	t.Parallel()
	bash := realTool(t, "bash")
	const script = `while IFS= read -r p; do
  for o in "sed -n" "sed -nE" "grep -G" "grep -E"; do
    case $o in
      sed*) e=$(printf 'a\n' | $o -e "s/$p/&/" 2>&1) ;;
      *) e=$(printf 'a\n' | $o -e "$p" 2>&1 >/dev/null | grep -v warning) ;;
    esac
    e=${e#*: -e expression #*, char *: }; e=${e#grep: }; e=${e#sed: }
    printf '%s\n' "$e"
  done
done`
	want := runReal(t, bash, strings.Join(oddPatterns, "\n")+"\n", "-c", script)
	flavours := []Flavour{BRE, ERE, GrepBRE, GrepERE}
	if len(want) < len(oddPatterns)*len(flavours)-1 {
		t.Fatalf("%d answers", len(want))
	}
	for i, p := range oddPatterns {
		for j, f := range flavours {
			got := ""
			if _, err := Compile(p, Options{Flavour: f}); err != nil {
				got = err.Error()
			}
			w := ""
			if k := i*len(flavours) + j; k < len(want) {
				w = strings.TrimSpace(want[k])
			}
			if got != w {
				t.Errorf("%q as %d: %q, want %q", p, f, got, w)
			}
		}
	}
}

func TestPatternsThatExplodeAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		"(((a{1000}){1000}){1000})", strings.Repeat("(", 100_000), "a" + strings.Repeat("{1000}", 50), "(((((a*)*){30000})*){30000})",
		strings.Repeat("a{", 50_000), "[[:alpha:]]{32767}{32767}", "a" + strings.Repeat("?*", 50_000),
		strings.Repeat("(a{0,9}|", 300) + strings.Repeat(")", 300) + "{32767}",
	} {
		for f := BRE; f <= Perl; f++ {
			begun := time.Now()
			r, err := Compile(p, Options{Flavour: f})
			if err == nil {
				_, err = r.Match([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("%.40q as %d took %v: %v", p, f, took, err)
			}
		}
	}
}

func TestBacktrackingEnds(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("a", 5000))
	for _, c := range []struct {
		f       Flavour
		pattern string
	}{
		{ERE, `(a*)(a*)(a*)(a*)\1\2\3\4b`}, {Perl, `(a+)+(?=b)c`}, {Perl, `(?:a|a)*(?<!a)$`}, {BRE, `\(a*\)*\1c`},
	} {
		r, err := Compile(c.pattern, Options{Flavour: c.f, Meter: &countdown{5_000_000}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Find(text, 0, nil); err != nil && !errors.Is(err, errSpent) && !errors.Is(err, ErrBacktrack) {
			t.Errorf("%q: %v", c.pattern, err)
		}
	}
}

// What a back-reference compares is work, also where it is in vain, and where the
// steps between two of them are a round number.
func TestBackReferencesArePaidFor(t *testing.T) {
	t.Parallel()
	const n = 1500
	for _, c := range []struct {
		name, pattern, text string
		opt                 Options
		least               int
	}{
		{"in vain, without case", `^\(a*\)x.*\1[bc]`, strings.Repeat("a", n) + "xb" + strings.Repeat("A", n), Options{IgnoreCase: true}, n * n / 4},
		{"in vain", `^\(a*d\)x.*\1[bc]`, strings.Repeat("a", n) + "dx" + strings.Repeat("a", 2*n) + "b", Options{}, n * n / 16},
		{"all the same", `^(a{480})(\1)*$`, strings.Repeat("a", 480*400), Options{Flavour: ERE}, 399 * 60},
		{"all the same, without case", `^(a{480})(\1)*$`, strings.Repeat("a", 480) + strings.Repeat("A", 480*399), Options{Flavour: ERE, IgnoreCase: true}, 399 * 480},
	} {
		t.Run(c.name, func(t *testing.T) {
			const most = 1 << 40
			meter := &countdown{most}
			c.opt.Meter = meter
			r, err := Compile(c.pattern, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = r.Find([]byte(c.text), 0, nil); err != nil {
				t.Fatal(err)
			}
			if paid := most - meter.left; paid < c.least {
				t.Errorf("%d steps were paid, and at least %d were done", paid, c.least)
			}
		})
	}
}

func TestModesAreThoseOfTheTools(t *testing.T) {
	t.Parallel()
	bash := realTool(t, "bash")
	for _, c := range []struct {
		command, pattern, text string
		opt                    Options
	}{
		{`sed -nE 'N;N;s/P/<&>/Mgp'`, `^b|.$`, "a\nb\nc\n", Options{Flavour: ERE, Multiline: true}},
		{`sed -nE 'N;N;s/P/<&>/Mgp'`, `a.|[^a]+`, "a\nb\nc\n", Options{Flavour: ERE, Multiline: true}},
		{`sed -nE 'N;N;s/P/<&>/Mgp'`, "\\`a|c\\'", "a\nb\nc\n", Options{Flavour: ERE, Multiline: true}},
		{`sed -nE 'N;N;s/P/<&>/gp'`, `a.|[^a]+|^b`, "a\nb\nc\n", Options{Flavour: ERE}},
		{`sed -nE 'N;N;s/P/<&>/gIp'`, `[a-b]|\n[^C]`, "A\nB\nc\n", Options{Flavour: ERE, IgnoreCase: true}},
		{`sed -n 's/P/<&>/gp'`, `[\n\t]x\x41`, "\txA xA\n", Options{}},
		{`sed -n 's/P/<&>/gp'`, `\o101\d066[\x41]`, "ABA\n", Options{}},
		{`LC_ALL=C sed -n 's/P/<&>/gp'`, `.\w*`, "é a\n", Options{Bytes: true}},
		{`sed -nE 's/P/<&>/gp'`, `(a|b)+\b`, "éa ab_ ba\n", Options{Flavour: ERE}},
		{`sed -nE 's/P/<&>/gIp'`, `(É|straSSe)\1?`, "éÉ strasse\n", Options{Flavour: ERE, IgnoreCase: true}},
	} {
		command := strings.Replace(strings.Replace(c.command, "P", `'"$1"'`, 1), `''`, "", 1)
		want := strings.Join(runReal(t, bash, c.text, "-c", command, "sed", c.pattern), "")
		r, err := Compile(c.pattern, c.opt)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if got := substituteAll(t, r, strings.TrimSuffix(c.text, "\n")); got != want {
			t.Errorf("%s with %q: %q, want %q", c.command, c.pattern, got, want)
		}
	}
}

func TestLinesAreThoseOfGrep(t *testing.T) {
	t.Parallel()
	bash := realTool(t, "bash")
	text := "foo\nfoobar\nbar foo\nfoo_bar\n\nfooéfoo\nFOO bar\nbarfoofoo foo\naéb\na\xffb\nab ab\nk\nK\nſ\nxx\n"
	for _, c := range []struct {
		args, pattern string
		opt           Options
	}{
		{"-E", "foo", Options{Flavour: GrepERE}}, {"-Ew", "foo", Options{Flavour: GrepERE, Word: true}},
		{"-Ew", "fo*|foo_", Options{Flavour: GrepERE, Word: true}}, {"-Ex", "fo*|foo_bar|", Options{Flavour: GrepERE, WholeLine: true}},
		{"-Ei", "foo BAR", Options{Flavour: GrepERE, IgnoreCase: true}}, {"-F", "o_b", Options{Flavour: Literal}},
		{"-Fx", "foo", Options{Flavour: Literal, WholeLine: true}}, {"-Fw", "foo", Options{Flavour: Literal, Word: true}},
		{"-Fi", "FoO", Options{Flavour: Literal, IgnoreCase: true}}, {"-aE", "a.b", Options{Flavour: GrepERE}},
		{"-E", "^$", Options{Flavour: GrepERE}}, {"-E", `(a.) \1`, Options{Flavour: GrepERE}}, {"-Ew", `(foo)\1`, Options{Flavour: GrepERE, Word: true}},
		{"-Ei", "k|s", Options{Flavour: GrepERE, IgnoreCase: true}}, {"-G", `o\{2\}\b`, Options{Flavour: GrepBRE}}, {"-E", `\Bfoo`, Options{Flavour: GrepERE}},
		{"-P", `(?<!\w)foo`, Options{Flavour: Perl}}, {"-Pw", `foo|bar`, Options{Flavour: Perl, Word: true}}, {"-Px", `fo+|`, Options{Flavour: Perl, WholeLine: true}},
		{"-E", `[^a-z_ ]`, Options{Flavour: GrepERE}}, {"-aE", `^a[^x]b$`, Options{Flavour: GrepERE}}, {"-E", `x*`, Options{Flavour: GrepERE}},
	} {
		want := strings.Join(runReal(t, bash, text, "-c", `grep -a "$@" || true`, "grep", c.args, "-e", c.pattern), "")
		c.opt.Lines = true
		r, err := Compile(c.pattern, c.opt)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		var got []string
		for at := 0; ; {
			start, end, err := r.FindLine([]byte(text), at)
			if err != nil {
				t.Fatal(err)
			}
			if start < 0 {
				break
			}
			got = append(got, text[start:end])
			at = end + 1
		}
		if got := strings.Join(got, "\n"); got != want {
			t.Errorf("grep %s %q: %q, want %q", c.args, c.pattern, got, want)
		}
	}
}
