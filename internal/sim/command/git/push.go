package git

import (
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A delivery is one reference of a push.
type delivery struct {
	from, to string // "" deletes
	force    bool
}

func (w *work) push(args []string) error {
	o, err := w.options(args, "-q --quiet -u --set-upstream -f --force --force-with-lease --all --tags --follow-tags -d --delete -n --dry-run -v --no-verify --porcelain --mirror", "--force-with-lease -o --push-option")
	if err != nil {
		return err
	}
	current, attached := w.branchName()
	word := w.defaultRemote()
	if len(o.rest) > 0 {
		word = o.rest[0]
	}
	remote, url := w.remoteOf(word)
	if remote == "" && len(o.rest) == 0 {
		return &fatal{"fatal: No configured push destination.\nEither specify the URL from the command-line or configure a remote repository using\n\n    git remote add <name> <url>\n\nand then push using the remote name\n\n    git push <name>\n", 128}
	}
	list, err := w.deliveries(o, remote, current, attached)
	if err != nil {
		return err
	}
	dst, full, err := w.other(url, "push")
	if err != nil {
		return err
	}
	shown := url
	if strings.HasPrefix(url, "/") {
		shown = full
	}
	return w.deliver(dst, remote, shown, list, o)
}

// deliveries says what is pushed to where.
func (w *work) deliveries(o *options, remote, current string, attached bool) ([]delivery, error) {
	force := o.has("-f", "--force", "--force-with-lease")
	var list []delivery
	if len(o.rest) > 1 {
		for _, spec := range o.rest[1:] {
			f := force || strings.HasPrefix(spec, "+")
			spec = strings.TrimPrefix(spec, "+")
			if o.has("-d", "--delete") {
				spec = ":" + spec
			}
			from, to, ok := strings.Cut(spec, ":")
			if !ok {
				to = from
			}
			if from == "HEAD" {
				if !ok {
					to = current
				}
			}
			list = append(list, delivery{from, to, f})
		}
		return list, nil
	}
	if o.has("--all", "--mirror") {
		heads, err := w.refsOf("refs/heads/")
		if err != nil {
			return nil, err
		}
		for _, n := range sortedKeys(heads) {
			list = append(list, delivery{n, n, force})
		}
	}
	if o.has("--tags", "--mirror") {
		tags, err := w.refsOf("refs/tags/")
		if err != nil {
			return nil, err
		}
		for _, n := range sortedKeys(tags) {
			list = append(list, delivery{"refs/tags/" + n, "refs/tags/" + n, force})
		}
	}
	if len(list) > 0 || o.has("--all", "--tags", "--mirror") {
		return list, nil
	}
	if !attached {
		return nil, fail("You are not currently on a branch.\nTo push the history leading to the current (detached HEAD)\nstate now, use\n\n    git push %s HEAD:<name-of-remote-branch>\n", remote)
	}
	merge, ok := w.configured("branch." + current + ".merge")
	if !ok && !o.has("-u", "--set-upstream") && remote != "" {
		return nil, fail("The current branch %s has no upstream branch.\nTo push the current branch and set the remote as upstream, use\n\n    git push --set-upstream %s %s\n\nTo have this happen automatically for branches without a tracking\nupstream, see 'push.autoSetupRemote' in 'git help config'.\n", current, remote, current)
	}
	to := current
	if ok {
		to = strings.TrimPrefix(merge, "refs/heads/")
	}
	return []delivery{{current, to, force}}, nil
}

func (w *work) deliver(dst *work, remote, shown string, list []delivery, o *options) error {
	var told []refUpdate
	var tracked []string
	rejected, behind, first, gone := false, false, false, false
	for _, d := range list {
		u, err := w.send(dst, remote, d)
		if err != nil {
			return err
		}
		gone = gone || d.from == ""
		if u != nil {
			if u.flag == '!' {
				rejected = true
				behind = behind || strings.Contains(u.what, "[rejected]")
				first = first || u.more == "(fetch first)"
			}
			told = append(told, *u)
		}
		if o.has("-u", "--set-upstream") && d.from != "" && remote != "" && !rejected {
			to := strings.TrimPrefix(d.to, "refs/heads/")
			if err := w.config([]string{"--local", "branch." + d.from + ".remote", remote}); err != nil {
				return err
			}
			if err := w.config([]string{"--local", "branch." + d.from + ".merge", "refs/heads/" + to}); err != nil {
				return err
			}
			tracked = append(tracked, sprintf("branch '%s' set up to track '%s/%s'.\n", d.from, remote, to))
		}
	}
	if !o.has("-q", "--quiet") || rejected {
		if len(told) == 0 && !gone {
			if err := w.tell("Everything up-to-date\n"); err != nil {
				return err
			}
		}
		if err := w.updates("To "+shown, told, false); err != nil {
			return err
		}
	}
	for _, s := range tracked {
		if !o.has("-q", "--quiet") {
			w.printf("%s", s)
		}
	}
	if !rejected {
		return nil
	}
	text := "error: failed to push some refs to '" + shown + "'"
	if first {
		text += "\nhint: Updates were rejected because the remote contains work that you do\nhint: not have locally. This is usually caused by another repository pushing\nhint: to the same ref. You may want to first integrate the remote changes\nhint: (e.g., 'git pull ...') before pushing again.\nhint: See the 'Note about fast-forwards' in 'git push --help' for details."
	} else if behind {
		text += "\nhint: Updates were rejected because the tip of your current branch is behind\nhint: its remote counterpart. Integrate the remote changes (e.g.\nhint: 'git pull ...') before pushing again.\nhint: See the 'Note about fast-forwards' in 'git push --help' for details."
	}
	return &fatal{text, 1}
}

// send pushes one reference.
func (w *work) send(dst *work, remote string, d delivery) (*refUpdate, error) {
	ref := plumbing.ReferenceName(d.to)
	if !strings.HasPrefix(d.to, "refs/") {
		ref = plumbing.NewBranchReferenceName(d.to)
		if r, ok := w.refName(d.from); ok && strings.HasPrefix(string(r.Name()), "refs/tags/") {
			ref = plumbing.NewTagReferenceName(d.to)
		}
	}
	name := func(s string) string {
		return strings.TrimPrefix(strings.TrimPrefix(s, "refs/heads/"), "refs/tags/")
	}
	old, oldErr := dst.repo.Reference(ref, true)
	u := &refUpdate{flag: ' ', from: name(d.from), to: name(string(ref))}
	local := plumbing.ReferenceName("refs/remotes/" + remote + "/" + name(string(ref)))
	if d.from == "" {
		if oldErr != nil {
			return nil, &fatal{"error: unable to delete '" + d.to + "': remote ref does not exist\nerror: failed to push some refs to '" + dst.dir + "'", 1}
		}
		if err := dst.dropRef(ref); err != nil {
			return nil, err
		}
		_ = w.dropRef(local) // it may not be there
		// A deletion has no left side.
		return nil, w.tell("To %s\n - [deleted]         %s\n", dst.dir, u.to)
	}
	h, err := w.resolve(d.from)
	if err != nil {
		return nil, &fatal{"error: src refspec " + d.from + " does not match any\nerror: failed to push some refs to '" + dst.dir + "'", 1}
	}
	if oldErr == nil && old.Hash() == h {
		return nil, w.follow(local, h, ref)
	}
	if current, ok := dst.branchName(); ok && !dst.bare && string(ref) == "refs/heads/"+current {
		u.flag, u.what, u.more = '!', "[remote rejected]", "(branch is currently checked out)"
		return u, w.tell("%s", checkedOut(string(ref)))
	}
	u.flag, u.what = '*', "[new branch]"
	if strings.HasPrefix(string(ref), "refs/tags/") {
		u.what = "[new tag]"
	}
	if oldErr == nil {
		ok, err := w.forwards(old.Hash(), h)
		if err != nil {
			return nil, err
		}
		u.flag, u.what = ' ', short(old.Hash())+".."+short(h)
		if !ok && !d.force {
			u.flag, u.what, u.more = '!', "[rejected]", "(non-fast-forward)"
			if w.repo.Storer.HasEncodedObject(old.Hash()) != nil {
				u.more = "(fetch first)"
			}
			return u, nil
		}
		if !ok {
			u.flag, u.what, u.more = '+', short(old.Hash())+"..."+short(h), "(forced update)"
		}
	}
	if err := copyObjects(w, dst, []plumbing.Hash{h}); err != nil {
		return nil, err
	}
	if err := dst.repo.Storer.SetReference(plumbing.NewHashReference(ref, h)); err != nil {
		return nil, err
	}
	if remote == "" {
		return u, nil
	}
	return u, w.follow(local, h, ref)
}

// follow notes what the other side has now.
func (w *work) follow(local plumbing.ReferenceName, h plumbing.Hash, ref plumbing.ReferenceName) error {
	if !strings.HasPrefix(string(ref), "refs/heads/") || strings.HasPrefix(string(local), "refs/remotes//") {
		return nil
	}
	if r, err := w.repo.Reference(local, true); err == nil && r.Hash() == h {
		return nil
	}
	return w.point(local, h, "update by push")
}

func checkedOut(ref string) string {
	text := "error: refusing to update checked out branch: " + ref + "\nerror: By default, updating the current branch in a non-bare repository\nis denied, because it will make the index and work tree inconsistent\nwith what you pushed, and will require 'git reset --hard' to match\nthe work tree to HEAD.\n\nYou can set the 'receive.denyCurrentBranch' configuration variable\nto 'ignore' or 'warn' in the remote repository to allow pushing into\nits current branch; however, this is not recommended unless you\narranged to update its work tree to match what you pushed in some\nother way.\n\nTo squelch this message and still keep the default behaviour, set\n'receive.denyCurrentBranch' configuration variable to 'refuse'.\n"
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString("remote: " + strings.TrimRight(l, "\n") + "        \n")
	}
	return b.String()
}

func (w *work) lsRemote(args []string) error {
	o, err := w.options(args, "-h --heads -t --tags -q --quiet --refs --exit-code", "")
	if err != nil {
		return err
	}
	word := "origin"
	if len(o.rest) > 0 {
		word = o.rest[0]
	}
	_, url := w.remoteOf(word)
	if len(o.rest) == 0 && !o.has("-q", "--quiet") {
		if err := w.tell("From %s\n", url); err != nil {
			return err
		}
	}
	src, _, err := w.other(url, "ls-remote")
	if err != nil {
		return err
	}
	if h := src.head(); h != nil && !o.has("-h", "--heads", "-t", "--tags", "--refs") {
		w.printf("%s\tHEAD\n", h.Hash)
	}
	all, err := src.refsOf("refs/")
	if err != nil {
		return err
	}
	for _, n := range sortedKeys(all) {
		tag := strings.HasPrefix(n, "tags/")
		if o.has("-h", "--heads") && !strings.HasPrefix(n, "heads/") || o.has("-t", "--tags") && !tag {
			continue
		}
		if len(o.rest) > 1 && path.Base(n) != o.rest[1] && "refs/"+n != o.rest[1] {
			continue
		}
		w.printf("%s\trefs/%s\n", all[n], n)
		if t, err := src.repo.TagObject(all[n]); tag && err == nil && !o.has("--refs") {
			w.printf("%s\trefs/%s^{}\n", t.Target, n)
		}
	}
	return nil
}
