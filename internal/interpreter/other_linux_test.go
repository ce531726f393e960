package interpreter_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

// with opens an Interpreter where a language is installed.
func with(t *testing.T, l interpreter.Language) *interpreter.Interpreter {
	t.Helper()
	in := open(t, interpreter.Options{Stop: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := in.Create(ctx, interpreter.Spec{Language: l}); paddock.KindOf(err) == paddock.Unsupported {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestRKeepsItsState(t *testing.T) {
	in := with(t, interpreter.R)
	steps(t, in, interpreter.R, []step{
		{code: "x <- 5"},
		{code: "x", main: "[1] 5"},
		{code: "cat('hi\\n'); system('echo child')", out: "hi\nchild\n"},
		{code: "message('bad')", err: "bad\n"},
		{code: "Sys.getenv('FOO')", env: map[string]string{"FOO": "bär"}, main: `[1] "bär"`},
		{code: "Sys.getenv('FOO', unset = 'none')", main: `[1] "none"`},
		{code: "stop('wrong')", failure: "simpleError: wrong"},
		{code: "f(", failure: "rror"},
		{code: "print(1)\n2", out: "[1] 1\n", main: "[1] 2"},
		{code: "invisible(7)"},
	})
	interruptible(t, in, interpreter.Cell{Language: interpreter.R, Code: "cat('go\\n'); while (TRUE) {}"}, "x", "[1] 5")
	o := run(t, in, interpreter.Cell{Language: interpreter.R, Code: "plot(1:3)"})
	if len(o.results) != 1 || !strings.HasPrefix(string(o.results[0].Data["image/png"]), `"iVBOR`) {
		t.Errorf("plot gives %d results, %s", len(o.results), o.failure())
	}
}

func TestJavaKeepsItsState(t *testing.T) {
	in := with(t, interpreter.Java)
	steps(t, in, interpreter.Java, []step{
		{code: "int x = 5;\nint twice(int n) { return 2 * n; }"},
		{code: "twice(x)", main: "10"},
		{code: "System.out.println(\"hi\"); System.err.println(\"bad\");", out: "hi\n", err: "bad\n"},
		{code: "System.getProperty(\"FOO\")", env: map[string]string{"FOO": "bar"}, main: `"bar"`},
		{code: "System.getProperty(\"FOO\", \"none\")", main: `"none"`},
		{code: "List.of(1, 2).stream().map(n -> n + x).toList()", main: "[6, 7]"},
		{code: "throw new IllegalStateException(\"wrong\");", failure: "java.lang.IllegalStateException: wrong"},
		{code: "int y = \"text\";", failure: "CompilationError: incompatible types"},
	})
	for range 10 { // the interrupt comes while the second statement is being compiled, or begins
		interruptible(t, in, interpreter.Cell{Language: interpreter.Java, Code: "System.out.println(\"go\"); while (true) Thread.sleep(10);"}, "x", "5")
	}
}

// interruptible tries that a cell that says "go" and does not end can be interrupted,
// and that what was there before is there afterwards.
func interruptible(t *testing.T, in *interpreter.Interpreter, c interpreter.Cell, get, want string) {
	t.Helper()
	d, err := in.Default(t.Context(), c.Language)
	if err != nil {
		t.Fatal(err)
	}
	o, done := started(t.Context(), t, in, c)
	if err := in.Interrupt(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, done); err != nil || len(o.errors) != 1 || o.errors[0].Name == interpreter.ErrorEnded {
		t.Errorf("it ended with %v, %s", err, o.failure())
	}
	if o := run(t, in, interpreter.Cell{Language: c.Language, Code: get}); o.main() != want {
		t.Errorf("afterwards it is %q (%s)", o.main(), o.failure())
	}
}

func TestTypeScriptRunsOrSaysWhatItNeeds(t *testing.T) {
	in := open(t, interpreter.Options{})
	_, err := in.Create(t.Context(), interpreter.Spec{Language: interpreter.TypeScript})
	if paddock.KindOf(err) == paddock.Unsupported {
		if !strings.Contains(err.Error(), "strip types") {
			t.Errorf("it is refused with %v", err)
		}
		return
	}
	steps(t, in, interpreter.TypeScript, []step{
		{code: "function subtract(x: number, y: number): number {\n  return x - y;\n}\nsubtract(1, 2)", main: "-1"},
		{code: "enum E { A = 3 }\nconst e: E = E.A; e", main: "3"},
		{code: "subtract(3, 1)", main: "2"},
	})
}

func TestALanguageThatIsNotThereIsNamed(t *testing.T) {
	in := open(t, interpreter.Options{Sandbox: sandbox(t, paddock.Spec{Env: map[string]string{"PATH": "/nothing"}})})
	for l, word := range map[interpreter.Language]string{interpreter.Python: "python3", interpreter.JavaScript: "node", interpreter.Bash: "bash", interpreter.R: "Rscript", interpreter.Java: "JDK"} {
		_, err := in.Create(t.Context(), interpreter.Spec{Language: l})
		if paddock.KindOf(err) != paddock.Unsupported || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", l, err)
		}
	}
}
