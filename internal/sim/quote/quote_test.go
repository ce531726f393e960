package quote_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
)

func run(t *testing.T, name string, arg ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s to compare with", name)
	}
	cmd := exec.CommandContext(t.Context(), path, arg...)
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(out)
}

// samples are all bytes at different places, and random strings.
func samples() []string {
	list := []string{"", "a=~b", "a:~", "'a'", "it's $x", "a'b\n", "\n'", "é'\x01", "\u0085", "\u200b", "\ue000", "a\xe9", "''", "@", "*", "{}", "[x]"}
	for c := 1; c < 256; c++ {
		s := string([]byte{byte(c)})
		list = append(list, s, "a"+s, s+"a", "a'"+s)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "'", "\"", " ", "\n", "\t", "\x01", "é", "\xff", "$", "\\", "~", "#", "=", "{", ",", "!", "\u2028"}
	for range 400 {
		var b strings.Builder
		for range 1 + rnd.IntN(5) {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		list = append(list, b.String())
	}
	return list
}

func compare(t *testing.T, name string, list, want []string, f func(string) string) {
	t.Helper()
	if len(want) < len(list) {
		t.Fatalf("%s: %d answers for %d strings", name, len(want), len(list))
	}
	bad := 0
	for i, s := range list {
		if got := f(s); got != want[i] {
			if bad++; bad < 10 {
				t.Errorf("%s of %q is %s, not %s", name, s, want[i], got)
			}
		}
	}
}

func TestFormsAreThoseOfBash(t *testing.T) {
	list := samples()
	script := `for x; do printf '%q\0' "$x"; done; for x; do printf '%s\0' "${x@Q}"; done
		for x; do d=$(declare -p x; echo .); d=${d#*=}; printf '%s\0' "${d%$'\n.'}"; done
		PS4=; for x; do d=$( { set -x; : "$x"; } 2>&1; echo .); d=${d#: }; printf '%s\0' "${d%$'\n.'}"; done
		for x; do alias z="$x"; d=$(alias z; echo .); d=${d#alias z=}; printf '%s\0' "${d%$'\n.'}"; done
		for x; do unset m; declare -A m; m["$x"]=; d=$(declare -p m; echo .); d=${d#declare -A m=([}; printf '%s\0' "${d%]=\"\" )$'\n.'}"; done
		x=; for x; do d=$(unset d script; declare -f -F; set | sed -n '/^x=/,$p'; echo .); d=${d#x=}; printf '%s\0' "${d%$'\n.'}"; done`
	var keep []string
	for _, s := range list {
		if s != "" && !strings.ContainsAny(s, "]") { // an empty key is an error, and m["]"] has rules of its own
			keep = append(keep, s)
		}
	}
	got := strings.Split(run(t, "bash", append([]string{"--norc", "-c", script, "bash"}, keep...)...), "\x00")
	for i, c := range []struct {
		name string
		f    func(string) string
	}{{"%q", quote.Backslash}, {"@Q", quote.Reuse}, {"declare -p", quote.Value}, {"set -x", quote.Trace}, {"alias", quote.Single}, {"a key", quote.Subscript}, {"set", quote.Listing}} {
		t.Run(c.name, func(t *testing.T) { compare(t, c.name, keep, got[i*len(keep):], c.f) })
	}
}

func TestFormsAreThoseOfTheTools(t *testing.T) {
	list := samples()
	printf, err := exec.LookPath("/usr/bin/printf")
	if err != nil {
		t.Skip("no printf to compare with")
	}
	compare(t, "%q", list, strings.Split(run(t, printf, append([]string{`%q\0`}, list...)...), "\x00"), quote.Shell)

	dir := t.TempDir()
	var names []string
	for _, s := range list {
		if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, s), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, s)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for style, f := range map[string]func(string) string{
		"shell-escape": quote.Shell, "shell-escape-always": quote.Name, "shell": quote.Plain, "shell-always": quote.PlainName,
		"c": quote.C, "escape": quote.Escape, "locale": quote.Curly,
	} {
		out := run(t, "ls", "-A", "--zero", "--quoting-style="+style, dir)
		compare(t, style, names, strings.Split(out, "\x00"), f)
	}
}

func TestMessagesOfTheLocaleCHaveASCIIQuotes(t *testing.T) {
	curly := quote.Curly
	for message, want := range map[string]string{
		"":                                   "",
		"no quotes: it's \\x é":              "no quotes: it's \\x é",
		"bad " + curly("a") + curly("b c"):   "bad 'a''b c'",
		"a " + curly("") + " b":              "a '' b",
		"x " + curly("it's") + "\n":          "x 'it\\'s'\n",
		curly("a\\b\n\xff"):                  `'a\\b\n\377'`,
		curly("é") + ": " + curly("‘x’"):     `'\303\251': '\342\200\230x\342\200\231'`,
		"‘silent’, ‘quiet’ and ‘no end\n":    "'silent', 'quiet' and ‘no end\n",
		"‘escape at the end\\":               "‘escape at the end\\",
		curly("\\") + " and " + curly("\\’"): `'\\' and '\\\342\200\231'`,
	} {
		if got := quote.ASCII(message); got != want {
			t.Errorf("%q is %q, not %q", message, got, want)
		}
	}
}

func FuzzQuotesOfTheLocaleC(f *testing.F) {
	for _, s := range samples() {
		f.Add(s, "a ‘ b")
	}
	f.Add("\\", "‘\\")
	f.Add("’\\’", "‘a\\’")
	f.Fuzz(func(t *testing.T, s, message string) {
		_ = quote.ASCII(message) // whatever it is
		got := quote.ASCII(quote.Curly(s))
		if strings.ContainsFunc(got, func(r rune) bool { return r >= utf8.RuneSelf }) {
			t.Errorf("%q is quoted as %q", s, got)
		}
		if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) && got != quote.Message(s) {
			t.Errorf("%q is quoted as %q, not as %q", s, got, quote.Message(s))
		}
	})
}

func TestMessagesUseASCIIQuotes(t *testing.T) {
	for s, want := range map[string]string{"": "''", "a b": "'a b'", "a'b": `'a\'b'`, "\n\xff": `'\n\377'`, "é": "'é'"} {
		if got := quote.Message(s); got != want {
			t.Errorf("%q is quoted as %s", s, got)
		}
	}
}
