package git

import (
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// other opens the repository that a word names: a path in the sandbox.
func (w *work) other(url, doing string) (*work, string, error) {
	name, isFile := strings.CutPrefix(url, "file://")
	if !isFile && (strings.Contains(url, "://") || strings.Contains(strings.SplitN(url, "/", 2)[0], ":")) {
		return nil, "", fail("%s: there is no network in this sandbox for git: '%s' is not a path in it", doing, url)
	}
	full, err := w.absolute(name)
	if err != nil {
		return nil, "", err
	}
	o := &work{t: w.t}
	for _, try := range []string{full, full + ".git"} {
		if _, err := w.t.View.Stat(path.Join(try, ".git", "HEAD")); err == nil {
			return o, try, o.at(try, path.Join(try, ".git"))
		}
		if o.isBare(try) {
			return o, try, o.at(try, try)
		}
	}
	return nil, full, fail("'%s' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.", url)
}

// copyObjects brings all that a commit leads to from one repository to another.
func copyObjects(from, to *work, tips []plumbing.Hash) error {
	list := slices.Clone(tips)
	for len(list) > 0 {
		h := list[len(list)-1]
		list = list[:len(list)-1]
		from.t.Step(32)
		if to.repo.Storer.HasEncodedObject(h) == nil {
			continue
		}
		x, err := from.repo.Storer.EncodedObject(plumbing.AnyObject, h)
		if err != nil {
			return err
		}
		from.t.Bound("input", x.Size(), from.t.K.Limits.Input)
		switch x.Type() {
		case plumbing.CommitObject:
			c, err := object.DecodeCommit(from.repo.Storer, x)
			if err != nil {
				return err
			}
			list = append(append(list, c.TreeHash), c.ParentHashes...)
		case plumbing.TreeObject:
			t, err := object.DecodeTree(from.repo.Storer, x)
			if err != nil {
				return err
			}
			for _, e := range t.Entries {
				list = append(list, e.Hash)
			}
		case plumbing.TagObject:
			t, err := object.DecodeTag(from.repo.Storer, x)
			if err != nil {
				return err
			}
			list = append(list, t.Target)
		}
		if _, err := to.repo.Storer.SetEncodedObject(x); err != nil {
			return err
		}
	}
	return nil
}

// refsOf gives the references below a prefix, by what follows it.
func (w *work) refsOf(prefix string) (map[string]plumbing.Hash, error) {
	out := map[string]plumbing.Hash{}
	refs, err := w.repo.References()
	if err != nil {
		return nil, err
	}
	err = refs.ForEach(func(r *plumbing.Reference) error {
		if name, ok := strings.CutPrefix(string(r.Name()), prefix); ok && r.Type() == plumbing.HashReference {
			out[name] = r.Hash()
		}
		return nil
	})
	return out, err
}

func (w *work) clone(args []string) error {
	o, err := w.options(args, "-q --quiet --bare --mirror -n --no-checkout --single-branch --no-single-branch --no-tags --recurse-submodules --recursive -l --local --no-hardlinks -s --shared -v --verbose --progress", "-b --branch -o --origin --depth -c --config --filter -j --jobs --reference --template")
	if err != nil {
		return err
	}
	if len(o.rest) == 0 {
		return &fatal{"fatal: You must specify a repository to clone.\n\nusage: git clone [<options>] [--] <repo> [<dir>]", 129}
	}
	url := o.rest[0]
	if !strings.Contains(url, "://") {
		if full, e := w.absolute(url); e == nil {
			if _, e := w.t.View.Stat(full); e != nil && !strings.Contains(url, ":") {
				return fail("repository '%s' does not exist", url)
			}
		}
	}
	src, from, err := w.other(url, "clone")
	if err != nil {
		return err
	}
	bare := o.has("--bare", "--mirror")
	dir := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(path.Base(from), "/.git"), "/"), ".git")
	if bare {
		dir += ".git"
	}
	if len(o.rest) > 1 {
		dir = o.rest[1]
	}
	full, err := w.absolute(dir)
	if err != nil {
		return err
	}
	if list, err := w.t.View.ReadDir(full); err == nil && len(list) > 0 {
		return fail("destination path '%s' already exists and is not an empty directory.", dir)
	}
	quiet := o.has("-q", "--quiet")
	if !quiet {
		word := "Cloning into '%s'...\n"
		if bare {
			word = "Cloning into bare repository '%s'...\n"
		}
		if err := w.tell(word, dir); err != nil {
			return err
		}
	}
	if o.has("--depth") && !strings.HasPrefix(url, "file://") {
		if err := w.tell("warning: --depth is ignored in local clones; use file:// instead.\n"); err != nil {
			return err
		}
	}
	branch, attached := src.branchName()
	if !attached {
		branch = "master"
	}
	git := path.Join(full, ".git")
	if bare {
		git = full
	}
	if err := w.found(full, git, branch); err != nil {
		return err
	}
	dst := &work{t: w.t, set: w.set}
	if err := dst.at(full, git); err != nil {
		return err
	}
	if err := dst.filled(src, from, branch, o, bare); err != nil || quiet {
		return err
	}
	return w.tell("done.\n")
}

// filled brings what a repository has into a new clone of it.
func (w *work) filled(src *work, from, branch string, o *options, bare bool) error {
	heads, err := src.refsOf("refs/heads/")
	if err != nil {
		return err
	}
	tags, err := src.refsOf("refs/tags/")
	if err != nil {
		return err
	}
	var tips []plumbing.Hash
	for _, m := range []map[string]plumbing.Hash{heads, tags} {
		for _, h := range m {
			tips = append(tips, h)
		}
	}
	if h := src.head(); h != nil {
		tips = append(tips, h.Hash)
	}
	if err := copyObjects(src, w, tips); err != nil {
		return err
	}
	remote := "origin"
	if v := o.flags["-o"] + o.flags["--origin"]; v != "" {
		remote = v
	}
	settings := [][2]string{{"remote." + remote + ".url", from}}
	if !bare {
		settings = append(settings, [2]string{"remote." + remote + ".fetch", "+refs/heads/*:refs/remotes/" + remote + "/*"})
	}
	if len(heads) == 0 {
		if err := w.tell("warning: You appear to have cloned an empty repository.\n"); err != nil {
			return err
		}
	}
	for _, s := range settings {
		if err := w.config([]string{"--local", s[0], s[1]}); err != nil {
			return err
		}
	}
	for n, h := range tags {
		if err := w.repo.Storer.SetReference(plumbing.NewHashReference(plumbing.NewTagReferenceName(n), h)); err != nil {
			return err
		}
	}
	prefix := "refs/remotes/" + remote + "/"
	if bare {
		prefix = "refs/heads/"
	}
	for n, h := range heads {
		if err := w.repo.Storer.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(prefix+n), h)); err != nil {
			return err
		}
	}
	if bare {
		return nil
	}
	if _, ok := heads[branch]; ok {
		if err := w.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.ReferenceName(prefix+"HEAD"), plumbing.ReferenceName(prefix+branch))); err != nil {
			return err
		}
	}
	if v := o.flags["-b"] + o.flags["--branch"]; v != "" {
		if _, ok := heads[v]; !ok {
			if h, ok := tags[v]; ok {
				return w.fresh(h, "", from, o)
			}
			return fail("Remote branch %s not found in upstream %s", v, remote)
		}
		branch = v
	}
	if err := w.config([]string{"--local", "branch." + branch + ".remote", remote}); err != nil {
		return err
	}
	if err := w.config([]string{"--local", "branch." + branch + ".merge", "refs/heads/" + branch}); err != nil {
		return err
	}
	h, ok := heads[branch]
	if !ok {
		if c := src.head(); c != nil && len(heads) > 0 {
			return w.fresh(c.Hash, "", from, o)
		}
		return nil
	}
	return w.fresh(h, branch, from, o)
}

// fresh makes the first checkout of a clone.
func (w *work) fresh(h plumbing.Hash, branch, from string, o *options) error {
	h, err := w.peel(h, "commit", "HEAD")
	if err != nil {
		return err
	}
	if branch == "" {
		err = w.detach(h, "clone: from "+from)
	} else {
		err = w.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(branch)))
		if err == nil {
			err = w.moveHead(h, "clone: from "+from)
		}
	}
	if err != nil || o.has("-n", "--no-checkout") {
		return err
	}
	c, err := w.repo.CommitObject(h)
	if err != nil {
		return err
	}
	after, err := w.commitSide(c)
	if err != nil {
		return err
	}
	return w.update(side{}, after, true)
}

// remoteOf gives a remote's name and where it is.
func (w *work) remoteOf(word string) (name, url string) {
	if v, ok := w.configured("remote." + word + ".url"); ok {
		return word, v
	}
	return "", word
}

func (w *work) defaultRemote() string {
	name, _ := w.branchName()
	if v, ok := w.configured("branch." + name + ".remote"); ok {
		return v
	}
	return "origin"
}

// A refUpdate is a line of what fetch and push tell.
type refUpdate struct {
	flag           byte
	what           string
	from, to, more string
}

func (w *work) updates(head string, list []refUpdate, wide bool) error {
	if len(list) == 0 {
		return nil
	}
	width := 0
	if wide {
		width = 10
		for _, u := range list {
			width = max(width, len(u.from))
		}
	}
	var b strings.Builder
	b.WriteString(head + "\n")
	for _, u := range list {
		b.WriteString(sprintf(" %c %-17s %-*s -> %s", u.flag, u.what, width, u.from, u.to))
		if u.more != "" {
			b.WriteString(" " + u.more)
		}
		b.WriteByte('\n')
	}
	return w.tell("%s", b.String())
}

func (w *work) fetch(args []string) error {
	o, err := w.options(args, "-q --quiet --all -p --prune -t --tags --no-tags -n -f --force -v --verbose -u --dry-run --depth --unshallow", "--depth -j --jobs")
	if err != nil {
		return err
	}
	word := w.defaultRemote()
	if len(o.rest) > 0 {
		word = o.rest[0]
	}
	remote, url := w.remoteOf(word)
	if remote == "" && len(o.rest) == 0 && word == "origin" {
		return nil // as git has it where there is no remote at all
	}
	if remote == "" && len(o.rest) == 0 {
		return fail("No remote repository specified.  Please, specify either a URL or a\nremote name from which new revisions should be fetched.")
	}
	var specs []string
	if len(o.rest) > 1 {
		specs = o.rest[1:]
	}
	_, err = w.fetchFrom(remote, url, specs, o)
	return err
}

// A fetched thing is a branch of the other side, for a merge.
type fetched struct {
	branch string
	hash   plumbing.Hash
	url    string
}

func (w *work) fetchFrom(remote, url string, specs []string, o *options) ([]fetched, error) {
	src, _, err := w.other(url, "fetch")
	if err != nil {
		return nil, err
	}
	heads, err := src.refsOf("refs/heads/")
	if err != nil {
		return nil, err
	}
	tags, err := src.refsOf("refs/tags/")
	if err != nil {
		return nil, err
	}
	shown := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(url, "file://"), "/.git"), "/"), ".git")
	var list []refUpdate
	var got []fetched
	take := func(branch, local string, force bool) error {
		h := heads[branch]
		if err := copyObjects(src, w, []plumbing.Hash{h}); err != nil {
			return err
		}
		got = append(got, fetched{branch, h, shown})
		if local == "" {
			list = append(list, refUpdate{'*', "branch", branch, "FETCH_HEAD", ""})
			return nil
		}
		u, err := w.fetchRef(plumbing.ReferenceName(local), branch, h, force)
		if u != nil {
			list = append(list, *u)
		}
		return err
	}
	if len(specs) == 0 {
		for _, n := range sortedKeys(heads) {
			local := ""
			if remote != "" {
				local = "refs/remotes/" + remote + "/" + n
			} else if current, _ := src.branchName(); n != current {
				continue
			}
			if err := take(n, local, true); err != nil {
				return nil, err
			}
		}
	}
	for _, spec := range specs {
		force := strings.HasPrefix(spec, "+")
		from, to, _ := strings.Cut(strings.TrimPrefix(spec, "+"), ":")
		from = strings.TrimPrefix(from, "refs/heads/")
		if from == "HEAD" {
			from, _ = src.branchName()
		}
		if _, ok := heads[from]; !ok {
			return nil, fail("couldn't find remote ref %s", from)
		}
		if to != "" && !strings.HasPrefix(to, "refs/") {
			to = "refs/heads/" + to
		}
		if err := take(from, to, force); err != nil {
			return nil, err
		}
		if remote != "" && to == "" {
			u, err := w.fetchRef(plumbing.ReferenceName("refs/remotes/"+remote+"/"+from), from, heads[from], true)
			if err != nil {
				return nil, err
			}
			if u != nil {
				list = append(list, *u)
			}
		}
	}
	if len(specs) == 0 || o.has("-t", "--tags") {
		more, err := w.fetchTags(src, tags, o)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	if o.has("-p", "--prune") && remote != "" {
		more, err := w.fetchPruned(remote, heads)
		if err != nil {
			return nil, err
		}
		list = append(more, list...)
	}
	var b strings.Builder
	for _, f := range got {
		b.WriteString(f.hash.String() + "\t\tbranch '" + f.branch + "' of " + shown + "\n")
	}
	if err := w.writeFile("FETCH_HEAD", b.String()); err != nil || o.has("-q", "--quiet") {
		return got, err
	}
	return got, w.updates("From "+shown, list, true)
}

func (w *work) fetchTags(src *work, tags map[string]plumbing.Hash, o *options) ([]refUpdate, error) {
	var list []refUpdate
	for _, n := range sortedKeys(tags) {
		ref := plumbing.NewTagReferenceName(n)
		if _, err := w.repo.Reference(ref, true); err == nil || o.has("--no-tags", "-n") {
			continue
		}
		target, err := src.peel(tags[n], "", n)
		if err != nil {
			return nil, err
		}
		if w.repo.Storer.HasEncodedObject(target) != nil && !o.has("-t", "--tags") {
			continue
		}
		if err := copyObjects(src, w, []plumbing.Hash{tags[n]}); err != nil {
			return nil, err
		}
		if err := w.repo.Storer.SetReference(plumbing.NewHashReference(ref, tags[n])); err != nil {
			return nil, err
		}
		list = append(list, refUpdate{'*', "[new tag]", n, n, ""})
	}
	return list, nil
}

func (w *work) fetchPruned(remote string, heads map[string]plumbing.Hash) ([]refUpdate, error) {
	have, err := w.refsOf("refs/remotes/" + remote + "/")
	if err != nil {
		return nil, err
	}
	var list []refUpdate
	for _, n := range sortedKeys(have) {
		if _, ok := heads[n]; ok {
			continue
		}
		if err := w.dropRef(plumbing.ReferenceName("refs/remotes/" + remote + "/" + n)); err != nil {
			return nil, err
		}
		list = append(list, refUpdate{'-', "[deleted]", "(none)", remote + "/" + n, ""})
	}
	return list, nil
}

// fetchRef moves a reference to what the other side has, and tells how.
func (w *work) fetchRef(ref plumbing.ReferenceName, from string, h plumbing.Hash, force bool) (*refUpdate, error) {
	u := &refUpdate{flag: ' ', from: from, to: strings.TrimPrefix(strings.TrimPrefix(string(ref), "refs/remotes/"), "refs/heads/")}
	var note string
	old, err := w.repo.Reference(ref, true)
	switch {
	case err != nil:
		u.flag, u.what, note = '*', "[new branch]", "fetch: storing head"
	case old.Hash() == h:
		return nil, nil
	default:
		ok, err := w.forwards(old.Hash(), h)
		if err != nil {
			return nil, err
		}
		u.what, note = short(old.Hash())+".."+short(h), "fetch: fast-forward"
		if !ok && !force {
			u.flag, u.what, u.more = '!', "[rejected]", " (non-fast-forward)"
			return u, nil
		}
		if !ok {
			u.flag, u.what, u.more, note = '+', short(old.Hash())+"..."+short(h), " (forced update)", "fetch: forced-update"
		}
	}
	return u, w.point(ref, h, note)
}

func (w *work) forwards(from, to plumbing.Hash) (bool, error) {
	a, err := w.repo.CommitObject(from)
	if err != nil {
		return false, nil //nolint:nilerr // what is not here is not followed by anything here
	}
	b, err := w.repo.CommitObject(to)
	if err != nil {
		return false, err
	}
	return w.leads(a, b)
}

func (w *work) pull(args []string) error {
	o, err := w.options(args, "-q --quiet --rebase -r --no-rebase --ff-only --ff --no-ff --no-edit -v --tags -p --prune --autostash --allow-unrelated-histories", "--rebase")
	if err != nil {
		return err
	}
	branch, _ := w.branchName()
	word := w.defaultRemote()
	var specs []string
	if len(o.rest) > 0 {
		word, specs = o.rest[0], o.rest[1:]
	}
	remote, url := w.remoteOf(word)
	got, err := w.fetchFrom(remote, url, specs, &options{flags: map[string]string{}})
	if err != nil {
		return err
	}
	want := branch
	if len(specs) > 0 {
		want = strings.TrimPrefix(specs[0], "+")
	} else if v, ok := w.configured("branch." + branch + ".merge"); ok {
		want = strings.TrimPrefix(v, "refs/heads/")
	} else if remote != "" {
		return &fatal{"There is no tracking information for the current branch.\nPlease specify which branch you want to merge with.\nSee git-pull(1) for details.\n\n    git pull <remote> <branch>\n\nIf you wish to set tracking information for this branch you can do so with:\n\n    git branch --set-upstream-to=" + remote + "/<branch> " + branch + "\n", 1}
	}
	i := slices.IndexFunc(got, func(f fetched) bool { return f.branch == want })
	if i < 0 {
		return &fatal{"Your configuration specifies to merge with the ref 'refs/heads/" + want + "'\nfrom the remote, but no such ref was fetched.", 1}
	}
	c, err := w.repo.CommitObject(got[i].hash)
	if err != nil {
		return err
	}
	if head := w.head(); head != nil {
		ok, err := w.leads(head, c)
		if err != nil {
			return err
		}
		up, err := w.leads(c, head)
		if err != nil {
			return err
		}
		rebase, set := w.configured("pull.rebase")
		ff, ffSet := w.configured("pull.ff")
		switch {
		case ok || up:
		case o.has("--rebase", "-r") || set && rebase == "true" && !o.has("--no-rebase"):
			return w.rebase([]string{c.Hash.String()})
		case o.has("--ff-only") || ffSet && ff == "only":
			return fail("Not possible to fast-forward, aborting.")
		case !o.has("--no-rebase", "--no-ff", "--ff") && !set && !ffSet:
			//nolint:dupword // as git says it
			return &fatal{"hint: You have divergent branches and need to specify how to reconcile them.\nhint: You can do so by running one of the following commands sometime before\nhint: your next pull:\nhint: \nhint:   git config pull.rebase false  # merge\nhint:   git config pull.rebase true   # rebase\nhint:   git config pull.ff only       # fast-forward only\nhint: \nhint: You can replace \"git config\" with \"git config --global\" to set a default\nhint: preference for all repositories. You can also pass --rebase, --no-rebase,\nhint: or --ff-only on the command line to override the configured default per\nhint: invocation.\nfatal: Need to specify how to reconcile divergent branches.", 128}
		}
	}
	o.flags["-m"] = "Merge branch '" + want + "' of " + got[i].url + w.into()
	return w.mergeCommit(o, c.Hash.String(), c, strings.TrimRight("pull "+strings.Join(args, " "), " "))
}
