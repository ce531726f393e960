package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agentlogin"
	"github.com/paddock-sandbox/paddock/internal/agentprofile"
)

// An agentRun is one run of an agent.
type agentRun struct {
	app       *App
	flags     *agentFlags
	profile   *agentprofile.Profile
	workspace string // real path
	home      string // the caller's, or empty
	inside    string // the home in the sandbox
	program   *agentprofile.Program
	args      []string
	off       []string // what the profile switches off or on, in words
	keys      []string // variables of API keys that stay outside
	usual     bool     // the limit of memory is the profile's, and not asked for
	state     *agentprofile.Home
	login     *agentlogin.Login // nil is none
}

// runAgent is the command: it makes flags of run out of a profile.
func (a *App) runAgent(ctx context.Context, name string, f *agentFlags, args []string, changed func(string) bool) error {
	r, err := a.newAgentRun(name, f)
	if err != nil {
		return err
	}
	if f.json == "-" {
		return WithHint(fmt.Errorf("--json: standard output is the agent's: %w", paddock.Invalid), "write the object to a file: --json=FILE")
	}
	set := r.compose(args, changed)
	dir, err := a.agentData()
	if err != nil {
		return err
	}
	if r.state, err = agentprofile.Open(dir, r.home, r.workspace, r.profile); err != nil {
		return WithHint(err, "`paddock agent reset %s` begins anew", name)
	}
	defer r.leave()
	if err := r.logIn(dir); err != nil {
		return err
	}
	f.later = r.state.Mounts(r.profile)
	f.amend, f.started, f.summary = r.amend, r.started, r.summary
	return a.run(ctx, &f.runFlags, r.args, func(flag string) bool { return changed(flag) || slices.Contains(set, flag) })
}

// logIn prepares the subscriptions of the profile: the sandbox gets files with placeholders.
func (r *agentRun) logIn(dir string) error {
	if len(r.profile.Login) == 0 || r.home == "" {
		return nil
	}
	var err error
	o := agentlogin.Options{Sections: r.profile.Login, Home: r.home, Lock: filepath.Join(dir, "login"), State: r.state.ID}
	r.login, err = agentlogin.Prepare(o)
	if errors.Is(err, paddock.Conflict) {
		return WithHint(fmt.Errorf("%s runs already in this project, with your login: %w", r.profile.Title, err),
			"end that run first, or start the second one in a copy of the project (git worktree add ../COPY)")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.profile.Name, err)
	}
	files, err := r.login.Files()
	for _, f := range files {
		err = errors.Join(err, r.state.Put(f.Path, f.Content))
	}
	return err
}

// leave gives back what the run holds.
func (r *agentRun) leave() {
	err := r.state.Close()
	if r.login != nil {
		err = errors.Join(err, r.login.Close())
	}
	if err != nil {
		r.app.complain(fmt.Errorf("%s: %w", r.profile.Name, err))
	}
}

// newAgentRun finds the profile, the program and the project of a run.
func (a *App) newAgentRun(name string, f *agentFlags) (*agentRun, error) {
	r := &agentRun{app: a, flags: f}
	var err error
	if r.profile, err = a.profile(name); err != nil {
		return nil, err
	}
	if r.workspace, err = a.Dir(); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	r.home, _ = a.Lookup("HOME")
	if !filepath.IsAbs(r.home) {
		r.home = ""
	}
	r.inside = r.home
	if os.Geteuid() == 0 || r.home == "" {
		r.inside = "/home/user"
	}
	if why := tooMuch(r.workspace, r.home); why != "" {
		return nil, WithHint(fmt.Errorf("the directory %s %s: %w", r.workspace, why, paddock.Denied), "go to a project directory: cd PROJECT && paddock %s", name)
	}
	if err := r.project(); err != nil {
		return nil, err
	}
	search, _ := a.Lookup("PATH")
	if r.program, err = agentprofile.FindProgram(r.profile, search, r.home, r.workspace); err != nil {
		if errors.Is(err, paddock.NotFound) {
			return nil, WithHint(err, "%s", installWords(r.profile))
		}
		return nil, WithHint(err, "install it outside of the project, and put its directory into PATH before the project's")
	}
	return r, nil
}

// installWords says how an agent is installed.
func installWords(p *agentprofile.Profile) string {
	switch {
	case p.Package.NPM != "":
		return "npm install -g " + p.Package.NPM
	case p.Package.PIP != "":
		return "pipx install " + p.Package.PIP + ", or uv tool install " + p.Package.PIP
	case p.Package.URL != "":
		return "its maker tells how: " + p.Package.URL
	}
	return "install it, so that a directory of PATH has it"
}

// project adds what the project's file adds, if the user approved it.
func (r *agentRun) project() error {
	if r.flags.noProject {
		return nil
	}
	data, err := agentprofile.OpenProject(r.workspace)
	if err != nil {
		return WithHint(err, "--no-project passes it over")
	}
	if data == nil {
		return nil
	}
	add, err := agentprofile.ReadProject(agentprofile.ProjectFile, data)
	if err != nil {
		return WithHint(err, "--no-project passes it over")
	}
	if err := r.app.approve(r.workspace, data, ""); err != nil {
		return err
	}
	r.profile = r.profile.Add(add)
	return nil
}

// compose sets the flags of run as the profile says, and returns their names. The caller's own flags win.
func (r *agentRun) compose(args []string, changed func(string) bool) (set []string) {
	f, p := r.flags, r.profile
	f.workspace = r.workspace
	f.git = !f.noGit && r.app.hasGit(r.workspace)
	set = append(set, "workspace")
	f.publishing = true
	f.terminal = isTerminal(r.app.Stdin) && isTerminal(r.app.Stdout)
	if f.review && !changed("undo") {
		f.undo = ""
	}
	if p.Memory != "" && !changed("memory") {
		if err := f.memory.Set(p.Memory); err == nil { // the profile was checked
			set, r.usual = append(set, "memory"), true
		}
	}
	for _, e := range p.Env {
		for name, value := range e.Set {
			if rest, ok := strings.CutPrefix(value, "~/"); ok {
				value = filepath.Join(r.inside, rest)
			}
			f.env = append(listFlag{name + "=" + value}, f.env...) // what the caller gives comes later, and wins
		}
		r.says(e.Says)
	}
	for _, name := range []string{"COLORTERM", "TERM_PROGRAM", "LANG", "LC_ALL", "LC_CTYPE", "TZ"} {
		if v, ok := r.app.Lookup(name); ok && len(v) < 64 && !strings.ContainsAny(v, "\x00\n/") {
			f.env = append(listFlag{name + "=" + v}, f.env...)
		}
	}
	f.allow = append(f.allow, p.Allow...)
	r.secrets()
	if len(f.secret) > 0 {
		set = append(set, "secret")
	}
	if len(f.allow) > 0 {
		set = append(set, "allow")
	}
	if r.program.Show != "" {
		f.read = append(f.read, r.program.Show)
	}
	r.args = []string{r.program.Run}
	for _, x := range p.Args {
		if !slices.ContainsFunc(x.Unless, func(word string) bool { return given(args, word) }) {
			r.args = append(r.args, x.Add...)
			r.says(x.Says)
		}
	}
	r.args = append(r.args, args...)
	return set
}

// given reports whether an argument is among those of the user, also with a value.
func given(args []string, word string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if a == word || strings.HasPrefix(a, word+"=") {
			return true
		}
	}
	return false
}

func (r *agentRun) says(text string) {
	if text != "" && !slices.Contains(r.off, text) {
		r.off = append(r.off, text)
	}
}

// secrets keeps the API keys outside that the caller has in the environment. A key that the caller names by --secret or
// --env is the caller's own affair.
func (r *agentRun) secrets() {
	f := r.flags
	for _, k := range r.profile.Keys {
		named := func(list listFlag) bool {
			return slices.ContainsFunc(list, func(text string) bool { n, _, _ := strings.Cut(text, "="); return n == k.Variable })
		}
		if value, ok := r.app.Lookup(k.Variable); !ok || value == "" || named(f.secret) || named(f.env) {
			continue
		}
		f.secret = append(f.secret, fmt.Sprintf("%s=env:%s@%s", k.Variable, k.Variable, strings.Join(k.Hosts, ",")))
		r.keys = append(r.keys, k.Variable)
	}
}

// amend adds the agent's files to the plan.
func (r *agentRun) amend(p *plan) error {
	if r.usual { // as for a tier's own default, the best that this machine can do is enough
		p.spec.AllowMissing = append(p.spec.AllowMissing, paddock.ControlMemory)
	}
	for _, dir := range r.profile.State.Keep {
		at := filepath.Join(r.inside, dir[2:])
		for _, m := range p.spec.Mounts {
			if t := target(m); !m.Cache && (within(t, at) || within(at, t)) {
				return WithHint(fmt.Errorf("%s is shown in the sandbox, and %s keeps its files at %s there: %w", t, r.profile.Name, at, paddock.Invalid),
					"go to another directory, or leave out the flag that shows it")
			}
		}
	}
	p.spec.Mounts = append(p.spec.Mounts, r.flags.later...)
	for i, s := range p.spec.Policy.Network.Secrets { // so that an agent knows again that it may use the key
		if slices.ContainsFunc(r.profile.Keys, func(k agentprofile.Key) bool { return k.Variable == s.Name }) {
			p.spec.Policy.Network.Secrets[i].End = r.state.Ends
		}
	}
	if r.login != nil {
		n := &p.spec.Policy.Network
		if rules := r.login.Rules(); len(rules) > 0 {
			n.Mode, n.Rules = paddock.NetworkList, append(slices.Clone(n.Rules), rules...)
		}
		p.login, p.hidden = joinLogins(p.login, r.login), r.login.Private()
	}
	return nil
}

// started tells in one line what the sandbox is. Where files were copied, a second one tells that.
func (r *agentRun) started(p *plan, b *oneShot) {
	w := r.app.Stderr
	writes := "changes can be undone"
	switch {
	case r.flags.review:
		writes = "changes are proposed"
	case p.steps == nil:
		writes = "changes CANNOT be undone"
	}
	parts := []string{
		fmt.Sprintf("%s on tier %s", r.profile.Title, b.tier),
		fmt.Sprintf("writes %s (%s) and files of its own", OneLine(r.workspace), writes),
		"reaches " + r.reach(),
	}
	if words := p.git.words(); words != "" {
		parts = append(parts, words)
	}
	if len(r.keys) > 0 {
		parts = append(parts, Join(r.keys)+" stays outside")
	}
	if r.login != nil && len(r.keys) == 0 {
		parts = append(parts, OneLine(strings.Join(r.login.Words(), ", ")))
	}
	if len(r.off) > 0 {
		parts = append(parts, Join(r.off))
	}
	fmt.Fprintf(w, "paddock: %s\n", strings.Join(parts, "; "))
	if !r.state.New {
		return
	}
	fmt.Fprintf(w, "paddock: this is its first run here: its settings are a copy of yours, without logins, keys, hooks and sessions\n")
	for i, note := range r.state.Notes {
		if i == told {
			fmt.Fprintf(w, "paddock: note: and %d more are not copied\n", len(r.state.Notes)-told)
			break
		}
		fmt.Fprintf(w, "paddock: note: not copied: %s\n", OneLine(note))
	}
}

// reach lists the hosts that the agent reaches, in words.
func (r *agentRun) reach() string {
	const most = 4
	var hosts []string
	for _, text := range r.flags.allow {
		hosts = append(hosts, strings.Split(text, ",")...)
	}
	switch n := len(hosts); {
	case n == 0:
		return "nothing"
	case n > most:
		return fmt.Sprintf("%s and %d more", OneLine(Join(hosts[:most])), n-most)
	}
	return OneLine(Join(hosts))
}

// summary tells at the end which hosts were refused, and how they are allowed. What changed was told by the steps.
func (r *agentRun) summary(res *result, seen *paddock.Status) {
	w := r.app.Stderr
	if len(res.Steps) == 0 && res.Proposal == 0 {
		fmt.Fprintln(w, "paddock: nothing changed in this directory that is recorded")
	}
	if seen == nil {
		return
	}
	hosts, flags, rest := refusedHosts(seen.Refused)
	if len(hosts) > 0 {
		fmt.Fprintf(w, "paddock: hosts that were refused: %s\n", OneLine(strings.Join(hosts, ", ")))
		fmt.Fprintf(w, "hint: to allow them, if the agent needs them: %s %s\n", r.command(), OneLine(strings.Join(flags, " ")))
	}
	refusals(w, rest)
}

// command is how this agent is run. Only agents of this version have a short form.
func (r *agentRun) command() string {
	if slices.Contains(agentprofile.Names(), r.profile.Name) {
		return "paddock " + r.profile.Name
	}
	return "paddock agent " + r.profile.Name
}

// refusedHosts takes hosts from a list of refusals, with the flags that allow them. Rest is the other refusals.
func refusedHosts(list []paddock.Refusal) (hosts, flags []string, rest []paddock.Refusal) {
	for _, f := range list {
		allow, ok := strings.CutPrefix(f.Remedy, "--allow ")
		if !ok || strings.ContainsAny(allow, " \t;") {
			rest = append(rest, f)
			continue
		}
		if slices.Contains(flags, "--allow "+allow) {
			continue
		}
		hosts, flags = append(hosts, f.Target), append(flags, "--allow "+allow)
	}
	if n := len(hosts); n > told {
		hosts = append(hosts[:told], fmt.Sprintf("and %d more", n-told))
		flags = flags[:told]
	}
	return hosts, flags, rest
}
