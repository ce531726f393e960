package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

func TestATypoIsAnsweredWithWhatWasMeant(t *testing.T) {
	for _, row := range []struct{ args, meant string }{
		{"lss", "did you mean ls? "},
		{"rnu -- ls", "did you mean run? "},
		{"zzzzzz", ""},
		{"policy chekc x", "did you mean check? "},
		{"help polcy", "did you mean policy? "},
		{"run --teir jail -- ls", "did you mean --tier? "},
		{"run --memmory 1G -- ls", "did you mean --memory? "},
		{"run --zzzzzz -- ls", ""},
		{"run -Q -- ls", ""},
		{"exec --detahc x ls", "did you mean --detach? "},
		{"run --tier jial -- ls", "did you mean jail? "},
		{"ls --state ded", "did you mean dead? "},
		{"run --unprotect .git/hook -- ls", "did you mean .git/hooks? "},
		{"run --allow-missing iolimit -- ls", "did you mean io-limit? "},
	} {
		v := invoke(t.TempDir(), nil, nil, strings.Fields(row.args)...)
		code := v.Run(t.Context())
		_, hint, _ := strings.Cut(v.Stderr.String(), "\nhint: ")
		if code != 125 || !strings.HasPrefix(hint, row.meant) || row.meant == "" && strings.Contains(hint, "did you mean") {
			t.Errorf("%s: %d, %q, want %q", row.args, code, v.Stderr.String(), row.meant)
		}
	}
}

func TestShellsCompleteValues(t *testing.T) {
	for _, row := range []struct {
		args string
		want string
	}{
		{"run --tier ", "microvm"},
		{"run --tier g", "gvisor"},
		{"create --tier ", "jail"},
		{"ls --state ", "paused"},
		{"ls --tier ", "sim"},
		{"create --at-end ", "pause"},
		{"run --mode ", "full"},
		{"create --budget c", "cpu="},
		{"resume --budget n", "network="},
		{"run --unprotect .git/h", ".git/hooks"},
		{"run --allow group:", "group:code-hosts"},
		{"run --allow-missing io", "io-limit"},
		{"policy check --tier ", "gvisor"},
		{"doctor --tier ", "gvisor"},
		{"repl --lang ", "javascript"},
	} {
		args := append([]string{"__complete"}, strings.Split(row.args, " ")...)
		v := invoke(t.TempDir(), nil, nil, args...)
		code := v.Run(t.Context())
		if lines := strings.Split(v.Stdout.String(), "\n"); code != 0 || !slices.Contains(lines, row.want) {
			t.Errorf("%s: %d, %q, want %q", row.args, code, lines, row.want)
		}
	}
}

// Whoever reads only the first line of a list wanted no more, and has no disk that is full.
func TestAReaderThatHasGoneIsNoError(t *testing.T) {
	if !readerGone(&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}) || readerGone(&os.PathError{Op: "write", Path: "/w/pipe", Err: syscall.EPIPE}) {
		t.Error("the error of standard output is not known")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	fd, err := syscall.Dup(int(w.Fd())) // of its own: two files with one descriptor would close another's later
	if err != nil {
		t.Fatal(err)
	}
	out := os.NewFile(uintptr(fd), "/dev/stdout")
	defer out.Close()
	v := invoke(t.TempDir(), nil, []Tier{AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.Jail)}, "doctor", "--json")
	v.App.Stdout = out
	if code := v.Run(t.Context()); code != 141 || v.Stderr.String() != "" {
		t.Errorf("%d, %q", code, v.Stderr.String())
	}
}

func TestDoctorFitsATerminal(t *testing.T) {
	long := strings.Repeat("a remedy that names several ways to mend it, ", 12)
	sick := &fake.Fake{About: paddock.Info{Tier: paddock.Jail, Version: "Linux 0 " + long, Controls: []paddock.Finding{
		{Control: paddock.ControlUserNS, Strength: paddock.Absent, How: long, Cause: long, Remedy: long},
	}}}
	v := invoke("/", nil, []Tier{{Name: paddock.GVisor, About: long}, AsTier(sick, paddock.Jail)}, "doctor")
	v.Run(t.Context())
	for line := range strings.Lines(v.Stdout.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	var b bytes.Buffer
	fold(&b, "  x: ", strings.Repeat("y", 90)+" z")
	if b.String() != "  x: "+strings.Repeat("y", 90)+"\n     z\n" {
		t.Errorf("a long word is folded as %q", b.String())
	}
}

// Flags, the schema of policies and the documents say what auto takes in the same words.
func TestAutoHasOneMeaning(t *testing.T) {
	for _, name := range []string{"README.md", "docs/use/run.md", "docs/reference/policy.md", "docs/reference/cli.md", "docs/reference/policy.schema.json", "driver.go"} {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(strings.ReplaceAll(string(data), "//", "")), " ")
		if !strings.Contains(text, auto.Meaning) || strings.Contains(text, "the strongest tier") || strings.Contains(text, "the strongest that") {
			t.Errorf("%s does not say that auto is %s", name, auto.Meaning)
		}
	}
	if schema := string(policy.Schema()); !strings.Contains(schema, auto.Meaning) {
		t.Error("the schema says something else")
	}
}
