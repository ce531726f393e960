package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// recording is a tier whose driver can record; it tells of one event for each
// sandbox that it makes.
func recording(f *fake) tier {
	f.info = goodInfo()
	f.info.Tier, f.info.Capabilities = paddock.GVisor, []paddock.Capability{paddock.CanAudit, paddock.CanMount}
	t := f.tier(paddock.GVisor)
	t.audited = true
	t.open = func(g gear) (paddock.Driver, error) {
		if f.refuse == nil && g.audit != nil {
			g.audit.Record(audit.Event{Time: time.Unix(0, 0), Sandbox: "fake-1", Kind: audit.Exec, Path: "/bin/true"})
		}
		return f, nil
	}
	return t
}

func TestEventsGoToANewFile(t *testing.T) {
	dir := t.TempDir()
	f := &fake{}
	v := invoke(dir, nil, []tier{recording(f)}, "run", "--audit", "events", "--audit-kinds", "open,exit", "--", "true")
	if code := v.run(t.Context()); code != 0 || v.stderr.String() != "" {
		t.Fatalf("exit status %d, stderr %q", code, v.stderr.String())
	}
	if got := f.made().Policy.Audit; !slices.Equal(got, []paddock.AuditKind{paddock.AuditOpen, paddock.AuditExit}) {
		t.Errorf("asked for %v", got)
	}
	name := filepath.Join(dir, "events")
	data, err := os.ReadFile(name)
	want := `{"time":"1970-01-01T00:00:00Z","sandbox":"fake-1","kind":"exec","path":"/bin/true"}` + "\n"
	if err != nil || string(data) != want {
		t.Errorf("%q, %v", data, err)
	}
	if st, err := os.Stat(name); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	// Again: what is there is not changed.
	v = invoke(dir, nil, []tier{recording(f)}, "run", "--audit", "events", "--", "true")
	if code := v.run(t.Context()); code == 0 || !strings.Contains(v.stderr.String(), "it is there already") || f.created != 1 {
		t.Errorf("exit status %d, %d made, stderr %q", code, f.created, v.stderr.String())
	}
	if again, err := os.ReadFile(name); err != nil || string(again) != want {
		t.Errorf("%q, %v", again, err)
	}
}

func TestWithoutAKindProgramsAreRecorded(t *testing.T) {
	dir := t.TempDir()
	f := &fake{}
	if code := invoke(dir, nil, []tier{recording(f)}, "run", "--audit", "events", "--", "true").run(t.Context()); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	if got := f.made().Policy.Audit; !slices.Equal(got, []paddock.AuditKind{paddock.AuditExec}) {
		t.Errorf("asked for %v", got)
	}
}

func TestKindsOfThePolicyAndOfFlagsAreBothRecorded(t *testing.T) {
	dir := t.TempDir()
	policy := filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(policy, []byte("version: 1\naudit: [connect, exec]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	v := invoke(dir, nil, []tier{recording(f)}, "run", "--policy", policy, "--audit", "events", "--audit-kinds", "exec", "--audit-kinds", "clone", "--", "true")
	if code := v.run(t.Context()); code != 0 {
		t.Fatalf("exit status %d, stderr %q", code, v.stderr.String())
	}
	if got := f.made().Policy.Audit; !slices.Equal(got, []paddock.AuditKind{paddock.AuditConnect, paddock.AuditExec, paddock.AuditClone}) {
		t.Errorf("asked for %v", got)
	}
	// A policy that wants events, and nowhere to write them.
	v = invoke(dir, nil, []tier{recording(&fake{})}, "run", "--policy", policy, "--", "true")
	if code := v.run(t.Context()); code == 0 || !strings.Contains(v.stderr.String(), "p.yaml:2:1: audit: there is no file") || !strings.Contains(v.stderr.String(), "hint: add --audit FILE") {
		t.Errorf("exit status %d, stderr %q", code, v.stderr.String())
	}
	// A tier that cannot, with the line that asks for it.
	plain := &fake{info: goodInfo()}
	v = invoke(dir, nil, []tier{plain.tier(paddock.Jail)}, "run", "--policy", policy, "--audit", "refused", "--", "true")
	if code := v.run(t.Context()); code == 0 || plain.created != 0 || !strings.Contains(v.stderr.String(), "p.yaml:2:1: audit: the tier jail cannot do the recording of events") {
		t.Errorf("exit status %d, %d made, stderr %q", code, plain.created, v.stderr.String())
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
		f := &fake{}
		tiers := []tier{recording(f)}
		v := invoke(dir, nil, tiers, append(append([]string{"run"}, row.args...), "--", "true")...)
		if code := v.run(t.Context()); code == 0 || !strings.Contains(v.stderr.String(), row.want) || f.created > 0 {
			t.Errorf("%q: exit status %d, %d made, stderr %q; want %q", row.args, code, f.created, v.stderr.String(), row.want)
		}
	}
	// Where it may only read, nothing can be rewritten.
	v := invoke(dir, nil, []tier{recording(&fake{})}, "run", "--audit", "real/e", "--read", real, "--", "true")
	if code := v.run(t.Context()); code != 0 {
		t.Errorf("exit status %d, stderr %q", code, v.stderr.String())
	}
}

func TestAutoNeverEndsOnATierThatCannotRecord(t *testing.T) {
	dir := t.TempDir()
	strong := &fake{refuse: fmt.Errorf("no user namespaces here: %w", paddock.Unsupported)}
	weak := &fake{info: goodInfo()}
	tiers := []tier{recording(strong), weak.tier(paddock.Jail)}
	v := invoke(dir, nil, tiers, "run", "--audit", "events", "--", "true")
	if code := v.run(t.Context()); code == 0 || weak.created > 0 || !strings.Contains(v.stderr.String(), "no user namespaces here") {
		t.Errorf("exit status %d, %d made, stderr %q", code, weak.created, v.stderr.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "events")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty record is left: %v", err)
	}
}

func TestASandboxWhoseEventsCannotBeWrittenIsEnded(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no full device here")
	}
	f := &fake{}
	tier := recording(f)
	b, err := tier.create(t.Context(), &plan{spec: paddock.Spec{Tier: paddock.GVisor}})
	if err != nil {
		t.Fatal(err)
	}
	r := &record{name: "events", file: full, lines: audit.NewLines(full), over: make(chan struct{})}
	r.watch(t.Context(), b)
	p, err := b.Start(t.Context(), paddock.Cmd{Args: []string{"sleep", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	r.lines.Record(audit.Event{Kind: audit.Exec})
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 137 {
		t.Errorf("%+v, %v", exit, err)
	}
	err = r.close(true)
	if message, hint := words(err); !errors.Is(err, paddock.Exhausted) || !strings.Contains(message, "no space left") || !strings.Contains(hint, "could not be recorded") {
		t.Errorf("%v: %q, %q", err, message, hint)
	}
}
