package language

import (
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// Every shell reads the recipes, and each language runs.
func TestRecipesAreShell(t *testing.T) {
	for _, l := range All() {
		args, err := l.Run(l.Source("a b.x"), []string{"1", "two words"})
		if err != nil {
			t.Fatal(err)
		}
		if args[0] != "sh" || args[len(args)-1] != "two words" || args[len(args)-3] != Top+"/src/a b.x" {
			t.Errorf("%s: %q", l.Name, args)
		}
		if out, err := exec.Command("sh", "-n", "-c", args[2]).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", l.Name, err, out)
		}
		if l.Image == "" || len(l.Tools) == 0 {
			t.Errorf("%s: %+v", l.Name, l)
		}
		if files, err := l.Files(true); err != nil || (len(files) > 0) != (l.plots != "") {
			t.Errorf("%s: %v, %v", l.Name, files, err)
		}
	}
}

func TestLanguagesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range All() {
		for _, n := range append(l.Aliases, l.Name, strings.ToUpper(l.Name)) {
			if got, err := Parse(n); err != nil || got.Name != l.Name {
				t.Errorf("%s: %v, %v", n, got, err)
			}
			if seen[n] {
				t.Errorf("%s is twice", n)
			}
			seen[n] = true
		}
	}
	for _, n := range []string{"", "cobol", "pythn", "python\n"} {
		if _, err := Parse(n); paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%q: %v", n, err)
		}
	}
	if _, err := Parse("pythn"); err == nil || !strings.Contains(err.Error(), "python is one") {
		t.Errorf("%v", err)
	}
}

// No option of a package client is a package.
func TestPackagesAreNoOptions(t *testing.T) {
	good := map[string]string{"python": "pandas[all]==2.3.1", "javascript": "@scope/name@^1.2.3", "go": "example.com/m/v2@v2.0.0", "java": "g.a:b-c:1.0", "rust": "serde@1", "ruby": "rake:13.2.1", "r": "data.table"}
	for _, l := range All() {
		one := good[l.Name]
		if one == "" {
			if err := l.CheckPackages([]string{"x"}); paddock.KindOf(err) != paddock.Unsupported {
				t.Errorf("%s: %v", l.Name, err)
			}
			continue
		}
		if err := l.CheckPackages([]string{one}); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
		for _, bad := range []string{"", "-r", "--index-url=http://x", "a b", "a\nb", "a;b", "$(x)", strings.Repeat("a", 1000), one + "\x00", "<g>:a:1"} {
			if err := l.CheckPackages([]string{one, bad}); paddock.KindOf(err) != paddock.Invalid {
				t.Errorf("%s: %q: %v", l.Name, bad, err)
			}
		}
	}
}

func TestASourceIsBelowItsDirectory(t *testing.T) {
	l, err := Parse("java")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "Main.java", "/": "Main.java", "..": "Main.java", "a/..": "Main.java", "x/Prog.java": "Prog.java", `C:\x\P.java`: "P.java"} {
		if got := l.Source(name); got != path.Join(Top, "src", want) {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// The table of the document is this list.
func TestTheDocumentListsLanguages(t *testing.T) {
	const file, begin, end = "../../docs/use/languages.md", "make documents writes it -->\n", "<!-- end of languages -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	var b strings.Builder
	b.WriteString("\n| Language | Names | Tools | Image | `--with` takes |\n|---|---|---|---|---|\n")
	for _, l := range All() {
		takes := "`" + strings.ReplaceAll(l.Packages, " or ", "`, `") + "`"
		if l.Packages == "" {
			takes = "nothing"
		}
		b.WriteString("| " + l.Name + " | `" + strings.Join(append([]string{l.Name}, l.Aliases...), "`, `") + "` | `" + strings.Join(l.Tools, "`, `") + "` | `" + l.Image + "` | " + takes + " |\n")
	}
	want := head + begin + b.String() + "\n" + end + after
	if string(text) == want {
		return
	}
	if os.Getenv("PADDOCK_UPDATE") == "" {
		t.Fatalf("%s is not what the code says: make documents", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
