package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agenthook"
	"github.com/paddock-sandbox/paddock/internal/settingsfile"
)

// A hookedProject is a directory that the user named by installing hooks in it. No other one gets a box of a hook.
type hookedProject struct{ inode, dir string }

const projectWord = "--project="

func (p hookedProject) word() string { return projectWord + p.inode + ":" + p.dir }

// hookedProjects reads the projects of a hook's own words.
func hookedProjects(words []string) (list []hookedProject) {
	for _, word := range words {
		if text, ok := strings.CutPrefix(word, projectWord); ok {
			if inode, dir, ok := strings.Cut(text, ":"); ok {
				list = append(list, hookedProject{inode, dir})
			}
		}
	}
	return list
}

// nameProject takes a directory as a project, which is where the user is.
func (a *App) nameProject(dir string) (hookedProject, error) {
	p := hookedProject{"", filepath.Clean(dir)}
	info, err := os.Lstat(p.dir)
	if err != nil {
		return p, fmt.Errorf("project: %w: %w", err, paddock.NotFound)
	}
	p.inode = inodeOf(info)
	return p, a.checkProject(p)
}

// checkProject refuses a directory that is no longer the one that the user named, and one that holds more than a project.
func (a *App) checkProject(p hookedProject) error {
	actual, err := filepath.EvalSymlinks(p.dir)
	if err != nil {
		return fmt.Errorf("project: %w: %w", err, paddock.NotFound)
	}
	info, err := os.Lstat(p.dir)
	if err != nil {
		return fmt.Errorf("project: %w: %w", err, paddock.NotFound)
	}
	if actual != p.dir || !info.IsDir() || inodeOf(info) != p.inode {
		return WithHint(fmt.Errorf("%s is not the directory any more that the hooks were installed for: %w", p.dir, paddock.Denied),
			"if it should have a box: cd %s && paddock hooks install AGENT", p.dir)
	}
	home, _ := a.Lookup("HOME")
	why := tooMuch(p.dir, home)
	switch {
	case why != "":
	case !ownFile(info):
		why = "belongs to another user"
	case hiddenBelow(p.dir, home):
		why = "is in a directory of settings or keys"
	default:
		if dir, err := configDir(a.Lookup); err == nil && overlap(p.dir, real(dir)) {
			why = "holds Paddock's own settings"
		}
	}
	if why != "" {
		return WithHint(fmt.Errorf("the directory %s %s, so it is no project for hooks: %w", p.dir, why, paddock.Denied), "go to a project's directory")
	}
	return nil
}

// hiddenBelow tells whether a part of a path below the home begins with a dot.
func hiddenBelow(dir, home string) bool {
	rel, err := filepath.Rel(real(home), dir)
	return home != "" && err == nil && filepath.IsLocal(rel) && strings.HasPrefix(rel, ".") && rel != "."
}

func overlap(a, b string) bool { return within(a, b) || within(b, a) }

// real resolves as much of a path as there is.
func real(path string) string {
	if actual, err := filepath.EvalSymlinks(path); err == nil {
		return actual
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(real(parent), filepath.Base(path))
	}
	return path
}

// settle gives a call its project: the named one that the session is in. What a model can choose has no say. It returns the
// directories from that of the session up to the project's, in each of which an agent may read settings.
func (a *App) settle(call *agenthook.Call, agent agenthook.Agent, own []string) ([]string, error) {
	at := call.Project
	if call.Loose {
		dir, err := a.Dir()
		if err != nil {
			return nil, fmt.Errorf("working directory: %w: %w", err, paddock.NotFound)
		}
		at = dir
	}
	for _, p := range hookedProjects(own) {
		if within(at, p.dir) {
			call.Project, call.Inode = p.dir, p.inode
			dirs := []string{p.dir}
			for dir := filepath.Clean(at); dir != p.dir && within(dir, p.dir); dir = filepath.Dir(dir) {
				dirs = append(dirs, dir)
			}
			return dirs, a.checkProject(p)
		}
	}
	return nil, WithHint(fmt.Errorf("the hooks were not installed for a project that %s is in, so this step is refused: %w", at, paddock.Denied),
		"have the user do: cd PROJECT && paddock hooks install %s", agent.Name)
}

// beaten gives why the hooks of an agent may have no effect in some projects; empty is no reason that is known.
func (a *App) beaten(agent agenthook.Agent, projects []string) string {
	home, _ := a.Lookup("HOME")
	base, _ := agent.UserFile(home, a.Lookup)
	user, project := agent.Beside()
	if why := beatenIn(agent, base, user, true); why != "" {
		return why
	}
	for _, dir := range projects {
		if why := beatenIn(agent, dir, project, false); why != "" {
			return why
		}
	}
	return ""
}

func beatenIn(agent agenthook.Agent, dir string, patterns []string, trusted bool) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		return dir + ": it cannot be read"
	}
	defer root.Close()
	for _, pattern := range patterns {
		names, err := namesBeside(root, pattern, trusted)
		if err != nil {
			return filepath.Join(dir, pattern) + ": it cannot be read, so what hooks it has is not known"
		}
		for _, name := range names {
			data, err := readBeside(root, name, trusted)
			why := ""
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				why = "it cannot be read, so what hooks it has is not known"
			default:
				why = agent.Beats(name, data)
			}
			if why != "" {
				return filepath.Join(dir, name) + ": " + why
			}
		}
	}
	return ""
}

// namesBeside gives the names that a pattern of Beside means, whose last part alone may be one. Whatever cannot be listed is
// an error, and no reason to leave it out.
func namesBeside(root *os.Root, pattern string, trusted bool) ([]string, error) {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}, nil
	}
	dir := path.Dir(pattern)
	file, err := openBeside(root, dir, trusted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	entries, err := file.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	var names []string
	for _, e := range entries {
		if ok, err := path.Match(path.Base(pattern), e.Name()); ok && err == nil {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	return names, nil
}

// openBeside opens a file or directory, and waits for no pipe. A user's own links are followed. A project has none on the way:
// what one leads to can change under another name, or be something else for the agent.
func openBeside(root *os.Root, name string, trusted bool) (*os.File, error) {
	if trusted {
		return os.OpenFile(filepath.Join(root.Name(), name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err := root.Lstat(name[:i])
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s is a link: %w", name[:i], paddock.Denied)
		}
	}
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// readBeside reads a file of settings.
func readBeside(root *os.Root, name string, trusted bool) ([]byte, error) {
	file, err := openBeside(root, name, trusted)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fs.ErrNotExist
	case !info.Mode().IsRegular() || info.Size() > settingsfile.MaxFile:
		return nil, fmt.Errorf("%s: %w", name, paddock.Invalid)
	}
	return io.ReadAll(io.LimitReader(file, settingsfile.MaxFile+1))
}

// topWord is a hook's own word: it refuses what is not done in the project's own directory.
const topWord = "--top"

// atTop refuses a step of an agent that was not started in the project's own directory. There the agent can always start its
// hook, because no box of the project takes the right to enter it. In a directory below, a box can, and then the agent runs
// the command without the hook.
func (a *App) atTop(call agenthook.Call, agent agenthook.Agent) error {
	dir, err := a.Dir()
	if err != nil {
		return fmt.Errorf("working directory: %w: %w", err, paddock.NotFound)
	}
	const elsewhere = "for sessions elsewhere the user can install with --accept-fail-open, and docs/use/hooks.md tells what that accepts"
	if real(dir) != call.Project {
		return WithHint(fmt.Errorf("%s works in %s, and a box could keep it there from starting this hook, so the step is refused: %w", agent.Title, dir, paddock.Denied),
			"have the user start it in %s itself; "+elsewhere, call.Project)
	}
	if agent.Strays(call) {
		return WithHint(fmt.Errorf("the tool %s would go on in another directory than %s, and a box could keep %s there from starting this hook, so it is refused: %w",
			OneLine(call.Tool), call.Project, agent.Title, paddock.Denied), "work in the project's own directory; "+elsewhere)
	}
	return nil
}

// failOpen is said where an agent runs a command outside when it cannot start its hook, and nothing is known of where it does.
func failOpen(agent agenthook.Agent) error {
	return WithHint(fmt.Errorf("%s runs a command on this machine when it cannot start its hook, and where it starts that is not known well enough to say that no step can prevent it: %w",
		agent.Title, paddock.Unsupported), "have the whole agent in a box: paddock run %s; if you know that and want the hooks: --accept-fail-open", agent.Name)
}
