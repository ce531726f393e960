package cli

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/step"
)

// toldChange tells all of a change that its contents do not: what is done, the modes, what the file becomes, and where a
// link leads. It follows the name of the path in each list and question, so that nobody agrees to what was not told.
func toldChange(d *step.Difference) string {
	var kinds []string
	for _, k := range d.Kinds {
		kinds = append(kinds, string(k))
	}
	text := strings.Join(kinds, ", ")
	if d.From != "" {
		text += " from " + OneLine(path.Join(string(d.FromRoot), string(d.From)))
	}
	if slices.Contains(d.Kinds, step.Mode) {
		text += fmt.Sprintf(" (%04o to %04o)", d.Before.Mode, d.After.Mode)
	}
	return text + toldState(string(d.Root), string(d.Path), &d.Before, &d.After)
}

// toldState tells what a path becomes, where that is more than a file that is no program.
func toldState(root, at string, before, after *step.State) string {
	switch after.Kind {
	case step.Symlink:
		if before.Kind == step.Symlink && before.Target == after.Target {
			return ""
		}
		text := " -> " + OneLine(string(after.Target))
		if leadsOut(root, at, string(after.Target)) {
			text += " (outside of the directory)"
		}
		return text
	case step.File:
		text := ""
		if before.Exists() && before.Kind != step.File {
			text = " by a file"
		}
		if after.Mode&0o111 != 0 && (before.Kind != step.File || before.Mode&0o111 == 0) {
			text += fmt.Sprintf(", a program (mode %04o)", after.Mode)
		}
		return text
	case step.Dir:
		text := ""
		if before.Exists() && before.Kind != step.Dir {
			text = " by a directory"
		}
		if after.Mode&0o002 != 0 && before.Mode&0o002 == 0 {
			text += fmt.Sprintf(", for everybody to write (mode %04o)", after.Mode)
		}
		return text
	case step.Absent:
		return ""
	}
	if before.Kind != after.Kind {
		return fmt.Sprintf(" (%s)", after.Kind)
	}
	return ""
}

// leadsOut reports whether a link leads out of a root by its words. Other links on its way are not followed.
func leadsOut(root, at, target string) bool {
	if !path.IsAbs(target) {
		target = path.Join(root, path.Dir(at), target)
	}
	target = path.Clean(target)
	return target != root && !strings.HasPrefix(target, strings.TrimSuffix(root, "/")+"/")
}
