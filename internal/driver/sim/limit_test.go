package sim_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/budget"
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
	}
}

// elsewhere are limits of tools that need something this test does not have: a
// network, a caller's tool, an interpreter that is fetched. Their packages use
// them, and the tests there reach them.
func elsewhere() map[budget.Name][2]string {
	return map[budget.Name][2]string{
		"tool_calls": {"command/tools", "t.ToolCall()"}, "python_heap": {"command/python", "Limits.PythonHeap"}, "database": {"command/sql", "Limits.Database"}, "sql_heap": {"command/sql", "Limits.SQLHeap"},
		"download": {"command/fetch", "Limits.Download"}, "redirects": {"command/fetch", "Limits.Redirects"}, "request": {"command/fetch", "Limits.Request"},
	}
}

func TestEveryLimitIsReachedAndNamed(t *testing.T) {
	rows := map[budget.Name]bool{}
	for _, row := range limits() {
		rows[row.limit] = true
		t.Run(string(row.limit), row.try)
	}
	for _, f := range budget.Fields() {
		if use := elsewhere()[f.Name]; !rows[f.Name] && !mentions(t, use[0], use[1]) {
			t.Errorf("no row reaches the limit %s: a limit that nothing enforces is a false promise", f.Name)
		}
	}
}

// mentions tells whether a package holds a text.
func mentions(t *testing.T, dir, text string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || dir == "" {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool {
		b, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(b), text)
	})
}

func (row reached) try(t *testing.T) {
	var l budget.Limits
	for _, f := range budget.Fields() {
		if f.Name == row.limit {
			f.Set(&l, row.value)
		}
	}
	d, err := sim.New(sim.Options{Limits: l})
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
	exit, out := do(t, sb, row.script, forgiven)
	switch {
	case row.says != "":
		if !strings.Contains(out, row.says) || exit.Cause != paddock.Exited {
			t.Errorf("%+v, which does not say %q: %q", exit, row.says, out)
		}
	case ending(exit) != string(row.limit) && !(row.limit == "wall" && exit.Cause == paddock.TimedOut):
		t.Errorf("it ended by %q: %+v %q", ending(exit), exit, out)
	case !strings.Contains(exit.Reason, string(row.limit)):
		t.Errorf("the reason does not name the limit: %q", exit.Reason)
	}
}
