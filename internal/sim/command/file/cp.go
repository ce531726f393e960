package file

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var cpSpec = &command.Spec{
	Name:     "cp",
	Synopsis: "[OPTION]... [-T] SOURCE DEST\n  or:  cp [OPTION]... SOURCE... DIRECTORY\n  or:  cp [OPTION]... -t DIRECTORY SOURCE...",
	About:    "Copy SOURCE to DEST, or multiple SOURCE(s) to DIRECTORY.",
	Options: backupOptions(
		command.Option{Short: 'a', Long: "archive", Help: "same as -dR --preserve=all"},
		command.Option{Long: "attributes-only", Help: "don't copy the file data, just the attributes"},
		command.Option{Long: "copy-contents", Help: "copy contents of special files when recursive"},
		command.Option{Short: 'd', Help: "same as --no-dereference --preserve=links"},
		command.Option{Short: 'f', Long: "force", Help: "if an existing destination file cannot be opened, remove it and try again"},
		command.Option{Short: 'i', Long: "interactive", Help: "prompt before overwrite"},
		command.Option{Short: 'H', Help: "follow command-line symbolic links in SOURCE"},
		command.Option{Short: 'l', Long: "link", Help: "hard link files instead of copying"},
		command.Option{Short: 'L', Long: "dereference", Help: "always follow symbolic links in SOURCE"},
		command.Option{Short: 'n', Long: "no-clobber", Help: "do not overwrite an existing file"},
		command.Option{Short: 'P', Long: "no-dereference", Help: "never follow symbolic links in SOURCE"},
		command.Option{Short: 'p', Help: "same as --preserve=mode,ownership,timestamps"},
		command.Option{Long: "preserve", Arg: command.Optional, Name: "ATTR_LIST", Help: "preserve the specified attributes"},
		command.Option{Long: "no-preserve", Arg: command.Required, Name: "ATTR_LIST", Help: "don't preserve the specified attributes"},
		command.Option{Long: "parents", Help: "use full source file name under DIRECTORY"},
		command.Option{Short: 'R', Long: "recursive", Help: "copy directories recursively"},
		command.Option{Short: 'r', Help: "same as -R"},
		command.Option{Long: "reflink", Arg: command.Optional, Name: "WHEN", Help: "control clone/CoW copies"},
		command.Option{Long: "remove-destination", Help: "remove each existing destination file before attempting to open it"},
		command.Option{Long: "sparse", Arg: command.Required, Name: "WHEN", Help: "control creation of sparse files"},
		command.Option{Long: "strip-trailing-slashes", Help: "remove any trailing slashes from each SOURCE argument"},
		command.Option{Short: 's', Long: "symbolic-link", Help: "make symbolic links instead of copying"},
		command.Option{Short: 't', Long: "target-directory", Arg: command.Required, Name: "DIRECTORY", Help: "copy all SOURCE arguments into DIRECTORY"},
		command.Option{Short: 'T', Long: "no-target-directory", Help: "treat DEST as a normal file"},
		command.Option{Short: 'u', Long: "update", Help: "copy only when the SOURCE file is newer than the destination file or when it is missing"},
		command.Option{Short: 'v', Long: "verbose", Help: "explain what is being done"},
		command.Option{Short: 'x', Long: "one-file-system", Help: "stay on this file system"},
		command.Option{Short: 'Z', Help: "(ignored)"},
		command.Option{Long: "context", Arg: command.Optional, Help: "(ignored)"},
	),
}

// preserve reads a list of attributes.
func (c *copier) preserve(t *kernel.Task, option, list string, on bool) int {
	for what := range strings.SplitSeq(list, ",") {
		choices := []string{"mode", "timestamps", "ownership", "links", "context", "xattr", "all"}
		found, err := command.Choice(what, choices)
		if err != nil {
			return command.BadChoice(t, cpSpec, option, what, err, choices)
		}
		switch found {
		case "mode":
			c.keep.mode, c.noMode = on, !on
		case "timestamps":
			c.keep.times = on
		case "ownership":
			c.keep.owner = on
		case "links":
			c.keep.links = on
		case "all":
			c.keep = keep{on, on, on, on}
			c.noMode = !on
		}
	}
	return 0
}

func runCp(t *kernel.Task) int {
	a, status, ok := cpSpec.Parse(t)
	if !ok {
		return status
	}
	c := newCopier(t)
	if c.backup, status, ok = newBackup(t, cpSpec, a); !ok {
		return status
	}
	followSaid, content := false, false
	for _, f := range a.Flags {
		switch f.Key {
		case "a":
			c.keep = keep{true, true, true, true}
			c.recursive, c.follow, followSaid = true, command.FollowNever, true
		case "attributes-only":
			c.bare = true
		case "copy-contents":
			content = true
		case "d":
			c.keep.links = true
			c.follow, followSaid = command.FollowNever, true
		case "f":
			c.forced = true
		case "i":
			c.there = overwriteAsked
		case "n":
			c.there = overwriteNever
		case "H":
			c.follow, followSaid = command.FollowRoots, true
		case "L":
			c.follow, followSaid = command.FollowAll, true
		case "P":
			c.follow, followSaid = command.FollowNever, true
		case "l":
			c.hard = true
		case "s":
			c.symbolic = true
		case "p":
			c.keep.mode, c.keep.owner, c.keep.times = true, true, true
		case "preserve":
			if !f.Given {
				c.keep.mode, c.keep.owner, c.keep.times = true, true, true
			} else if st := c.preserve(t, "--preserve", f.Value, true); st != 0 {
				return st
			}
		case "no-preserve":
			if st := c.preserve(t, "--no-preserve", f.Value, false); st != 0 {
				return st
			}
		case "R", "r":
			c.recursive = true
		case "remove-destination":
			c.removeFirst = true
		case "u":
			c.update = true
		case "v":
			c.verbose = true
		case "x":
			c.oneDev = true
		case "reflink", "sparse":
			list := []string{"auto", "always", "never"}
			if f.Given {
				if _, err := command.Choice(f.Value, list); err != nil {
					return command.BadChoice(t, cpSpec, "--"+f.Key, f.Value, err, list)
				}
			}
		}
	}
	if c.hard && c.symbolic {
		return cpSpec.Usage(t, "cannot make both hard and symbolic links")
	}
	if c.there == overwriteNever && c.backup.on {
		return cpSpec.Usage(t, "options --backup and --no-clobber are mutually exclusive")
	}
	if !followSaid {
		c.follow = command.FollowAll
		if c.recursive && !c.hard {
			c.follow = command.FollowNever
		}
		if c.hard {
			c.follow = command.FollowNever
		}
	}
	c.asOne = !c.recursive || content
	return c.all(a, cpSpec, a.Has("parents"))
}

// all copies all operands to the last, or to the directory of -t.
func (c *copier) all(a *command.Args, s *command.Spec, parents bool) int {
	t := c.t
	files := a.Operands
	dir, toDir := a.Value("t")
	plain := a.Has("T")
	least := 2
	if toDir {
		least = 1
	}
	if len(files) < least {
		if len(files) == 0 {
			return s.Usage(t, "missing file operand")
		}
		return s.Usage(t, "missing destination file operand after %s", command.QuoteAlways(files[0]))
	}
	if plain && toDir {
		t.Errorf("cannot combine --target-directory (-t) and --no-target-directory (-T)")
		return 1
	}
	if plain && len(files) > 2 {
		return s.Usage(t, "extra operand %s", command.QuoteAlways(files[2]))
	}
	if a.Has("strip-trailing-slashes") {
		for i := range files {
			if trimmed := strings.TrimRight(files[i], "/"); trimmed != "" {
				files[i] = trimmed
			}
		}
	}
	if toDir {
		i, err := t.View.Stat(dir)
		if err == nil && !i.IsDir() {
			err = linux.ENOTDIR
		}
		if err != nil {
			t.Errorf("target directory %s: %s", command.QuoteAlways(dir), reason(err))
			return 1
		}
	} else if !plain {
		last := files[len(files)-1]
		i, err := t.View.Stat(last)
		switch {
		case err == nil && i.IsDir():
			dir, toDir, files = last, true, files[:len(files)-1]
		case len(files) > 2:
			if err == nil {
				err = linux.ENOTDIR
			}
			t.Errorf("target %s: %s", command.QuoteAlways(last), reason(err))
			return 1
		}
	}
	if !toDir {
		if parents {
			return s.Usage(t, "with --parents, the destination must be a directory")
		}
		c.one(files[0], files[1])
		return c.status
	}
	seen := map[string]bool{}
	for _, f := range files {
		if len(files) > 1 && !c.move {
			if seen[f] && !c.backup.on {
				if i, err := t.View.Stat(f); err == nil && !i.IsDir() {
					t.Errorf("warning: source file %s specified more than once", command.QuoteAlways(f))
					continue
				}
			}
			seen[f] = true
		}
		switch b := base(f); {
		case parents:
			c.withParents(f, dir)
		case b == "..":
			c.one(f, dir)
		case b == "." || b == "/":
			c.one(f, command.JoinPath(dir, "."))
		default:
			c.one(f, command.JoinPath(dir, b))
		}
	}
	return c.status
}

func (c *copier) one(from, to string) {
	if c.move {
		c.moveOne(from, to)
		return
	}
	c.copy(from, to)
}

// withParents copies f below dir by its whole path.
func (c *copier) withParents(f, dir string) {
	trimmed := strings.TrimRight(f, "/")
	for i := 1; i < len(trimmed); i++ {
		if trimmed[i] != '/' {
			continue
		}
		part := trimmed[:i]
		at := command.JoinPath(dir, strings.TrimLeft(part, "/"))
		if i, err := c.t.View.Stat(at); err == nil {
			if !i.IsDir() {
				c.fail("%s exists but is not a directory", command.QuoteAlways(at))
				return
			}
			continue
		}
		i, err := c.t.View.Stat(part)
		if err != nil {
			c.fail("failed to get attributes of %s: %s", command.QuoteAlways(part), reason(err))
			return
		}
		if err := c.t.View.Mkdir(at, i.Mode&command.ModeBits|0o700); err != nil {
			c.fail("cannot make directory %s: %s", command.QuoteAlways(at), reason(err))
			return
		}
		if c.verbose {
			say(c.t, part, " -> ", at)
		}
		c.attributes(i, &c.t.View, at, at, true)
	}
	c.copy(f, command.JoinPath(dir, strings.TrimLeft(trimmed, "/")))
}
