package gitignore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// git asks git which of the paths it ignores.
func git(t *testing.T, rules string, paths []string) map[string]bool {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here to compare with")
	}
	dir := t.TempDir()
	if out, err := commandtest.Command(t.Context(), t, dir, false, "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := commandtest.Command(t.Context(), t, dir, false, "git", "check-ignore", "--no-index", "--stdin")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\n") + "\n")
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatal(err)
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n"), "\n") {
		ignored[name] = true
	}
	return ignored
}

// matches is Match of a file with the directories above it.
func matches(r *Rules, path string) bool {
	for i, c := range path {
		if c == '/' && r.Match(path[:i], true) == Ignored {
			return true
		}
	}
	return r.Match(path, false) == Ignored
}

func TestRulesMeanWhatTheyMeanToGit(t *testing.T) {
	paths := []string{
		"a", "b", "a.c", "a.o", "d/a", "d/a.c", "d/e/a", "d/e/f/a.o", "e/a", "build/x", "src/build/x", "build", "x/build", "foo.log", "d/foo.log", "keep.log", "d/keep.log", "a b", "a ", "#x", "!x", "[x]", "x", "xx", "xyz", "d/x/y/z", "doc/a.txt", "doc/s/a.txt", "abc/def/ghi", "A", "a\\b", "é", "aéb",
		"foo/bar", "foo/x/bar", "foo/x/y/bar", "x/foo/bar", "foobar", "a-b", "a_b", ".hidden", "d/.hidden", "a.b.c", "1", "5", "d/5",
	}
	for _, rules := range []string{
		"a", "/a", "d/", "a/", "*.o", "*.c\n!a.c", "d/a", "/d/a", "d/*", "d/**", "**/a", "**/e/a", "d/**/a", "build", "build/", "/build", "*.log\n!keep.log", "*\n!*.c", "foo/**/bar", "foo/bar", "/foo/*", "foo*", "?", "??", "[ab]", "[!a]", "[a-c]", "[^a-c]", "a\\ b", "a ", "a\\ ", "\\#x", "\\!x", "#x", "!x", "\\[x\\]", "*.*", ".*", ".hidden", "d/.h*", "x?z",
		"[[]x]", "[]x]", "[x-]", "doc/*.txt", "doc/**/*.txt", "**", "*", "/*", "/**", "**/*", "a**", "**a", "[", "[a", "a[", "\\", "a\\", "*b", "a*", "a?b", "é", "a?b\n!aéb", "*\n!d/", "*\n!d/\n!d/a", "/*\n!/d", "d/*\n!d/a", "x\r", "  a", "\ta", "[0-9]", "d/[0-9]", "abc/**/ghi", "abc/**", "/abc", "abc/def/", "foo/*/bar", "**/foo/**/bar", "*/a", "*/*/a", "/*/a", "!a\na", "a\n!a", "a\n!a\na", "a//b", "//a", "d//a", "./a", "[a\\]]", "[\\]a]", "a[/]b",
	} {
		want := git(t, rules, paths)
		r := Parse(rules, false)
		for _, path := range paths {
			if got := matches(r, path); got != want[path] && !strings.ContainsAny(path, "\\é") {
				t.Errorf("%q: %q ignored %v, git says %v", rules, path, got, want[path])
			}
		}
	}
}

func TestGlobsHaveChoices(t *testing.T) {
	for _, c := range []struct {
		glob, path string
		want       bool
	}{
		{"*.{c,h}", "a.c", true}, {"*.{c,h}", "a.o", false}, {"{a,b{c,d}}", "bd", true}, {"{a,b{c,d}}", "b", false}, {"a{,b}", "a", true}, {"{a", "a", false}, {"{a", "{a", true}, {"a}", "a}", true}, {"\\{a\\}", "{a}", true}, {"[{]", "{", true},
	} {
		g, ok := Compile(c.glob, false)
		if got := ok && g.Match(c.path); got != c.want {
			t.Errorf("%q matches %q: %v", c.glob, c.path, got)
		}
	}
	if g, ok := Compile("*.[A-Z]?B", true); !ok || !g.Match("X.qéb") {
		t.Error("letters differ")
	}
	if _, ok := Compile(strings.Repeat("{a,b}", 40), false); ok {
		t.Error("a pattern has too many choices")
	}
}

func FuzzRules(f *testing.F) {
	f.Add("*.o\n!a/**/b\n/x/\n", "a/b/c.o")
	f.Add("{a,{b,c}}*[!x-z]", "bcq")
	f.Add("[\\", "\xff/\\")
	f.Fuzz(func(_ *testing.T, rules, path string) {
		r := Parse(rules, len(rules)%2 == 0)
		if path != "" {
			r.Match(path, len(path)%2 == 0)
		}
	})
}
