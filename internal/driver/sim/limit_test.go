package sim_test

import (
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/python"
	"github.com/paddock-sandbox/paddock/tool"
)

// A reached limit is how a script hits one that is small.
type reached struct {
	limit  budget.Name
	value  int64
	script string
	says   string // what the program says where the limit has a word there; empty is the end of the run
}

func limits() []reached {
	const mib = 1 << 20
	return []reached{
		{"source", 4096, "printf ': %5000s\\n' a > s; . ./s", ""},
		{"commands", 50, "while :; do :; done", ""},
		{"iterations", 50, "while :; do :; done", ""},
		{"calls", 20, "f() { f; }; f", ""},
		{"sources", 10, "x='eval \"$x\"'; eval \"$x\"", ""},
		{"substitution", 10, "f() { x=$(f); }; f", ""},
		{"nesting", 50, "eval \"$(printf '( %.0s' {1..200}) :\"", ""},
		{"shells", 10, "export x='bash -c \"$x\"'; bash -c \"$x\"", ""},
		{"brace", 100, "echo {1..1000}", ""},
		{"matches", 3, "touch a b c d e; echo *", ""},
		{"arguments", 20_000, "/bin/echo $(printf '%030000d' 1)", "Argument list too long"},
		{"string", 10_000, "x=aaaa; while :; do x=$x$x; done", ""},
		{"array", 1000, "a=(1); while :; do a+=(\"${a[@]}\"); done", ""},
		{"heredoc", 10, "cat << E\nmore than ten bytes\nE", ""},
		{"heap", 4 * mib, "i=0; while :; do a[i++]=$(printf %1000d 1); done", ""},
		{"tasks", 16, "for i in {1..50}; do sleep 100 & done", "Resource temporarily unavailable"},
		{"descriptors", 32, "while exec {fd}</dev/null; do :; done", "Too many open files"},
		{"disk", 2 * mib, "yes > f", "No space left on device"},
		{"inodes", 5000, "seq 9000 | xargs touch", "No space left on device"},
		{"file_size", 1 * mib, "truncate -s 2M f", "File too large"},
		{"path", 100, "mkdir -p $(printf 'abc/%.0s' {1..50})", "File name too long"},
		{"output", 10_000, "yes", ""},
		{"steps", 1_000_000, "yes > /dev/null", ""},
		{"traversal", 20, "find /", ""},
		{"record", 10_000, "rev /dev/zero", ""},
		{"input", 100_000, "tail -c 1000000 /dev/zero", ""},
		{"archive", 1 * mib, "head -c 3M /dev/zero | gzip | gzip -dc | wc -c", ""},
		{"script_heap", 4 * mib, "js-exec -c 'let a = []; while (true) a.push(new Array(1000).fill(1))'", ""},
		{"script_time", int64(200 * time.Millisecond), "js-exec -c 'while (true) {}'", ""},
		{"wall", int64(time.Second), "sleep 100", ""},
		{"tool_calls", 5, "for i in {1..10}; do answer; done", ""},
		{"database", 1 * mib, "head -c 2M /dev/zero > d; sqlite3 d .tables", ""},
		{"sql_heap", 8 * mib, "sqlite3 :memory: 'with recursive c(n) as (select 1 union all select n + 1 from c) select n from c order by random()'", "out of memory"},
		{"python_heap", 64 * mib, "python3 -c 'x = bytearray(1 << 30)'", "MemoryError"},
	}
}

// elsewhere are limits of a network that this tier has none of: the tests of the
// tools that would use it reach them, each in a test of that name.
func elsewhere() map[budget.Name]string {
	const file, start = "../../sim/command/fetch/fetch_test.go", "budget.Limits{"
	return map[budget.Name]string{"download": start + "Download:", "redirects": start + "Redirects:", "request": start + "Request:", "": file}
}

func TestEveryLimitIsReachedAndNamed(t *testing.T) {
	rows := map[budget.Name]bool{}
	for _, row := range limits() {
		if rows[row.limit] {
			t.Errorf("%s has two rows", row.limit)
		}
		rows[row.limit] = true
		t.Run(string(row.limit), row.try)
	}
	tests, err := os.ReadFile(elsewhere()[""])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range budget.Fields() {
		if use, away := elsewhere()[f.Name]; rows[f.Name] == away || away && !strings.Contains(string(tests), use) {
			t.Errorf("no row reaches the limit %s: a limit that nothing enforces is a false promise", f.Name)
		}
	}
	if n := reflect.TypeFor[budget.Limits]().NumField(); n != len(budget.Fields()) {
		t.Errorf("of %d limits %d have a name", n, len(budget.Fields()))
	}
}

// Empty files take memory and no room on the disk.
func TestALimitOfTheDiskBoundsTheNumberOfFiles(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Disk: 4 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	exit, out := do(t, sb, "seq 1000 | xargs touch && echo made; seq 9000 | xargs touch", forgiven)
	if !strings.HasPrefix(out, "made\n") || exit.Code == 0 || !strings.Contains(out, "No space left on device") {
		t.Errorf("%+v, %.300q", exit, out)
	}
}

func TestALimitDoesNotBecomeLowerThanWhatIsInUse(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if exit, out := do(t, sb, "head -c 3M /dev/zero > /tmp/f", forgiven); exit.Code != 0 {
		t.Fatalf("%+v, %q", exit, out)
	}
	lower := paddock.Limits{Memory: 64 << 20, Disk: 2 << 20}
	if err := sb.Update(t.Context(), paddock.Update{Limits: &lower, Labels: map[string]string{"a": "b"}}); !errors.Is(err, paddock.Conflict) || !strings.Contains(err.Error(), "remove files first") {
		t.Errorf("the disk: %v", err)
	}
	if st, err := sb.Status(t.Context()); err != nil || st.Limits.Disk != 1<<30 || len(st.Labels) != 0 || d.MostMemory() != (256+1024)<<20+sim.Overhead {
		t.Errorf("%+v, %v, %d", st, err, d.MostMemory())
	}
	if exit, out := do(t, sb, "rm /tmp/f", forgiven); exit.Code != 0 {
		t.Fatalf("%+v, %q", exit, out)
	}
	if err := sb.Update(t.Context(), paddock.Update{Limits: &lower}); err != nil || d.MostMemory() != 66<<20+sim.Overhead {
		t.Errorf("after a removal: %v, %d", err, d.MostMemory())
	}
	said, w := io.Pipe()
	p, err := sb.Start(t.Context(), paddock.Cmd{
		Args: []string{"bash", "-c", "x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo made; read y"}, Input: true, Output: paddock.Output{Stdout: w},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if _, err := io.ReadFull(said, make([]byte, len("made\n"))); err != nil {
		t.Fatal(err)
	}
	if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: 2 << 20}}); !errors.Is(err, paddock.Conflict) || !strings.Contains(err.Error(), "end processes first") {
		t.Errorf("the memory: %v", err)
	}
}

// The output of living processes counts as their memory. That of ended ones has a bound.
func TestKeptOutputIsBounded(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Memory: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	kept := func() (sum int64, processes int) {
		list, err := sb.Processes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			sum += p.Next - p.First
		}
		return sum, len(list)
	}
	var last paddock.PID
	for range 20 {
		p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"head", "-c", "3000000", "/dev/zero"}, Output: paddock.Output{Detached: true}})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
			t.Fatalf("%+v, %v", exit, err)
		}
		last = p.ID()
	}
	if sum, n := kept(); sum > 4<<20 || sum < 1<<20 || n < 2 {
		t.Errorf("%d bytes of %d ended processes", sum, n)
	}
	if _, err := sb.Attach(t.Context(), last, paddock.Output{Detached: true}); err != nil {
		t.Errorf("the last one: %v", err)
	}

	memory := func() int64 {
		st, err := sb.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st.Usage.Memory
	}
	before := memory()
	said, w := io.Pipe()
	p, err := sb.Start(t.Context(), paddock.Cmd{
		Args: []string{"bash", "-c", "head -c 3000000 /dev/zero; echo made >&2; read x"}, Input: true, Output: paddock.Output{Stderr: w},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if _, err := io.ReadFull(said, make([]byte, len("made\n"))); err != nil {
		t.Fatal(err)
	}
	if grown := memory() - before; grown < 1<<20 {
		t.Errorf("the output of a living process counts %d bytes", grown)
	}
	if err := p.Input().Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if grown := memory() - before; grown > 1<<19 {
		t.Errorf("the output of an ended process counts %d bytes", grown)
	}
}

func TestATooLargeEnvironmentIsRefusedInWords(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	_, err = d.Create(t.Context(), paddock.Spec{Env: map[string]string{"A": strings.Repeat("x", 300<<10)}})
	if !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "the environment has 307201 bytes, but the maximum is 262144") {
		t.Errorf("300 KiB: %v", err)
	}
}

// answer is a tool of the caller's.
func answer(t *testing.T) *tool.Set {
	t.Helper()
	x, err := tool.Define("answer", "Give the answer.", func(context.Context, struct{}) (int, error) { return 42, nil })
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tool.Options{Tools: []tool.Tool{x}, Grants: []tool.Grant{{Tools: "answer"}}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// interpreter installs Python from the package that PADDOCK_TEST_PYTHON names.
func interpreter(t *testing.T) string {
	t.Helper()
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
	return dir
}

func (row reached) try(t *testing.T) {
	var l budget.Limits
	for _, f := range budget.Fields() {
		if f.Name == row.limit {
			f.Set(&l, row.value)
		}
	}
	o := sim.Options{Limits: l, Tools: answer(t)}
	if row.limit == "python_heap" {
		o.Python = interpreter(t)
	}
	d, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	bound := forgiven
	if row.limit == "wall" {
		bound = 0 // a longer timeout is what wins
	}
	exit, out := do(t, sb, row.script, bound)
	switch {
	case row.says != "":
		if !strings.Contains(out, row.says) || exit.Cause != paddock.Exited {
			t.Errorf("%+v, which does not say %q: %q", exit, row.says, out)
		}
	case ending(exit) != string(row.limit):
		t.Errorf("it ended by %q: %+v %q", ending(exit), exit, out)
	case exit.Cause == paddock.OutOfMemory && row.limit != "heap":
		t.Errorf("more memory would not help: %+v", exit)
	}
	if row.limit == "source" || row.limit == "shells" || row.limit == "commands" || row.limit == "iterations" || row.limit == "path" {
		return // what is asked next is longer than that
	}
	if exit, out := do(t, sb, "kill -9 -1; echo alive", forgiven); out != "alive\n" || exit.Code != 0 {
		t.Errorf("afterwards: %q, %+v", out, exit)
	}
}
