package protect

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The tables in the document are made from the code. PADDOCK_UPDATE=1 writes them.
func TestTheDocumentListsEveryName(t *testing.T) {
	const document = "../../docs/reference/protected.md"
	quoted := func(names string) string {
		return "`" + strings.Join(strings.Fields(names), "`, `") + "`"
	}
	var names, noteworthy strings.Builder
	names.WriteString("| program | names | obeyed at | source |\n| --- | --- | --- | --- |\n")
	for _, r := range obeyed() {
		fmt.Fprintf(&names, "| %s | %s | %s | %s |\n", r.program, quoted(r.names), r.when, r.source)
	}
	for _, r := range repositories() {
		fmt.Fprintf(&names, "| %s | %s, only used | %s | %s |\n", r.program, quoted(r.names), r.when, r.source)
	}
	noteworthy.WriteString("| because | names |\n| --- | --- |\n")
	for _, r := range noteworthyRows() {
		fmt.Fprintf(&noteworthy, "| %s | %s |\n", r.reason, quoted(r.names))
	}
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, want := range map[string]string{"names": names.String(), "noteworthy": noteworthy.String()} {
		begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no place for %s", document, name)
		}
		text = before + begin + "\n" + want + "\n" + end + after
	}
	if text == string(data) {
		return
	}
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not list the names as they are; write them anew: PADDOCK_UPDATE=1 go test ./internal/protect -run TheDocumentLists", document)
}
