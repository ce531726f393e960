package file

import (
	"fmt"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/mode"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/operand"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/walk"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
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
	t       *proc.Task
	change  mode.Change
	fixed   bool // by --reference
	bits    uint32
	minus   bool // the mode came as an option
	quiet   bool
	verbose bool
	changes bool
	status  int
}

func runChmod(t *proc.Task) int {
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
		return chmodSpec.Usage(t, "missing operand after %s", operand.Quote(text))
	}
	if byRef {
		i, err := t.View.Stat(ref)
		if err != nil {
			t.Errorf("failed to get attributes of %s: %s", operand.Always(ref), reason(err))
			return 1
		}
		c.fixed, c.bits = true, i.Mode&mode.All
	} else if c.change, ok = mode.Parse(text); !ok {
		return chmodSpec.Usage(t, "invalid mode: %s", operand.Quote(text))
	}
	recursive := a.Has("R")
	for _, f := range files {
		if recursive && a.Has("preserve-root") && isRoot(t, f) {
			rootRefused(t, f)
			c.status = 1
			continue
		}
		walk.Walk(t, f, walk.Options{Follow: walk.Roots, Bounded: !recursive}, c.visit)
	}
	return c.status
}

func isRoot(t *proc.Task, path string) bool {
	i, err := t.View.Lstat(path)
	if err != nil {
		return false
	}
	r, err := t.View.Lstat("/")
	return err == nil && r.Ino == i.Ino && r.Dev == i.Dev
}

func rootRefused(t *proc.Task, f string) {
	if f == "/" {
		t.Errorf("it is dangerous to operate recursively on '/'")
	} else {
		t.Errorf("it is dangerous to operate recursively on %s (same as '/')", operand.Always(f))
	}
	t.Errorf("use --no-preserve-root to override this failsafe")
}

func (c *chmodder) fail(format string, args ...any) {
	c.status = 1
	if !c.quiet {
		c.t.Errorf(format, args...)
	}
}

func (c *chmodder) visit(e *walk.Entry) walk.Order {
	switch e.What {
	case walk.Lost:
		c.fail("cannot access %s: %s", operand.Always(e.Path), reason(e.Err))
		if c.verbose {
			say(c.t, "failed to change mode of ", operand.Always(e.Path), " to "+"0000 (---------)")
		}
		return walk.Next
	case walk.Failed:
		c.fail("cannot read directory %s: %s", operand.Always(e.Path), reason(e.Err))
		return walk.Next
	case walk.Here, walk.After, walk.Loop:
	}
	if e.Info.IsLink() {
		if e.Depth == 0 {
			c.fail("cannot operate on dangling symlink %s", operand.Always(e.Path))
		} else if c.verbose {
			say(c.t, "neither symbolic link ", operand.Always(e.Path), " nor referent has been changed")
		}
		return walk.Next
	}
	c.one(e)
	return walk.Next
}

func (c *chmodder) one(e *walk.Entry) {
	old := e.Info.Mode & mode.All
	bits := c.bits
	if !c.fixed {
		bits, _ = c.change.Apply(old, e.Info.IsDir(), c.t.View.Umask)
	}
	if err := e.In.Chmod(e.Name, bits); err != nil {
		c.fail("changing permissions of %s: %s", operand.Always(e.Path), reason(err))
		if c.verbose {
			say(c.t, fmt.Sprintf("failed to change mode of %s from %s to %s", operand.Always(e.Path), show(old), show(bits)))
		}
		return
	}
	now := bits
	if i, err := e.In.Stat(e.Name); err == nil {
		now = i.Mode & mode.All
	}
	switch {
	case now != old && (c.verbose || c.changes):
		say(c.t, fmt.Sprintf("mode of %s changed from %s to %s", operand.Always(e.Path), show(old), show(now)))
	case now == old && c.verbose:
		say(c.t, fmt.Sprintf("mode of %s retained as %s", operand.Always(e.Path), show(now)))
	}
	if c.minus && !c.fixed {
		naive, _ := c.change.Apply(old, e.Info.IsDir(), 0)
		if now&^naive != 0 {
			c.fail("%s: new permissions are %s, not %s", operand.File(e.Path), mode.String(now)[1:], mode.String(naive)[1:])
		}
	}
}

func show(m uint32) string { return fmt.Sprintf("%04o (%s)", m, mode.String(m)[1:]) }
