package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// code is a package's own files, parsed, without tests and generated ones.
type code struct {
	files *token.FileSet
	trees []*ast.File
}

// parse reads every Go file of a package's directory, for every system.
func parse(t *testing.T, p *pkg) code {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	c := code{files: token.NewFileSet()}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(c.files, name, nil, parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		if !ast.IsGenerated(f) {
			c.trees = append(c.trees, f)
		}
	}
	return c
}

func (c code) at(n ast.Node) string {
	p := c.files.Position(n.Pos())
	return filepath.Base(filepath.Dir(p.Filename)) + "/" + filepath.Base(p.Filename) + ":" + strconv.Itoa(p.Line)
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	packages := list(t)
	for _, name := range packages.own() {
		doc := packages.get(name).Doc
		want := "Package " + packages.get(name).Name + " "
		if packages.get(name).Name == "main" {
			want = "Command " + filepath.Base(name) + " "
		}
		if !strings.HasPrefix(doc, want) {
			t.Errorf("%s: its package comment does not begin with %q: %q", name, want, doc)
		}
	}
}

func TestNothingRunsBeforeMain(t *testing.T) {
	packages := list(t)
	for _, name := range packages.own() {
		c := parse(t, packages.get(name))
		for _, f := range c.trees {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: func init; pass values instead", c.at(fn))
				}
			}
		}
	}
}

func TestNoPackageVariableChanges(t *testing.T) {
	packages := list(t)
	for _, name := range packages.own() {
		if name == "internal/driver/gvisor/supervisor/filter" {
			continue // its variables are gVisor's, under other names
		}
		for _, found := range parse(t, packages.get(name)).changes() {
			t.Errorf("%s; pass it instead", found)
		}
	}
}

// changes finds package variables that are assigned to by a function, have
// their address taken, or are of a type that is there to change.
func (c code) changes() []string {
	vars := map[string]*ast.ValueSpec{}
	var found []string
	for _, f := range c.trees {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				spec, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, n := range spec.Names {
					if n.Name != "_" {
						vars[n.Name] = spec
					}
				}
				if mutable(spec.Type) {
					found = append(found, c.at(spec)+": package variable of a type that is there to change")
				}
			}
		}
	}
	for _, f := range c.trees {
		ast.Inspect(f, func(n ast.Node) bool {
			var targets []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					targets = n.Lhs
				}
			case *ast.IncDecStmt:
				targets = []ast.Expr{n.X}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					targets = []ast.Expr{n.X}
				}
			case *ast.CallExpr:
				if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") && len(n.Args) > 0 {
					targets = n.Args[:1]
				}
			}
			for _, target := range targets {
				if id := base(target); id != nil && global(vars, id) {
					found = append(found, c.at(n)+": package variable "+id.Name+" changes or may")
				}
			}
			return true
		})
	}
	return found
}

// base gives the variable that an expression is a part of.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// global tells whether a name means one of the package's variables where it
// stands. The parser resolves names within a file; what it leaves unresolved
// is of another file of the package.
func global(vars map[string]*ast.ValueSpec, id *ast.Ident) bool {
	spec, ok := vars[id.Name]
	if !ok {
		return false
	}
	return id.Obj == nil || id.Obj.Decl == spec
}

// mutable tells types whose only use is to change.
func mutable(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		if star, ok := e.(*ast.StarExpr); ok {
			return mutable(star.X)
		}
		if index, ok := e.(*ast.IndexExpr); ok {
			return mutable(index.X)
		}
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && (pkg.Name == "sync" || pkg.Name == "atomic")
}

func TestTheFinderOfChangesFindsThem(t *testing.T) {
	tests := []struct {
		name, source string
		want         int
	}{
		{"a table", `var a = []int{1}; func f() int { return a[0] }`, 0},
		{"a sentinel", `var e = g(); func f() error { return e }`, 0},
		{"an assignment", `var a int; func f() { a = 2 }`, 1},
		{"an element", `var a []int; func f() { a[0] = 2 }`, 1},
		{"a count", `var a int; func f() { a++ }`, 1},
		{"an address", `var a int; func f() *int { return &a }`, 1},
		{"a deletion", `var a map[int]int; func f() { delete(a, 1) }`, 1},
		{"a local of the same name", `var a int; func f() { a := 1; a = 2; _ = a }`, 0},
		{"a parameter of the same name", `var a int; func f(a int) { a = 2 }`, 0},
		{"a check of the compiler's, and a result that is not wanted", `var _ error = g(); func f() { _ = f2() }`, 0},
		{"a lock", `import "sync"; var mu sync.Mutex`, 1},
		{"an atomic", `import "sync/atomic"; var n atomic.Pointer[int]`, 1},
		{"a value computed once", `import "sync"; var once = sync.OnceValue(f); func f() int { return 1 }`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := code{files: token.NewFileSet()}
			f, err := parser.ParseFile(c.files, "x/x.go", "package x; "+tt.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			c.trees = append(c.trees, f)
			if got := c.changes(); len(got) != tt.want {
				t.Errorf("found %d, want %d: %q", len(got), tt.want, got)
			}
		})
	}
}
