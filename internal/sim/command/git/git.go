// Package git is git for local work: go-git on the computer's file system, with
// the messages of git. It reaches neither a network nor a file of the host: the
// library's transports, its use of the host's configuration and alternates are
// never called.
package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"time"

	lib "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the programs.
func Commands() []command.Command { return []command.Command{{Name: "git", Run: run}} }

// A work is a run of git.
type work struct {
	t    *kernel.Task
	dir  string // of the worktree; of the repository itself if it is bare
	git  string // of the repository
	bare bool   // there is no worktree
	repo *lib.Repository
	disk *store
	held *books
	wt   *lib.Worktree
	set  [][2]string // of -c

	aliases int // how often an alias was another's

	capture *strings.Builder // takes what would be printed
	narrow  int              // how wide a statistic may be, if not as usual
}

// A fatal error ends the run with git's status for it.
type fatal struct {
	text   string
	status int
}

func (e *fatal) Error() string { return e.text }

func fail(format string, args ...any) error {
	return &fatal{"fatal: " + fmt.Sprintf(format, args...), 128}
}

func wrong(format string, args ...any) error {
	return &fatal{"error: " + fmt.Sprintf(format, args...), 1}
}

// A status is an exit status without words.
type status int

func (status) Error() string { return "exit" }

func run(t *kernel.Task) int {
	w := &work{t: t}
	args := t.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch a := args[0]; {
		case a == "--version" || a == "-v":
			fmt.Fprintln(t.Out(), version)
			return 0
		case a == "--help" || a == "-h":
			help(t)
			return 0
		case a == "-C" && len(args) > 1:
			if err := t.View.Chdir(args[1]); err != nil {
				return w.say(fail("cannot change to '%s': %s", args[1], message(err)))
			}
			args = args[1:]
		case a == "-c" && len(args) > 1:
			k, v, _ := strings.Cut(args[1], "=")
			w.set = append(w.set, [2]string{strings.ToLower(k), v})
			args = args[1:]
		case a == "--no-pager" || a == "-P" || a == "--no-optional-locks":
		default:
			t.Errorf("unknown option: %s", a)
			return 129
		}
		args = args[1:]
	}
	if len(args) == 0 {
		help(t)
		return 1
	}
	return w.say(w.guarded(args[0], args[1:]))
}

// guarded is command, where the library's panics are errors: it does not read
// every file of a repository as one that a stranger wrote.
func (w *work) guarded(name string, args []string) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case runtime.Error:
			err = fail("a file of the repository is corrupt: %v", r)
		default:
			panic(r)
		}
	}()
	return w.command(name, args)
}

func message(err error) string {
	var n linux.Errno
	switch {
	case errors.As(err, &n):
	case errors.Is(err, fs.ErrNotExist):
		n = linux.ENOENT
	case errors.Is(err, fs.ErrExist):
		n = linux.EEXIST
	case errors.Is(err, fs.ErrPermission):
		n = linux.EACCES
	}
	if n != 0 {
		return vfs.Message(n)
	}
	s := err.Error()
	if i := strings.LastIndex(s, ": "); i >= 0 {
		s = s[i+2:]
	}
	return s
}

// say prints an error and gives the status.
func (w *work) say(err error) int {
	if err == nil {
		return 0
	}
	var s status
	if errors.As(err, &s) {
		return int(s)
	}
	var f *fatal
	if !errors.As(err, &f) {
		f = &fatal{"fatal: " + err.Error(), 128}
	}
	_ = w.t.Flush() // the end of the program tells of it
	_, _ = w.t.Write(2, []byte(f.text+"\n"))
	return f.status
}

// version is of the git whose words these are.
const version = "git version 2.39.5"

func help(t *kernel.Task) {
	fmt.Fprint(t.Out(), `usage: git [-v | --version] [-h | --help] [-C <path>] [-c <name>=<value>] <command> [<args>]

Local work in this sandbox; there is no network, and no hooks are run:
   start     clone (of a path in here) init
   change    add mv restore rm clean apply am
   look      diff grep log show status blame shortlog describe reflog
   history   branch commit merge rebase reset revert cherry-pick switch checkout
             tag stash format-patch archive
   together  fetch pull push remote (of paths in here)
   inside    config rev-parse rev-list ls-files ls-tree cat-file hash-object
             merge-base for-each-ref show-ref symbolic-ref update-ref write-tree
             commit-tree diff-tree check-ignore name-rev
`)
}

func (w *work) command(name string, args []string) error {
	switch name {
	case "submodule", "worktree", "bisect", "send-email", "notes", "filter-branch", "lfs", "svn", "p4", "credential", "daemon", "bundle", "range-diff", "replace", "sparse-checkout", "maintenance":
		return fail("%s is not supported in this sandbox", name)
	case "init":
		return w.init(args)
	case "clone":
		return w.clone(args)
	case "help":
		help(w.t)
		return nil
	case "version":
		w.printf("%s\n", version)
		return nil
	case "ls-remote":
		_ = w.open() // a path needs no repository
		return w.lsRemote(args)
	}
	f, bare := w.verb(name)
	if f == nil {
		_ = w.open() // an alias of the user needs no repository
		if text, ok := w.configured("alias." + name); ok {
			return w.alias(name, text, args)
		}
		return &fatal{"git: '" + name + "' is not a git command. See 'git --help'.", 1}
	}
	err := w.open()
	switch {
	case err != nil && name != "config" && name != "hash-object":
		return err
	case w.bare && !bare:
		return fail("this operation must be run in a work tree")
	}
	return f(args)
}

// alias runs a command under a name of the user's.
func (w *work) alias(name, text string, args []string) error {
	words := strings.Fields(text)
	switch {
	case strings.HasPrefix(text, "!"):
		return fail("alias '%s' starts a program, which is not supported in this sandbox", name)
	case len(words) == 0:
		return fail("empty alias for %s", name)
	case w.aliases > 10:
		return fail("alias loop detected: expansion of '%s' does not terminate", name)
	}
	w.aliases++
	return w.command(words[0], append(words[1:], args...))
}

// verb finds what does a command; bare tells that it needs no worktree.
func (w *work) verb(name string) (f func([]string) error, bare bool) {
	f, ok := map[string]func([]string) error{
		"add": w.add, "stage": w.add, "rm": w.remove, "mv": w.move, "restore": w.restore, "commit": w.commit, "status": w.status,
		"checkout": w.checkout, "switch": w.change, "reset": w.reset, "merge": w.merge, "cherry-pick": w.cherryPick, "revert": w.revert, "rebase": w.rebase,
		"stash": w.stash, "clean": w.clean, "pull": w.pull, "apply": w.applyPatch, "am": w.am, "ls-files": w.lsFiles, "check-ignore": w.checkIgnore,
	}[name]
	if ok {
		return f, false
	}
	return map[string]func([]string) error{
		"diff": w.diff, "log": w.log, "show": w.show, "branch": w.branch, "tag": w.tag, "config": w.config, "remote": w.remote, "rev-parse": w.revParse,
		"cat-file": w.catFile, "hash-object": w.hashObject, "merge-base": w.mergeBase, "reflog": w.reflog, "rev-list": w.revList, "ls-tree": w.lsTree, "describe": w.describe,
		"shortlog": w.shortlog, "blame": w.blame, "annotate": w.annotate, "grep": w.grep, "archive": w.archive, "fetch": w.fetch, "push": w.push, "format-patch": w.formatPatch,
		"gc": w.nothing, "prune": w.nothing, "repack": w.nothing, "fsck": w.refused("fsck"), "pack-refs": w.nothing, "symbolic-ref": w.symbolicRef, "show-ref": w.showRef,
		"update-ref": w.updateRef, "write-tree": w.writeTreeOf, "commit-tree": w.commitTree, "for-each-ref": w.forEachRef, "diff-tree": w.diffTree, "whatchanged": w.log, "name-rev": w.nameRev, "count-objects": w.refused("count-objects"), "var": w.variable,
	}[name], true
}

// nothing is what tidies a repository up: it is small, and stays as it is.
func (*work) nothing([]string) error { return nil }

// refused is a command whose answer would be made up.
func (*work) refused(name string) func([]string) error {
	return func([]string) error { return fail("%s is not supported in this sandbox", name) }
}

// open finds the repository around the working directory.
func (w *work) open() error {
	dir, err := w.t.View.Getwd()
	if err != nil {
		return fail("unable to read current working directory: %s", message(err))
	}
	for {
		if i, err := w.t.View.Stat(path.Join(dir, ".git", "HEAD")); err == nil && !i.IsDir() {
			return w.at(dir, path.Join(dir, ".git"))
		}
		if w.isBare(dir) {
			return w.at(dir, dir)
		}
		if dir == "/" {
			return fail("not a git repository (or any of the parent directories): .git")
		}
		dir = path.Dir(dir)
	}
}

// isBare reports whether a directory is itself a repository.
func (w *work) isBare(dir string) bool {
	for _, n := range []string{"HEAD", "objects", "refs"} {
		if i, err := w.t.View.Stat(path.Join(dir, n)); err != nil || i.IsDir() != (n != "HEAD") {
			return false
		}
	}
	return true
}

// at opens the repository of a worktree.
func (w *work) at(dir, git string) error {
	var err error
	w.dir, w.git, w.disk = dir, git, w.storage(git)
	if v, ok := lookup(w.read(w.file("config")), "core.bare"); dir == git || ok && v == "true" {
		w.bare = true
		w.repo, err = lib.Open(w.disk, nil)
	} else {
		w.repo, err = lib.Open(w.disk, &tree{t: w.t, root: dir})
	}
	if err != nil {
		return fail("%v", err)
	}
	if !w.bare {
		w.wt, err = w.repo.Worktree()
	}
	return err
}

func (w *work) storage(git string) *store {
	fs := &tree{t: w.t, root: git, meta: true}
	b := w.books()
	return &store{filesystem.NewStorage(fs, nil), b, &objects{books: b, dir: path.Join(git, "objects")}}
}

// books gives the account of what the command holds.
func (w *work) books() *books {
	if w.held == nil {
		w.held = newBooks(w.t)
	}
	return w.held
}

func (w *work) init(args []string) error {
	o, err := w.options(args, "-q --quiet --bare", "-b --initial-branch --template --object-format --shared")
	if err != nil {
		return err
	}
	branch := "master"
	if v, ok := w.configured("init.defaultbranch"); ok {
		branch = v
	}
	if v := o.flags["-b"] + o.flags["--initial-branch"]; v != "" {
		branch = v
	}
	dir := "."
	if len(o.rest) > 0 {
		dir = o.rest[0]
	}
	full, err := w.absolute(dir)
	if err != nil {
		return err
	}
	git := path.Join(full, ".git")
	if o.has("--bare") {
		git = full
	}
	word := "Initialized empty"
	if _, err := w.t.View.Stat(path.Join(git, "HEAD")); err == nil {
		word = "Reinitialized existing"
	} else if err := w.found(full, git, branch); err != nil {
		return err
	}
	if !o.has("-q", "--quiet") {
		w.printf("%s Git repository in %s/\n", word, strings.TrimSuffix(git, "/"))
	}
	return nil
}

// absolute gives a name from the root on.
func (w *work) absolute(name string) (string, error) {
	if path.IsAbs(name) {
		return path.Clean(name), nil
	}
	cwd, err := w.t.View.Getwd()
	return path.Join(cwd, name), err
}

// found makes an empty repository.
func (w *work) found(dir, git, branch string) error {
	if err := w.t.View.MkdirAll(dir, 0o777); err != nil {
		return fail("cannot mkdir %s: %s", dir, message(err))
	}
	ref := plumbing.NewBranchReferenceName(branch)
	if err := ref.Validate(); err != nil {
		return fail("invalid initial branch name: '%s'", branch)
	}
	var err error
	if dir == git {
		_, err = lib.InitWithOptions(w.storage(git), nil, lib.InitOptions{DefaultBranch: ref})
	} else {
		_, err = lib.InitWithOptions(w.storage(git), &tree{t: w.t, root: dir}, lib.InitOptions{DefaultBranch: ref})
	}
	if err != nil {
		return fail("%v", err)
	}
	for _, sub := range []string{"refs/heads", "refs/tags", "objects/info", "objects/pack"} {
		if err := w.t.View.MkdirAll(path.Join(git, sub), 0o777); err != nil {
			return err
		}
	}
	bare := "false"
	more := "\tlogallrefupdates = true\n"
	if dir == git {
		bare, more = "true", ""
	}
	return w.t.View.WriteFile(path.Join(git, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = "+bare+"\n"+more), 0o666)
}

// globalFile names the user's configuration in the computer.
func (w *work) globalFile() string { return path.Join("/", w.t.Getenv("HOME"), ".gitconfig") }

func (w *work) read(name string) *config.Config {
	c := config.New()
	if b, err := w.t.View.ReadFile(name, 1<<20); err == nil {
		_ = config.NewDecoder(strings.NewReader(string(b))).Decode(c) // what is broken is not read
	}
	return c
}

// split takes a key apart: section, subsection, name.
func split(key string) (section, sub, name string, ok bool) {
	first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
	if first <= 0 || last == len(key)-1 {
		return "", "", "", false
	}
	if first < last {
		sub = key[first+1 : last]
	}
	return strings.ToLower(key[:first]), sub, strings.ToLower(key[last+1:]), true
}

func lookup(c *config.Config, key string) (string, bool) {
	section, sub, name, ok := split(key)
	if !ok || !c.HasSection(section) {
		return "", false
	}
	s := c.Section(section)
	if sub != "" {
		if !s.HasSubsection(sub) {
			return "", false
		}
		return s.Subsection(sub).Option(name), s.Subsection(sub).HasOption(name)
	}
	return s.Option(name), s.HasOption(name)
}

// configured looks a setting up: of -c, of the repository, of the user.
func (w *work) configured(key string) (string, bool) {
	for i := len(w.set) - 1; i >= 0; i-- {
		if w.set[i][0] == strings.ToLower(key) {
			return w.set[i][1], true
		}
	}
	if w.dir != "" {
		if v, ok := lookup(w.read(w.file("config")), key); ok {
			return v, true
		}
	}
	return lookup(w.read(w.globalFile()), key)
}

// signature gives who does what is done, by the environment and settings.
func (w *work) signature(role string) (*object.Signature, error) {
	s := &object.Signature{Name: w.t.Getenv("GIT_" + role + "_NAME"), Email: w.t.Getenv("GIT_" + role + "_EMAIL"), When: w.t.K.Now().UTC()}
	if s.Name == "" {
		s.Name, _ = w.configured("user.name")
	}
	if s.Email == "" {
		s.Email, _ = w.configured("user.email")
	}
	if s.Name == "" || s.Email == "" {
		return nil, &fatal{"Author identity unknown\n\n*** Please tell me who you are.\n\nRun\n\n  git config --global user.email \"you@example.com\"\n  git config --global user.name \"Your Name\"\n\nto set your account's default identity.\nOmit --global to set the identity only in this repository.\n\nfatal: unable to auto-detect email address", 128}
	}
	if d := w.t.Getenv("GIT_" + role + "_DATE"); d != "" {
		when, err := date(d)
		if err != nil {
			return nil, fail("invalid date format: %s", d)
		}
		s.When = when
	}
	return s, nil
}

// date reads the forms of dates that programs write.
func date(s string) (time.Time, error) {
	var sec int64
	var zone int
	if n, err := fmt.Sscanf(strings.TrimPrefix(s, "@"), "%d %d", &sec, &zone); n == 2 && err == nil {
		off := (zone/100)*3600 + (zone%100)*60
		return time.Unix(sec, 0).In(time.FixedZone("", off)), nil
	}
	if strings.HasPrefix(s, "@") {
		if _, err := fmt.Sscanf(s, "@%d", &sec); err == nil {
			return time.Unix(sec, 0).UTC(), nil
		}
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", "2006-01-02T15:04:05-0700", time.RFC1123Z, time.RFC1123,
		"Mon Jan 2 15:04:05 2006 -0700", "Mon Jan 2 15:04:05 2006", "2006-01-02",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("no date")
}

// head gives the commit of HEAD, or nil before the first.
func (w *work) head() *object.Commit {
	ref, err := w.repo.Head()
	if err != nil {
		return nil
	}
	c, err := w.repo.CommitObject(ref.Hash())
	if err != nil {
		return nil
	}
	return c
}

// branchName gives the current branch; ok is false where HEAD is detached.
func (w *work) branchName() (name string, ok bool) {
	ref, err := w.repo.Reference(plumbing.HEAD, false)
	if err != nil || ref.Type() != plumbing.SymbolicReference {
		return "HEAD", false
	}
	return ref.Target().Short(), true
}

// relative gives a path of the worktree for a word of the command line.
func (w *work) relative(name string) (string, error) {
	full := name
	if !path.IsAbs(full) {
		cwd, err := w.t.View.Getwd()
		if err != nil {
			return "", err
		}
		full = path.Join(cwd, name)
	}
	full = path.Clean(full)
	if full == w.dir {
		return ".", nil
	}
	prefix := strings.TrimSuffix(w.dir, "/") + "/"
	if !strings.HasPrefix(full, prefix) {
		return "", fail("%s: '%s' is outside repository at '%s'", name, name, w.dir)
	}
	return strings.TrimPrefix(full, prefix), nil
}

func short(h plumbing.Hash) string { return h.String()[:7] }

func (w *work) printf(format string, args ...any) {
	if w.capture != nil {
		s := fmt.Sprintf(format, args...)
		w.t.Grow(len(s))
		w.capture.WriteString(s)
		return
	}
	fmt.Fprintf(w.t.Out(), format, args...)
}

func asFatal(err error, f **fatal) bool { return errors.As(err, f) }

func asStatus(err error, s *status) bool { return errors.As(err, s) }
