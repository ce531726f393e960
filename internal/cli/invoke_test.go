package cli

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
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

// An Invocation is the program run inside a test.
type Invocation struct {
	App            *App
	Stdout, Stderr strings.Builder
	Signals        chan os.Signal
}

func invoke(dir string, env map[string]string, tiers []Tier, args ...string) *Invocation {
	v := &Invocation{Signals: make(chan os.Signal, 8)}
	v.App = &App{
		Args: args, Stdin: strings.NewReader(""), Stdout: &v.Stdout, Stderr: &v.Stderr, Tiers: tiers,
		Lookup: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Dir:    func() (string, error) { return dir, nil },
		Data:   func() (string, error) { return filepath.Join(dir, ".data"), nil },
		Tty:    func() (*os.File, error) { return nil, os.ErrNotExist },
		Notify: func(...os.Signal) (<-chan os.Signal, func()) { return v.Signals, func() {} },
		// Tests of other packages leave such things for a moment.
		Unowned: func(...string) ([]box.Unowned, error) { return nil, nil },
	}
	return v
}

func (v *Invocation) Run(ctx context.Context) int { return v.App.Execute(ctx) }

// AsTier is a tier of this driver.
func AsTier(d paddock.Driver, name paddock.Tier) Tier {
	return Tier{Name: name, About: "a fake", Open: func(Gear) (paddock.Driver, error) { return d, nil }}
}

// EventsIn gives the lines of a record that are events, without what the chain
// adds to them, and the lines that are the chain's own.
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

// Recording is a tier whose driver can record; it tells of one event for each
// sandbox that it makes.
func Recording(f *fake.Fake) Tier {
	f.About = fake.GoodInfo()
	f.About.Tier, f.About.Capabilities = paddock.GVisor, []paddock.Capability{paddock.CanAudit, paddock.CanMount}
	t := AsTier(f, paddock.GVisor)
	t.Audited = true
	t.Open = func(g Gear) (paddock.Driver, error) {
		if f.Refuse == nil && g.Audit != nil {
			g.Audit.Record(audit.Event{Time: time.Unix(0, 0), Sandbox: "fake-1", Kind: audit.Exec, Path: "/bin/true"})
		}
		return f, nil
	}
	return t
}

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
