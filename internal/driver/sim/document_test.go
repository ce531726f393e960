package sim_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// document is where the commands are listed for people.
const document = "../../../docs/use/sim.md"

// The list in the document is what the computer has. PADDOCK_UPDATE=1 writes
// it.
func TestTheDocumentListsEveryCommand(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	lines := func(script string) []string {
		t.Helper()
		var out bytes.Buffer
		p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"bash", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
			t.Fatalf("%s: %+v %v: %s", script, exit, err, &out)
		}
		return strings.Fields(out.String())
	}
	programs := lines(`IFS=:; for dir in $PATH; do for f in "$dir"/*; do [ -f "$f" ] && echo "${f##*/}"; done; done | sort -u`)
	builtins := lines(`compgen -b | sort -u`)
	want := fmt.Sprintf("\n%d programs:\n\n%s\n\n%d builtins of the shell:\n\n%s\n\n", len(programs), listed(programs), len(builtins), listed(builtins))

	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- commands: begin -->\n", "<!-- commands: end -->"
	before, rest, ok := strings.Cut(string(data), begin)
	have, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for commands", document)
	}
	if have == want {
		return
	}
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		if err := os.WriteFile(document, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not list the commands as they are; write them anew: PADDOCK_UPDATE=1 go test ./internal/driver/sim -run TestTheDocument", document)
}

// listed writes names in lines of a paragraph.
func listed(names []string) string {
	var b strings.Builder
	width := 0
	for i, n := range names {
		switch {
		case i == 0:
		case width+len(n)+3 > 90:
			b.WriteByte('\n')
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString("`" + n + "`")
		width += len(n) + 2
	}
	return b.String()
}
