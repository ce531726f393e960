package python

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestWithoutTheInterpreterItSaysHowToGetIt(t *testing.T) {
	for _, dir := range []string{"", t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		r := commandtest.Run(t, Commands(dir), commandtest.Case{Args: []string{"python3", "-V"}})
		if r.Status != 127 || !strings.Contains(r.Stderr, "python3: not set up: run paddock sim setup") {
			t.Errorf("%q: %+v", dir, r)
		}
	}
}

func TestOnlyTheOneInterpreterIsInstalled(t *testing.T) {
	for name, b := range map[string]string{"nothing": "", "text": "hello world", "other code": "\x00asm\x01\x00\x00\x00", "no package": "\x1f\x8b\x08\x00 and so on"} {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Install(t.Context(), dir, strings.NewReader(b)); err == nil || Installed(dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Install(t.Context(), open, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "only you") {
		t.Errorf("a directory of everybody's: %v", err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("\x00asm"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := unpack(bytes.NewReader(b)); err == nil {
			t.Error("something else was taken for the interpreter")
		}
	})
}

// TestMain installs the interpreter, once, from the file that
// PADDOCK_TEST_PYTHON names: nothing is downloaded by a test.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		file := os.Getenv(variable)
		if file == "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "paddock-python-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		f, err := os.Open(file)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		if err := Install(context.Background(), dir, f); err != nil {
			panic(err)
		}
		os.Setenv(variable, dir)
		return m.Run()
	}())
}

const variable = "PADDOCK_TEST_PYTHON"

// installed gives the directory with the interpreter.
func installed(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skip(variable + " names no package of the interpreter: make python fetches it")
	}
	return dir
}

func TestPythonWorksOnTheComputersFiles(t *testing.T) {
	commands := Commands(installed(t))
	for _, c := range []struct {
		args   []string
		stdin  string
		files  map[string]string
		stdout string
		status int
		stderr string
	}{
		{args: []string{"python3", "-c", "print(1+1)"}, stdout: "2\n"},
		{args: []string{"python3", "-V"}, stdout: "Python 3.12.0\n"},
		{args: []string{"python", "a.py", "x"}, files: map[string]string{"a.py": "import sys, os, json, re\nprint(sys.argv[1:], os.getcwd(), 'PADDOCK_DIR' in os.environ, 'PYTHONPATH' in os.environ)"}, stdout: "['x'] /tmp/case False False\n"},
		{args: []string{"python3", "-m", "json.tool"}, stdin: `{"a":1}`, stdout: "{\n    \"a\": 1\n}\n"},
		{args: []string{"python3"}, stdin: "print('from stdin')", stdout: "from stdin\n"},
		{args: []string{"python3", "-"}, stdin: "import sys; sys.exit(3)", status: 3},
		{args: []string{"python3", "-c", "import sys; print(sum(map(int, sys.stdin)))"}, stdin: "1\n2\n3\n", stdout: "6\n"},
		{args: []string{"python3", "-c", "raise ValueError('x')"}, status: 1, stderr: "ValueError: x"},
		{args: []string{"python3", "none.py"}, status: 2, stderr: "No such file"},
		{args: []string{"python3", "m.py"}, files: map[string]string{"m.py": "import own; print(own.x)", "own.py": "x = 42"}, stdout: "42\n"},
		{args: []string{"python3", "-c", `
import os, shutil
os.makedirs("a/b"); open("a/b/f", "w").write("text\n"); os.symlink("b/f", "a/l"); os.rename("a/b/f", "a/b/g")
print(sorted(os.listdir("a")), os.path.islink("a/l"), open("a/b/g").read().strip(), os.stat("a/b/g").st_size)
with open("a/b/g", "r+b") as f:
    f.seek(2); f.write(b"\xff"); f.truncate(3)
print(open("a/b/g", "rb").read(), [d for d, _, _ in os.walk("a")])
shutil.rmtree("a"); print(os.path.exists("a"))
try: open("/none")
except FileNotFoundError as e: print(e.errno, e.filename)
`}, stdout: "['b', 'l'] True text 5\nb'te\\xff' ['a', 'a/b']\nFalse\n44 /none\n"},
		{args: []string{"python3", "-c", "import time; t = time.monotonic(); time.sleep(0.05); print(time.monotonic() - t >= 0.05)"}, stdout: "True\n"},
		{args: []string{"python3", "-c", "import socket; socket.create_connection(('example.com', 80))"}, status: 1},
		{args: []string{"python3", "-c", "import subprocess; subprocess.run(['ls'])"}, status: 1},
	} {
		r := commandtest.Run(t, commands, commandtest.Case{Args: c.args, Stdin: c.stdin, Files: c.files})
		if r.Stdout != c.stdout || r.Status != c.status || !strings.Contains(r.Stderr, c.stderr) {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
}

func TestAPythonThatTakesTooMuchEnds(t *testing.T) {
	commands := Commands(installed(t))
	for _, c := range []struct {
		limits     budget.Limits
		code, says string
	}{
		{budget.Limits{ScriptTime: time.Second}, "while True: pass", `"script_time"`},
		{budget.Limits{ScriptTime: time.Second}, "import time; time.sleep(100)", `"script_time"`},
		{budget.Limits{Wall: time.Second}, "while True: pass", `"wall"`},
		{budget.Limits{PythonHeap: 64 << 20}, "x = 'a'\nwhile True: x += x", "MemoryError"},
		{budget.Limits{Heap: 64 << 20}, "x = [0]\nwhile True: x += x", "MemoryError"},
		{budget.Limits{}, "def f(): f()\nf()", "RecursionError"},
	} {
		began := time.Now()
		r := commandtest.RunWithin(t, commands, commandtest.Case{Args: []string{"python3", "-c", c.code}}, c.limits)
		if !strings.Contains(r.Stderr, c.says) {
			t.Errorf("%q: %+v after %v", c.code, r, time.Since(began))
		}
	}
}

func BenchmarkStart(b *testing.B) {
	commands := Commands(installed(b))
	t := &testing.T{}
	commandtest.Run(t, commands, commandtest.Case{Args: []string{"python3", "-V"}})
	for b.Loop() {
		if r := commandtest.Run(t, commands, commandtest.Case{Args: []string{"python3", "-c", "print(1+1)"}}); r.Stdout != "2\n" {
			b.Fatalf("%+v", r)
		}
	}
}
