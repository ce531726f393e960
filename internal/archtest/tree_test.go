package archtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/paddock-sandbox/paddock"

// root gives the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// read gives a file of the module.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A pkg is a package as go list tells it, for Linux.
type pkg struct {
	ImportPath string
	Dir        string
	Name       string
	Doc        string
	Standard   bool
	GoFiles    []string
	Imports    []string
}

// A tree is the packages of this module and all that they need, without tests.
type tree map[string]*pkg

// list loads the tree.
func list(t *testing.T) tree {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Dir,Name,Doc,Standard,GoFiles,Imports", "./...")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	packages := tree{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = &p
	}
	return packages
}

// own gives this module's packages by name below the module ("." is the root),
// sorted.
func (tr tree) own() []string {
	var names []string
	for path := range tr {
		if name, ok := below(path); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// get gives one of this module's packages by its name below the module.
func (tr tree) get(name string) *pkg {
	if name == "." {
		return tr[module]
	}
	return tr[module+"/"+name]
}

// below gives the name of one of this module's packages.
func below(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// reach gives a shortest chain of imports from one package to another path
// (or a path below it), or nil.
func (tr tree) reach(from, to string) []string {
	type step struct {
		path string
		via  *step
	}
	seen := map[string]bool{from: true}
	for queue := []*step{{path: from}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if within(at.path, to) && at.via != nil {
			var chain []string
			for s := at; s != nil; s = s.via {
				chain = append(chain, s.path)
			}
			slices.Reverse(chain)
			return chain
		}
		if tr[at.path] == nil {
			continue
		}
		for _, next := range tr[at.path].Imports {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, &step{next, at})
			}
		}
	}
	return nil
}

// within tells whether a path is another one, or below it.
func within(path, of string) bool {
	return path == of || strings.HasPrefix(path, of+"/")
}
