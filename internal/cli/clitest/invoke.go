// Package clitest runs the command line inside tests of the packages that add commands
// to it.
package clitest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

// An Invocation is one run of the command line inside a test.
type Invocation struct {
	App            *cli.App
	Stdout, Stderr strings.Builder
	Signals        chan os.Signal
}

// Invoke returns an invocation with these arguments, whose home and working directory is dir. Run
// starts it.
func Invoke(dir string, env map[string]string, tiers []cli.Tier, args ...string) *Invocation {
	v := &Invocation{Signals: make(chan os.Signal, 8)}
	v.App = &cli.App{
		Args: args, Stdin: strings.NewReader(""), Stdout: &v.Stdout, Stderr: &v.Stderr, Tiers: tiers,
		Lookup: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Dir:    func() (string, error) { return dir, nil },
		Data:   func() (string, error) { return filepath.Join(dir, ".data"), nil },
		Tty:    func() (*os.File, error) { return nil, os.ErrNotExist },
		Notify: func(...os.Signal) (<-chan os.Signal, func()) { return v.Signals, func() {} },
	}
	return v
}

// Run executes the command line and returns its exit status.
func (v *Invocation) Run(ctx context.Context) int { return v.App.Execute(ctx) }

// AsTier returns a tier that opens the given driver.
func AsTier(d paddock.Driver, name paddock.Tier) cli.Tier {
	return cli.Tier{Name: name, About: "a fake", Open: func(cli.Gear) (paddock.Driver, error) { return d, nil }}
}

// EventsIn splits the lines of a record into events, without the fields that the chain adds, and
// the chain's own lines.
func EventsIn(t *testing.T, data []byte) (events, own []string) {
	t.Helper()
	for line := range strings.Lines(string(data)) {
		text, _, ok := strings.Cut(line, `,"seq":`)
		switch {
		case !ok:
			t.Errorf("a line without a number: %q", line)
		case strings.Contains(text, `"kind":"begin"`), strings.Contains(text, `"kind":"head"`):
			own = append(own, line)
		default:
			events = append(events, text+"}\n")
		}
	}
	return events, own
}

// Recording returns a tier whose driver can record events. It records one event for each sandbox
// that it makes.
func Recording(f *fake.Fake) cli.Tier {
	f.About = fake.GoodInfo()
	f.About.Tier, f.About.Capabilities = paddock.GVisor, []paddock.Capability{paddock.CanAudit, paddock.CanMount}
	t := AsTier(f, paddock.GVisor)
	t.Audited = true
	t.Open = func(g cli.Gear) (paddock.Driver, error) {
		if f.Refuse == nil && g.Audit != nil {
			g.Audit.Record(audit.Event{Time: time.Unix(0, 0), Sandbox: "fake-1", Kind: audit.Exec, Path: "/bin/true"})
		}
		return f, nil
	}
	return t
}

// Plant writes a file with this mode, and makes the directories above it.
func Plant(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}
