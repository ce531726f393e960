package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestMistakesAreToldWithWhatToDo(t *testing.T) {
	for _, row := range []struct{ args, message, hint string }{
		{"key list", `unknown command "list" of paddock key`, "`paddock key --help` lists them"},
		{"tenant list", `unknown command "list" of paddock tenant`, "`paddock tenant --help` lists them"},
		{"policy frobnicate x", `unknown command "frobnicate" of paddock policy`, "`paddock policy --help` lists them"},
		{"login", "paddock login cannot take 0 arguments", "paddock login "},
		{"exec", "there is no sandbox, or no command", "paddock exec"},
		{"key ls", "paddock key ls cannot take 0 arguments", "paddock key ls TENANT"},
		{"key ls --server unix:/x acme", "paddock key ls with --server cannot take 1 argument", "the tenant is that of your key"},
		{"doctor x", "paddock doctor cannot take 1 argument", "paddock doctor"},
	} {
		v := invoke(t.TempDir(), nil, nil, strings.Fields(row.args)...)
		code, said := v.run(t.Context()), v.stderr.String()
		if code != 125 || !strings.HasPrefix(said, "paddock: "+row.message) || !strings.Contains(said, "\nhint: "+row.hint) || strings.Contains(said, "report") {
			t.Errorf("%s: exit %d: %s", row.args, code, said)
		}
	}
	for _, group := range []string{"key", "tenant", "policy", "audit", "vm"} {
		v := invoke(t.TempDir(), nil, nil, group)
		if code := v.run(t.Context()); code != 0 || !strings.Contains(v.stdout.String(), "Usage:") {
			t.Errorf("%s: exit %d: %s", group, code, v.stderr.String())
		}
	}
}

// A teller answers Open with an error.
type teller struct {
	fake
	err error
}

func (t *teller) Open(context.Context, paddock.ID) (paddock.Sandbox, error) { return nil, t.err }

func TestASandboxThatIsNotThereIsToldOnce(t *testing.T) {
	for _, row := range []struct{ err, want string }{
		{"open sandbox x: status: open sandbox x", "there is no sandbox x"},
		{`open sandbox x: status: open sandbox "x"`, "there is no sandbox x"},
		{"open sandbox x: status: sandbox x was removed as its deadline was over", "sandbox x was removed as its deadline was over"},
	} {
		r := &remote{Driver: &teller{err: fmt.Errorf("%s: %w", row.err, paddock.NotFound)}}
		_, err := r.Open(t.Context(), "x")
		if message, hint := words(err); message != row.want || hint != "paddock ls lists those that are there" || !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s: %q, hint %q", row.err, message, hint)
		}
	}
	if message, _ := words(fmt.Errorf(`stat "/f": stat "/f": %w`, paddock.NotFound)); message != `stat "/f": not found` {
		t.Errorf("%q", message)
	}
	if _, hint := words(fmt.Errorf("list sandboxes: the key is missing: %w", paddock.Denied)); !strings.Contains(hint, "PADDOCK_KEY") {
		t.Errorf("%q", hint)
	}
	if _, hint := words(fmt.Errorf("sandbox x is paused: %w", paddock.Conflict)); hint != "paddock resume ID lets it go on" {
		t.Errorf("%q", hint)
	}
}
