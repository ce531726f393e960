package sim_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// document is where the limits are listed for people.
const document = "../docs/use/sim.md"

// written says a limit's default as documents do.
func written(f budget.Field) string {
	n := f.In(budget.Limits{}.Filled())
	switch f.Unit {
	case budget.Time:
		text := time.Duration(n).String()
		if s, ok := strings.CutSuffix(text, "m0s"); ok {
			text = s + "m"
		}
		return strings.TrimSuffix(text, "0m")
	case budget.Bytes:
		for unit, name := range []string{"bytes", "KiB", "MiB", "GiB", "TiB"} {
			if scaled := n >> (10 * unit); scaled < 1024 {
				return fmt.Sprintf("%d %s", scaled, name)
			}
		}
	}
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// comments gives what the fields of Limits say of themselves.
func comments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "limit.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range s.Fields.List {
			all[f.Names[0].Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
		return false
	})
	return all
}

func TestEveryLimitTellsWhatItBoundsAndItsDefault(t *testing.T) {
	all := comments(t)
	for _, f := range budget.Fields() {
		text := all[f.Go]
		if !strings.HasPrefix(text, f.Go+" bounds ") {
			t.Errorf("%s: its comment does not begin with %q: %q", f.Go, f.Go+" bounds ", text)
		}
		if want := " Default " + written(f) + "."; !strings.HasSuffix(text, want) {
			t.Errorf("%s: its comment does not end with %q: %q", f.Go, want, text)
		}
	}
}

// The table in the document is made from the comments. PADDOCK_UPDATE=1 writes
// it.
func TestTheDocumentListsEveryLimit(t *testing.T) {
	all := comments(t)
	var b strings.Builder
	b.WriteString("| limit | bounds | default |\n| --- | --- | ---: |\n")
	for _, f := range budget.Fields() {
		text := strings.TrimPrefix(all[f.Go], f.Go+" bounds ")
		text = strings.TrimSuffix(text, " Default "+written(f)+".")
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, strings.TrimSuffix(text, "."), written(f))
	}
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- limits: begin -->\n", "<!-- limits: end -->"
	before, rest, ok := strings.Cut(string(data), begin)
	have, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for limits", document)
	}
	want := "\n" + b.String() + "\n"
	if have == want {
		return
	}
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		if err := os.WriteFile(document, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not list the limits as they are; write them anew: PADDOCK_UPDATE=1 go test ./sim -run TestTheDocument", document)
}
