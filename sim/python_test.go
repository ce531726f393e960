package sim_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/command/python"
	"github.com/paddock-sandbox/paddock/sim"
)

func TestPythonRunsOnceItIsSetUp(t *testing.T) {
	file := os.Getenv("PADDOCK_TEST_PYTHON")
	if file == "" {
		t.Skip("PADDOCK_TEST_PYTHON names no package of the interpreter: make python fetches it")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := python.Install(t.Context(), dir, f); err != nil {
		t.Fatal(err)
	}
	if out, code := pythonIn(t, sim.Options{Python: dir}, `echo 20 | python3 -c 'print(int(input()) + 1)'`); out != "21\n" || code != 0 {
		t.Errorf("%q, status %d", out, code)
	}
}

func TestWithoutPythonTheMessageNamesTheSetup(t *testing.T) {
	if out, code := pythonIn(t, sim.Options{}, `python3 -c 'print(1)'`); !strings.Contains(out, "paddock sim setup") || code == 0 {
		t.Errorf("%q, status %d", out, code)
	}
}

func pythonIn(t *testing.T, o sim.Options, script string) (out string, code int) {
	t.Helper()
	d, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	exit, err := sim.Run(t.Context(), sb, sim.Script{Text: script, Stdout: &b, Stderr: &b})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), exit.Code
}
