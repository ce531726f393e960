package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock/cmd/internal/tiers"
)

const referenceFile = "../../docs/reference/cli.md"

// The reference is what the commands say of themselves, and nothing else.
// PADDOCK_UPDATE=1 writes it, without the tag embedguest: with it, some commands are those of a program that is
// carried, and their flags are not known here.
func TestTheReferenceIsWhatTheCommandsSay(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprint(&b, `# The command line

Written from the commands themselves by `+"`PADDOCK_UPDATE=1 go test ./cmd/paddock -run TestTheReference`"+`; do not edit.

Messages of Paddock go to standard error, each on a line that begins with
`+"`paddock:`"+`; what to do about it follows on a line that begins with `+"`hint:`"+`. Sizes are
numbers of bytes, or numbers with k, m, g or t (powers of 1024) and kB, MB, GB or TB (powers of 1000).

`)
	root := invoke(t.TempDir(), nil, tiers.Registry(tiers.Programs{})).App.Root()
	root.InitDefaultCompletionCmd()
	reference(&b, root)
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		if guestFrom == "embedded" {
			t.Fatal("the reference is written without the tag embedguest")
		}
		if err := os.WriteFile(filepath.FromSlash(referenceFile), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(filepath.FromSlash(referenceFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Errorf("docs/reference/cli.md does not say what the commands say; write it anew: PADDOCK_UPDATE=1 go test ./cmd/paddock -run TestTheReference")
	}
}

// reference writes one command and those below it.
func reference(w io.Writer, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	c.InitDefaultHelpFlag()
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	usage := c.UseLine()
	if !c.Runnable() || c.HasSubCommands() {
		usage = c.CommandPath() + " COMMAND"
	}
	if alike(c) != "" {
		long = c.Short + "."
	}
	fmt.Fprintf(w, "## %s\n\n```text\n%s\n```\n\n%s\n\n", c.CommandPath(), usage, strings.TrimSpace(long))
	if c.Example != "" {
		fmt.Fprintf(w, "```sh\n%s\n```\n\n", unindented(c.Example))
	}
	if c.Name() == "completion" {
		var shells []string
		for _, sub := range c.Commands() {
			shells = append(shells, sub.Name())
		}
		fmt.Fprintf(w, "Shells: %s.\n\n", strings.Join(shells, ", "))
		return
	}
	if first := alike(c); first != "" {
		fmt.Fprintf(w, "The flags are those of [%s](#%s).\n\n", first, strings.ReplaceAll(first, " ", "-"))
		return
	}
	rows := 0
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if rows++; rows == 1 {
			fmt.Fprint(w, "| flag | meaning |\n| --- | --- |\n")
		}
		value, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		switch {
		case f.NoOptDefVal != "" && value != "" && f.Value.Type() != "bool":
			name += "[=" + value + "]"
		case value != "":
			name += " " + value
		}
		if d := f.DefValue; d != "" && d != "0" && d != "false" && d != "[]" && d != "0s" {
			text += " (default " + d + ")"
		}
		fmt.Fprintf(w, "| `%s` | %s |\n", name, strings.ReplaceAll(text, "|", `\|`))
	})
	if rows > 0 {
		fmt.Fprintln(w)
	}
	for _, sub := range c.Commands() {
		reference(w, sub)
	}
}

// alike returns the first command beside c that says the same of itself, such as of another agent. It is empty if c is that
// command.
func alike(c *cobra.Command) string {
	if c.Parent() == nil || c.Long == "" {
		return ""
	}
	for _, other := range c.Parent().Commands() {
		if other == c {
			return ""
		}
		if !other.Hidden && other.Long == c.Long {
			return other.CommandPath()
		}
	}
	return ""
}

func unindented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

// Whoever asks from a program gets one form of answer, of all commands that have any.
func TestEveryCommandThatAnswersCanDoSoInJSON(t *testing.T) {
	without := map[string]string{
		"paddock agent approve":   "it has no answer but its status, and a question",
		"paddock agent reset":     "it has no answer but its status",
		"paddock agent take":      "it has no answer but its status, and questions",
		"paddock answer":          "it has no answer but its status",
		"paddock mcp install":     "it has no answer but its status, and the change that it shows",
		"paddock mcp remove":      "it has no answer but its status, and the change that it shows",
		"paddock audit attest":    "its answer is an envelope, which is JSON",
		"paddock audit key":       "its answer is a file of a format of its own, PEM",
		"paddock audit manifest":  "its answer is a manifest, whose digest is of these bytes",
		"paddock cache rm":        "it has no answer but its status",
		"paddock completion":      "its answer is a script of a shell",
		"paddock cp":              "its answer is files",
		"paddock discard":         "it has no answer but its status",
		"paddock exec-server":     "a program talks to it, in JSON",
		"paddock hook":            "agents call it, in the words of each",
		"paddock hooks install":   "it has no answer but its status, and questions",
		"paddock hooks remove":    "it has no answer but its status, and questions",
		"paddock image save":      "its answer is an archive",
		"paddock key revoke":      "it has no answer but its status",
		"paddock login":           "it has no answer but its status",
		"paddock logout":          "it has no answer but its status",
		"paddock policy groups":   "its answer is a policy file",
		"paddock policy learn":    "its answer is a policy file",
		"paddock policy seatbelt": "its answer is a profile, in a language of its own",
		"paddock repl":            "a person talks to it",
		"paddock serve":           "it serves; the one line that it writes is its address",
		"paddock serve ready":     "it has no answer but its status",
		"paddock shell":           "a person talks to it",
		"paddock sim setup":       "it has no answer but its status",
		"paddock tenant create":   "it has no answer but its status",
		"paddock tenant rm":       "it has no answer but its status",
		"paddock tenant set":      "it has no answer but its status",
		"paddock volume create":   "it has no answer but its status",
		"paddock volume inspect":  "it always answers in JSON",
		"paddock volume resize":   "it has no answer but its status",
		"paddock volume rm":       "it has no answer but its status",
		"paddock image root":      "it always answers in JSON",
		"paddock vm setup":        "it has no answer but its status",
		"paddock vm status":       "it has no answer but its status, and words for a person",
		"paddock policy check":    "it has no answer but its status, and words for a person",
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := c.CommandPath()
		if c.Runnable() && !c.HasSubCommands() || path == "paddock serve" {
			why, excused := without[path]
			switch has := c.Flags().Lookup("json") != nil; {
			case has && excused:
				t.Errorf("%s has --json, and is excused from it: %s", path, why)
			case !has && !excused:
				t.Errorf("%s has no --json", path)
			}
			delete(without, path)
		}
		for _, sub := range c.Commands() {
			if c.Name() != "completion" {
				walk(sub)
			}
		}
	}
	walk(invoke(t.TempDir(), nil, tiers.Registry(tiers.Programs{})).App.Root())
	delete(without, "paddock completion") // each shell is a command
	for path := range without {
		t.Errorf("there is no %s", path)
	}
}

func TestEveryCommandTellsItsExitStatus(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() && c.Runnable() && !strings.Contains(c.Long, "Exit status:") {
			t.Errorf("%s does not tell its exit status", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(invoke(t.TempDir(), nil, tiers.Registry(tiers.Programs{})).App.Root())
}
