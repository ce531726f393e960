package archtest_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// multipliers are calls whose result can be as long as the product of what a script chose, and which of their arguments
// multiply. Where these are literals, the result is about as long as the text.
func multipliers() map[string][]int {
	return map[string][]int{
		"strings.ReplaceAll": {1, 2}, "strings.Join": {1}, "bytes.ReplaceAll": {1, 2}, "bytes.Join": {1},
		"ExpandString": {1}, "ReplaceAllString": {1}, "ReplaceAllLiteralString": {1}, "ReplaceAllStringFunc": {1},
	}
}

// paid lists the functions of the simulated tools that call one of those, or have a bytes.Buffer, with the reason why no
// script makes more of it than it has paid for.
func paid() map[string]string {
	const (
		before = "its result is bounded and counted before"
		fixed  = "what is put in place is of a fixed set of short texts"
		linear = "it holds about as much as what it is made of, which is counted"
		short  = "what it holds is short"
	)
	return map[string]string{
		"date/cal.go lines":              short,
		"diff/apply.go rejects":          linear,
		"diff/apply.go writeLine":        linear,
		"diff/apply.go writeUnified":     linear,
		"diff/apply.go writeNormal":      linear,
		"diff/apply.go writeContext":     linear,
		"find/xargs.go substitute":       before,
		"javascript/data.go zlib":        "no more than the data, of which the engine has a copy",
		"javascript/data.go unpacked":    "bounded by script_heap at each piece",
		"jq/yqplain.go yqSub":            before,
		"process/user.go runID":          fixed,
		"process/wrap.go runTS":          fixed,
		"python/library.go extract":      "of the interpreter's own archive",
		"ripgrep/json.go message":        before,
		"shell/builtin_declare.go usage": fixed,
		"shell/expand/builder.go join":   "the separator is one character",
		"sqlite/show.go end":             fixed,
		"sqlite/show.go quoted":          linear,
		"xan/table.go text":              short,
		"xan/text.go expanded":           before,
		"xan/text.go joined":             before,
		"xan/view.go rule":               fixed,
	}
}

// A script chooses how long each value is. Who makes one of several first and asks for the limit afterwards has taken the
// memory: a line of 4 MB with 300 times & for each character of it is a gigabyte.
func TestTheSimulatedToolsPayForWhatTheyMultiply(t *testing.T) {
	packages := list(t)
	used := map[string]bool{}
	for _, name := range packages.own() {
		tool, ok := strings.CutPrefix(name, "internal/sim/command/")
		if !ok {
			tool, ok = strings.CutPrefix(name, "internal/sim/")
			ok = ok && within(tool, "shell")
		}
		if !ok || tool == "commandtest" || tool == "git" {
			continue
		}
		c := parse(t, packages.get(name))
		for _, f := range c.trees {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				file, _, _ := strings.Cut(c.at(fn), ":")
				at := tool[:len(tool)-len(lastOf(tool))] + file + " " + fn.Name.Name
				ast.Inspect(fn, func(n ast.Node) bool {
					what := multiplies(n)
					if what == "" {
						return true
					}
					used[at] = true
					if _, ok := paid()[at]; !ok {
						t.Errorf("%s: %s in %q: use kernel.Builder, kernel.Room, kernel.ReplaceAll or kernel.Join, which pay first", c.at(n), what, at)
					}
					return true
				})
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(paid())) {
		if !used[at] {
			t.Errorf("%q is no exception any more", at)
		}
	}
}

// lastOf gives the last element of an import path.
func lastOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// multiplies names what a node makes unpaid, or nothing.
func multiplies(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "bytes" && n.Sel.Name == "Buffer" {
			return "bytes.Buffer"
		}
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		what := s.Sel.Name
		if x, ok := s.X.(*ast.Ident); ok && (x.Name == "strings" || x.Name == "bytes") {
			what = x.Name + "." + what
		} else if x, ok := s.X.(*ast.Ident); ok && x.Name == "kernel" {
			return ""
		}
		for _, i := range multipliers()[what] {
			if i < len(n.Args) && !literal(n.Args[i]) {
				return what
			}
		}
	}
	return ""
}

// literal reports whether an expression is a literal, or bytes of one.
func literal(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return e.Name == "nil"
	case *ast.CallExpr:
		return len(e.Args) == 1 && literal(e.Args[0])
	case *ast.CompositeLit:
		return true
	}
	return false
}
