package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agentprofile"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/gitconfigcheck"
	"github.com/paddock-sandbox/paddock/internal/gitlogin"
)

// A gitUse is the login of git that a run uses. Nil is none.
type gitUse struct{ broker *gitlogin.Broker }

// hasGit reports whether a directory has a repository, and this machine has git.
func (a *App) hasGit(workspace string) bool {
	if _, err := os.Lstat(filepath.Join(workspace, ".git")); err != nil {
		return false
	}
	mounts := []paddock.Mount{{Source: workspace, Write: true}}
	lookup, _ := a.cleanLookup(mounts)
	b, err := gitlogin.New(context.Background(), lookup, reachOf(mounts), gitlogin.Config{Named: true})
	if err == nil {
		b.Close()
	}
	return !errors.Is(err, paddock.NotFound)
}

// cleanLookup is the caller's environment without what the sandbox could rewrite, as a monitor gets it. The list grows with
// what is left out, except of PATH, where a directory of the project is usual.
func (a *App) cleanLookup(mounts []paddock.Mount) (lookup func(string) (string, bool), left *[]string) {
	left = &[]string{}
	return func(name string) (string, bool) {
		v, ok := a.Lookup(name)
		if !ok {
			return "", false
		}
		clean, without := cleanEnvironment([]string{name + "=" + v}, mounts)
		for _, one := range without {
			if name != "PATH" && !slices.Contains(*left, one) {
				*left = append(*left, one)
			}
		}
		if len(clean) == 0 {
			return "", false
		}
		return strings.TrimPrefix(clean[0], name+"="), true
	}, left
}

func reachOf(mounts []paddock.Mount) func(string) bool {
	return func(path string) bool {
		_, inside := inReach(path, mounts, true)
		return inside
	}
}

// useGit lets git in the sandbox use the caller's login for the remotes of the workspace. Later are mounts that the plan
// does not have yet. Asked is that the caller wants it by name: else what cannot be is left out, and told.
func (p *plan) useGit(ctx context.Context, a *App, later []paddock.Mount, asked bool) error {
	n := &p.spec.Policy.Network
	switch {
	case p.workspace == "":
		return WithHint(fmt.Errorf("--git: there is no workspace whose remotes could be reached: %w", paddock.Invalid), "name it: --workspace .")
	case p.spec.Tier == paddock.Sim:
		return WithHint(fmt.Errorf("--git: the tier sim has no git: %w", paddock.Unsupported), "leave --tier out, or take another one")
	case n.Mode == paddock.NetworkHost:
		return WithHint(fmt.Errorf("--git: with the whole network of this machine, nothing can be put into requests: %w", paddock.Invalid), "leave --git out, or have a network of rules: --allow HOST")
	}
	b, err := p.gitBroker(ctx, a, slices.Concat(p.spec.Mounts, later))
	switch {
	case errors.Is(err, paddock.NotFound) && asked:
		return WithHint(fmt.Errorf("--git: %w", err), "install git, or leave --git out")
	case err != nil && asked:
		return WithHint(fmt.Errorf("--git: %w", err), "mend that, or leave --git out")
	case err != nil:
		fmt.Fprintf(a.Stderr, "paddock: note: git inside gets no login: %s\n", OneLineOf(err.Error(), Paragraph))
		return nil
	}
	for i, note := range b.Notes() {
		if i == told {
			break
		}
		fmt.Fprintf(a.Stderr, "paddock: note: %s\n", OneLine(note))
	}
	if rules := b.Rules(); len(rules) > 0 {
		n.Mode, n.Rules = paddock.NetworkList, append(slices.Clone(n.Rules), rules...)
		p.login = joinLogins(p.login, b)
	}
	p.git = &gitUse{b}
	return p.setGit(b.Settings())
}

// gitBroker makes the broker for the remotes that are approved. Nothing that git outside runs or obeys is in these mounts.
func (p *plan) gitBroker(ctx context.Context, a *App, mounts []paddock.Mount) (*gitlogin.Broker, error) {
	config, err := repositoryConfig(p.workspace, p.host.Home)
	if err != nil {
		return nil, err
	}
	work, err := filepath.EvalSymlinks(p.workspace)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	found := gitlogin.Read(config)
	if found.Remotes, err = a.approvedRemotes(work, found.Remotes); err != nil {
		return nil, err
	}
	lookup, left := a.cleanLookup(mounts)
	b, err := gitlogin.New(ctx, lookup, reachOf(mounts), found)
	if len(*left) > 0 {
		fmt.Fprintf(a.Stderr, "paddock: note: your git is asked without what the sandbox could rewrite: %s\n", OneLineOf(Join(*left), Paragraph))
	}
	return b, err
}

// approvedRemotes returns the remotes of a workspace, at its real path, for which the user approved that sandboxes there
// use the login. An earlier sandbox can have added a remote, so the user is asked about each by itself, once.
func (a *App) approvedRemotes(work string, list []gitlogin.Remote) (kept []gitlogin.Remote, err error) {
	dir, err := a.agentData()
	if err != nil {
		return nil, err
	}
	var others []gitlogin.Remote
	for _, r := range list {
		if agentprofile.Approved(dir, work, approvalOf(r)) {
			kept = append(kept, r)
		} else {
			others = append(others, r)
		}
	}
	if len(others) == 0 {
		return kept, nil
	}
	var left []string
	for i, name := range namesOf(others) {
		if i >= questionsMax || !a.saysYes("may sandboxes of this directory use your git's login for "+name+", also to push?") {
			left = append(left, name)
			continue
		}
		for _, r := range others {
			if r.String() != name {
				continue
			}
			if err := agentprofile.Approve(dir, work, approvalOf(r)); err != nil {
				return nil, err
			}
			kept = append(kept, r)
		}
	}
	for i, name := range left {
		if i == told {
			fmt.Fprintf(a.Stderr, "paddock: note: and %d more remotes are not approved\n", len(left)-told)
			break
		}
		fmt.Fprintf(a.Stderr, "paddock: note: git does not get your login for %s, which you have not approved: paddock agent approve --git %s\n", OneLineOf(name, Paragraph), OneLineOf(name, Paragraph))
	}
	return kept, nil
}

// questionsMax bounds the questions about remotes before one run. A box can add many.
const questionsMax = 8

// saysYes asks at the terminal. Where there is none, there is nobody who agrees.
func (a *App) saysYes(question string) bool {
	yes, err := a.askYes(question)
	return err == nil && yes
}

func namesOf(list []gitlogin.Remote) []string {
	var names []string
	for _, r := range list {
		if !slices.Contains(names, r.String()) {
			names = append(names, r.String())
		}
	}
	return names
}

// approvalOf is what stands for a remote among approvals. No file of a project has the same contents: YAML has no NUL.
func approvalOf(r gitlogin.Remote) []byte { return []byte("\x00git remote " + r.String()) }

// approveGit approves remotes of a workspace that the user names.
func (a *App) approveGit(workspace string, names []string) error {
	work, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	home, _ := a.Lookup("HOME")
	config, err := repositoryConfig(workspace, home)
	if err != nil {
		return err
	}
	list := gitlogin.Read(config).Remotes
	dir, err := a.agentData()
	if err != nil {
		return err
	}
	for _, name := range names {
		i := slices.IndexFunc(list, func(r gitlogin.Remote) bool { return r.String() == name })
		if i < 0 {
			return WithHint(fmt.Errorf("--git %s: this directory has no such https remote: %w", OneLine(name), paddock.NotFound), "it has %s", orNone(OneLine(Join(namesOf(list)))))
		}
		if err := agentprofile.Approve(dir, work, approvalOf(list[i])); err != nil {
			return err
		}
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// setGit adds settings of git to those that the sandbox gets by variables.
func (p *plan) setGit(list [][2]string) error {
	env := maps.Clone(p.spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	text, own := env["GIT_CONFIG_COUNT"]
	if !own { // a sandbox has this one, unless it is given others
		text, list = "0", append([][2]string{{"core.checkStat", "minimal"}}, list...)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1000 {
		return WithHint(fmt.Errorf("GIT_CONFIG_COUNT is %.20q, which is no count: %w", text, paddock.Invalid), "leave the variable out, or --git")
	}
	for _, s := range list {
		env["GIT_CONFIG_KEY_"+strconv.Itoa(n)], env["GIT_CONFIG_VALUE_"+strconv.Itoa(n)] = s[0], s[1]
		n++
	}
	env["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	p.spec.Env = env
	return nil
}

// repositoryConfig reads the configuration of the repository of a workspace, also where that is a linked working tree. It
// follows no link out of either, and is empty where there is none.
func repositoryConfig(workspace, home string) ([]byte, error) {
	top, name := workspace, ".git/config"
	if common, ok := commonDir(workspace, home); ok {
		top, name = common, "config"
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	defer f.Close()
	const most = gitconfigcheck.MaxSize
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("workspace: %s is no file: %w", name, errors.Join(err, paddock.Invalid))
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || len(data) > most {
		return nil, fmt.Errorf("workspace: %s cannot be read, or is larger than %d KiB: %w", name, most>>10, errors.Join(err, paddock.Invalid))
	}
	return data, nil
}

// words says what git inside can do, or nothing.
func (g *gitUse) words() string {
	if g == nil {
		return ""
	}
	return OneLine(g.broker.Words())
}

// close ends what still asks git outside.
func (g *gitUse) close() {
	if g != nil {
		g.broker.Close()
	}
}

// failed tells for which repositories there was no login when git inside wanted them.
func (g *gitUse) failed(w io.Writer) {
	if g == nil {
		return
	}
	if list := g.broker.Failed(); len(list) > 0 {
		fmt.Fprintf(w, "paddock: note: your git has no login for %s; whatever needs one was refused there\n", OneLine(strings.Join(list, ", ")))
	}
}

// logins are several at once. Each has hosts of its own, or requests of its own at the same one.
type logins []gatewayclient.Login

func joinLogins(a, b gatewayclient.Login) gatewayclient.Login {
	if a == nil {
		return b
	}
	return logins{a, b}
}

// Hosts implements [gatewayclient.Login].
func (l logins) Hosts() []string {
	var list []string
	for _, one := range l {
		list = append(list, one.Hosts()...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Login implements [gatewayclient.Login]. The first that does something with a request decides about it, except that
// tokens of all are put in.
func (l logins) Login(ctx context.Context, r gatewayclient.LoginRequest) gatewayclient.LoginAnswer {
	var sum gatewayclient.LoginAnswer
	for _, one := range l {
		a := one.Login(ctx, r)
		if a.Whole || a.Status != 0 || a.Refused != "" {
			return a
		}
		sum.Tokens = append(sum.Tokens, a.Tokens...)
	}
	return sum
}
