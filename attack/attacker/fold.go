//go:build linux

package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// foldedName is A21: other spellings of protected names, which some file systems treat as
// equal. On others they are different names.
func foldedName() []probe {
	var ps []probe
	for _, s := range []struct{ name, spelled, real string }{
		{"upper case", ".GIT/HOOKS/pre-commit", ".git/hooks/pre-commit"},
		{"mixed case", ".Git/hooks/pre-commit", ".git/hooks/pre-commit"},
		{"ignorable character", ".g\u200cit/hooks/pre-commit", ".git/hooks/pre-commit"},
		{"short name", "GIT~1/hooks/pre-commit", ".git/hooks/pre-commit"},
		{"trailing dot", ".git./hooks/pre-commit", ".git/hooks/pre-commit"},
		{"trailing space", ".git /hooks/pre-commit", ".git/hooks/pre-commit"},
		{"stream", ".git::$INDEX_ALLOCATION/hooks/pre-commit", ".git/hooks/pre-commit"},
		{"decomposed", ".mcp.json\u0301", ".mcp.json"},
		{"Kelvin sign", ".git/hoo\u212as/pre-commit", ".git/hooks/pre-commit"},
		{"long s", ".claude/\u017fettings.json", ".claude/settings.json"},
		{"upper case .MCP.JSON", ".MCP.JSON", ".mcp.json"},
		{"upper case .VSCODE", ".VSCODE/tasks.json", ".vscode/tasks.json"},
	} {
		ps = append(ps, probe{s.name, func(b *protocol.Brief) protocol.Try {
			p, real := filepath.Join(b.Work, s.spelled), filepath.Join(b.Work, s.real)
			before := state(real)
			merr := os.MkdirAll(filepath.Dir(p), 0o755)
			err := write(unix.Open(p, creat, 0o755))
			if state(real) != before {
				return reached("%q is the same file as %q", s.spelled, s.real)
			}
			if merr != nil {
				return refused(merr)
			}
			if err != nil {
				return refused(err)
			}
			return absent("this file system takes it for another name")
		}})
	}
	return ps
}
