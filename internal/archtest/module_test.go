package archtest_test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A gomod is what go.mod says.
type gomod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Replace []struct{ Old struct{ Path string } }
	Exclude []struct{ Path string }
}

func readModule(t *testing.T) gomod {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var m gomod
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestNoReplaceInTheModuleFile(t *testing.T) {
	m := readModule(t)
	for _, r := range m.Replace {
		t.Errorf("go.mod replaces %s: `go install …@version` would refuse this module", r.Old.Path)
	}
	for _, e := range m.Exclude {
		t.Errorf("go.mod excludes %s: who imports us would not", e.Path)
	}
}

// dependencyRow is a row of the table of dependencies in docs/why/dependencies.md.
var dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+\\.[^`]+)` \\|(.*)\\|$")

func TestEveryDependencyHasAReason(t *testing.T) {
	reasons := map[string]string{}
	for _, row := range dependencyRow.FindAllStringSubmatch(read(t, "docs/why/dependencies.md"), -1) {
		reasons[row[1]] = row[2]
	}
	var direct []string
	for _, r := range readModule(t).Require {
		if r.Indirect {
			continue
		}
		direct = append(direct, r.Path)
		cells, ok := reasons[r.Path]
		if !ok {
			t.Errorf("%s is a direct dependency without a row in docs/why/dependencies.md", r.Path)
			continue
		}
		for cell := range strings.SplitSeq(cells, "|") {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("%s: its row in docs/why/dependencies.md has an empty cell", r.Path)
			}
		}
	}
	for path := range reasons {
		if !slices.Contains(direct, path) {
			t.Errorf("docs/why/dependencies.md has a row for %s, which is not a direct dependency", path)
		}
	}
}
