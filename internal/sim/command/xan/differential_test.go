package xan_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/xan"
)

// recorded names the answers of the real xan. To record them anew:
//
//	cargo install xan --version 0.57.1 --locked
//	PADDOCK_UPDATE=1 go test ./internal/sim/command/xan
const (
	recorded = "testdata/real.json"
	version  = "0.57.1"
)

// A recording is one command and the answer of the real xan. Standard error
// is not part of it: the real messages quote its Rust libraries.
type recording struct {
	Args   []string          `json:"args"`
	Stdin  string            `json:"stdin,omitempty"`
	Files  map[string]string `json:"files,omitempty"`
	Stdout string            `json:"stdout"`
	Status int               `json:"status"`
	After  map[string]string `json:"after,omitempty"` // contents of the row's look files afterwards
}

// A row is one command line, split at blanks outside of quotes.
type row struct {
	line  string
	stdin string
	look  []string // files to compare afterwards
	why   string   // the reason for a known difference; the answers are not compared
	from  string   // the fixture whose rows a random verb takes: as many as the real one, whichever they are
}

// commandCase returns the command of a row, with the fixtures that the line names.
func (r row) commandCase(t *testing.T) commandtest.Case {
	t.Helper()
	c := commandtest.Case{Args: append([]string{"xan"}, words(t, r.line)...), Stdin: r.stdin, Files: map[string]string{}, Look: r.look}
	for name, text := range fixtures() {
		for _, a := range c.Args {
			if a == name || strings.HasSuffix(name, "/") && strings.HasPrefix(a+"/", name) {
				c.Files[name] = text
			}
		}
	}
	return c
}

// words splits a line at blanks. Quotes keep blanks, and no character is special inside of them.
func words(t *testing.T, line string) []string {
	t.Helper()
	var out []string
	var b strings.Builder
	quote, open := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && r == ' ':
			if open {
				out = append(out, b.String())
			}
			b.Reset()
			open = false
		default:
			b.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		t.Fatalf("a quote does not end: %s", line)
	}
	if open {
		out = append(out, b.String())
	}
	return out
}

// TestXanAgreesWithTheRecording compares standard output, exit status and
// written files with the recorded answers. Standard error is not compared.
func TestXanAgreesWithTheRecording(t *testing.T) {
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		record(t)
	}
	b, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	var list []recording
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	rows := table()
	if len(list) != len(rows) {
		t.Fatalf("%s has %d answers for %d rows: record it anew", recorded, len(list), len(rows))
	}
	for i, r := range rows {
		t.Run(strings.ReplaceAll(r.line, "/", "|"), func(t *testing.T) {
			c, want := r.commandCase(t), list[i]
			if !slices.Equal(c.Args, want.Args) || c.Stdin != want.Stdin || !maps.Equal(c.Files, want.Files) {
				t.Fatalf("%s answers %q with %v, not %q with %v: record it anew", recorded, want.Args, want.Files, c.Args, c.Files)
			}
			got := commandtest.Run(t, xan.Commands(), c)
			same := got.Stdout == want.Stdout && got.Status == want.Status && maps.Equal(got.Files, want.After)
			if r.from != "" {
				file := fixtures()[r.from]
				bare := slices.Contains(c.Args, "-n")
				same = got.Status == want.Status && strings.Count(got.Stdout, "\n") == strings.Count(want.Stdout, "\n") &&
					taken(got.Stdout, file, bare) && taken(want.Stdout, file, bare)
			}
			switch {
			case r.why != "" && same:
				t.Errorf("there is no difference any more: %s", r.why)
			case r.why != "":
				t.Logf("not compared: %s", r.why)
			case !same:
				t.Errorf("got  status %d %q %v\nwant status %d %q %v\nstderr %s", got.Status, got.Stdout, got.Files, want.Status, want.Stdout, want.After, got.Stderr)
			}
		})
	}
}

// record runs every row with the real xan.
func record(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("xan"); err != nil {
		t.Fatalf("there is no xan to record: cargo install xan --version %s --locked", version)
	}
	if v := commandtest.Real(t, commandtest.Case{Args: []string{"xan", "--version"}}); strings.TrimSpace(v.Stdout) != version {
		t.Fatalf("the xan on PATH is %q; the recording is of %s", v.Stdout, version)
	}
	var out bytes.Buffer
	separator := "[\n"
	for _, r := range table() {
		c := r.commandCase(t)
		answer := commandtest.Real(t, c)
		b, err := json.Marshal(recording{c.Args, c.Stdin, c.Files, answer.Stdout, answer.Status, answer.Files})
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(separator)
		out.Write(b)
		separator = ",\n"
	}
	out.WriteString("\n]\n")
	if err := os.WriteFile(recorded, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
