package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestListTellsWhyASandboxIsDead(t *testing.T) {
	var out, said bytes.Buffer
	a := &App{Stdout: &out, Stderr: &said}
	if err := a.list([]paddock.Status{
		{ID: "lost", State: paddock.Dead, Reason: "it is paused and cannot be found again:\n\x1b[31mmend that"}, {ID: "fine", State: paddock.Ready},
	}, false, false); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines: %q", n, out.String())
	}
	if got := said.String(); !strings.HasPrefix(got, "paddock: lost is dead: it is paused and cannot be found again:") || strings.Count(got, "\n") != 1 || strings.ContainsRune(got, 0x1b) {
		t.Errorf("%q", got)
	}
}
