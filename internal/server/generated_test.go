package server

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A workshop is a directory with the contract and the scripts of testdata/clients, beside
// the validators and generators that `make clients` installed.
type workshop struct {
	dir, python string
}

func newWorkshop(t *testing.T) workshop {
	t.Helper()
	tools, err := filepath.Abs("../../.tmp/clients")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"js.txt", "py.txt"} {
		if _, err := os.Stat(filepath.Join(tools, name)); err != nil {
			t.Skipf("%v: make clients", err)
		}
	}
	w := workshop{dir: t.TempDir(), python: filepath.Join(tools, "py")}
	if err := os.CopyFS(w.dir, os.DirFS("testdata/clients")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "openapi.yaml"), openAPI, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(tools, "js", "node_modules"), filepath.Join(w.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs a program, which must succeed, and returns what it printed.
func (w workshop) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = w.dir
	c.Env = append(os.Environ(), "PYTHONPATH="+w.python, "PYTHONDONTWRITEBYTECODE=1", "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "CI=true", "NO_COLOR=1")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out.Bytes())
	}
	return out.String()
}

func (w workshop) node(t *testing.T, module string, args ...string) string {
	t.Helper()
	return w.run(t, "node", append([]string{filepath.Join("node_modules", filepath.FromSlash(module))}, args...)...)
}

func TestPublicValidatorsAcceptTheContract(t *testing.T) {
	w := newWorkshop(t)
	w.run(t, "python3", "-m", "openapi_spec_validator", "openapi.yaml")
	// The answer "default" of each operation covers its errors.
	w.node(t, "@redocly/cli/bin/cli.js", "lint", "openapi.yaml", "--max-problems=1000", "--skip-rule=operation-4xx-response")
}

func TestAGeneratedPythonClientRuns(t *testing.T) {
	w := newWorkshop(t)
	said := w.run(t, "python3", "-m", "openapi_python_client", "generate", "--path", "openapi.yaml", "--output-path", "generated", "--meta", "none", "--config", "generator.yaml")
	if n := strings.Count(said, "WARNING"); n > 1 { // it knows no type for the contract itself
		t.Errorf("the generator left operations out:\n%s", said)
	}
	tr := newTrial(t)
	if out := w.run(t, "python3", "use.py", tr.web.URL, "good"); out != "done\n" {
		t.Errorf("it printed %q", out)
	}
}

func TestAGeneratedTypeScriptClientRuns(t *testing.T) {
	w := newWorkshop(t)
	w.node(t, "@hey-api/openapi-ts/bin/run.js", "--input", "openapi.yaml", "--output", "generated", "--client", "@hey-api/client-fetch", "--no-log-file")
	w.node(t, "typescript/bin/tsc", "--project", ".")
	tr := newTrial(t)
	if out := w.run(t, "node", "built/use.js", tr.web.URL, "good"); out != "done\n" {
		t.Errorf("it printed %q", out)
	}
}
