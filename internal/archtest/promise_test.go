package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A promise in docs/PROMISES.md names what shows it in one of two ways: a
// function as `package/path.TestName` (or Benchmark, Fuzz), or the sentence of
// the conformance suite as drivertest "sentence".
var (
	shownByFunction = regexp.MustCompile("`([a-z][a-z0-9/_-]*)\\.((?:Test|Benchmark|Fuzz)\\w+)`")
	shownBySentence = regexp.MustCompile(`drivertest "([^"]+)"`)
	// What was measured is no promise: it stands between marks.
	measurements = regexp.MustCompile(`(?s)<!-- bench[a-z0-9 ]*: begin -->.*?<!-- bench[a-z0-9 ]*: end -->`)
)

func TestEveryPromiseNamesATestThatExists(t *testing.T) {
	var rows int
	text := read(t, "docs/PROMISES.md")
	if len(measurements.FindAllString(text, -1)) == 0 {
		t.Fatal("docs/PROMISES.md has no marks around what was measured")
	}
	for line := range strings.Lines(measurements.ReplaceAllString(text, "")) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what") || strings.HasPrefix(line, "| ---") {
			continue
		}
		functions := shownByFunction.FindAllStringSubmatch(line, -1)
		sentences := shownBySentence.FindAllStringSubmatch(line, -1)
		measured := strings.Contains(line, "`make bench`")
		if len(functions)+len(sentences) == 0 && !measured && !strings.Contains(line, "not yet") {
			if strings.Contains(line, "shown by") {
				continue // the head of a table
			}
			t.Errorf("a promise that nothing shows: %s", line)
		}
		rows++
		for _, f := range functions {
			if !functionExists(t, f[1], f[2]) {
				t.Errorf("%s.%s does not exist: %s", f[1], f[2], line)
			}
		}
		for _, s := range sentences {
			if !sentenceExists(t, s[1]) {
				t.Errorf("drivertest has no sentence %q", s[1])
			}
		}
	}
	if rows == 0 {
		t.Error("docs/PROMISES.md has no promise that this test understands")
	}
}

// functionExists tells whether a package's directory has a function.
func functionExists(t *testing.T, dir, name string) bool {
	t.Helper()
	found := false
	eachFile(t, dir, func(f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name {
				found = true
			}
		}
	})
	return found
}

// sentenceExists tells whether a string of drivertest's code is a sentence.
func sentenceExists(t *testing.T, sentence string) bool {
	t.Helper()
	found := false
	eachFile(t, "drivertest", func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				found = found || (err == nil && text == sentence)
			}
			return true
		})
	})
	return found
}

// eachFile parses every Go file of a directory of the module.
func eachFile(t *testing.T, dir string, visit func(*ast.File)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root(t), dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		visit(f)
	}
}
