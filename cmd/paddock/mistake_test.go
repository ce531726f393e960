package main

import (
	"strings"
	"testing"
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
		code, said := v.Run(t.Context()), v.Stderr.String()
		if code != 125 || !strings.HasPrefix(said, "paddock: "+row.message) || !strings.Contains(said, "\nhint: "+row.hint) || strings.Contains(said, "report") {
			t.Errorf("%s: exit %d: %s", row.args, code, said)
		}
	}
	for _, group := range []string{"key", "tenant", "policy", "audit", "vm"} {
		v := invoke(t.TempDir(), nil, nil, group)
		if code := v.Run(t.Context()); code != 0 || !strings.Contains(v.Stdout.String(), "Usage:") {
			t.Errorf("%s: exit %d: %s", group, code, v.Stderr.String())
		}
	}
}
