package file

import (
	"fmt"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var chmodSpec = &command.Spec{
	Name:     "chmod",
	Synopsis: "[OPTION]... MODE[,MODE]... FILE...\n  or:  chmod [OPTION]... OCTAL-MODE FILE...\n  or:  chmod [OPTION]... --reference=RFILE FILE...",
	About:    "Change the mode of each FILE to MODE. With --reference, change the mode of each FILE to that of RFILE.",
	Options: []command.Option{
		{Short: 'c', Long: "changes", Help: "like verbose but report only when a change is made"},
		{Short: 'f', Long: "silent", Help: "suppress most error messages"},
		{Long: "quiet", Help: "same as -f"},
		{Short: 'v', Long: "verbose", Help: "output a diagnostic for every file processed"},
		{Long: "no-preserve-root", Help: "do not treat '/' specially (the default)"},
		{Long: "preserve-root", Help: "fail to operate recursively on '/'"},
		{Long: "reference", Arg: command.Required, Name: "RFILE", Help: "use RFILE's mode instead of MODE values"},
		{Short: 'R', Long: "recursive", Help: "change files and directories recursively"},
	},
}

// splitMode takes a mode such as -x out of the arguments, which would be an
// option otherwise.
func splitMode(args []string) (rest []string, modes string, found bool) {
	for i, a := range args {
		if a == "--" {
			return append(rest, args[i:]...), modes, found
		}
		if len(a) > 1 && a[0] == '-' && minusMode(a) {
			if found {
				modes += ","
			}
			modes += a
			found = true
			continue
		}
		rest = append(rest, a)
	}
	return rest, modes, found
}

func minusMode(a string) bool {
	switch a[1] {
	case 'r', 'w', 'x', 'X', 's', 't', 'u', 'g', 'o', 'a', ',', '+', '=', '0', '1', '2', '3', '4', '5', '6', '7':
		return true
	}
	return false
}

type chmodder struct {
	t       *kernel.Task
	change  command.ModeChange
	fixed   bool // by --reference
	bits    uint32
	minus   bool // the mode came as an option
	quiet   bool
	verbose bool
	changes bool
	status  int
}

func runChmod(t *kernel.Task) int {
	args, minus, found := splitMode(t.Args[1:])
	a, status, ok := chmodSpec.ParseArgs(t, args)
	if !ok {
		return status
	}
	c := &chmodder{t: t, quiet: a.Has("f") || a.Has("quiet"), verbose: a.Has("v"), changes: a.Has("c"), minus: found}
	files := a.Operands
	ref, byRef := a.Value("reference")
	text := minus
	switch {
	case byRef && found:
		return chmodSpec.Usage(t, "cannot combine mode and --reference options")
	case !byRef && !found && len(files) > 0:
		text, files = files[0], files[1:]
	}
	if len(files) == 0 {
		if text == "" || found {
			return chmodSpec.Usage(t, "missing operand")
		}
		return chmodSpec.Usage(t, "missing operand after %s", command.Quote(text))
	}
	if byRef {
		i, err := t.View.Stat(ref)
		if err != nil {
			t.Errorf("failed to get attributes of %s: %s", command.QuoteAlways(ref), reason(err))
			return 1
		}
		c.fixed, c.bits = true, i.Mode&command.ModeBits
	} else if c.change, ok = command.ParseMode(text); !ok {
		return chmodSpec.Usage(t, "invalid mode: %s", command.Quote(text))
	}
	recursive := a.Has("R")
	for _, f := range files {
		if recursive && a.Has("preserve-root") && isRoot(t, f) {
			rootRefused(t, f)
			c.status = 1
			continue
		}
		command.Walk(t, f, command.WalkOptions{Follow: command.FollowRoots, Bounded: !recursive}, c.visit)
	}
	return c.status
}

func isRoot(t *kernel.Task, path string) bool {
	i, err := t.View.Lstat(path)
	if err != nil {
		return false
	}
	r, err := t.View.Lstat("/")
	return err == nil && r.Ino == i.Ino && r.Dev == i.Dev
}

func rootRefused(t *kernel.Task, f string) {
	if f == "/" {
		t.Errorf("it is dangerous to operate recursively on '/'")
	} else {
		t.Errorf("it is dangerous to operate recursively on %s (same as '/')", command.QuoteAlways(f))
	}
	t.Errorf("use --no-preserve-root to override this failsafe")
}

func (c *chmodder) fail(format string, args ...any) {
	c.status = 1
	if !c.quiet {
		c.t.Errorf(format, args...)
	}
}

func (c *chmodder) visit(e *command.WalkEntry) command.WalkOrder {
	switch e.What {
	case command.VisitLost:
		c.fail("cannot access %s: %s", command.QuoteAlways(e.Path), reason(e.Err))
		if c.verbose {
			say(c.t, "failed to change mode of ", command.QuoteAlways(e.Path), " to "+"0000 (---------)")
		}
		return command.WalkNext
	case command.VisitFailed:
		c.fail("cannot read directory %s: %s", command.QuoteAlways(e.Path), reason(e.Err))
		return command.WalkNext
	case command.VisitBefore, command.VisitAfter, command.VisitLoop:
	}
	if e.Info.IsLink() {
		if e.Depth == 0 {
			c.fail("cannot operate on dangling symlink %s", command.QuoteAlways(e.Path))
		} else if c.verbose {
			say(c.t, "neither symbolic link ", command.QuoteAlways(e.Path), " nor referent has been changed")
		}
		return command.WalkNext
	}
	c.one(e)
	return command.WalkNext
}

func (c *chmodder) one(e *command.WalkEntry) {
	old := e.Info.Mode & command.ModeBits
	bits := c.bits
	if !c.fixed {
		bits, _ = c.change.Apply(old, e.Info.IsDir(), c.t.View.Umask)
	}
	if err := e.In.Chmod(e.Name, bits); err != nil {
		c.fail("changing permissions of %s: %s", command.QuoteAlways(e.Path), reason(err))
		if c.verbose {
			say(c.t, fmt.Sprintf("failed to change mode of %s from %s to %s", command.QuoteAlways(e.Path), show(old), show(bits)))
		}
		return
	}
	now := bits
	if i, err := e.In.Stat(e.Name); err == nil {
		now = i.Mode & command.ModeBits
	}
	switch {
	case now != old && (c.verbose || c.changes):
		say(c.t, fmt.Sprintf("mode of %s changed from %s to %s", command.QuoteAlways(e.Path), show(old), show(now)))
	case now == old && c.verbose:
		say(c.t, fmt.Sprintf("mode of %s retained as %s", command.QuoteAlways(e.Path), show(now)))
	}
	if c.minus && !c.fixed {
		naive, _ := c.change.Apply(old, e.Info.IsDir(), 0)
		if now&^naive != 0 {
			c.fail("%s: new permissions are %s, not %s", command.QuoteFile(e.Path), command.ModeString(now)[1:], command.ModeString(naive)[1:])
		}
	}
}

func show(m uint32) string { return fmt.Sprintf("%04o (%s)", m, command.ModeString(m)[1:]) }
