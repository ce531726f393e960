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
		{"login", "paddock login takes 1 argument, and got 0", "paddock login "},
		{"exec", "the ID of a sandbox, or the command to run in it, is missing", "paddock exec"},
		{"key ls", "paddock key ls takes 1 argument, and got 0", "paddock key ls TENANT"},
		{"key ls --server unix:/x acme", "paddock key ls with --server takes no argument, and got 1", "the tenant is that of your key"},
		{"doctor x", "paddock doctor takes no argument, and got 1", "paddock doctor"},
		{"forward x", "paddock forward takes 2 arguments, and got 1", "paddock forward"},
		{"rm", "the ID of a sandbox to remove is missing", "paddock rm ID"},
		{"help frobnicate", `unknown command "frobnicate" of paddock`, "`paddock --help` lists them"},
		{"help policy frobnicate", `unknown command "frobnicate" of paddock policy`, "`paddock policy --help` lists them"},
		{"serve --key 0123456789abcdef --listen 127.0.0.1:99999", "--listen 127.0.0.1:99999: ", "HOST is a name or an address of this machine"},
	} {
		v := invoke(t.TempDir(), nil, nil, strings.Fields(row.args)...)
		code, said := v.Run(t.Context()), v.Stderr.String()
		if code != 125 || !strings.HasPrefix(said, "paddock: "+row.message) || !strings.Contains(said, "\nhint: "+row.hint) || strings.Contains(said, "report") {
			t.Errorf("%s: exit %d: %s", row.args, code, said)
		}
	}
	for _, group := range []string{"key", "tenant", "policy", "audit", "image", "vm"} {
		v := invoke(t.TempDir(), nil, nil, group)
		if code := v.Run(t.Context()); code != 0 || !strings.Contains(v.Stdout.String(), "Usage:") {
			t.Errorf("%s: exit %d: %s", group, code, v.Stderr.String())
		}
	}
}
