package file

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var mvSpec = &command.Spec{
	Name:     "mv",
	Synopsis: "[OPTION]... [-T] SOURCE DEST\n  or:  mv [OPTION]... SOURCE... DIRECTORY\n  or:  mv [OPTION]... -t DIRECTORY SOURCE...",
	About:    "Rename SOURCE to DEST, or move SOURCE(s) to DIRECTORY.",
	Options: backupOptions(
		command.Option{Short: 'f', Long: "force", Help: "do not prompt before overwriting"},
		command.Option{Short: 'i', Long: "interactive", Help: "prompt before overwrite"},
		command.Option{Short: 'n', Long: "no-clobber", Help: "do not overwrite an existing file"},
		command.Option{Long: "strip-trailing-slashes", Help: "remove any trailing slashes from each SOURCE argument"},
		command.Option{Short: 't', Long: "target-directory", Arg: command.Required, Name: "DIRECTORY", Help: "move all SOURCE arguments into DIRECTORY"},
		command.Option{Short: 'T', Long: "no-target-directory", Help: "treat DEST as a normal file"},
		command.Option{Short: 'u', Long: "update", Help: "move only when the SOURCE file is newer than the destination file or when it is missing"},
		command.Option{Short: 'v', Long: "verbose", Help: "explain what is being done"},
		command.Option{Short: 'Z', Long: "context", Help: "(ignored)"},
	),
}

func runMv(t *kernel.Task) int {
	a, status, ok := mvSpec.Parse(t)
	if !ok {
		return status
	}
	c := newCopier(t)
	c.move, c.recursive, c.keep = true, true, keep{true, true, true, true}
	c.verbose, c.update = a.Has("v"), a.Has("u")
	if c.backup, status, ok = newBackup(t, mvSpec, a); !ok {
		return status
	}
	for _, f := range a.Flags {
		switch f.Key {
		case "f":
			c.there = overwriteForced
		case "i":
			c.there = overwriteAsked
		case "n":
			c.there = overwriteNever
		}
	}
	if c.there == overwriteNever && c.backup.on {
		return mvSpec.Usage(t, "options --backup and --no-clobber are mutually exclusive")
	}
	return c.all(a, mvSpec, false)
}

// moveOne moves a file, by renaming it if that can be.
func (c *copier) moveOne(from, to string) {
	t := c.t
	v := &t.View
	i, err := v.Lstat(from)
	if err != nil {
		c.fail("cannot stat %s: %s", command.QuoteAlways(from), reason(err))
		return
	}
	kept := ""
	d, err := v.Lstat(to)
	switch {
	case err == nil:
		if !c.moveOver(from, to, i, d, &kept) {
			return
		}
	case err != linux.ENOENT:
		c.fail("cannot stat %s: %s", command.QuoteAlways(to), reason(err))
		return
	}
	err = v.Rename(from, to)
	switch err {
	case nil:
		if c.verbose {
			line := "renamed " + command.QuoteAlways(from) + " -> " + command.QuoteAlways(to)
			if kept != "" {
				line += " (backup: " + command.QuoteAlways(kept) + ")"
			}
			say(t, line)
		}
		if n, err := v.Lstat(to); err == nil {
			c.made[nodeOf(n)] = true
		}
	case linux.EXDEV:
		c.across(from, to)
	case linux.EINVAL:
		c.fail("cannot move %s to a subdirectory of itself, %s", command.QuoteAlways(from), command.QuoteAlways(to))
	default:
		if err == linux.ENOTDIR && i.IsDir() && d.Mode != 0 && !d.IsDir() {
			c.fail("cannot overwrite non-directory %s with directory %s", command.QuoteAlways(to), command.QuoteAlways(from))
			return
		}
		c.fail("cannot move %s to %s: %s", command.QuoteAlways(from), command.QuoteAlways(to), reason(err))
	}
}

// moveOver decides about a file that is in the way, and keeps it with -b.
func (c *copier) moveOver(from, to string, i, d vfs.Info, kept *string) bool {
	t := c.t
	v := &t.View
	if nodeOf(i) == nodeOf(d) {
		switch {
		case c.backup.on && !sameName(t, from, to):
		case sameName(t, from, to) || i.IsDir():
			if i.IsDir() && strings.HasPrefix(to, from) {
				c.fail("cannot move %s to a subdirectory of itself, %s", command.QuoteAlways(from), command.QuoteAlways(to))
				return false
			}
			c.fail("%s and %s are the same file", command.QuoteAlways(from), command.QuoteAlways(to))
			return false
		default:
			if err := v.Unlink(from); err != nil {
				c.fail("cannot remove %s: %s", command.QuoteAlways(from), reason(err))
			} else if c.verbose {
				say(t, "removed ", command.QuoteAlways(from))
			}
			return false
		}
	}
	if c.update && !i.IsDir() && !d.Mtime.Before(i.Mtime) {
		return false
	}
	switch c.there {
	case overwriteNever:
		return false
	case overwriteAsked:
		if !c.ask(v, to, to, d) {
			return false
		}
	case overwrite:
		if _, _, terminal := command.TerminalSize(t, 0); terminal && !d.IsLink() && v.Access(to, 2) != nil && !c.ask(v, to, to, d) {
			return false
		}
	case overwriteForced:
	}
	switch {
	case i.IsDir() && !d.IsDir() && !c.backup.on:
		c.fail("cannot overwrite non-directory %s with directory %s", command.QuoteAlways(to), command.QuoteAlways(from))
		return false
	case !i.IsDir() && d.IsDir() && !c.backup.on:
		c.fail("cannot overwrite directory %s with non-directory", command.QuoteAlways(to))
		return false
	case c.made[nodeOf(d)] && !c.backup.on:
		c.fail("will not overwrite just-created %s with %s", command.QuoteAlways(to), command.QuoteAlways(from))
		return false
	}
	if c.backup.on {
		*kept = c.backup.name(v, to)
		if err := v.Rename(to, *kept); err != nil {
			c.fail("cannot backup %s: %s", command.QuoteAlways(to), reason(err))
			return false
		}
	}
	return true
}

// across moves to another file system: it copies and removes.
func (c *copier) across(from, to string) {
	t := c.t
	if d, err := t.View.Lstat(to); err == nil {
		if d.IsDir() {
			err = t.View.Rmdir(to)
		} else {
			err = t.View.Unlink(to)
		}
		if err != nil {
			c.fail("inter-device move failed: %s to %s; unable to remove target: %s", command.QuoteAlways(from), command.QuoteAlways(to), reason(err))
			return
		}
	}
	before := c.status
	c.status = 0
	asked := c.there
	c.there = overwriteForced
	c.copy(from, to)
	c.there = asked
	if c.status != 0 {
		return
	}
	c.status = before
	r := &remover{t: t, ask: never, force: true, recursive: true, verbose: c.verbose}
	command.Walk(t, from, command.WalkOptions{Post: true}, r.visit)
	if r.status != 0 {
		c.status = 1
	}
}
