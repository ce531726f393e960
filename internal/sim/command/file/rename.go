package file

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var renameSpec = &command.Spec{
	Name: "rename", Synopsis: "[options] <expression> <replacement> <file>...", Ordered: true, About: "Rename files.",
	Options: []command.Option{
		{Short: 'v', Long: "verbose", Help: "explain what is being done"},
		{Short: 's', Long: "symlink", Help: "act on the target of symlinks"},
		{Short: 'n', Long: "no-act", Help: "do not make any changes"},
		{Short: 'a', Long: "all", Help: "replace all occurrences"},
		{Short: 'l', Long: "last", Help: "replace only the last occurrence"},
		{Short: 'o', Long: "no-overwrite", Help: "don't overwrite existing files"},
	},
}

// Of a file that rename was given: one that is not meant, one that was
// renamed, one that could not be.
const (
	renameNothing = 0
	renameDone    = 1
	renameFailed  = 2
)

func runRename(t *kernel.Task) int {
	a, status, ok := renameSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) < 3 {
		return renameSpec.Usage(t, "not enough arguments")
	}
	from, to := a.Operands[0], a.Operands[1]
	all := renameNothing
	for _, name := range a.Operands[2:] {
		t.Step(4)
		if a.Has("s") {
			all |= renameLink(t, a, from, to, name)
		} else {
			all |= renameFile(t, a, from, to, name)
		}
	}
	// Nothing done is 4, all done 0, all failed 1, some of both 2.
	return [4]int{4, 0, 1, 2}[all]
}

// replaced gives a name with from replaced; false is that it does not occur.
func replaced(t *kernel.Task, a *command.Args, from, to, name string) (string, bool) {
	at := 0
	if !strings.Contains(from, "/") && !strings.Contains(to, "/") {
		at = strings.LastIndexByte(name, '/') + 1
	}
	head, tail := name[:at], name[at:]
	switch {
	case !strings.Contains(tail, from):
		return "", false
	case from == "":
		return head + to + tail, true
	case a.Has("a"):
		return head + kernel.ReplaceAll(t, tail, from, to), true
	case a.Has("l"):
		i := strings.LastIndex(tail, from)
		return head + tail[:i] + to + tail[i+len(from):], true
	}
	return head + strings.Replace(tail, from, to, 1), true
}

func renameFile(t *kernel.Task, a *command.Args, from, to, name string) int {
	if _, err := t.View.Lstat(name); err != nil {
		t.Errorf("%s: not accessible: %s", name, reason(err))
		return renameFailed
	}
	target, ok := replaced(t, a, from, to, name)
	if !ok || target == name {
		return renameNothing
	}
	if a.Has("o") {
		if _, err := t.View.Lstat(target); err == nil {
			if a.Has("v") {
				say(t, "Skipping existing file: `"+target+"'")
			}
			return renameNothing
		}
	}
	if !a.Has("n") {
		if err := t.View.Rename(name, target); err != nil {
			t.Errorf("%s: rename to %s failed: %s", name, target, reason(err))
			return renameFailed
		}
	}
	if a.Has("v") {
		say(t, "`"+name+"' -> `"+target+"'")
	}
	return renameDone
}

func renameLink(t *kernel.Task, a *command.Args, from, to, name string) int {
	i, err := t.View.Lstat(name)
	if err != nil {
		t.Errorf("%s: not accessible: %s", name, reason(err))
		return renameFailed
	}
	if !i.IsLink() {
		t.Errorf("%s: not a symbolic link", name)
		return renameFailed
	}
	old, err := t.View.Readlink(name)
	if err != nil {
		t.Errorf("%s: readlink failed: %s", name, reason(err))
		return renameFailed
	}
	target, ok := replaced(t, a, from, to, old)
	if !ok {
		return renameNothing
	}
	if a.Has("o") {
		if _, err := t.View.Lstat(target); err == nil {
			if a.Has("v") {
				say(t, "Skipping existing link: `"+name+"' -> `"+target+"'")
			}
			return renameNothing
		}
	}
	if !a.Has("n") {
		if err := t.View.Unlink(name); err != nil && !errors.Is(err, linux.ENOENT) {
			t.Errorf("%s: unlink failed: %s", name, reason(err))
			return renameFailed
		}
		if err := t.View.Symlink(target, name); err != nil {
			t.Errorf("%s: symlinking to %s failed: %s", name, target, reason(err))
			return renameFailed
		}
	}
	if a.Has("v") {
		say(t, "`"+name+"': `"+old+"' -> `"+target+"'")
	}
	return renameDone
}
