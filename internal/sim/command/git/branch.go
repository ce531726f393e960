package git

import (
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

func (w *work) branch(args []string) error {
	// These may stand without a value.
	for i, a := range args {
		if (a == "--merged" || a == "--no-merged" || a == "--contains" || a == "--no-contains") && (i+1 == len(args) || strings.HasPrefix(args[i+1], "-")) {
			args = slices.Insert(slices.Clone(args), i+1, "HEAD")
		}
	}
	o, err := w.options(args, "-a --all -d --delete -D -m --move -M -c --copy -C --show-current -v -vv --verbose --list -l -r --remotes -f --force -q --quiet -t --track --no-track --unset-upstream --no-color --color -i",
		"--format -u --set-upstream-to --merged --no-merged --contains --no-contains --sort --points-at --column --abbrev")
	if err != nil {
		return err
	}
	current, attached := w.branchName()
	switch {
	case o.has("--show-current"):
		if attached {
			w.printf("%s\n", current)
		}
		return nil
	case o.has("-u", "--set-upstream-to"):
		name, up := current, o.flags["-u"]+o.flags["--set-upstream-to"]
		if len(o.rest) > 0 {
			name = o.rest[0]
		}
		if r, ok := w.refName(up); !ok || strings.HasPrefix(string(r.Name()), "refs/tags/") {
			//nolint:dupword // as git says it
			return &fatal{"fatal: the requested upstream branch '" + up + "' does not exist\nhint: \nhint: If you are planning on basing your work on an upstream\nhint: branch that already exists at the remote, you may need to\nhint: run \"git fetch\" to retrieve it.\nhint: \nhint: If you are planning to push out a new local branch that\nhint: will track its remote counterpart, you may want to use\nhint: \"git push -u\" to set the upstream config as you push.\nhint: Disable this message with \"git config advice.setUpstreamFailure false\"", 128}
		}
		return w.track(name, up, true)
	case o.has("--unset-upstream"):
		name := current
		if len(o.rest) > 0 {
			name = o.rest[0]
		}
		if _, _, ok := w.upstream(name); !ok {
			return fail("Branch '%s' has no upstream information", name)
		}
		_ = w.config([]string{"--local", "--unset", "branch." + name + ".remote"}) // one of both may be missing
		return w.config([]string{"--local", "--unset", "branch." + name + ".merge"})
	case o.has("-d", "-D", "--delete"):
		return w.deleteBranches(o, current, attached)
	case o.has("-m", "-M", "--move"):
		from, to := current, ""
		switch len(o.rest) {
		case 1:
			to = o.rest[0]
		case 2:
			from, to = o.rest[0], o.rest[1]
		default:
			return fail("branch name required")
		}
		return w.renameBranch(from, to, attached && from == current, o.has("-M"))
	case o.has("-c", "-C", "--copy") && len(o.rest) > 0:
		from := current
		if len(o.rest) > 1 {
			from = o.rest[0]
		}
		return w.newBranch(o.rest[len(o.rest)-1], "refs/heads/"+from, o.has("-C"))
	case len(o.rest) > 0 && !o.has("--list", "-l", "-a", "--all", "-r", "--remotes", "--merged", "--no-merged", "--contains"):
		start := ""
		if len(o.rest) > 1 {
			start = o.rest[1]
		}
		if o.has("-f", "--force") && attached && o.rest[0] == current {
			return fail("cannot force update the branch '%s' checked out at '%s'", current, w.dir)
		}
		if err := w.newBranch(o.rest[0], start, o.has("-f", "--force")); err != nil || start == "" || o.has("--no-track") {
			return err
		}
		return w.track(o.rest[0], start, o.has("-t", "--track"))
	}
	return w.listBranches(o, current, attached)
}

func (w *work) deleteBranches(o *options, current string, attached bool) error {
	var failed error
	for _, name := range o.rest {
		ref := plumbing.NewBranchReferenceName(name)
		if o.has("-r", "--remotes") {
			ref = plumbing.ReferenceName("refs/remotes/" + name)
		}
		r, err := w.repo.Reference(ref, true)
		if err != nil {
			failed = status(1)
			if err := w.tell("error: branch '%s' not found.\n", name); err != nil {
				return err
			}
			continue
		}
		if attached && name == current && !o.has("-r") {
			failed = status(1)
			if err := w.tell("error: Cannot delete branch '%s' checked out at '%s'\n", name, w.dir); err != nil {
				return err
			}
			continue
		}
		if head := w.head(); !o.has("-D", "-r", "-f", "--force") && head != nil {
			c, err := w.repo.CommitObject(r.Hash())
			if err != nil {
				return err
			}
			if ok, err := w.leads(c, head); err != nil || !ok {
				failed = status(1)
				if err := w.tell("error: The branch '%s' is not fully merged.\nIf you are sure you want to delete it, run 'git branch -D %s'.\n", name, name); err != nil {
					return err
				}
				continue
			}
		}
		if err := w.dropRef(ref); err != nil {
			return err
		}
		if !o.has("-q", "--quiet") {
			what := "branch"
			if o.has("-r") {
				what = "remote-tracking branch"
			}
			w.printf("Deleted %s %s (was %s).\n", what, name, short(r.Hash()))
		}
	}
	return failed
}

// A listed branch is one of a list.
type listed struct {
	name, full, target string
	hash               plumbing.Hash
}

func (w *work) listBranches(o *options, current string, attached bool) error {
	var list []listed
	remotes, all := o.has("-r", "--remotes"), o.has("-a", "--all")
	if !remotes {
		heads, err := w.refsOf("refs/heads/")
		if err != nil {
			return err
		}
		for _, n := range sortedKeys(heads) {
			list = append(list, listed{name: n, full: "refs/heads/" + n, hash: heads[n]})
		}
	}
	if remotes || all {
		more, err := w.remoteBranches(all)
		if err != nil {
			return err
		}
		list = append(list, more...)
	}
	var err error
	list = slices.DeleteFunc(list, func(b listed) bool {
		ok, e := w.listedAs(b, o)
		if e != nil {
			err = e
		}
		return !ok
	})
	if err != nil {
		return err
	}
	if rev, ok := o.flags["--points-at"]; ok {
		c, err := w.commitOf(rev)
		if err != nil {
			return wrong("malformed object name %s", rev)
		}
		list = slices.DeleteFunc(list, func(b listed) bool { return b.hash != c.Hash })
	}
	switch key := o.flags["--sort"]; key {
	case "", "refname":
	case "-refname":
		slices.Reverse(list)
	default:
		return fail("branch --sort=%s is not supported in this sandbox", key)
	}
	width := 0
	head := ""
	if h := w.head(); !attached && h != nil && !remotes {
		w.printf("")
		head = "(HEAD detached at " + short(h.Hash) + ")"
		width = len(head)
	}
	for _, b := range list {
		width = max(width, columns(b.name))
	}
	if head != "" && len(o.rest) == 0 {
		w.printf("* %s", head)
		if c := w.head(); o.has("-v", "-vv", "--verbose") {
			w.printf("%s %s %s", strings.Repeat(" ", width-len(head)), short(c.Hash), subject(c))
		}
		w.printf("\n")
	}
	for _, b := range list {
		if f, ok := o.flags["--format"]; ok {
			w.printf("%s\n", w.refFormat(f, b.full, b.hash, "commit"))
			continue
		}
		mark := ' '
		if attached && b.full == "refs/heads/"+current {
			mark = '*'
		}
		w.printf("%c %s", mark, b.name)
		switch c, err := w.commitOf(b.full); {
		case b.target != "" && !o.has("-v", "-vv"):
			w.printf(" -> %s", b.target)
		case o.has("-v", "-vv", "--verbose") && err == nil:
			w.printf("%s %s ", strings.Repeat(" ", width-columns(b.name)), short(c.Hash))
			w.branchUpstream(b.name, o.has("-vv"))
			w.printf("%s", subject(c))
		}
		w.printf("\n")
	}
	return nil
}

// branchUpstream tells what a branch follows, and how far apart they are.
func (w *work) branchUpstream(name string, named bool) {
	_, up, ok := w.upstream(name)
	if !ok {
		return
	}
	ahead, behind, known := w.apart(name)
	var parts []string
	switch {
	case !known:
		parts = []string{"gone"}
	default:
		if ahead > 0 {
			parts = append(parts, sprintf("ahead %d", ahead))
		}
		if behind > 0 {
			parts = append(parts, sprintf("behind %d", behind))
		}
	}
	text := strings.Join(parts, ", ")
	if named {
		if text != "" {
			text = up + ": " + text
		} else {
			text = up
		}
	}
	if text != "" {
		w.printf("[%s] ", text)
	}
}

func (w *work) remoteBranches(prefixed bool) ([]listed, error) {
	refs, err := w.repo.References()
	if err != nil {
		return nil, err
	}
	var list []listed
	err = refs.ForEach(func(r *plumbing.Reference) error {
		n, ok := strings.CutPrefix(string(r.Name()), "refs/remotes/")
		if !ok {
			return nil
		}
		b := listed{name: n, full: string(r.Name()), hash: r.Hash()}
		if r.Type() == plumbing.SymbolicReference {
			b.target = strings.TrimPrefix(string(r.Target()), "refs/remotes/")
		}
		if prefixed {
			b.name = "remotes/" + n
		}
		list = append(list, b)
		return nil
	})
	slices.SortFunc(list, func(a, b listed) int { return strings.Compare(a.name, b.name) })
	return list, err
}

// listedAs reports whether a branch is one that was asked for.
func (w *work) listedAs(b listed, o *options) (bool, error) {
	if len(o.rest) > 0 && !slices.ContainsFunc(o.rest, func(p string) bool {
		ok, err := path.Match(p, strings.TrimPrefix(b.name, "remotes/"))
		return err == nil && ok
	}) {
		return false, nil
	}
	for _, x := range []struct {
		flag   string
		inside bool // the branch leads to the commit, rather than the other way
		want   bool
	}{{"--merged", false, true}, {"--no-merged", false, false}, {"--contains", true, true}, {"--no-contains", true, false}} {
		rev, ok := o.flags[x.flag]
		if !ok {
			continue
		}
		c, err := w.commitOf(rev)
		if err != nil {
			return false, &fatal{"error: malformed object name " + rev, 129}
		}
		tip, err := w.commitOf(b.full)
		if err != nil {
			return false, err
		}
		pair := [2]*object.Commit{tip, c}
		if x.inside {
			pair = [2]*object.Commit{c, tip}
		}
		if hit, err := w.leads(pair[0], pair[1]); err != nil || hit != x.want {
			return false, err
		}
	}
	return true, nil
}
