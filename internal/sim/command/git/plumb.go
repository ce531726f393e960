package git

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	lib "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

func (w *work) tag(args []string) error {
	o, err := w.options(args, "-a --annotate -d --delete -l --list -f --force -n --no-sign", "-m --message -F --sort --points-at --contains --merged")
	if err != nil {
		return err
	}
	switch {
	case o.has("-d", "--delete"):
		for _, name := range o.rest {
			ref, err := w.repo.Reference(plumbing.NewTagReferenceName(name), true)
			if err != nil {
				return wrong("tag '%s' not found.", name)
			}
			if err := w.repo.Storer.RemoveReference(ref.Name()); err != nil {
				return err
			}
			w.printf("Deleted tag '%s' (was %s)\n", name, short(ref.Hash()))
		}
		return nil
	case len(o.rest) == 0 || o.has("-l", "--list"):
		refs, err := w.repo.Tags()
		if err != nil {
			return err
		}
		var names []string
		if err := refs.ForEach(func(r *plumbing.Reference) error { names = append(names, r.Name().Short()); return nil }); err != nil {
			return err
		}
		slices.Sort(names)
		for _, n := range names {
			if len(o.rest) > 0 {
				if ok, err := path.Match(o.rest[0], n); err != nil || !ok {
					continue
				}
			}
			if !o.has("-n") {
				w.printf("%s\n", n)
				continue
			}
			text := ""
			if c, err := w.commitOf("refs/tags/" + n); err == nil {
				text = subject(c)
			}
			if r, ok := w.refName("refs/tags/" + n); ok {
				if t, err := w.repo.TagObject(r.Hash()); err == nil {
					text, _, _ = strings.Cut(t.Message, "\n")
				}
			}
			w.printf("%-15s %s\n", n, text)
		}
		return nil
	}
	name, rev := o.rest[0], "HEAD"
	if len(o.rest) > 1 {
		rev = o.rest[1]
	}
	ref := plumbing.NewTagReferenceName(name)
	if err := ref.Validate(); err != nil {
		return fail("'%s' is not a valid tag name.", name)
	}
	if _, err := w.repo.Reference(ref, true); err == nil && !o.has("-f", "--force") {
		return fail("tag '%s' already exists", name)
	}
	old, _ := w.repo.Reference(ref, true)
	c, err := w.commitOf(rev)
	if err != nil {
		return fail("Failed to resolve '%s' as a valid ref.", rev)
	}
	h := c.Hash
	if text := o.flags["-m"] + o.flags["--message"]; text != "" || o.has("-a", "--annotate") {
		if text == "" {
			return fail("no tag message?")
		}
		who, err := w.signature("COMMITTER")
		if err != nil {
			return err
		}
		x := w.repo.Storer.NewEncodedObject()
		t := &object.Tag{Name: name, Tagger: *who, Message: tidy(text), TargetType: plumbing.CommitObject, Target: c.Hash}
		if err := t.Encode(x); err != nil {
			return err
		}
		if h, err = w.repo.Storer.SetEncodedObject(x); err != nil {
			return err
		}
	}
	if err := w.repo.Storer.SetReference(plumbing.NewHashReference(ref, h)); err != nil {
		return err
	}
	if old != nil && old.Hash() != h {
		w.printf("Updated tag '%s' (was %s)\n", name, short(old.Hash()))
	}
	return nil
}

func (w *work) config(args []string) error {
	o, err := w.options(args, "--global --local --get --list -l --unset --add --system --bool --int", "")
	if err != nil {
		return err
	}
	name := w.globalFile()
	if !o.has("--global") {
		if w.dir == "" && (o.has("--local") || len(o.rest) > 1) {
			return fail("not in a git directory")
		}
		if w.dir != "" {
			name = w.file("config")
		}
	}
	if o.has("--list", "-l") {
		files := []string{name}
		if !o.has("--global", "--local") && name != w.globalFile() {
			files = []string{w.globalFile(), name}
		}
		for _, f := range files {
			for _, s := range w.read(f).Sections {
				for _, x := range s.Options {
					w.printf("%s.%s=%s\n", strings.ToLower(s.Name), strings.ToLower(x.Key), x.Value)
				}
				for _, sub := range s.Subsections {
					for _, x := range sub.Options {
						w.printf("%s.%s.%s=%s\n", strings.ToLower(s.Name), sub.Name, strings.ToLower(x.Key), x.Value)
					}
				}
			}
		}
		return nil
	}
	if len(o.rest) == 0 {
		return &fatal{"usage: git config [<options>]", 129}
	}
	key := o.rest[0]
	section, sub, option, ok := split(key)
	if !ok {
		return &fatal{"error: key does not contain a section: " + key, 1}
	}
	if len(o.rest) == 1 && !o.has("--unset") {
		v, ok := "", false
		if o.has("--global", "--local") {
			v, ok = lookup(w.read(name), key)
		} else {
			v, ok = w.configured(key)
		}
		if !ok {
			return status(1)
		}
		w.printf("%s\n", v)
		return nil
	}
	c := w.read(name)
	if o.has("--unset") {
		if _, ok := lookup(c, key); !ok {
			return status(5)
		}
		if sub != "" {
			c.Section(section).Subsection(sub).RemoveOption(option)
		} else {
			c.Section(section).RemoveOption(option)
		}
	} else if sub != "" {
		c.Section(section).Subsection(sub).SetOption(option, o.rest[1])
	} else {
		c.Section(section).SetOption(option, o.rest[1])
	}
	var b bytes.Buffer
	if err := config.NewEncoder(&b).Encode(c); err != nil {
		return err
	}
	if err := w.t.View.WriteFile(name, b.Bytes(), 0o666); err != nil {
		return wrong("could not lock config file %s: %s", name, message(err))
	}
	return nil
}

func (w *work) remote(args []string) error {
	o, err := w.options(args, "-v --verbose", "")
	if err != nil {
		return err
	}
	c := w.read(w.file("config"))
	switch {
	case len(o.rest) == 0:
		for _, s := range c.Section("remote").Subsections {
			if o.has("-v", "--verbose") {
				u := s.Option("url")
				w.printf("%s\t%s (fetch)\n%s\t%s (push)\n", s.Name, u, s.Name, u)
			} else {
				w.printf("%s\n", s.Name)
			}
		}
		return nil
	case o.rest[0] == "add" && len(o.rest) == 3:
		name := o.rest[1]
		if c.Section("remote").HasSubsection(name) {
			return &fatal{"error: remote " + name + " already exists.", 3}
		}
		if err := w.config([]string{"--local", "remote." + name + ".url", o.rest[2]}); err != nil {
			return err
		}
		return w.config([]string{"--local", "remote." + name + ".fetch", "+refs/heads/*:refs/remotes/" + name + "/*"})
	case o.rest[0] == "get-url" && len(o.rest) == 2:
		if !c.Section("remote").HasSubsection(o.rest[1]) {
			return &fatal{"error: No such remote '" + o.rest[1] + "'", 2}
		}
		w.printf("%s\n", c.Section("remote").Subsection(o.rest[1]).Option("url"))
		return nil
	}
	return &fatal{"error: Unknown subcommand: " + o.rest[0], 129}
}

func (w *work) revParse(args []string) error {
	abbreviated, verify, needed, silent, full, length := false, false, false, false, false, 7
	for _, a := range args {
		switch {
		case a == "--show-toplevel":
			w.printf("%s\n", w.dir)
		case a == "--git-dir":
			dir := w.git
			if cwd, err := w.t.View.Getwd(); err == nil && cwd == w.dir {
				dir = ".git"
			}
			w.printf("%s\n", dir)
		case a == "--is-inside-work-tree":
			w.printf("true\n")
		case a == "--is-bare-repository":
			w.printf("%t\n", w.bare)
		case a == "--abbrev-ref":
			abbreviated = true
		case a == "--short":
			verify = true
		case a == "--verify":
			needed = true
		case a == "-q" || a == "--quiet":
			silent = true
		case a == "--show-prefix":
			p, err := w.relative(".")
			if err != nil {
				return err
			}
			if p == "." {
				w.printf("\n")
			} else {
				w.printf("%s/\n", p)
			}
		case a == "--show-cdup":
			p, err := w.relative(".")
			if err != nil {
				return err
			}
			if p == "." {
				w.printf("\n")
			} else {
				w.printf("%s\n", strings.Repeat("../", strings.Count(p, "/")+1))
			}
		case a == "--absolute-git-dir":
			w.printf("%s\n", w.git)
		case strings.HasPrefix(a, "--short="):
			n, err := strconv.Atoi(a[8:])
			if err != nil || n < 4 || n > 40 {
				n = 7
			}
			verify, length = true, n
		case a == "--symbolic-full-name":
			full = true
		case full:
			if a == "HEAD" || a == "@" {
				if ref, err := w.repo.Reference(plumbing.HEAD, false); err == nil && ref.Type() == plumbing.SymbolicReference {
					w.printf("%s\n", ref.Target())
					continue
				}
			}
			if strings.HasSuffix(a, "@{u}") || strings.HasSuffix(a, "@{upstream}") {
				name, _ := w.branchName()
				if ref, _, ok := w.upstream(name); ok {
					w.printf("%s\n", ref)
					continue
				}
			}
			r, ok := w.refName(a)
			if !ok {
				return unknown(a)
			}
			w.printf("%s\n", r.Name())
		case abbreviated && (strings.HasSuffix(a, "@{u}") || strings.HasSuffix(a, "@{upstream}")):
			name, _ := w.branchName()
			_, up, ok := w.upstream(name)
			if !ok {
				return fail("no upstream configured for branch '%s'", name)
			}
			w.printf("%s\n", up)
		case abbreviated && a == "HEAD":
			name, _ := w.branchName()
			w.printf("%s\n", name)
		default:
			h, err := w.resolve(a)
			if err != nil {
				if silent {
					return status(1)
				}
				if needed {
					return fail("Needed a single revision")
				}
				if !verify {
					w.printf("%s\n", a) // git prints what it does not know before it complains
				}
				return err
			}
			switch {
			case abbreviated:
				w.printf("%s\n", a)
			case verify:
				w.printf("%s\n", h.String()[:length])
			default:
				w.printf("%s\n", h)
			}
		}
	}
	return nil
}

func (w *work) lsFiles(args []string) error {
	o, err := w.options(args, "-m --modified -o --others -s --stage --exclude-standard -c --cached -d --deleted -z -u --unmerged -t --error-unmatch --full-name", "-x --exclude")
	if err != nil {
		return err
	}
	paths, err := w.relatives(append(o.rest, o.paths...))
	if err != nil {
		return err
	}
	end := "\n"
	if o.has("-z") {
		end = "\x00"
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	if o.has("-o", "--others") {
		all, err := w.statuses()
		if err != nil {
			return err
		}
		var list []string
		for name, f := range all {
			if _, tracked := idx.files[name]; f.Worktree == lib.Untracked && !tracked && within(name, paths) {
				list = append(list, name)
			}
		}
		slices.Sort(list)
		for _, n := range list {
			w.printf("%s%s", quoted(n), end)
		}
		return nil
	}
	if o.has("-m", "--modified", "-d", "--deleted") {
		now, err := w.workSide()
		if err != nil {
			return err
		}
		for _, c := range changes(idx, now, paths) {
			if o.has("-m", "--modified") || c.to == nil {
				w.printf("%s%s", quoted(c.name), end)
			}
		}
		return nil
	}
	full, err := w.repo.Storer.Index()
	if err != nil {
		return err
	}
	hit := false
	sortIndex(full)
	for _, e := range full.Entries {
		if !within(e.Name, paths) || o.has("-u", "--unmerged") && e.Stage == 0 {
			continue
		}
		hit = true
		if o.has("-s", "--stage", "-u", "--unmerged") {
			w.printf("%06o %s %d\t", uint32(e.Mode), e.Hash, e.Stage)
		}
		w.printf("%s%s", quoted(e.Name), end)
	}
	if o.has("--error-unmatch") && !hit && len(o.rest) > 0 {
		return &fatal{"error: pathspec '" + o.rest[0] + "' did not match any file(s) known to git\nDid you forget to 'git add'?", 1}
	}
	return nil
}

func (w *work) catFile(args []string) error {
	if len(args) != 2 {
		return &fatal{"usage: git cat-file (-t | -s | -p | -e | <type>) <object>", 129}
	}
	rev := args[1]
	h, err := w.resolve(rev)
	if err != nil {
		return fail("Not a valid object name %s", rev)
	}
	if k := args[0]; k == "commit" || k == "tree" {
		if h, err = w.peel(h, k, rev); err != nil {
			return err
		}
	}
	x, err := w.repo.Storer.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		if args[0] == "-e" {
			return status(1)
		}
		if errors.Is(err, errCorrupt) {
			return fail("object %s is corrupt", h)
		}
		return fail("Not a valid object name %s", rev)
	}
	switch args[0] {
	case "-t":
		w.printf("%s\n", x.Type())
		return nil
	case "-s":
		w.printf("%d\n", x.Size())
		return nil
	case "-e":
		return nil
	}
	if x.Type() == plumbing.TreeObject && args[0] == "-p" {
		t, err := w.repo.TreeObject(x.Hash())
		if err != nil {
			return err
		}
		for _, e := range t.Entries {
			kind := "blob"
			if e.Mode == filemode.Dir {
				kind = "tree"
			}
			w.printf("%06o %s %s\t%s\n", uint32(e.Mode), kind, e.Hash, quoted(e.Name))
		}
		return nil
	}
	w.t.Bound("input", x.Size(), w.t.K.Limits.Input)
	r, err := x.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = w.t.Out().ReadFrom(r)
	return err
}

func (w *work) hashObject(args []string) error {
	o, err := w.options(args, "-w --stdin", "-t")
	if err != nil {
		return err
	}
	files := o.rest
	if o.has("--stdin") {
		files = append([]string{"-"}, files...)
	}
	for _, f := range files {
		b, err := command.ReadAll(w.t, f)
		if err != nil {
			return fail("could not open '%s' for reading: %s", f, message(err))
		}
		h := plumbing.ComputeHash(plumbing.BlobObject, b)
		if o.has("-w") {
			if w.repo == nil {
				return fail("not a git repository (or any of the parent directories): .git")
			}
			if h, err = w.store(plumbing.BlobObject, b); err != nil {
				return err
			}
		}
		w.printf("%s\n", h)
	}
	return nil
}
