package interpreter_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
	"github.com/paddock-sandbox/paddock/internal/program/programtest"
)

func TestMain(m *testing.M) {
	if box.Main(jail.Runtime(), gvisor.Runtime()) || gateway.Main() {
		return
	}
	if err := programtest.Build("paddock-gvisor"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	drivertest.Main(m, jailed)
}

func jailed(state string) (paddock.Driver, error) {
	return jail.New(jail.Options{State: state, Environ: os.Environ(), Hosts: drivertest.Hosts()})
}

// sandbox makes one for a test.
func sandbox(t *testing.T, spec paddock.Spec) paddock.Sandbox {
	t.Helper()
	d, err := jailed(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	spec.AllowMissing = drivertest.Weak(t, jailed)
	spec.Ephemeral = true
	sb, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// open makes an Interpreter of a new sandbox.
func open(t *testing.T, o interpreter.Options) *interpreter.Interpreter {
	t.Helper()
	if o.Sandbox == nil {
		o.Sandbox = sandbox(t, paddock.Spec{})
	}
	in, err := interpreter.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

// An outcome is what a cell told.
type outcome struct {
	out, err string
	results  []interpreter.Result
	errors   []interpreter.Error
	count    int
	ends     int
}

func (o *outcome) take(e interpreter.Event) error {
	switch e.Kind {
	case interpreter.Begun:
		o.count = e.Count
	case interpreter.Stdout:
		o.out += e.Text
	case interpreter.Stderr:
		o.err += e.Text
	case interpreter.Shown:
		o.results = append(o.results, *e.Result)
	case interpreter.Failed:
		o.errors = append(o.errors, *e.Error)
	case interpreter.Ended:
		o.ends++
	}
	return nil
}

// main gives the plain text of the cell's value.
func (o *outcome) main() string {
	for _, r := range o.results {
		if r.Main {
			return r.Text()
		}
	}
	return ""
}

func (o *outcome) failure() string {
	var all []string
	for _, e := range o.errors {
		all = append(all, e.Name+": "+e.Value)
	}
	return strings.Join(all, "; ")
}

func run(t *testing.T, in *interpreter.Interpreter, c interpreter.Cell) *outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o := &outcome{}
	if err := in.Run(ctx, c, o.take); err != nil {
		t.Fatalf("%q: %v", c.Code, err)
	}
	if o.ends != 1 {
		t.Fatalf("%q ended %d times", c.Code, o.ends)
	}
	return o
}

// A step is a cell, and what it tells.
type step struct {
	code    string
	env     map[string]string
	out     string // the whole of standard output
	err     string // a part of standard error
	main    string // the plain text of the value
	failure string // a part of the error
}

func steps(t *testing.T, in *interpreter.Interpreter, l interpreter.Language, list []step) {
	t.Helper()
	for _, s := range list {
		o := run(t, in, interpreter.Cell{Code: s.code, Language: l, Env: s.env})
		if o.out != s.out || o.main() != s.main || !strings.Contains(o.err, s.err) {
			t.Errorf("%q: output %q, errors %q, value %q (%s); want %q, %q, %q", s.code, o.out, o.err, o.main(), o.failure(), s.out, s.err, s.main)
		}
		if (s.failure == "") != (len(o.errors) == 0) || !strings.Contains(o.failure(), s.failure) {
			t.Errorf("%q: failed with %q, want %q", s.code, o.failure(), s.failure)
		}
	}
}

func TestPythonKeepsItsState(t *testing.T) {
	in := open(t, interpreter.Options{})
	steps(t, in, interpreter.Python, []step{
		{code: "1 + 1", main: "2"},
		{code: "x = 5"},
		{code: "x", main: "5"},
		{code: "x;"},
		{code: "print('a'); print('b')\n'text'", out: "a\nb\n", main: "'text'"},
		{code: "import sys; print('e', file=sys.stderr)", err: "e\n"},
		{code: "import os; os.system('echo child; echo bad >&2')", out: "child\n", err: "bad\n", main: "0"},
		{code: "os.write(1, b'raw\\n')", out: "raw\n", main: "4"},
		{code: "import asyncio\nawait asyncio.sleep(0, 7)", main: "7"},
		{code: "    y = 1\n    y + 1", main: "2"},
		{code: "1/0", failure: "ZeroDivisionError: division by zero"},
		{code: "def f(:", failure: "SyntaxError"},
		{code: "input()", failure: "nobody to ask"},
		{code: "sys.stdin.read()", main: "''"},
		{code: "raise SystemExit(3)", failure: "SystemExit: 3"},
		{code: "!echo $((1+2))", out: "3\n"},
		{code: "%%bash\necho cell", out: "cell\n"},
		{code: "%nothing", failure: "magic %nothing is not known"},
		{code: "os.getenv('FOO')", env: map[string]string{"FOO": "bar"}, main: "'bar'"},
		{code: "os.getenv('FOO', 'none')", main: "'none'"},
		{code: "x", main: "5"},
		{code: "import pprint; pprint.pformat = lambda *_, **__: 'laid out'; list(range(50))", main: "laid out"},
		{code: "[0] * 3_000_000", main: "(too large to be shown)"}, // to lay it out would take half a minute
	})
}

// wheel writes a package that pip installs without a network.
const wheel = `import zipfile
with zipfile.ZipFile("/tmp/%[1]s-1-py3-none-any.whl", "w") as z:
    z.writestr("%[1]s.py", "answer = 42")
    z.writestr("%[1]s-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: %[1]s\nVersion: 1\n")
    z.writestr("%[1]s-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("%[1]s-1.dist-info/RECORD", "")
`

func TestAPackageThatACellInstalledCanBeImported(t *testing.T) {
	in := open(t, interpreter.Options{})
	if o := run(t, in, interpreter.Cell{Code: "import pip"}); len(o.errors) > 0 {
		t.Skipf("pip is not installed: %s", o.failure())
	}
	for name, install := range map[string]string{"first": "!pip", "second": "%pip", "third": "lines = !python3 -m pip"} {
		install += " install --no-index --no-cache-dir --quiet --disable-pip-version-check /tmp/" + name + "-1-py3-none-any.whl"
		run(t, in, interpreter.Cell{Code: fmt.Sprintf(wheel, name)})
		o := run(t, in, interpreter.Cell{Code: install})
		if got := run(t, in, interpreter.Cell{Code: "import " + name + "\n" + name + ".answer"}); got.main() != "42" {
			t.Errorf("%s: %q (%s); the installation said %q", install, got.main(), got.failure(), o.out+o.err)
		}
	}
}

func TestProgramsForIPythonFindWhatTheyAskFor(t *testing.T) {
	in := open(t, interpreter.Options{})
	steps(t, in, interpreter.Python, []step{
		{code: "from IPython import get_ipython\nip = get_ipython()\nip.events.register('post_run_cell', lambda r: print('after', r.success))", out: "after True\n"},
		{code: "1/0", out: "after False\n", failure: "ZeroDivisionError"},
		{code: "ip.enable_gui('qt')", out: "after False\n", failure: "no windows of qt"},
		{code: "from IPython.core.getipython import get_ipython as g; from IPython.core.pylabtools import backend2gui\ng() is ip", out: "after True\n", main: "True"},
		{code: "from IPython.display import publish_display_data; 'IPKernelApp' in ip.config", out: "after True\n", main: "False"},
	})
}

func TestBashKeepsItsState(t *testing.T) {
	in := open(t, interpreter.Options{})
	steps(t, in, interpreter.Bash, []step{
		{code: "echo hello", out: "hello\n"},
		{code: "x=5; cd /tmp"},
		{code: "echo $x $PWD", out: "5 /tmp\n"},
		{code: "f() { echo \"it's $1\"; }\nf 'a \"b\"'", out: "it's a \"b\"\n"},
		{code: "cat; echo done", out: "done\n"},
		{code: "false", failure: "exit status 1"},
		{code: "(exit 7)", failure: "exit status 7"},
		{code: "if", failure: "exit status"},
		{code: "echo $FOO", env: map[string]string{"FOO": "a b'c"}, out: "a b'c\n"},
		{code: "echo ${FOO:-none}", out: "none\n"},
		{code: "echo bad >&2", err: "bad\n"},
	})
}

func TestJavaScriptKeepsItsState(t *testing.T) {
	in := open(t, interpreter.Options{})
	steps(t, in, interpreter.JavaScript, []step{
		{code: "1 + 1", main: "2"},
		{code: "const z = 1"},
		{code: "const z = 2; z", main: "2"},
		{code: "console.log('hi', {a: 1}); console.error('bad')", out: "hi { a: 1 }\n", err: "bad\n"},
		{code: "'text'", main: "'text'"},
		{code: "({a: [1, 2]})", main: "{ a: [ 1, 2 ] }"},
		{code: "async function main() { return 'later' }\nawait main()", main: "'later'"},
		{code: "import fs, { readFileSync as r } from 'fs'\nimport * as p from \"node:path\"\np.basename('/a/b') + typeof r + typeof fs.readFileSync", main: "'bfunctionfunction'"},
		{code: "(await import('os')).EOL", main: `'\n'`},
		{code: "require('child_process').execSync('echo child', {stdio: 'inherit'}); 0", out: "child\n", main: "0"},
		{code: "throw new TypeError('bad')", failure: "TypeError: bad"},
		{code: "throw 5", failure: "Uncaught: 5"},
		{code: "let = =", failure: "SyntaxError"},
		{code: "await Promise.reject(new Error('later'))", failure: "Error: later"},
		{code: "process.env.FOO", env: map[string]string{"FOO": "bar"}, main: "'bar'"},
		{code: "process.env.FOO || 'none'", main: "'none'"},
		{code: "10n ** 20n", main: "100000000000000000000n"},
		{code: "import x from 'npm:nothing-of-that-name'", failure: "is not installed"},
		{code: "undefined"},
	})
}
