package box

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
)

// A shim is a small program of a version manager that finds out which version is meant and
// executes its program. Inside a sandbox that is slow (more than a second on gvisor), some files
// that shims read are not visible, and those that write beside themselves, as pyenv's pip does,
// fail. So the directories of the programs of the versions that are selected when the sandbox
// starts come before the shims in PATH.

// versionFileMax bounds what is read of a file that selects versions.
const versionFileMax = 64 << 10

// A manager is a version manager of one language in the style of rbenv.
type manager struct{ variable, file string }

func managers() map[string]manager {
	return map[string]manager{
		".pyenv":  {"PYENV_VERSION", ".python-version"},
		".rbenv":  {"RBENV_VERSION", ".ruby-version"},
		".nodenv": {"NODENV_VERSION", ".node-version"},
		".jenv":   {"JENV_VERSION", ".java-version"},
	}
}

// behind returns the directories of programs that the shims in a directory of PATH lead to. Each is
// below the manager's directory. There are none if the directory has no shims of a known manager.
func (l *Layout) behind(dir string) []string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil || filepath.Base(dir) != "shims" {
		return nil
	}
	home, ok := homeOf(dir, l.env["HOME"])
	if !ok {
		return nil
	}
	root := filepath.Dir(dir)
	if m, ok := managers()[strings.TrimPrefix(root, home+"/")]; ok {
		return l.ofManager(root, m)
	}
	switch strings.TrimPrefix(root, home+"/") {
	case ".asdf":
		return l.ofTools(filepath.Join(root, "installs"), l.chosen(filepath.Join(home, ".tool-versions"), ".tool-versions"))
	case ".local/share/mise":
		return l.ofTools(filepath.Join(root, "installs"), append(l.chosen(filepath.Join(home, ".config/mise/config.toml"), "mise.toml", ".mise.toml"),
			l.chosen(filepath.Join(home, ".tool-versions"), ".tool-versions")...))
	}
	return nil
}

// ofManager returns the programs of the versions that a manager of one language selects: by its
// variable, by a file of the workspace, or by its own file.
func (l *Layout) ofManager(root string, m manager) []string {
	names := strings.Split(l.env[m.variable], ":")
	for _, file := range append(l.workspaceFiles(m.file), filepath.Join(root, "version")) {
		if len(names) > 0 && names[0] != "" {
			break
		}
		names = strings.Fields(string(versionFile(file)))
	}
	var dirs []string
	for _, name := range names {
		if name == "system" {
			break // what follows is behind programs of the system
		}
		dirs = append(dirs, programsOf(filepath.Join(root, "versions"), name, "bin")...)
	}
	return dirs
}

// A tool is a program's name with the version that is selected.
type tool struct{ name, version string }

var (
	toolVersions = regexp.MustCompile(`\A([\w.-]+)\s+([^#]*)`)
	tomlTool     = regexp.MustCompile(`\A"?([\w.-]+)"?\s*=\s*(.*)\z`)
	quotedText   = regexp.MustCompile(`"([^"]*)"|'([^']*)'`)
)

// chosen returns the tools that files of the workspace select, and after them those of the user's
// own file.
func (l *Layout) chosen(own string, names ...string) []tool {
	var files []string
	for _, name := range names {
		files = append(files, l.workspaceFiles(name)...)
	}
	var list []tool
	for _, file := range append(files, own) {
		lines := bufio.NewScanner(bytes.NewReader(versionFile(file)))
		toml, section := strings.HasSuffix(file, ".toml"), ""
		for lines.Scan() {
			line := strings.TrimSpace(lines.Text())
			switch {
			case toml && strings.HasPrefix(line, "["):
				section = line
			case toml && section == "[tools]":
				if m := tomlTool.FindStringSubmatch(line); m != nil {
					for _, q := range quotedText.FindAllStringSubmatch(m[2], -1) {
						list = append(list, tool{m[1], q[1] + q[2]})
					}
				}
			case !toml:
				if m := toolVersions.FindStringSubmatch(line); m != nil {
					for _, version := range strings.Fields(m[2]) {
						list = append(list, tool{m[1], version})
					}
				}
			}
		}
	}
	return list
}

// ofTools returns the programs of tools. The first file that names a tool decides about it.
func (l *Layout) ofTools(installs string, tools []tool) []string {
	var dirs []string
	for _, t := range tools {
		dirs = append(dirs, programsOf(filepath.Join(installs, t.name), t.version, "bin", "go/bin", ".")...)
	}
	return dirs
}

// programsOf returns the first of some directories of a version that exists. The name of the version
// may come from a file that a sandbox has changed: it names something below versions, or nothing.
func programsOf(versions, name string, in ...string) []string {
	if name == "" || !filepath.IsLocal(name) {
		return nil
	}
	top, err := filepath.EvalSymlinks(versions)
	if err != nil {
		return nil
	}
	for _, sub := range in {
		dir, err := filepath.EvalSymlinks(filepath.Join(versions, name, sub))
		if err != nil || !hostroot.Within(dir, top) || dir == top {
			continue
		}
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			return []string{dir}
		}
	}
	return nil
}

// workspaceFiles returns where a file can lie in the mounts that hold the working directory, the
// deepest first. A directory below a mount's top is the guest's, so it is not looked into.
func (l *Layout) workspaceFiles(name string) []string {
	var tops []string
	for _, m := range l.Mounts {
		if m.Kind == boxinit.MountBind && m.Source == m.Target && !m.IsFile && hostroot.Within(l.Config.Dir, m.Source) {
			tops = append(tops, m.Source)
		}
	}
	slices.SortFunc(tops, func(a, b string) int { return len(b) - len(a) })
	for i, top := range tops {
		tops[i] = filepath.Join(top, name)
	}
	return tops
}

// versionFile returns the beginning of a regular file, without following a link to it. It returns
// nothing if there is none.
func versionFile(name string) []byte {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, versionFileMax))
	if err != nil {
		return nil
	}
	var kept []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			kept = append(kept, line)
		}
	}
	return []byte(strings.Join(kept, ""))
}
