package agentprofile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
)

// A Program is a program of an agent on this machine.
type Program struct {
	Path string // as PATH has it
	Real string // where its links lead
	Show string // what a sandbox must be shown read-only, besides what it sees anyway; empty is nothing
	Run  string // how it is started in a sandbox
}

// FindProgram looks the program of a profile up in PATH. A program in the workspace is the project's, which is hostile:
// it is refused. Home is that of the caller, and may be empty.
func FindProgram(p *Profile, search, home, workspace string) (*Program, error) {
	for _, name := range p.Program {
		for _, dir := range filepath.SplitList(search) {
			if !filepath.IsAbs(dir) {
				continue // that of the working directory, which is hostile
			}
			at := filepath.Join(dir, name)
			st, err := os.Stat(at)
			if err != nil || !st.Mode().IsRegular() || st.Mode().Perm()&0o111 == 0 {
				continue
			}
			real, err := filepath.EvalSymlinks(at)
			if err != nil {
				continue
			}
			parent, err := filepath.EvalSymlinks(dir)
			if err != nil {
				continue
			}
			if workspace != "" && (hostroot.Within(real, workspace) || hostroot.Within(parent, workspace)) {
				return nil, fmt.Errorf("%s is in the workspace, so the project chose it, and it would get your login: %w", at, paddock.Denied)
			}
			return program(at, real, home), nil
		}
	}
	return nil, fmt.Errorf("%s is not installed: no directory of PATH has %s: %w", p.Title, strings.Join(p.Program, " or "), paddock.NotFound)
}

// program decides how a sandbox gets a program.
func program(at, real, home string) *Program {
	p := &Program{Path: at, Real: real, Run: at}
	system := func(name string) bool {
		return slices.ContainsFunc(hostroot.SystemDirs(), func(dir string) bool { return hostroot.Within(name, dir) })
	}
	inHome := func(name string) bool {
		return hostroot.Within(name, "/root") || hostroot.Within(name, "/home") || home != "" && hostroot.Within(name, home)
	}
	if system(at) && system(real) {
		return p
	}
	if inHome(at) {
		p.Run = filepath.Base(at) // tool chains of homes are shown, and PATH inside leads to them
	} else if !system(at) {
		p.Run = real
	}
	if system(real) {
		return p
	}
	p.Show = surroundings(real, inHome(at))
	return p
}

// surroundings returns what a program needs around it: the packages of node or of Python that it is part of, or nothing
// but itself.
func surroundings(real string, home bool) string {
	if i := strings.Index(real, "/node_modules/"); i >= 0 {
		return real[:i+len("/node_modules")]
	}
	if top := filepath.Dir(filepath.Dir(real)); top != "/" {
		if _, err := os.Lstat(filepath.Join(top, "pyvenv.cfg")); err == nil {
			return top
		}
	}
	if home {
		return "" // its directory in PATH is shown with its tool chain
	}
	return real
}

// Version returns the version of a program of an npm package, as its package.json says. It runs nothing. It is empty if
// it cannot be told.
func (p *Program) Version() string {
	for dir := filepath.Dir(p.Real); dir != "/" && filepath.Base(dir) != "node_modules"; dir = filepath.Dir(dir) {
		data, err := readPlain(filepath.Join(dir, "package.json"), 1<<20)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return ""
		}
		members, err := parseObject(data)
		if err != nil {
			return ""
		}
		i := slices.IndexFunc(members, func(m member) bool { return m.key == "version" })
		if i < 0 {
			continue
		}
		text := strings.Trim(string(members[i].value), `"`)
		if len(text) > 40 || !plain(text) {
			return ""
		}
		return text
	}
	return ""
}

// Interpreter returns the name of the interpreter that the program's first line asks env for, if no directory of PATH has
// it.
func (p *Program) Interpreter(search string) string {
	f, err := openPlain(p.Real)
	if err != nil {
		return ""
	}
	defer f.Close()
	line := make([]byte, 128)
	n, err := f.Read(line)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(line[:n]), "\n")
	name, ok := strings.CutPrefix(first, "#!/usr/bin/env ")
	if name = strings.TrimSpace(strings.TrimPrefix(name, "-S ")); !ok || name == "" {
		return ""
	}
	name, _, _ = strings.Cut(name, " ")
	for _, dir := range filepath.SplitList(search) {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0 {
			return ""
		}
	}
	return name
}
