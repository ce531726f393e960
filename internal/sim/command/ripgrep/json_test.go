package ripgrep

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// messages reads the lines of --json, without times and what depends on them.
func messages(t *testing.T, text string) []map[string]any {
	t.Helper()
	var list []map[string]any
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		scrub(m)
		list = append(list, m)
	}
	return list
}

func scrub(m map[string]any) {
	for key, v := range m {
		switch key {
		case "elapsed", "elapsed_total", "bytes_printed":
			delete(m, key)
			continue
		}
		if inner, ok := v.(map[string]any); ok {
			scrub(inner)
		}
	}
}

func TestJSONSaysWhatRipgrepDoes(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("there is no rg here to compare with")
	}
	for _, line := range []string{"--json two a.txt", "--json foo .", "--json -C1 two src", "--json -A1 one|qux a.txt", "--json -B2 foo a.txt", "--json -v foo a.txt", "--json foo latin", "--json -U one\\nbar a.txt", "--json zzz .", "--json -o foo a.txt", "--json -N two a.txt"} {
		c := in(line)
		delete(c.Files, "late") // what was searched of it depends on the size of buffers
		got, want := commandtest.Run(t, Commands(), c), commandtest.Real(t, c)
		if a, b := messages(t, got.Stdout), messages(t, want.Stdout); !reflect.DeepEqual(a, b) || got.Status != want.Status {
			t.Errorf("%s\ngot  %d %s\nwant %d %s", line, got.Status, got.Stdout, want.Status, want.Stdout)
		}
	}
}
