package daytona

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// Codes of errors of git that clients have a class for.
const (
	codeGitAuth      = "GIT_AUTH_FAILED"
	codeGitNoRepo    = "GIT_REPO_NOT_FOUND"
	codeGitNoBranch  = "GIT_BRANCH_NOT_FOUND"
	codeGitBranch    = "GIT_BRANCH_EXISTS"
	codeGitRejected  = "GIT_PUSH_REJECTED"
	codeGitDirty     = "GIT_DIRTY_WORKTREE"
	codeGitConflict  = "GIT_MERGE_CONFLICT"
	codeGitTransport = "GIT_TRANSPORT_FAILED"
	codeGitRemote    = "GIT_REMOTE_REJECTED"
)

// Bounds of an answer. A guest's git may write anything: a short entry takes many times its bytes here.
const (
	maxHistory = 1000    // commits
	maxListed  = 100_000 // files, branches or remotes
)

// few refuses an output of git with more entries than an answer has.
func few(out, end string) error {
	if n := strings.Count(out, end); n > maxListed {
		return refuse(http.StatusRequestEntityTooLarge, paddock.Exhausted, "git tells %d entries, and an answer has up to %d: ask git itself, by exec", n, maxListed)
	}
	return nil
}

// gitTable returns the routes of git, below a sandbox's path. The sandbox's own git does the work, as the sandbox's user.
func gitTable() []route {
	return []route{
		{"POST /git/clone", (*call).gitClone, false},
		{"POST /git/init", (*call).gitInit, false},
		{"GET /git/status", (*call).gitStatus, false},
		{"POST /git/add", (*call).gitAdd, false},
		{"POST /git/commit", (*call).gitCommit, false},
		{"GET /git/history", (*call).gitHistory, false},
		{"GET /git/branches", (*call).gitBranches, false},
		{"POST /git/branches", (*call).gitMakeBranch, false},
		{"DELETE /git/branches", (*call).gitRemoveBranch, false},
		{"POST /git/checkout", (*call).gitCheckout, false},
		{"POST /git/push", (*call).gitPush, false},
		{"POST /git/pull", (*call).gitPull, false},
		{"POST /git/reset", (*call).gitReset, false},
		{"POST /git/restore", (*call).gitRestore, false},
		{"GET /git/remotes", (*call).gitRemotes, false},
		{"POST /git/remotes", (*call).gitAddRemote, false},
		{"GET /git/config", (*call).gitConfig, false},
		{"POST /git/config", (*call).gitSetConfig, false},
		{"POST /git/config/user", (*call).gitUser, false},
		{"POST /git/credentials", (*call).gitCredentials, false},
	}
}

// A gitRun is one command of git.
type gitRun struct {
	path  string // of the repository; empty is the sandbox's directory
	args  []string
	login login // for a remote that asks
	env   map[string]string
}

// A login is a name and a password for the host of one remote, and for none that it leads to.
type login struct{ username, password, url string }

// options return git's options by which a helper answers for that host. Where it is not known there are none.
func (l login) options() []string {
	u, err := url.Parse(l.url)
	if l.password == "" || err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil
	}
	return []string{"-c", "credential.helper=", "-c", "credential." + u.Scheme + "://" + u.Host + ".helper=" + helper}
}

// helper answers git's question for a login from two variables of its own process.
const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$PADDOCK_GIT_USERNAME" "$PADDOCK_GIT_PASSWORD"; }; f`

// git runs git inside, and returns what it wrote.
func (c *call) git(g gitRun) (string, error) {
	sb, rec, err := c.opened(true)
	if err != nil {
		return "", err
	}
	texts := append([]string{g.path, g.login.username, g.login.password}, g.args...)
	texts = slices.AppendSeq(texts, maps.Values(g.env))
	if len(g.path) > maxPath || strings.ContainsRune(strings.Join(texts, ""), 0) {
		return "", invalid("a path has up to %d bytes, and no text for git a zero byte", maxPath)
	}
	args := []string{"git", "-c", "advice.detachedHead=false"}
	env := map[string]string{"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
	for name, value := range g.env {
		env[name] = value
	}
	if options := g.login.options(); options != nil {
		args = append(args, options...)
		env["PADDOCK_GIT_USERNAME"], env["PADDOCK_GIT_PASSWORD"] = g.login.username, g.login.password
	}
	out, errs := &capture{place: c.place}, &capture{place: c.place}
	cmd := paddock.Cmd{Args: append(args, g.args...), Env: rec.env(env), Dir: rec.absolute(g.path), Output: paddock.Output{Stdout: out, Stderr: errs}}
	exit, err := c.run(sb, cmd, "")
	var start *paddock.StartError
	if errors.As(err, &start) {
		if start.Code == 127 && start.Path == "git" {
			return "", cannot("there is no git in this sandbox")
		}
		return "", coded(404, codeGitNoRepo, paddock.NotFound, "%s: %v", dialect.Printable(g.path), err)
	}
	if err != nil {
		return "", err
	}
	if _, _, err := ended(exit); err != nil {
		return "", err
	}
	if exit.Code != 0 {
		return out.String(), gitFault(errs.String()+out.String(), exit.Code)
	}
	return out.String(), nil
}

// A gitExit is the status with which git failed, for questions that it answers so.
type gitExit struct {
	error
	code int
}

func (e gitExit) Unwrap() error { return e.error }

// gitFault finds the code for what git said.
func gitFault(said string, exit int) error {
	said = strings.TrimSpace(said)
	low := strings.ToLower(said)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	fault := func(status int, code string, kind paddock.Kind) error {
		return gitExit{coded(status, code, kind, "git: %s", said), exit}
	}
	switch {
	case has("authentication failed", "could not read username", "could not read password", "permission denied (publickey", "error: 403", "error: 401"):
		return fault(401, codeGitAuth, paddock.Denied)
	case has("[remote rejected]", "pre-receive hook declined", "remote: fatal"):
		return fault(422, codeGitRemote, paddock.Denied)
	case has("[rejected]", "non-fast-forward", "fetch first", "stale info"):
		return fault(409, codeGitRejected, paddock.Conflict)
	case has("conflict (", "unmerged files", "unresolved conflict", "fix conflicts", "not concluded your merge"):
		return fault(409, codeGitConflict, paddock.Conflict)
	case has("would be overwritten", "your local changes", "uncommitted changes", "cannot pull with rebase: you have"):
		return fault(409, codeGitDirty, paddock.Conflict)
	case has("could not resolve host", "failed to connect", "couldn't connect", "connection refused", "connection timed out", "ssl", "tls", "network is unreachable", "empty reply"):
		return fault(502, codeGitTransport, paddock.Unavailable)
	case has("not a git repository", "repository not found", "does not appear to be a git repository", "does not exist", "error: 404") && !has("pathspec"),
		strings.Contains(low, "repository '") && strings.Contains(low, "not found"):
		return fault(404, codeGitNoRepo, paddock.NotFound)
	case has("a branch named") && has("already exists"):
		return fault(409, codeGitBranch, paddock.Exists)
	case has("remote branch") && has("not found"), has("did not match any file(s) known to git"), has("invalid reference"), has("branch '") && has("not found"), has("not a valid object name"), has("couldn't find remote ref"), has("src refspec"):
		return fault(404, codeGitNoBranch, paddock.NotFound)
	}
	return fault(400, "", paddock.Invalid)
}

// ref refuses a name that git would take for an option.
func ref(what, name string) error {
	if strings.HasPrefix(name, "-") || len(name) > maxName {
		return invalid("%s: %q is no name", what, dialect.Printable(name))
	}
	return nil
}

func refs(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := ref(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// done runs git, and answers with nothing.
func (c *call) done(g gitRun, status int) error {
	if _, err := c.git(g); err != nil {
		return err
	}
	return c.nothing(status)
}

func (c *call) gitClone() error {
	var q struct {
		URL      string `json:"url"`
		Path     string `json:"path"`
		Branch   string `json:"branch"`
		Commit   string `json:"commit_id"`
		Depth    int    `json:"depth"`
		Insecure bool   `json:"insecure_skip_tls"`
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.URL == "" || q.Path == "" {
		return invalid("url and path are required")
	}
	if err := refs("url", q.URL, "branch", q.Branch, "commit_id", q.Commit); err != nil {
		return err
	}
	args := []string{"clone", "--quiet"}
	if q.Insecure {
		args = append([]string{"-c", "http.sslVerify=false"}, args...)
	}
	if q.Branch != "" {
		args = append(args, "--branch", q.Branch)
	}
	if q.Depth > 0 {
		args = append(args, "--depth", strconv.Itoa(q.Depth))
	}
	g := gitRun{args: append(args, "--", q.URL, q.Path), login: login{q.Username, q.Password, q.URL}}
	if _, err := c.git(g); err != nil {
		return err
	}
	if q.Commit == "" {
		return c.nothing(http.StatusOK)
	}
	return c.done(gitRun{path: q.Path, args: []string{"checkout", "--quiet", "--detach", q.Commit}}, http.StatusOK)
}

func (c *call) gitInit() error {
	var q struct {
		Path   string `json:"path"`
		Bare   bool   `json:"bare"`
		Branch string `json:"initialBranch"`
		Older  string `json:"initial_branch"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.Branch == "" {
		q.Branch = q.Older
	}
	if err := refs("initialBranch", q.Branch); err != nil {
		return err
	}
	args := []string{"init", "--quiet"}
	if q.Bare {
		args = append(args, "--bare")
	}
	if q.Branch != "" {
		args = append(args, "--initial-branch="+q.Branch)
	}
	return c.done(gitRun{args: append(args, "--", q.Path)}, http.StatusCreated)
}

// A gitFile is a file of a status.
type gitFile struct {
	Name     string `json:"name"`
	Extra    string `json:"extra"` // where a renamed one was
	Staging  string `json:"staging"`
	Worktree string `json:"worktree"`
}

// A gitState is the status of a repository.
type gitState struct {
	CurrentBranch   string    `json:"currentBranch"`
	FileStatus      []gitFile `json:"fileStatus"`
	Ahead           int       `json:"ahead"`
	Behind          int       `json:"behind"`
	BranchPublished bool      `json:"branchPublished"`
	Detached        bool      `json:"detached"`
	Upstream        string    `json:"upstream"`
}

// words names the letters of git's status.
var words = map[byte]string{
	'.': "Unmodified", 'M': "Modified", 'T': "Modified", 'A': "Added", 'D': "Deleted", 'R': "Renamed", 'C': "Copied", 'U': "Updated but unmerged",
}

// parseStatus reads what git status --porcelain=v2 --branch -z writes. A guest's git may write anything.
func parseStatus(text string) gitState {
	s := gitState{FileStatus: []gitFile{}}
	entries := strings.Split(text, "\x00")
	for i := 0; i < len(entries); i++ {
		line := entries[i]
		kind, rest, _ := strings.Cut(line, " ")
		fields := func(n int) []string { return strings.SplitN(rest, " ", n) }
		add := func(xy, name, extra string) {
			if len(xy) == 2 {
				s.FileStatus = append(s.FileStatus, gitFile{name, extra, word(xy[0]), word(xy[1])})
			}
		}
		switch kind {
		case "#":
			s.header(rest)
		case "1":
			if f := fields(8); len(f) == 8 {
				add(f[0], f[7], "")
			}
		case "2":
			if f := fields(9); len(f) == 9 && i+1 < len(entries) {
				i++
				add(f[0], f[8], entries[i])
			}
		case "u":
			if f := fields(10); len(f) == 10 {
				add(f[0], f[9], "")
			}
		case "?":
			s.FileStatus = append(s.FileStatus, gitFile{rest, "", "Untracked", "Untracked"})
		}
	}
	return s
}

func word(letter byte) string {
	if w, ok := words[letter]; ok {
		return w
	}
	return words['M']
}

func (s *gitState) header(line string) {
	name, value, _ := strings.Cut(line, " ")
	switch name {
	case "branch.head":
		if s.Detached = value == "(detached)"; !s.Detached {
			s.CurrentBranch = value
		}
	case "branch.upstream":
		s.Upstream, s.BranchPublished = value, true
	case "branch.ab":
		ahead, behind, _ := strings.Cut(value, " ")
		s.Ahead, _ = strconv.Atoi(strings.TrimPrefix(ahead, "+"))
		s.Behind, _ = strconv.Atoi(strings.TrimPrefix(behind, "-"))
	}
}

func (c *call) gitStatus() error {
	out, err := c.git(gitRun{path: c.URL.Query().Get("path"), args: []string{"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"}})
	if err != nil {
		return err
	}
	if err := few(out, "\x00"); err != nil {
		return err
	}
	s := parseStatus(out)
	if s.Detached {
		if head, err := c.git(gitRun{path: c.URL.Query().Get("path"), args: []string{"rev-parse", "--short", "HEAD"}}); err == nil {
			s.CurrentBranch = strings.TrimSpace(head)
		}
	}
	return c.json(http.StatusOK, s)
}

func (c *call) gitAdd() error {
	var q struct {
		Path  string   `json:"path"`
		Files []string `json:"files"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	return c.done(gitRun{path: q.Path, args: append([]string{"add", "--"}, q.Files...)}, http.StatusOK)
}

func (c *call) gitCommit() error {
	var q struct {
		Path       string `json:"path"`
		Message    string `json:"message"`
		Author     string `json:"author"`
		Email      string `json:"email"`
		AllowEmpty bool   `json:"allow_empty"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	args := []string{"commit", "--quiet", "--message", q.Message}
	if q.AllowEmpty {
		args = append(args, "--allow-empty")
	}
	env := map[string]string{}
	if q.Author != "" {
		env["GIT_AUTHOR_NAME"], env["GIT_COMMITTER_NAME"] = q.Author, q.Author
	}
	if q.Email != "" {
		env["GIT_AUTHOR_EMAIL"], env["GIT_COMMITTER_EMAIL"] = q.Email, q.Email
	}
	if _, err := c.git(gitRun{path: q.Path, args: args, env: env}); err != nil {
		return err
	}
	hash, err := c.git(gitRun{path: q.Path, args: []string{"rev-parse", "HEAD"}})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]string{"hash": strings.TrimSpace(hash)})
}

// A gitCommitInfo is a commit of a history.
type gitCommitInfo struct {
	Hash      string `json:"hash"`
	Author    string `json:"author"`
	Email     string `json:"email"`
	Message   string `json:"message"`
	Timestamp string `json:"timestamp"`
}

func (c *call) gitHistory() error {
	out, err := c.git(gitRun{path: c.URL.Query().Get("path"), args: []string{"log", "-z", "--max-count=" + strconv.Itoa(maxHistory), "--format=%H%x1f%an%x1f%ae%x1f%aI%x1f%B"}})
	if err != nil {
		return err
	}
	list := []gitCommitInfo{}
	for one := range strings.SplitSeq(out, "\x00") {
		if f := strings.SplitN(one, "\x1f", 5); len(f) == 5 && len(list) < maxHistory {
			list = append(list, gitCommitInfo{f[0], f[1], f[2], f[4], f[3]})
		}
	}
	return c.json(http.StatusOK, list)
}

func (c *call) gitBranches() error {
	at := c.URL.Query().Get("path")
	out, err := c.git(gitRun{path: at, args: []string{"for-each-ref", "--format=%(refname:short)", "refs/heads"}})
	if err != nil {
		return err
	}
	if err := few(out, "\n"); err != nil {
		return err
	}
	current, err := c.git(gitRun{path: at, args: []string{"branch", "--show-current"}})
	if err != nil {
		return err
	}
	branches := []string{}
	for name := range strings.Lines(out) {
		branches = append(branches, strings.TrimSuffix(name, "\n"))
	}
	return c.json(http.StatusOK, map[string]any{"branches": branches, "current": strings.TrimSpace(current)})
}

// A gitBranch is the body of requests about a branch.
type gitBranch struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Branch string `json:"branch"`
}

// branch reads the body of a request about a branch.
func (c *call) branch() (gitBranch, error) {
	var q gitBranch
	if err := c.body(&q, false); err != nil {
		return q, err
	}
	if q.Name == "" {
		q.Name = q.Branch
	}
	if q.Name == "" {
		return q, invalid("name is required")
	}
	return q, refs("name", q.Name)
}

func (c *call) gitMakeBranch() error {
	q, err := c.branch()
	if err != nil {
		return err
	}
	return c.done(gitRun{path: q.Path, args: []string{"branch", q.Name}}, http.StatusCreated)
}

func (c *call) gitRemoveBranch() error {
	q, err := c.branch()
	if err != nil {
		return err
	}
	return c.done(gitRun{path: q.Path, args: []string{"branch", "-D", q.Name}}, http.StatusNoContent)
}

func (c *call) gitCheckout() error {
	q, err := c.branch()
	if err != nil {
		return err
	}
	return c.done(gitRun{path: q.Path, args: []string{"checkout", "--quiet", q.Name, "--"}}, http.StatusOK)
}

// A gitTransfer is the body of a push or a pull.
type gitTransfer struct {
	Path     string `json:"path"`
	Remote   string `json:"remote"`
	Branch   string `json:"branch"`
	Upstream bool   `json:"set_upstream"`
	Username string `json:"username"`
	Password string `json:"password"`
}

func (c *call) transfer() (gitTransfer, error) {
	var q gitTransfer
	if err := c.body(&q, false); err != nil {
		return q, err
	}
	return q, refs("remote", q.Remote, "branch", q.Branch)
}

// transferred pushes or pulls, with the login for the host of the remote as it is when git is asked.
func (c *call) transferred(q gitTransfer, args []string) error {
	g := gitRun{path: q.Path, args: args}
	if q.Password != "" {
		ask := []string{"ls-remote", "--get-url"}
		if q.Remote != "" {
			ask = append(ask, q.Remote)
		}
		at, err := c.git(gitRun{path: q.Path, args: ask})
		if err != nil {
			return err
		}
		g.login = login{q.Username, q.Password, strings.TrimSpace(at)}
	}
	return c.done(g, http.StatusOK)
}

func (c *call) gitPush() error {
	q, err := c.transfer()
	if err != nil {
		return err
	}
	args := []string{"push", "--quiet"}
	if q.Upstream {
		args = append(args, "--set-upstream")
	}
	if q.Remote == "" {
		q.Remote = "origin"
	}
	if q.Branch == "" {
		q.Branch = "HEAD"
	}
	return c.transferred(q, append(args, q.Remote, q.Branch))
}

func (c *call) gitPull() error {
	q, err := c.transfer()
	if err != nil {
		return err
	}
	args := []string{"-c", "pull.rebase=false", "pull", "--quiet", "--no-edit"}
	if q.Branch != "" && q.Remote == "" {
		q.Remote = "origin"
	}
	for _, name := range []string{q.Remote, q.Branch} {
		if name != "" {
			args = append(args, name)
		}
	}
	return c.transferred(q, args)
}

func (c *call) gitReset() error {
	var q struct {
		Path   string   `json:"path"`
		Mode   string   `json:"mode"`
		Target string   `json:"target"`
		Files  []string `json:"files"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.Target == "" {
		q.Target = "HEAD"
	}
	if err := refs("target", q.Target); err != nil {
		return err
	}
	if len(q.Files) > 0 {
		return c.done(gitRun{path: q.Path, args: append([]string{"reset", "--quiet", q.Target, "--"}, q.Files...)}, http.StatusOK)
	}
	switch q.Mode {
	case "":
		q.Mode = "mixed"
	case "soft", "mixed", "hard", "merge", "keep":
	default:
		return invalid("mode: %q is not soft, mixed, hard, merge or keep", dialect.Printable(q.Mode))
	}
	return c.done(gitRun{path: q.Path, args: []string{"reset", "--quiet", "--" + q.Mode, q.Target, "--"}}, http.StatusOK)
}

func (c *call) gitRestore() error {
	var q struct {
		Path     string   `json:"path"`
		Files    []string `json:"files"`
		Source   string   `json:"source"`
		Staged   bool     `json:"staged"`
		Worktree *bool    `json:"worktree"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if len(q.Files) == 0 {
		return invalid("files is required")
	}
	args := []string{"restore", "--quiet"}
	if q.Source != "" {
		args = append(args, "--source="+q.Source)
	}
	if q.Staged {
		args = append(args, "--staged")
	}
	if q.Worktree != nil && *q.Worktree {
		args = append(args, "--worktree")
	}
	return c.done(gitRun{path: q.Path, args: append(append(args, "--"), q.Files...)}, http.StatusOK)
}

func (c *call) gitRemotes() error {
	out, err := c.git(gitRun{path: c.URL.Query().Get("path"), args: []string{"remote", "--verbose"}})
	if err != nil {
		return err
	}
	if err := few(out, "\n"); err != nil {
		return err
	}
	type remote struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	list := []remote{}
	for line := range strings.Lines(out) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if at, ok := strings.CutSuffix(rest, " (fetch)"); ok {
			list = append(list, remote{name, at})
		}
	}
	return c.json(http.StatusOK, map[string]any{"remotes": list})
}

func (c *call) gitAddRemote() error {
	var q struct {
		Path      string `json:"path"`
		Name      string `json:"name"`
		URL       string `json:"url"`
		Fetch     bool   `json:"fetch"`
		Overwrite bool   `json:"overwrite"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if err := refs("name", q.Name, "url", q.URL); err != nil {
		return err
	}
	_, err := c.git(gitRun{path: q.Path, args: []string{"remote", "add", q.Name, q.URL}})
	var exit gitExit
	if q.Overwrite && errors.As(err, &exit) && exit.code == 3 { // it is there
		_, err = c.git(gitRun{path: q.Path, args: []string{"remote", "set-url", q.Name, q.URL}})
	}
	if err != nil {
		return err
	}
	if q.Fetch {
		return c.done(gitRun{path: q.Path, args: []string{"fetch", "--quiet", q.Name}}, http.StatusCreated)
	}
	return c.nothing(http.StatusCreated)
}

// scope returns git's option for a scope.
func scope(text string) (string, error) {
	switch text {
	case "", "global":
		return "--global", nil
	case "local", "system":
		return "--" + text, nil
	}
	return "", invalid("scope: %q is not global, local or system", dialect.Printable(text))
}

func (c *call) gitConfig() error {
	v := c.URL.Query()
	args := []string{"config"}
	if text := v.Get("scope"); text != "" {
		option, err := scope(text)
		if err != nil {
			return err
		}
		args = append(args, option)
	}
	if err := refs("key", v.Get("key")); err != nil {
		return err
	}
	out, err := c.git(gitRun{path: v.Get("path"), args: append(args, "--get", v.Get("key"))})
	var exit gitExit
	if errors.As(err, &exit) && exit.code == 1 {
		return c.json(http.StatusOK, map[string]any{"value": nil})
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"value": strings.TrimSuffix(out, "\n")})
}

func (c *call) gitSetConfig() error {
	var q struct {
		Path  string `json:"path"`
		Scope string `json:"scope"`
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	option, err := scope(q.Scope)
	if err != nil {
		return err
	}
	if err := refs("key", q.Key); err != nil {
		return err
	}
	return c.done(gitRun{path: q.Path, args: []string{"config", option, q.Key, q.Value}}, http.StatusOK)
}

func (c *call) gitUser() error {
	var q struct {
		Path  string `json:"path"`
		Scope string `json:"scope"`
		Name  string `json:"name"`
		Email string `json:"email"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	option, err := scope(q.Scope)
	if err != nil {
		return err
	}
	if _, err := c.git(gitRun{path: q.Path, args: []string{"config", option, "user.name", q.Name}}); err != nil {
		return err
	}
	return c.done(gitRun{path: q.Path, args: []string{"config", option, "user.email", q.Email}}, http.StatusOK)
}

// gitCredentials handles POST …/git/credentials: a login that git inside keeps, in the sandbox's home.
func (c *call) gitCredentials() error {
	var q struct {
		Host     string `json:"host"`
		Protocol string `json:"protocol"`
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.Protocol == "" {
		q.Protocol = "https"
	}
	if q.Host == "" {
		return invalid("host is required")
	}
	for _, text := range []string{q.Host, q.Protocol, q.Username, q.Password} {
		if strings.ContainsAny(text, "\r\n\x00") {
			return invalid("a login has no line breaks")
		}
	}
	if _, err := c.git(gitRun{args: []string{"config", "--global", "credential.helper", "store"}}); err != nil {
		return err
	}
	sb, rec, err := c.opened(true)
	if err != nil {
		return err
	}
	text := "protocol=" + q.Protocol + "\nhost=" + q.Host + "\nusername=" + q.Username + "\npassword=" + q.Password + "\n\n"
	errs := &capture{place: c.place}
	exit, err := c.run(sb, paddock.Cmd{Args: []string{"git", "credential", "approve"}, Dir: rec.Dir, Output: paddock.Output{Stdout: errs, Stderr: errs}}, text)
	if err != nil {
		return err
	}
	if exit.Code != 0 {
		return gitFault(errs.String(), exit.Code)
	}
	return c.nothing(http.StatusOK)
}
