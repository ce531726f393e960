package agentprofile

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

//go:embed profiles/*.yaml
var embedded embed.FS

// Names lists the agents that have a profile in this version, in alphabetical order.
func Names() []string {
	entries, err := embedded.ReadDir("profiles")
	if err != nil {
		return nil // it is part of this program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Builtin returns the profile of this version.
func Builtin(name string) (*Profile, error) {
	if !agentName.MatchString(name) {
		return nil, fmt.Errorf("agent %.40q: %w", name, paddock.NotFound)
	}
	data, err := embedded.ReadFile("profiles/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", name, paddock.NotFound)
	}
	return Read(name+".yaml", data)
}

// Find returns the profile of an agent: that of the user, which is NAME.yaml in a directory of the user, or that of this
// version. The file is empty for one of this version.
func Find(name, dir string) (p *Profile, file string, err error) {
	if !agentName.MatchString(name) {
		return nil, "", fmt.Errorf("agent %.40q: %w", name, paddock.NotFound)
	}
	if dir == "" {
		p, err = Builtin(name)
		return p, "", err
	}
	file = filepath.Join(dir, name+".yaml")
	data, err := os.ReadFile(file) // the user's own directory, like a shell's configuration
	if errors.Is(err, fs.ErrNotExist) {
		p, err = Builtin(name)
		return p, "", err
	}
	if err != nil {
		return nil, "", fmt.Errorf("profile %s: %w: %w", file, err, paddock.Denied)
	}
	if p, err = Read(file, data); err != nil {
		return nil, "", err
	}
	if p.Name != name {
		return nil, "", &Error{Name: file, Line: 1, Text: fmt.Sprintf("it is the profile of %q; its file is %s.yaml", p.Name, p.Name)}
	}
	return p, file, nil
}

// IsName reports whether a text can be the name of an agent.
func IsName(text string) bool { return agentName.MatchString(text) }
