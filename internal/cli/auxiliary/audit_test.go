package auxiliary

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

func TestEventsGoToANewFile(t *testing.T) {
	dir := t.TempDir()
	f := &fake.Fake{}
	v := invoke(dir, nil, []cli.Tier{clitest.Recording(f)}, "run", "--audit", "events", "--audit-kinds", "open,exit", "--", "true")
	if code := v.Run(t.Context()); code != 0 || v.Stderr.String() != "" {
		t.Fatalf("exit status %d, stderr %q", code, v.Stderr.String())
	}
	if got := f.Made().Policy.Audit; !slices.Equal(got, []paddock.AuditKind{paddock.AuditOpen, paddock.AuditExit}) {
		t.Errorf("asked for %v", got)
	}
	name := filepath.Join(dir, "events")
	data, err := os.ReadFile(name)
	want := `{"time":"1970-01-01T00:00:00Z","sandbox":"fake-1","kind":"exec","path":"/bin/true"}` + "\n"
	if events, own := clitest.EventsIn(t, data); err != nil || len(events) != 2 || events[0] != want || !strings.Contains(events[1], `"sandbox":"fake-1","kind":"start","start":{"tier":"gvisor"`) || len(own) != 3 {
		t.Errorf("%q, %v", data, err)
	}
	v = invoke(dir, nil, nil, "audit", "verify", name)
	if code := v.Run(t.Context()); code != 0 || !strings.HasPrefix(v.Stdout.String(), name+": whole: 2 events in 5 lines\n") {
		t.Errorf("exit status %d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	if st, err := os.Stat(name); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	// Again: what is there is not changed.
	v = invoke(dir, nil, []cli.Tier{clitest.Recording(f)}, "run", "--audit", "events", "--", "true")
	if code := v.Run(t.Context()); code == 0 || !strings.Contains(v.Stderr.String(), "it is there already") || f.Created != 1 {
		t.Errorf("exit status %d, %d made, stderr %q", code, f.Created, v.Stderr.String())
	}
	if again, err := os.ReadFile(name); err != nil || !bytes.Equal(again, data) {
		t.Errorf("%q, %v", again, err)
	}
}

func TestWithoutAKindProgramsAreRecorded(t *testing.T) {
	dir := t.TempDir()
	f := &fake.Fake{}
	if code := invoke(dir, nil, []cli.Tier{clitest.Recording(f)}, "run", "--audit", "events", "--", "true").Run(t.Context()); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	if got := f.Made().Policy.Audit; !slices.Equal(got, []paddock.AuditKind{paddock.AuditExec}) {
		t.Errorf("asked for %v", got)
	}
}

func TestKindsOfThePolicyAndOfFlagsAreBothRecorded(t *testing.T) {
	dir := t.TempDir()
	policy := filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(policy, []byte("version: 1\naudit: [connect, exec]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fake.Fake{}
	v := invoke(dir, nil, []cli.Tier{clitest.Recording(f)}, "run", "--policy", policy, "--audit", "events", "--audit-kinds", "exec", "--audit-kinds", "clone", "--", "true")
	if code := v.Run(t.Context()); code != 0 {
		t.Fatalf("exit status %d, stderr %q", code, v.Stderr.String())
	}
	if got := f.Made().Policy.Audit; !slices.Equal(got, []paddock.AuditKind{paddock.AuditConnect, paddock.AuditExec, paddock.AuditClone}) {
		t.Errorf("asked for %v", got)
	}
	// A policy that wants events, and nowhere to write them.
	v = invoke(dir, nil, []cli.Tier{clitest.Recording(&fake.Fake{})}, "run", "--policy", policy, "--", "true")
	if code := v.Run(t.Context()); code == 0 || !strings.Contains(v.Stderr.String(), "p.yaml:2:1: audit: there is no file") || !strings.Contains(v.Stderr.String(), "hint: add --audit FILE") {
		t.Errorf("exit status %d, stderr %q", code, v.Stderr.String())
	}
	// A tier that cannot, with the line that asks for it.
	plain := &fake.Fake{About: fake.GoodInfo()}
	v = invoke(dir, nil, []cli.Tier{clitest.AsTier(plain, paddock.Jail)}, "run", "--policy", policy, "--audit", "refused", "--", "true")
	if code := v.Run(t.Context()); code == 0 || plain.Created != 0 || !strings.Contains(v.Stderr.String(), "p.yaml:2:1: audit: the tier jail cannot do the recording of events") {
		t.Errorf("exit status %d, %d made, stderr %q", code, plain.Created, v.Stderr.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "refused")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty record is left: %v", err)
	}
}

func TestWhatCannotBeRecordedIsRefused(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := os.MkdirAll(filepath.Join(real, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--audit-kinds", "exec"}, "--audit-kinds without a file"},
		{[]string{"--audit", ""}, "--audit is empty"},
		{[]string{"--audit", "-"}, "events are not mixed with the command's output"},
		{[]string{"--audit", "e", "--audit-kinds", "fork"}, "there is no such kind of event"},
		{[]string{"--audit", "missing/e"}, "hint: the directory must exist"},
		{[]string{"--audit", "real/e", "--workspace", real}, "it is in " + real + ", where commands could rewrite it"},
		{[]string{"--audit", "link/deep/e", "--write", real}, "it is in " + real},
		{[]string{"--audit", "real/deep/e", "--write", link + ":/elsewhere"}, "it is in " + link},
		{[]string{"--audit", "e", "--limit", "iterations=5"}, "it has none of the limits of --limit"},
		{[]string{"--audit", "real"}, "it is there already"},
	} {
		f := &fake.Fake{}
		tiers := []cli.Tier{clitest.Recording(f)}
		v := invoke(dir, nil, tiers, append(append([]string{"run"}, row.args...), "--", "true")...)
		if code := v.Run(t.Context()); code == 0 || !strings.Contains(v.Stderr.String(), row.want) || f.Created > 0 {
			t.Errorf("%q: exit status %d, %d made, stderr %q; want %q", row.args, code, f.Created, v.Stderr.String(), row.want)
		}
	}
	// Where it may only read, nothing can be rewritten.
	v := invoke(dir, nil, []cli.Tier{clitest.Recording(&fake.Fake{})}, "run", "--audit", "real/e", "--read", real, "--", "true")
	if code := v.Run(t.Context()); code != 0 {
		t.Errorf("exit status %d, stderr %q", code, v.Stderr.String())
	}
}

func TestAutoNeverEndsOnATierThatCannotRecord(t *testing.T) {
	dir := t.TempDir()
	strong := &fake.Fake{Refuse: fmt.Errorf("no user namespaces here: %w", paddock.Unsupported)}
	weak := &fake.Fake{About: fake.GoodInfo()}
	tiers := []cli.Tier{clitest.Recording(strong), clitest.AsTier(weak, paddock.Jail)}
	v := invoke(dir, nil, tiers, "run", "--audit", "events", "--", "true")
	if code := v.Run(t.Context()); code == 0 || weak.Created > 0 || !strings.Contains(v.Stderr.String(), "no user namespaces here") {
		t.Errorf("exit status %d, %d made, stderr %q", code, weak.Created, v.Stderr.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "events")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty record is left: %v", err)
	}
}

func TestWithoutAKeyNothingIsRecorded(t *testing.T) {
	dir := t.TempDir()
	f := &fake.Fake{}
	v := invoke(dir, nil, []cli.Tier{clitest.Recording(f)}, "audit", "key")
	if code := v.Run(t.Context()); code != 0 || !strings.HasPrefix(v.Stdout.String(), "sha256:") {
		t.Fatalf("exit status %d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	if err := os.Chmod(filepath.Join(dir, ".data", "audit", chain.KeyName), 0o644); err != nil {
		t.Fatal(err)
	}
	v = invoke(dir, nil, []cli.Tier{clitest.Recording(f)}, "run", "--audit", "events", "--", "true")
	if code := v.Run(t.Context()); code != 125 || f.Created > 0 || !strings.Contains(v.Stderr.String(), "others may read it (mode 0644)") || !strings.Contains(v.Stderr.String(), "hint: it is ") {
		t.Errorf("exit status %d, %d made, %q", code, f.Created, v.Stderr.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "events")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a record is left: %v", err)
	}
}

func TestTailFollowsUntilTheRecordIsClosed(t *testing.T) {
	dir := t.TempDir()
	key, err := chain.MakeKey(filepath.Join(dir, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "events")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := chain.NewWriter(f, key)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	v := invoke(dir, nil, nil, "audit", "tail", "-f", name)
	v.App.Stdout = w
	ended := make(chan int, 1)
	go func() {
		ended <- v.Run(t.Context())
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("%q, want %q", lines.Text(), want)
		}
	}
	next("  begin    log ")
	next("  head     2:")
	line, err := audit.Line(audit.Event{Time: time.Unix(0, 0), Kind: audit.Exec, Path: "/bin/x\x1b[2J", Args: []string{"a b", ""}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(line); err != nil {
		t.Fatal(err)
	}
	next(`1970-01-01T00:00:00.000Z  exec     "/bin/x\x1b[2J" "a b" "" in /`)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	next(", closed")
	if code := <-ended; code != 0 || lines.Scan() {
		t.Errorf("exit status %d, %q, %q", code, lines.Text(), v.Stderr.String())
	}
}

func TestTheLastLinesAreFoundInLargeFiles(t *testing.T) {
	long := strings.Repeat("x", block-2)
	for _, row := range []struct {
		text string
		n    int
		want int // from the end
	}{
		{"", 3, 0},
		{"a\nb\nc\n", 2, 4},
		{"a\nb\nc\n", 9, 6},
		{"a\nb\nc\n", 0, 0},
		{"a\nb\nhalf", 1, 6},
		{long + "\n" + long + "\n" + long + "\n", 2, 2 * (block - 1)},
	} {
		at, err := lastLines(strings.NewReader(row.text), int64(len(row.text)), row.n)
		if err != nil || int(at) != len(row.text)-row.want {
			t.Errorf("%.20q, %d: %d, %v", row.text, row.n, at, err)
		}
	}
}

// What stands in a record may have been put there by anybody.
func FuzzALineOfARecordIsOneLineOfTheTerminal(f *testing.F) {
	for _, kind := range append(paddock.AuditKinds(), audit.Started, audit.Lost, chain.Begin, chain.Head, "\x1b[2J") {
		line, err := audit.Line(audit.Event{
			Kind: kind, Path: "/x\n\x1b", Args: []string{"\u202e"}, Error: "\r", Address: "\u009b", Flags: "\x7f",
			Process: audit.Process{PID: 1, Name: "\n"}, Network: &audit.Flow{Host: "\x1b", Reason: "\u2028"},
			Start: &audit.Start{Tier: "\x1b", Root: "\n", Policy: "\u2028", Paddock: audit.Build{Version: "\u202e"}},
		})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte("\x9b2J\r"))
	f.Add([]byte("{\"a\":\r\"\x9b\u202e\x7f\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.Contains(line, []byte("\n")) {
			return // it is two
		}
		v := invoke("/", nil, nil)
		if err := errors.Join(showLine(v.App, line), showEvent(v.App, line)); err != nil {
			t.Fatal(err)
		}
		for _, r := range strings.ReplaceAll(v.Stdout.String()+v.Stderr.String(), "\n", "") {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is shown with %U", line, r)
			}
		}
		if n := strings.Count(v.Stdout.String()+v.Stderr.String(), "\n"); n != 2 {
			t.Errorf("%q is shown as %d lines", line, n)
		}
	})
}
