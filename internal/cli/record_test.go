package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

func TestASandboxWhoseEventsCannotBeWrittenIsEnded(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no full device here")
	}
	f := &fake.Fake{}
	tier := Recording(f)
	b, err := tier.create(t.Context(), &plan{spec: paddock.Spec{Tier: paddock.GVisor}})
	if err != nil {
		t.Fatal(err)
	}
	key, err := chain.MakeKey(filepath.Join(t.TempDir(), "audit"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := chain.NewWriter(&filling{full}, key)
	if err != nil {
		t.Fatal(err)
	}
	r := &record{name: "events", file: full, lines: audit.NewLines(c), chain: c, plan: &plan{}, build: make(chan audit.Build, 1), over: make(chan struct{})}
	r.build <- audit.Build{}
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

// filling is a disk that takes what a record begins with, and no more.
type filling struct{ full *os.File }

func (f *filling) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"kind":"begin"`)) || bytes.Contains(p, []byte(`"kind":"start"`)) {
		return len(p), nil
	}
	return f.full.Write(p)
}
