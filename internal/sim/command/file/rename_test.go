package file

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// What is right is by util-linux's rename(1); another program of that name is
// what many machines have.
func TestRenameReplacesTextInNames(t *testing.T) {
	files := map[string]string{"foo1": "1", "foo2": "2", "fofo": "3", "d/foo": "4", "l": "-> foo1"}
	for _, c := range []struct {
		args   string
		out    string
		status int
		look   string
		want   string
	}{
		{"-v foo bar foo1 foo2", "`foo1' -> `bar1'\n`foo2' -> `bar2'\n", 0, "bar2", "2"},
		{"o 0 fofo", "", 0, "f0fo", "3"},
		{"-a o 0 fofo", "", 0, "f0f0", "3"},
		{"-l o 0 fofo", "", 0, "fof0", "3"},
		{"d x d/foo", "", 4, "d/foo", "4"},
		{"foo x d/foo", "", 0, "d/x", "4"},
		{"-nv foo bar foo1", "`foo1' -> `bar1'\n", 0, "foo1", "1"},
		{"-vo 1 2 foo1", "Skipping existing file: `foo2'\n", 4, "foo1", "1"},
		{"-sv foo1 foo2 l", "`l': `foo1' -> `foo2'\n", 0, "l", "2"},
		{"-s foo1 foo2 foo1", "", 1, "foo1", "1"},
		{"x y foo1", "", 4, "foo1", "1"},
		{"foo bar none", "", 1, "", ""},
		{"foo bar none foo1", "", 2, "bar1", "1"},
		{"foo bar", "", 1, "", ""},
	} {
		r := commandtest.Run(t, Commands(), commandtest.Case{Args: append([]string{"rename"}, strings.Fields(c.args)...), Files: files, Look: []string{c.look}})
		if r.Status != c.status || r.Stdout != c.out || c.look != "" && r.Files[c.look] != c.want {
			t.Errorf("rename %s: status %d, %q, %q, %q; want %d, %q, %q", c.args, r.Status, r.Stdout, r.Stderr, r.Files, c.status, c.out, c.want)
		}
	}
}
