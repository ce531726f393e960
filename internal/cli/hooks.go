package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agenthook"
)

// boxFlags say what box the steps of a session run in.
type boxFlags struct {
	specFlags
	idle TimeFlag
	undo string

	given func(string) bool // which flags were given; nil before they are parsed
}

// Flags of a box that the hook itself sets, or that are of one command.
const hookSets = "workspace dir limit timeout"

func (f *boxFlags) register(fs *pflag.FlagSet) {
	f.specFlags.register(fs)
	for _, name := range strings.Fields(hookSets) {
		if flag := fs.Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
	f.idle = defaultIdle
	fs.Var(&f.idle, "idle-remove", "remove the box when no step ran for this `time`")
	registerUndo(fs, &f.undo)
	f.undo = string(paddock.UndoOn)
	if flag := fs.Lookup("undo"); flag != nil {
		flag.DefValue = f.undo
	}
}

// placeFlags say which file of an agent is meant.
type placeFlags struct {
	project, follow, yes, failOpen bool
}

func (f *placeFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.project, "project", false, "the settings of the project in the current directory, and not yours for all projects")
	fs.BoolVar(&f.follow, "follow", false, "change what a link leads to, where the file or a directory of it is a link")
	fs.BoolVarP(&f.yes, "yes", "y", false, "show the change, and do not ask")
}

func (a *App) hooksCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "hooks",
		Short: "Route the shell tool of a coding agent that stays outside through a box",
		Long: `Route the shell tool of a coding agent that stays on this machine through a box:
each command that the model writes runs in a sandbox that has the project's
directory and what you allow. The agent's own file tools, its MCP servers and its
hooks stay outside. docs/use/hooks.md tells what is covered for each agent; to have
the whole agent in a box: paddock run.`,
	}
	c.AddCommand(a.hooksInstallCommand(), a.hooksRemoveCommand(), a.hooksListCommand())
	return c
}

func (a *App) hooksInstallCommand() *cobra.Command {
	var place placeFlags
	var box boxFlags
	var approve bool
	c := &cobra.Command{
		Use:   "install [flags] " + strings.Join(agenthook.Names(), "|"),
		Short: "Put the hooks into an agent's settings",
		Long: `Put hooks into the settings of an agent. The change is shown first, and made after
you agree. Everything else in the file stays, with comments and order; paddock
hooks remove brings back the file as it was, to the byte.

The project is the current directory, and only there: in any other directory the
hooks refuse each command, until you install them there too. Claude Code and
Gemini CLI have to be started in that very directory: below it a step could keep
them from starting their hook, and then they run the command on your machine.

Then each command of the agent's shell tool runs in a box: one for each session and
project, made with the first command, and removed when the session ends, or when no
command ran for --idle-remove. The box has the project's directory, writable and
with a record for paddock undo, and what the flags give it, which are those of
paddock run. A hook or a box that fails refuses the command.

Exit status: 0, or 125 if nothing was changed.`,
		Example: `  paddock hooks install claude
  paddock hooks install codex --accept-fail-open --allow github.com --memory 4G
  paddock hooks install gemini --project --policy /home/me/policy.yaml`,
		Args:                  cobra.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgs:             agenthook.Names(),
		RunE: func(c *cobra.Command, args []string) error {
			agent, err := agentNamed(args[0])
			if err != nil {
				return err
			}
			words, err := box.words(a, c.Flags())
			if err != nil {
				return err
			}
			box.given = c.Flags().Changed
			return a.installHooks(agent, place, &box, words, approve)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	place.register(fs)
	fs.BoolVar(&place.failOpen, "accept-fail-open", false, "also where the agent runs a command outside if a step keeps its hook from starting: sessions of claude and gemini below the project, codex")
	fs.BoolVar(&approve, "approve", false, "have the agent not ask you before a command, because it runs in a box")
	box.register(fs)
	return c
}

func (a *App) hooksRemoveCommand() *cobra.Command {
	var place placeFlags
	c := &cobra.Command{
		Use:   "remove [flags] " + strings.Join(agenthook.Names(), "|"),
		Short: "Take the hooks out of an agent's settings",
		Long: `Take the hooks out of the settings of an agent: the file is again what it was before,
to the byte, and gone if there was none. If it changed since, only the hooks are
taken out. The change is shown first, and made after you agree.

Exit status: 0, or 125 if nothing was changed.`,
		Args:                  cobra.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgs:             agenthook.Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := agentNamed(args[0])
			if err != nil {
				return err
			}
			return a.removeHooks(agent, place)
		},
	}
	place.register(c.Flags())
	return c
}

func (a *App) hooksListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List the files that hooks were put into",
		Long: `List the files of agents that paddock hooks install changed, and whether the hooks
are in them still.

Exit status: 0, or 125 if the list cannot be read.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.listHooks(asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

func agentNamed(name string) (agenthook.Agent, error) {
	agent, err := agenthook.Named(name)
	if err != nil {
		return agent, WithHint(err, "paddock hooks install %s", strings.Join(agenthook.Names(), "|"))
	}
	return agent, nil
}

// words gives the flags that were given, so that a hook can give them again.
func (f *boxFlags) words(a *App, fs *pflag.FlagSet) ([]string, error) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	var again boxFlags
	again.register(own)
	var words []string
	fs.Visit(func(flag *pflag.Flag) {
		switch list, isList := flag.Value.(*listFlag); {
		case own.Lookup(flag.Name) == nil:
		case isList:
			for _, text := range *list {
				words = append(words, "--"+flag.Name+"="+text)
			}
		default:
			words = append(words, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	for _, name := range strings.Fields(hookSets) {
		if fs.Changed(name) {
			return nil, WithHint(fmt.Errorf("--%s: the hook itself says that, or no box of a session has it: %w", name, paddock.Invalid), "leave the flag out")
		}
	}
	f.look = true
	if f.needsDir() {
		return nil, WithHint(fmt.Errorf("a hook runs in other directories, so a path must not depend on this one: %w", paddock.Invalid), "write paths from /")
	}
	p, err := f.plan(a, fs.Changed)
	if err != nil {
		return nil, err
	}
	if err := p.unmonitored(); err != nil {
		return nil, err
	}
	if _, err := parseUndo(f.undo); err != nil {
		return nil, err
	}
	if err := own.Parse(words); err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	again.look = true
	if !reflect.DeepEqual(*f, again) {
		return nil, fmt.Errorf("these flags cannot be written into a hook: %w", paddock.Unsupported)
	}
	return words, nil
}

// place gives the directory and the name of an agent's file.
func (f placeFlags) place(a *App, agent agenthook.Agent) (dir, name string, err error) {
	if f.project {
		if dir, err = a.Dir(); err != nil {
			return "", "", fmt.Errorf("working directory: %w: %w", err, paddock.NotFound)
		}
		return dir, agent.Project, nil
	}
	home, _ := a.Lookup("HOME")
	if !filepath.IsAbs(home) {
		return "", "", WithHint(fmt.Errorf("there is no home directory: %w", paddock.Unsupported), "set HOME, or use --project")
	}
	base, file := agent.UserFile(home, a.Lookup)
	if rel, err := filepath.Rel(home, base); err == nil && filepath.IsLocal(rel) {
		return home, filepath.Join(rel, file), nil // every directory below the home is looked at
	}
	return base, file, nil
}

// open opens the file of an agent, and what is known of it.
func (f placeFlags) open(a *App, agent agenthook.Agent) (*hookFile, *hookRecord, error) {
	dir, name, err := f.place(a, agent)
	if err != nil {
		return nil, nil, err
	}
	file, err := openHookFile(dir, name, f.follow)
	if err != nil {
		return nil, nil, err
	}
	r, err := a.record(ofHooks, file.path)
	if err != nil {
		return nil, nil, errors.Join(err, file.root.Close())
	}
	if r == nil {
		r = &hookRecord{Version: 1, Path: file.path}
	}
	r.Agent, r.Dir, r.Name, r.Follow = agent.Name, dir, name, f.follow
	return file, r, nil
}

func (a *App) installHooks(agent agenthook.Agent, place placeFlags, box *boxFlags, words []string, approve bool) (err error) {
	if runtime.GOOS == "windows" {
		return WithHint(fmt.Errorf("hooks need a system with /bin/sh: %w", paddock.Unsupported), "run the agent and Paddock in WSL")
	}
	switch {
	case agent.Opens && !agent.AtStart && !place.failOpen:
		return failOpen(agent)
	case agent.UserOnly && place.project:
		return WithHint(fmt.Errorf("%s reads hooks of a project only where it was told to trust it, and else runs commands outside without a word: %w", agent.Title, paddock.Unsupported), "leave --project out")
	}
	program, err := programPath()
	if err != nil {
		return err
	}
	file, r, err := place.openFor(a, agent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.root.Close()) }()
	own, err := a.ownWords(agent, place, file, r, box, program, approve)
	if err != nil {
		return err
	}
	now, mode, err := file.read()
	if err != nil {
		return err
	}
	base := now
	switch {
	case r.Written != nil && now != nil && bytes.Equal(now, r.Written):
		base = r.original()
	case now != nil:
		if base, _, err = agent.Remove(now, r.original()); err != nil {
			return inFile(file.path, err)
		}
		if base != nil && agent.Plugin() {
			return fmt.Errorf("%s is there, and not of Paddock: %w", file.path, paddock.Exists)
		}
	}
	to, err := agent.Install(base, program, words, own)
	if err != nil {
		return inFile(file.path, err)
	}
	if bytes.Equal(to, now) {
		return a.Say("the hooks are in %s already\n", file.path)
	}
	if err := a.agreed(place, file.path, now, to); err != nil {
		return err
	}
	r.Existed, r.Original, r.Written = base != nil, base, to
	if err := a.keepRecord(ofHooks, r); err != nil {
		return err
	}
	made, err := file.replace(now, to, mode)
	if err != nil {
		return err
	}
	if len(made) > 0 {
		r.Dirs = made
		if err := a.keepRecord(ofHooks, r); err != nil {
			return err
		}
	}
	return a.Say("%s: commands of its shell tool in %s run in a box from its next start on. %s\n", agent.Title, hookedProjects(own)[0].dir, agent.Note)
}

// openFor opens the file of an agent to change it, if what would be made is made for its owner.
func (f placeFlags) openFor(a *App, agent agenthook.Agent) (*hookFile, *hookRecord, error) {
	dir, name, err := f.place(a, agent)
	if err != nil {
		return nil, nil, err
	}
	records, err := a.hookRecords()
	if err != nil {
		return nil, nil, err
	}
	for _, path := range []string{filepath.Join(dir, name), filepath.Join(records, "x")} {
		if err := ownPlace(path); err != nil {
			return nil, nil, err
		}
	}
	return f.open(a, agent)
}

// ownPlace refuses a path whose nearest directory is another user's: what is made there would lock that user out.
func ownPlace(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err == nil && ownFile(info):
			return nil
		case err == nil:
			return WithHint(fmt.Errorf("%s belongs to another user: %w", dir, paddock.Denied), "run this as that user")
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return fmt.Errorf("%s: %w: %w", dir, err, paddock.Denied)
		}
	}
}

// ownWords gives the words for the hook itself: this project, and those that the file has hooks for already.
func (a *App) ownWords(agent agenthook.Agent, place placeFlags, file *hookFile, r *hookRecord, box *boxFlags, program string, approve bool) ([]string, error) {
	dir, err := a.Dir()
	if err != nil {
		return nil, fmt.Errorf("working directory: %w: %w", err, paddock.NotFound)
	}
	here, err := a.nameProject(dir)
	if err != nil {
		return nil, err
	}
	projects := []hookedProject{here}
	for _, p := range hookedProjects(r.Projects) {
		switch {
		case p.dir == here.dir || a.checkProject(p) != nil:
		case overlap(p.dir, here.dir):
			return nil, WithHint(fmt.Errorf("the project %s has these hooks already, and a box of the one could exchange the other: %w", p.dir, paddock.Invalid), "paddock hooks remove %s, or go to %s", agent.Name, p.dir)
		default:
			projects = append(projects, p)
		}
	}
	if err := box.outOfReach(a, box.given, program, projects); err != nil {
		return nil, err
	}
	var own, dirs []string
	if approve {
		own = append(own, "--approve")
	}
	if agent.Opens && !place.failOpen {
		own = append(own, topWord)
	}
	for _, p := range projects {
		if !place.project && within(file.path, p.dir) {
			return nil, WithHint(fmt.Errorf("your settings %s are in the project, where a box may write: %w", file.path, paddock.Denied), "move them out of %s", p.dir)
		}
		own, dirs = append(own, p.word()), append(dirs, p.dir)
	}
	if why := a.beaten(agent, dirs); why != "" {
		return nil, WithHint(fmt.Errorf("%s: %w", why, paddock.Denied), "take that out, and install again; nothing was changed")
	}
	r.Projects = slices.DeleteFunc(slices.Clone(own), func(word string) bool { return word == "--approve" })
	return own, nil
}

func inFile(path string, err error) error {
	return WithHint(fmt.Errorf("%s: %w", path, err), "nothing was changed")
}

func (a *App) removeHooks(agent agenthook.Agent, place placeFlags) (err error) {
	file, r, err := place.open(a, agent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.root.Close()) }()
	now, mode, err := file.read()
	if err != nil {
		return err
	}
	if now == nil {
		return errors.Join(a.forgetRecord(ofHooks, file.path), a.Say("there is no %s\n", file.path))
	}
	left, original := r.original(), r.original()
	if r.Written == nil || !bytes.Equal(now, r.Written) {
		if r.Written == nil {
			original = now // what it had before is not known, so nothing else is taken out
		}
		var found bool
		if left, found, err = agent.Remove(now, original); err != nil {
			return inFile(file.path, err)
		}
		if !found {
			return errors.Join(a.forgetRecord(ofHooks, file.path), a.Say("there are no hooks in %s\n", file.path))
		}
	}
	if err := a.agreed(place, file.path, now, left); err != nil {
		return err
	}
	if left == nil {
		err = file.remove(now, r.Dirs)
	} else {
		_, err = file.replace(now, left, mode)
	}
	if err != nil {
		return err
	}
	return a.forgetRecord(ofHooks, file.path)
}

// agreed shows a change of a file, and asks.
func (a *App) agreed(place placeFlags, path string, from, to []byte) error {
	writeChange(a.Stderr, path, from, to)
	if place.yes {
		return nil
	}
	if !isTerminal(a.Stdin) {
		return WithHint(fmt.Errorf("%s would be changed, and there is nobody to ask: %w", path, paddock.Invalid), "if you mean it: --yes")
	}
	fmt.Fprint(a.Stderr, "change it? [y/N] ")
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
		return WithHint(fmt.Errorf("nothing was changed: %w", paddock.Canceled), "answer y to go on")
	}
	return nil
}

// programPath gives the path of this program's own file. It is not the one by which PATH finds it: that could be a link
// that somebody else, or a sandbox, leads elsewhere later.
func programPath() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program: %w", err)
	}
	return exe, nil
}

// A hookedFile is a line of the list of hooks.
type hookedFile struct {
	Agent string `json:"agent"`
	State string `json:"state"`
	File  string `json:"file"`
}

func (a *App) listHooks(asJSON bool) error {
	dir, err := a.hookRecords()
	if err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: %w", dir, err, paddock.Denied)
	}
	var list []*hookRecord
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		var r hookRecord
		if err != nil || json.Unmarshal(data, &r) != nil || r.Version != 1 {
			continue // a file that is being written
		}
		list = append(list, &r)
	}
	slices.SortFunc(list, func(x, y *hookRecord) int { return strings.Compare(x.Path, y.Path) })
	hooked := []hookedFile{}
	for _, r := range list {
		hooked = append(hooked, hookedFile{r.Agent, a.enforced(r), r.Path})
	}
	if asJSON {
		return PrintJSON(a.Stdout, hooked)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "AGENT\tSTATE\tFILE")
	for _, h := range hooked {
		fmt.Fprintf(w, "%s\t%s\t%s\n", OneLine(h.Agent), OneLine(h.State), OneLine(h.File))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the list: %w: %w", err, paddock.Exhausted)
	}
	return nil
}

// enforced tells what became of the hooks in a file, and whether something that is known takes their effect.
func (a *App) enforced(r *hookRecord) string {
	state := r.state()
	agent, err := agenthook.Named(r.Agent)
	if err != nil || !strings.HasPrefix(state, "installed") {
		return state
	}
	var dirs []string
	for _, p := range hookedProjects(r.Projects) {
		dirs = append(dirs, p.dir)
		if err := a.checkProject(p); err != nil {
			return "refuses: " + err.Error()
		}
	}
	switch why := a.beaten(agent, dirs); {
	case why != "":
		return "not enforced: " + why
	case agent.Opens && !slices.Contains(r.Projects, topWord):
		return state + ", fails open"
	}
	return state
}

// state tells what became of the hooks in a file.
func (r *hookRecord) state() string {
	agent, err := agenthook.Named(r.Agent)
	if err != nil {
		return "unknown"
	}
	file, err := openHookFile(r.Dir, r.Name, r.Follow)
	if err != nil {
		return "unreadable"
	}
	defer file.root.Close()
	now, _, err := file.read()
	switch {
	case err != nil:
		return "unreadable"
	case now == nil:
		return "gone"
	case bytes.Equal(now, r.Written):
		return "installed"
	}
	if _, found, err := agent.Remove(now, r.original()); err != nil || !found {
		return "gone"
	}
	return "installed, the file changed since"
}

// endSession removes the box of a session.
func (a *App) endSession(ctx context.Context, id paddock.ID) error {
	err := a.WithRunning(ctx, func(ctx context.Context, r *Remote) error { return remove(ctx, r, string(id), true) })
	if errors.Is(err, paddock.Unavailable) {
		return nil // no server, no box
	}
	return err
}
