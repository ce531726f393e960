package e2b

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// doublings returns the arguments of an ENV step that doubles a variable of 16 bytes n times.
func doublings(n int) []string {
	args := []string{"A", strings.Repeat("x", 16)}
	for range n {
		args = append(args, "A", "$A$A")
	}
	return args
}

// The text of a step is short, and what it expands to is not: the server must not hold it.
func TestAVariableOfABuildIsNotExpandedBeyondTheBound(t *testing.T) {
	for what, args := range map[string][]string{
		"doubling":           doublings(22), // 64 MiB
		"doubling in braces": {"A", strings.Repeat("x", 1<<17), "A", "${A}${A}", "A", "${A}${A}"},
		"many references":    {"A", strings.Repeat("x", 1000), "B", strings.Repeat("$A", 50_000)},
		"many variables":     {"A", strings.Repeat("x", 1<<17), "B", "$A", "C", "$A"},
		"a long text":        {"A", strings.Repeat("x", paddock.MaxEnv)},
		"many names":         {strings.Repeat("a", 1<<17), "", strings.Repeat("b", 1<<17), "", "c", ""},
	} {
		w := &work{b: &build{}, env: map[string]string{}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := w.do(t.Context(), "1", step{Type: "ENV", Args: args})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "maximum of 262144 bytes") {
			t.Errorf("%s: %v", what, err)
		}
		if n := sizeOf(w.env); n > paddock.MaxEnv {
			t.Errorf("%s: the environment has %d bytes", what, n)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 10<<20 {
			t.Errorf("%s: %d bytes were allocated", what, n)
		}
	}
}

func TestVariablesOfABuildAreExpandedUpToTheBound(t *testing.T) {
	w := &work{b: &build{}, env: map[string]string{"P": "/bin", "A": "old"}}
	args := []string{"P", "/opt:$P", "A", "${A}er", "B", "$A$missing", "Z", "$P"}
	if err := w.do(t.Context(), "1", step{Type: "ENV", Args: args}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"P": "/opt:/bin", "A": "older", "B": "older", "Z": "/opt:/bin"} {
		if got := w.env[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	w = &work{b: &build{}, env: map[string]string{}}
	half := strings.Repeat("x", paddock.MaxEnv/2-1)
	if err := w.do(t.Context(), "1", step{Type: "ENV", Args: []string{"A", half, "B", "$A", "A", "$B"}}); err != nil || sizeOf(w.env) != paddock.MaxEnv {
		t.Errorf("an environment of exactly the maximum: %d bytes, %v", sizeOf(w.env), err)
	}
}

// An earlier version kept environments that had no bound.
func TestAnEnvironmentThatIsTooLargeIsNotTakenFromTheStore(t *testing.T) {
	most := map[string]string{"A": strings.Repeat("x", paddock.MaxEnv-1)}
	large := map[string]string{"A": strings.Repeat("x", paddock.MaxEnv)}
	h, _ := handler(t, record{Env: large})
	b, ok := h.find(testID)
	if !ok {
		t.Fatal("the sandbox is gone")
	}
	if rec, _ := b.record(); rec.Env != nil {
		t.Errorf("its variables have %d bytes", sizeOf(rec.Env))
	}
	if list := b.logged(); len(list) != 1 || !strings.Contains(list[0].Message, "262145 bytes") {
		t.Errorf("its log says %v", list)
	}
	data, err := json.Marshal(template{ID: "t", Tenant: "acme", Tags: map[string]string{"new": "large", "old": "most"}, Builds: []built{
		{ID: "large", Status: ready, Env: large}, {ID: "most", Status: ready, Env: most},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.loadTemplate("acme", "t", string(data)); err != nil {
		t.Fatal(err)
	}
	if kept, _ := h.templates["t"].build("large"); kept.Env != nil || kept.Status != failed || !strings.Contains(kept.Reason, "262145 bytes") {
		t.Errorf("the build is %s: %s", kept.Status, kept.Reason)
	}
	if root, err := h.resolve("acme", "t:old"); err != nil || sizeOf(root.env) != paddock.MaxEnv {
		t.Errorf("the other build: %d bytes, %v", sizeOf(root.env), err)
	}
	if _, err := h.resolve("acme", "t:new"); !errors.Is(err, paddock.Conflict) {
		t.Errorf("a sandbox from it: %v", err)
	}
}
