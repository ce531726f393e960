package cli

import (
	"context"
	"strings"
	"testing"
)

// A box of Codex's tools never has a home directory, or the tier that has no shell of the machine, and refuses before it
// is made.
func TestExecServerRefuses(t *testing.T) {
	d := newHookHome(t)
	for _, c := range []struct{ dir, flags, want string }{
		{d.home, "", "start Codex in a project directory"},
		{"/", "", "start Codex in a project directory"},
		{d.project, "--tier sim", "leave --tier out"},
		{d.project, "--undo never", "undo"},
		{d.project, "more", "takes no argument"},
	} {
		v := invoke(c.dir, map[string]string{"HOME": d.home}, nil, append([]string{"exec-server"}, strings.Fields(c.flags)...)...)
		status := v.Run(context.Background())
		if said := v.Stderr.String(); status != 125 || v.Stdout.String() != "" || !strings.Contains(said, c.want) {
			t.Errorf("exec-server %s in %s: status %d, %s", c.flags, c.dir, status, said)
		}
	}
}
