package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agentprofile"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// askYes puts a question to the person at the terminal. Anything but yes is no.
func (a *App) askYes(question string) (bool, error) { return a.askBelow("", question) }

// askBelow is askYes with a text above the question, which is safe for a terminal. It goes to the terminal itself, because
// standard error may lead elsewhere, and nobody could then see what the question is about.
func (a *App) askBelow(text, question string) (bool, error) {
	if utf8.RuneCountInString(question) > Paragraph { // nobody agrees to what is cut off
		return false, fmt.Errorf("the question is too long to be shown whole: %w", paddock.Invalid)
	}
	tty, err := a.Tty()
	if err != nil {
		return false, fmt.Errorf("there is no terminal to ask at: %w: %w", err, paddock.Denied)
	}
	defer tty.Close()
	if _, err := fmt.Fprintf(tty, "%spaddock: %s [y/N] ", text, OneLineOf(question, Paragraph)); err != nil {
		return false, fmt.Errorf("the question cannot be shown at the terminal: %w: %w", err, paddock.Denied)
	}
	line, err := bufio.NewReader(tty).ReadString('\n')
	if err != nil {
		return false, nil // whoever closes the terminal has not agreed
	}
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))), nil
}

// approve asks whether a project's file may count, unless that was approved before. It shows the whole file. A digest
// stands for the answer.
func (a *App) approve(workspace string, data []byte, digest string) error {
	dir, err := a.agentData()
	if err != nil {
		return err
	}
	if agentprofile.Approved(dir, workspace, data) {
		return nil
	}
	own := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	switch digest {
	case own:
		return agentprofile.Approve(dir, workspace, data)
	case "":
	default:
		return WithHint(fmt.Errorf("the digest of %s is %s: %w", agentprofile.ProjectFile, own, paddock.Conflict), "look at the file, and approve what it has now")
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "paddock: the project's file %s adds this to agents (%s):\n", agentprofile.ProjectFile, own)
	for line := range strings.Lines(string(data)) {
		fmt.Fprintf(&text, "  %s\n", printable(strings.TrimRight(line, "\r\n")))
	}
	text.WriteString(addedText(data))
	yes, err := a.askBelow(text.String(), "the file "+agentprofile.ProjectFile+" is the project's: does it count?")
	if err != nil {
		if _, wrong := a.Stderr.Write(text.Bytes()); wrong != nil {
			return errors.Join(err, wrong)
		}
		return WithHint(fmt.Errorf("%s is not approved: %w", agentprofile.ProjectFile, err), "to approve it: paddock agent approve --digest %s; to pass it over: --no-project", own)
	}
	if !yes {
		return WithHint(fmt.Errorf("%s is not approved: %w", agentprofile.ProjectFile, paddock.Denied), "to pass it over: --no-project")
	}
	return agentprofile.Approve(dir, workspace, data)
}

// addedText tells in one line each what a project's file adds, whatever else is in it.
func addedText(data []byte) string {
	p, err := agentprofile.ReadProject(agentprofile.ProjectFile, data)
	if err != nil {
		return "" // it was read before
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		add := p.Agents[name]
		line := func(what string, words []string) {
			if len(words) > 0 {
				fmt.Fprintf(&b, "paddock: it adds for %s: %s %s\n", name, what, printable(strings.Join(words, " ")))
			}
		}
		line("hosts", add.Allow)
		for _, x := range add.Args {
			line("arguments", x.Add)
		}
		for _, e := range add.Env {
			var words []string
			for _, k := range slices.Sorted(maps.Keys(e.Set)) {
				words = append(words, k+"="+e.Set[k])
			}
			line("variables", words)
		}
		if add.Memory != "" {
			line("memory", []string{add.Memory})
		}
	}
	return b.String()
}

func (a *App) agentApproveCommand() *cobra.Command {
	var digest string
	var remotes listFlag
	c := &cobra.Command{
		Use:   "approve [flags]",
		Short: "Approve the file " + agentprofile.ProjectFile + " of this directory, or remotes of git",
		Long: `Approve the file ` + agentprofile.ProjectFile + ` of this directory, which adds hosts, variables and
arguments to agents. It is shown whole, and asked about at the terminal. The
approval is for these contents in this directory: after a change it is asked
about anew. It is kept outside of the project, where no sandbox reaches it.

With --git, approve instead that git in sandboxes of this directory uses your
login for these of its https remotes: docs/use/git.md.

Exit status: 0, or 125 if it is not approved.`,
		Example: "  paddock agent approve\n  paddock agent approve --git github.com/me/project",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			workspace, err := a.Dir()
			if err != nil {
				return fmt.Errorf("working directory: %w", err)
			}
			if len(remotes) > 0 {
				return a.approveGit(workspace, strings.Split(strings.Join(remotes, ","), ","))
			}
			data, err := agentprofile.OpenProject(workspace)
			if err != nil {
				return err
			}
			if data == nil {
				return fmt.Errorf("there is no file %s in %s: %w", agentprofile.ProjectFile, workspace, paddock.NotFound)
			}
			if _, err := agentprofile.ReadProject(agentprofile.ProjectFile, data); err != nil {
				return err
			}
			return a.approve(workspace, data, digest)
		},
	}
	c.Flags().Var(&remotes, "git", "approve that git in sandboxes of this directory uses your login for its remote `HOST/PATH` (repeatable; commas between several)")
	c.Flags().StringVar(&digest, "digest", "", "approve without a question if the file's digest is this `sha256:…`")
	return c
}

// agents looks for each agent on this machine. It runs none of them.
func (a *App) agents() []listedAgent {
	search, _ := a.Lookup("PATH")
	home, _ := a.Lookup("HOME")
	workspace, err := a.Dir()
	if err != nil {
		workspace = "" // it is gone, so nothing is in it
	}
	var list []listedAgent
	for _, name := range a.agentNames() {
		p, file, err := agentprofile.Find(name, a.agentProfiles())
		if err != nil {
			list = append(list, listedAgent{Name: name, Profile: file, Fault: err.Error()})
			continue
		}
		row := listedAgent{Name: name, Title: p.Title, Tested: p.Package.Tested, Profile: file, install: installWords(p)}
		if at, err := agentprofile.FindProgram(p, search, home, workspace); err == nil {
			row.Program, row.Version = at.Path, at.Version()
			row.Lacks = a.lacks(p, at, search)
		}
		list = append(list, row)
	}
	return list
}

// lacks tells what an installed agent needs here besides, with what to do about it.
func (a *App) lacks(p *agentprofile.Profile, at *agentprofile.Program, search string) (list []string) {
	if name := at.Interpreter(search); name != "" {
		list = append(list, fmt.Sprintf("it needs %s, which no directory of PATH has", name))
	}
	if v := at.Version(); v != "" && p.Package.Tested != "" && v != p.Package.Tested {
		list = append(list, fmt.Sprintf("version %s is not the one that was tested, %s", v, p.Package.Tested))
	}
	var names []string
	for _, k := range p.Keys {
		if v, ok := a.Lookup(k.Variable); ok && v != "" {
			return list
		}
		names = append(names, k.Variable)
	}
	if len(names) > 0 {
		list = append(list, "no API key: none of the variables is set: "+Join(names))
	}
	return list
}

func (a *App) agentListCommand() *cobra.Command {
	var asJSON, states bool
	c := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List the agents, and which of them are installed",
		Long: `List the agents that have a profile, and where their programs are on this
machine. With --state, list the files that agents keep for projects.

Exit status: 0, or 125 if they cannot be read.`,
		Example: "  paddock agent ls\n  paddock agent ls --state",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if states {
				return a.listStates(asJSON)
			}
			list := a.agents()
			if asJSON {
				return PrintJSON(a.Stdout, list)
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "AGENT\tPROGRAM\tVERSION\tTESTED\tPROFILE")
			for _, r := range list {
				program, profile := r.Program, r.Profile
				switch {
				case r.Fault != "":
					program = "the profile is not valid: " + r.Fault
				case program == "":
					program = "not installed: " + r.install
				}
				if profile == "" {
					profile = "built in"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Name, OneLine(program), orDash(r.Version), orDash(r.Tested), OneLine(profile))
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&states, "state", false, "list the files that agents keep for projects")
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return OneLine(text)
}

func (a *App) listStates(asJSON bool) error {
	dir, err := a.agentData()
	if err != nil {
		return err
	}
	list, err := agentprofile.List(dir)
	if err != nil {
		return fmt.Errorf("files of agents: %w", err)
	}
	if asJSON {
		if list == nil {
			list = []agentprofile.Entry{}
		}
		return PrintJSON(a.Stdout, list)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tUSED\tPROJECT")
	for _, e := range list {
		project := OneLine(e.Workspace)
		if e.Gone {
			project += " (not there any more)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.ID, e.Used.Local().Format(time.DateTime), project)
	}
	return w.Flush()
}

// stateOf returns the profile of an agent, and the ID of its files for this directory.
func (a *App) stateOf(name string) (p *agentprofile.Profile, dir, id string, err error) {
	if p, err = a.profile(name); err != nil {
		return nil, "", "", err
	}
	if dir, err = a.agentData(); err != nil {
		return nil, "", "", err
	}
	workspace, err := a.Dir()
	if err != nil {
		return nil, "", "", fmt.Errorf("working directory: %w", err)
	}
	id, err = agentprofile.IDOf(name, workspace)
	return p, dir, id, err
}

// notCompared tells what is missing in a comparison, first of all whether changes may be.
func (a *App) notCompared(sum *agentprofile.Comparison) {
	for _, why := range sum.Cut {
		fmt.Fprintf(a.Stderr, "paddock: NOT ALL could be compared, and changes may be missing: %s\n", OneLine(why))
	}
	for i, note := range sum.Notes {
		if i == told {
			fmt.Fprintf(a.Stderr, "paddock: note: and %d more are not compared\n", len(sum.Notes)-told)
			break
		}
		fmt.Fprintf(a.Stderr, "paddock: note: not compared: %s\n", OneLine(note))
	}
}

// agentChanges returns what an agent changed in files that an agent outside would obey. Cut is the error that not all could
// be compared; the list is what could.
func (a *App) agentChanges(name string, paths []string) (list []agentprofile.Change, dir, id string, cut, err error) {
	p, dir, id, err := a.stateOf(name)
	if err != nil {
		return nil, "", "", nil, err
	}
	sum, err := agentprofile.Changes(dir, id, p)
	if errors.Is(err, paddock.NotFound) {
		return nil, "", "", nil, noFiles(name)
	}
	if err != nil {
		return nil, "", "", nil, err
	}
	list = sum.List
	a.notCompared(sum)
	if len(sum.Cut) > 0 {
		cut = fmt.Errorf("not all that an agent outside would obey could be compared: %w", paddock.Denied)
	}
	if len(paths) == 0 {
		return list, dir, id, cut, nil
	}
	var chosen []agentprofile.Change
	for _, path := range paths {
		path := strings.TrimPrefix(path, "~/")
		if home, _ := a.Lookup("HOME"); home != "" {
			path = strings.TrimPrefix(path, home+"/") // as a shell expands ~
		}
		before := len(chosen)
		for _, c := range list {
			if (within(c.Name, path) || within(c.Host, path)) && !slices.ContainsFunc(chosen, func(o agentprofile.Change) bool { return o.Name == c.Name }) {
				chosen = append(chosen, c)
			}
		}
		if len(chosen) == before {
			return nil, "", "", cut, WithHint(fmt.Errorf("nothing changed at ~/%s that an agent outside would obey: %w", OneLine(path), paddock.NotFound), "`paddock agent diff %s` lists what changed", name)
		}
	}
	return chosen, dir, id, cut, nil
}

func noFiles(name string) error {
	return WithHint(fmt.Errorf("%s has no files for this directory: %w", name, paddock.NotFound), "`paddock agent ls --state` lists the directories for which agents have files")
}

// changeText is a change in words, safe for a terminal.
func changeText(c *agentprofile.Change) string {
	var b strings.Builder
	verb := "edited"
	switch {
	case c.Before == nil:
		verb = "created"
	case c.After == nil:
		verb = "removed"
	}
	fmt.Fprintf(&b, "~/%s: %s", OneLine(c.Host), verb)
	if c.Exec {
		b.WriteString(", can be executed now")
	}
	if isBinaryText(c.Before) || isBinaryText(c.After) {
		b.WriteString("; not text\n")
		return b.String()
	}
	b.WriteByte('\n')
	if !bytes.Equal(c.Before, c.After) {
		for line := range strings.Lines(step.Unified("before", "after", c.Before, c.After)) {
			fmt.Fprintln(&b, printable(strings.TrimRight(line, "\n")))
		}
	}
	return b.String()
}

// isBinaryText reports whether a file is not shown. Bytes that are no UTF-8 are shown escaped.
func isBinaryText(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 }

// A shownChange is a change as JSON.
type shownChange struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// changesAsJSON writes a list of changes, of which it holds one at a time.
func (a *App) changesAsJSON(list []agentprofile.Change) error {
	var wrong []error
	begin := "[\n  "
	for _, c := range list {
		if err := c.Read(); err != nil {
			wrong = append(wrong, err)
			continue
		}
		text, err := jsonText(shownChange{"~/" + c.Host, changeText(&c)}, "  ")
		if err != nil {
			return err
		}
		indented := bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\n"), []byte("\n  ")) // a text in JSON has none
		if _, err := fmt.Fprintf(a.Stdout, "%s%s", begin, indented); err != nil {
			return err
		}
		begin = ",\n  "
	}
	end := "\n]\n"
	if begin[0] == '[' {
		end = "[]\n"
	}
	_, err := fmt.Fprint(a.Stdout, end)
	return errors.Join(append(wrong, err)...)
}

func (a *App) agentDiffCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff [flags] AGENT [PATH…]",
		Short: "Show what an agent changed in its settings, hooks and plug-ins",
		Long: `Show what the agent changed, in its files for this directory, of what an agent
outside of a sandbox would obey: settings, hooks, plug-ins, instructions. Nothing
of it has reached your own files. paddock agent take takes it over.

Exit status: 0, or 125 if the agent has no files for this directory, or not all
could be compared.`,
		Example: "  paddock agent diff claude\n  paddock agent diff claude ~/.claude/settings.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list, _, _, cut, err := a.agentChanges(args[0], args[1:])
			if err != nil {
				return err
			}
			if asJSON {
				return errors.Join(cut, a.changesAsJSON(list))
			}
			if len(list) == 0 && cut == nil {
				fmt.Fprintf(a.Stderr, "paddock: %s changed nothing that an agent outside would obey\n", OneLine(args[0]))
			}
			wrong := []error{cut}
			for _, c := range list { // a copy of each: what it reads is gone with it
				if err := c.Read(); err != nil {
					wrong = append(wrong, err)
					continue
				}
				if _, err := fmt.Fprint(a.Stdout, changeText(&c)); err != nil {
					return err
				}
			}
			return errors.Join(wrong...)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

func (a *App) agentTakeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "take AGENT [PATH…]",
		Short: "Take over to your own files what an agent changed in its settings",
		Long: `Take over what the agent changed to your own files, such as ~/.claude/settings.json.
Each change is shown, and asked about at the terminal. A file that you changed
meanwhile is left as it is. What you take over, an agent outside of a sandbox
will do: a hook is a program that runs with all your rights.

Exit status: 0, or 125 if something could not be taken over.`,
		Example: "  paddock agent take claude\n  paddock agent take claude ~/.claude/skills/review",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list, dir, id, cut, err := a.agentChanges(args[0], args[1:])
			if err != nil {
				return err
			}
			home, _ := a.Lookup("HOME")
			if home == "" {
				return WithHint(fmt.Errorf("there is no home to take it to: %w", paddock.Invalid), "set HOME")
			}
			wrong := []error{cut}
			for _, c := range list { // a copy of each: what it reads is gone with it
				if err := a.takeOne(dir, id, home, &c, len(args) > 1); err != nil {
					wrong = append(wrong, err)
				}
			}
			if len(list) == 0 && cut == nil {
				fmt.Fprintf(a.Stderr, "paddock: %s changed nothing that an agent outside would obey\n", args[0])
			}
			return errors.Join(wrong...)
		},
	}
}

// takeOne shows what a change makes of the host's file, asks, and makes it. Named is that the caller named paths.
func (a *App) takeOne(dir, id, home string, c *agentprofile.Change, named bool) error {
	if err := c.Read(); err != nil {
		return err
	}
	there, after, err := c.Onto(home)
	if err != nil {
		fmt.Fprint(a.Stderr, changeText(c))
		return err
	}
	shown := *c
	shown.Before, shown.After = there, after
	question := "take this over to ~/" + c.Host + "?"
	if isBinaryText(there) || isBinaryText(after) {
		if !named {
			fmt.Fprint(a.Stderr, changeText(&shown))
			return WithHint(fmt.Errorf("~/%s: it is not text, so it cannot be shown: %w", OneLine(c.Host), paddock.Denied), "name it, if it is to be taken over unseen")
		}
		question = "it is NOT shown, because it is not text: " + question
	}
	yes, err := a.askBelow(changeText(&shown), question)
	if err != nil {
		return WithHint(err, "take changes over at a terminal; `paddock agent diff` shows them")
	}
	if !yes {
		return nil
	}
	return agentprofile.Take(dir, id, home, *c)
}

func (a *App) agentResetCommand() *cobra.Command {
	var gone bool
	c := &cobra.Command{
		Use:   "reset [flags] AGENT|ID",
		Short: "Remove the files that an agent keeps for this directory",
		Long: `Remove the files that an agent keeps for this directory, with its sessions. The
next run begins with a copy of your settings. An ID of paddock agent ls --state
names those of another directory. With --gone, it is those of directories that
are not there any more.

Exit status: 0, or 125 if a sandbox uses them.`,
		Example: "  paddock agent reset claude\n  paddock agent reset --gone",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if gone == (len(args) > 0) {
				return WithHint(fmt.Errorf("which files: %w", paddock.Invalid), "name an agent or an ID of `paddock agent ls --state`, or give --gone")
			}
			dir, err := a.agentData()
			if err != nil {
				return err
			}
			if gone {
				return resetGone(dir)
			}
			if agentprofile.IsID(args[0]) {
				return agentprofile.Reset(dir, args[0])
			}
			_, _, id, err := a.stateOf(args[0])
			if err != nil {
				return err
			}
			err = agentprofile.Reset(dir, id)
			if errors.Is(err, paddock.NotFound) {
				return noFiles(args[0])
			}
			return err
		},
	}
	c.Flags().BoolVar(&gone, "gone", false, "remove those of directories that are not there any more")
	return c
}

func resetGone(dir string) error {
	list, err := agentprofile.List(dir)
	if err != nil {
		return fmt.Errorf("files of agents: %w", err)
	}
	var wrong []error
	for _, e := range list {
		if e.Gone {
			wrong = append(wrong, agentprofile.Reset(dir, e.ID))
		}
	}
	return errors.Join(wrong...)
}
