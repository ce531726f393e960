package file

import (
	"fmt"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var rmSpec = &command.Spec{
	Name: "rm", Synopsis: "[OPTION]... [FILE]...", About: "Remove (unlink) the FILE(s).",
	Options: []command.Option{
		{Short: 'f', Long: "force", Help: "ignore nonexistent files and arguments, never prompt"},
		{Short: 'i', Help: "prompt before every removal"},
		{Short: 'I', Help: "prompt once before removing more than three files, or when removing recursively"},
		{Long: "interactive", Arg: command.Optional, Name: "WHEN", Help: "prompt according to WHEN: never, once (-I), or always (-i)"},
		{Long: "one-file-system", Help: "skip any directory that is on a different file system"},
		{Long: "no-preserve-root", Help: "do not treat '/' specially"},
		{Long: "preserve-root", Arg: command.Optional, Name: "all", Help: "do not remove '/' (default)"},
		{Short: 'r', Long: "recursive", Help: "remove directories and their contents recursively"},
		{Short: 'R', Help: "same as -r"},
		{Short: 'd', Long: "dir", Help: "remove empty directories"},
		{Short: 'v', Long: "verbose", Help: "explain what is being done"},
	},
}

type prompt uint8

const (
	sometimes prompt = iota // before what cannot be written
	never
	once
	always
)

type remover struct {
	t                        *kernel.Task
	ask                      prompt
	force, recursive, dirs   bool
	verbose, oneDev, guarded bool
	terminal                 bool
	status                   int

	kept []bool // by depth: something below was not removed
}

func runRm(t *kernel.Task) int {
	a, status, ok := rmSpec.Parse(t)
	if !ok {
		return status
	}
	r := &remover{
		t: t, recursive: a.Has("r") || a.Has("R"), dirs: a.Has("d"), verbose: a.Has("v"),
		oneDev: a.Has("one-file-system"), guarded: true,
	}
	for _, f := range a.Flags {
		switch f.Key {
		case "f":
			r.ask, r.force = never, true
		case "i":
			r.ask, r.force = always, false
		case "I":
			r.ask, r.force = once, false
		case "interactive":
			when := "always"
			if f.Given {
				list := []string{"never", "no", "none", "once", "always", "yes"}
				found, err := command.Choice(f.Value, list)
				if err != nil {
					return command.BadChoice(t, rmSpec, "--interactive", f.Value, err, list)
				}
				when = found
			}
			switch when {
			case "never", "no", "none":
				r.ask = never
			case "once":
				r.ask, r.force = once, false
			default:
				r.ask, r.force = always, false
			}
		case "no-preserve-root":
			if f.Spelt != "--no-preserve-root" {
				t.Errorf("you may not abbreviate the --no-preserve-root option")
				return 1
			}
			r.guarded = false
		case "preserve-root":
			r.guarded = true
		}
	}
	files := a.Operands
	if len(files) == 0 {
		if r.force {
			return 0
		}
		return rmSpec.Usage(t, "missing operand")
	}
	_, _, r.terminal = command.TerminalSize(t, 0)
	if r.ask == once {
		r.ask = sometimes
		if r.recursive || len(files) > 3 {
			noun, how := "arguments", ""
			if len(files) == 1 {
				noun = "argument"
			}
			if r.recursive {
				how = " recursively"
			}
			if !yes(t, fmt.Sprintf("remove %d %s%s? ", len(files), noun, how)) {
				return 0
			}
		}
	}
	for _, f := range files {
		r.root(f)
	}
	return r.status
}

func (r *remover) fail(path string, err error) {
	r.status = 1
	r.t.Errorf("cannot remove %s: %s", command.QuoteAlways(path), reason(err))
}

func (r *remover) root(f string) {
	if b := base(f); f != "" && (b == "." || b == "..") && r.recursive {
		r.t.Errorf("refusing to remove '.' or '..' directory: skipping %s", command.QuoteAlways(f))
		r.status = 1
		return
	}
	if r.recursive && r.guarded && isRoot(r.t, f) {
		if f == "/" {
			r.t.Errorf("it is dangerous to operate recursively on '/'")
		} else {
			r.t.Errorf("it is dangerous to operate recursively on %s (same as '/')", command.QuoteAlways(f))
		}
		r.t.Errorf("use --no-preserve-root to override this failsafe")
		r.status = 1
		return
	}
	if i, err := r.t.View.Lstat(f); err == nil && i.IsLink() && f[len(f)-1] != '/' || !r.recursive {
		r.single(f, i, err)
		return
	}
	command.Walk(r.t, f, command.WalkOptions{Post: true, OneDev: r.oneDev}, r.visit)
}

// single removes what is named, without going into it.
func (r *remover) single(f string, i vfs.Info, err error) {
	switch {
	case err != nil:
		r.missing(f, err)
		return
	case i.IsDir() && !r.dirs:
		r.fail(f, linux.EISDIR)
		return
	case i.IsDir():
		e := &command.WalkEntry{In: &r.t.View, Name: f, Path: f, Info: i}
		if r.agreed(e, "remove ") {
			r.rmdir(e)
		}
		return
	}
	r.file(&command.WalkEntry{In: &r.t.View, Name: f, Path: f, Info: i})
}

func (r *remover) missing(f string, err error) {
	if r.force && (err == linux.ENOENT || err == linux.ENOTDIR) {
		return
	}
	r.fail(f, err)
}

func (r *remover) visit(e *command.WalkEntry) command.WalkOrder {
	for len(r.kept) <= e.Depth+1 {
		r.kept = append(r.kept, false)
	}
	switch e.What {
	case command.VisitLost:
		r.missing(e.Path, e.Err)
		r.kept[e.Depth] = true
	case command.VisitFailed:
		if e.In.Rmdir(e.Name) == nil {
			if r.verbose {
				say(r.t, "removed directory ", command.QuoteAlways(e.Path))
			}
			r.kept[e.Depth+1] = true // it is gone
			return command.WalkNext
		}
		r.fail(e.Path, e.Err)
		r.kept[e.Depth], r.kept[e.Depth+1] = true, true
	case command.VisitBefore:
		if !e.Info.IsDir() {
			if !r.file(e) {
				r.kept[e.Depth] = true
			}
			return command.WalkNext
		}
		return r.before(e)
	case command.VisitAfter:
		if r.kept[e.Depth+1] {
			r.kept[e.Depth] = r.kept[e.Depth] || r.status != 0 || r.ask == always
			r.kept[e.Depth+1] = false
			return command.WalkNext
		}
		if r.ask == always || r.unwritable(e) {
			if r.questioned(e, "remove ") {
				if !r.yes(e, "remove ") {
					r.kept[e.Depth] = true
					return command.WalkNext
				}
			}
		}
		if !r.rmdir(e) {
			r.kept[e.Depth] = true
		}
	case command.VisitLoop:
	}
	return command.WalkNext
}

// before decides about going into a directory.
func (r *remover) before(e *command.WalkEntry) command.WalkOrder {
	r.kept[e.Depth+1] = false
	if !r.questioned(e, "") {
		return command.WalkNext
	}
	names, err := e.In.Names(e.Name)
	if err == nil && len(names) == 0 {
		return command.WalkNext // the one question comes afterwards
	}
	if !r.yes(e, "descend into ") {
		r.kept[e.Depth] = true
		return command.WalkSkip
	}
	return command.WalkNext
}

func (r *remover) unwritable(e *command.WalkEntry) bool {
	return !e.Info.IsLink() && r.ask == sometimes && r.terminal && e.In.Access(e.Name, 2) != nil
}

// questioned reports whether a file is asked about.
func (r *remover) questioned(e *command.WalkEntry, _ string) bool {
	return r.ask == always || r.unwritable(e)
}

func (r *remover) agreed(e *command.WalkEntry, verb string) bool {
	return !r.questioned(e, verb) || r.yes(e, verb)
}

func (r *remover) yes(e *command.WalkEntry, verb string) bool {
	protected := ""
	if !e.Info.IsLink() && e.In.Access(e.Name, 2) != nil {
		protected = "write-protected "
	}
	if verb == "descend into " {
		return yes(r.t, verb+protected+"directory "+command.QuoteAlways(e.Path)+"? ")
	}
	return yes(r.t, verb+protected+kindOf(e.Info)+" "+command.QuoteAlways(e.Path)+"? ")
}

func (r *remover) file(e *command.WalkEntry) bool {
	if !r.agreed(e, "remove ") {
		return false
	}
	if err := e.In.Unlink(e.Name); err != nil {
		if err == linux.ENOENT && r.force {
			return true
		}
		r.fail(e.Path, err)
		return false
	}
	if r.verbose {
		say(r.t, "removed ", command.QuoteAlways(e.Path))
	}
	return true
}

func (r *remover) rmdir(e *command.WalkEntry) bool {
	if err := e.In.Rmdir(e.Name); err != nil {
		r.fail(e.Path, err)
		return false
	}
	if r.verbose {
		say(r.t, "removed directory ", command.QuoteAlways(e.Path))
	}
	return true
}
