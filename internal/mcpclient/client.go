// Package mcpclient is pure: where clients of the Model Context Protocol keep the servers that they start, and the text of
// those files with a server of Paddock's in it.
package mcpclient

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// server is the name under which clients know Paddock.
const server = "paddock"

// A Client is a program that starts servers.
type Client struct {
	Name  string // as the command line names it
	Title string
	Note  string // for people, after an installation

	// Project is its file below the directory of a project. Empty is a client that has none.
	Project string

	place func(Machine) (dir, file string)
	form  form
}

// A Machine is what the place of a user's file depends on.
type Machine struct {
	Home   string
	System string // as GOOS
	Lookup func(string) (string, bool)
}

// A form writes a server into a file, and takes it out.
type form interface {
	install(file []byte, words []string) ([]byte, error)
	remove(file, original []byte) (left []byte, found bool, err error)
}

// UserFile gives a directory, and below it the name of the user's file.
func (c Client) UserFile(m Machine) (dir, file string) { return c.place(m) }

// Install gives a file with the server in it, which is started by these words. Everything that was there stays as it is, to
// the byte. An empty file is one that was not there.
func (c Client) Install(file []byte, words []string) ([]byte, error) {
	for _, word := range words {
		if strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
			return nil, fmt.Errorf("%q cannot be written into a configuration: %w", word, paddock.Invalid)
		}
	}
	return c.form.install(file, words)
}

// Remove gives a file without the server, and whether it was there. Everything else stays. What is empty then is kept only
// where the file had it before: original, of which nil says that there was no file. A file that nothing is left of is nil.
func (c Client) Remove(file, original []byte) (left []byte, found bool, err error) {
	return c.form.remove(file, original)
}

// Clients returns all of them, by name.
func Clients() []Client {
	return []Client{
		{
			Name: "claude", Title: "Claude Code", Project: ".mcp.json", Note: "/mcp lists its servers.",
			place: in("CLAUDE_CONFIG_DIR", "", ".claude.json"),
			form:  jsonForm{[]string{"mcpServers"}, typed},
		},
		{
			Name: "codex", Title: "Codex", Project: ".codex/config.toml", Note: "It reads a project's file where it was told to trust the project.",
			place: in("CODEX_HOME", ".codex", "config.toml"), form: tomlForm{},
		},
		{
			Name: "cursor", Title: "Cursor", Project: ".cursor/mcp.json",
			place: in("", ".cursor", "mcp.json"), form: jsonForm{[]string{"mcpServers"}, plain},
		},
		{
			Name: "gemini", Title: "Gemini CLI", Project: ".gemini/settings.json",
			place: in("", ".gemini", "settings.json"), form: jsonForm{[]string{"mcpServers"}, plain},
		},
		{
			Name: "goose", Title: "Goose", place: in("XDG_CONFIG_HOME/goose", ".config/goose", "config.yaml"), form: yamlForm{},
		},
		{
			Name: "opencode", Title: "OpenCode", Project: "opencode.json",
			place: in("XDG_CONFIG_HOME/opencode", ".config/opencode", "opencode.json"),
			form:  jsonForm{[]string{"mcp"}, oneCommand},
		},
		{
			Name: "vscode", Title: "VS Code", Project: ".vscode/mcp.json", place: vscode, form: jsonForm{[]string{"servers"}, typed},
		},
		{
			Name: "zed", Title: "Zed", Project: ".zed/settings.json", place: zed, form: jsonForm{[]string{"context_servers"}, plain},
		},
	}
}

// Names returns the names of all clients.
func Names() []string {
	var names []string
	for _, c := range Clients() {
		names = append(names, c.Name)
	}
	return names
}

// Named returns the client of that name.
func Named(name string) (Client, error) {
	all := Clients()
	i := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, fmt.Errorf("no client %q is known: %w", name, paddock.Invalid)
	}
	return all[i], nil
}

// in gives the place of a file in the directory that a variable names, or else in one of the home. A variable may be
// followed by names below its directory.
func in(variable, dir, file string) func(Machine) (string, string) {
	return func(m Machine) (string, string) {
		name, below, _ := strings.Cut(variable, "/")
		if base, _ := m.Lookup(name); name != "" && filepath.IsAbs(base) {
			return filepath.Join(base, below), file
		}
		return m.Home, filepath.Join(dir, file)
	}
}

func vscode(m Machine) (dir, file string) {
	file = filepath.Join("Code", "User", "mcp.json")
	switch m.System {
	case "darwin":
		return m.Home, filepath.Join("Library", "Application Support", file)
	case "windows":
		return in("APPDATA", filepath.Join("AppData", "Roaming"), file)(m)
	}
	return in("XDG_CONFIG_HOME", ".config", file)(m)
}

func zed(m Machine) (dir, file string) {
	if m.System == "windows" {
		return in("APPDATA", filepath.Join("AppData", "Roaming"), filepath.Join("Zed", "settings.json"))(m)
	}
	return in("XDG_CONFIG_HOME", ".config", filepath.Join("zed", "settings.json"))(m)
}
