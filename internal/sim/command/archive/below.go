package archive

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// below works on all files in a directory.
func (p *press) below(dir string) {
	var files []string
	command.Walk(p.t, dir, command.WalkOptions{}, func(e *command.WalkEntry) command.WalkOrder {
		switch {
		case e.What == command.VisitLost || e.What == command.VisitFailed:
			p.cannotOpen(e.Path, e.Err)
		case e.What == command.VisitBefore && e.Info.IsRegular():
			p.t.Grow(len(e.Path) + 16)
			files = append(files, e.Path)
		}
		return command.WalkNext
	})
	for _, f := range files {
		if _, ok := p.target(f); ok || !p.unpack {
			p.file(f)
		}
	}
}
