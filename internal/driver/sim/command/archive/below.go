package archive

import (
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/walk"
)

// below works on all files in a directory.
func (p *press) below(dir string) {
	var files []string
	walk.Walk(p.t, dir, walk.Options{}, func(e *walk.Entry) walk.Order {
		switch {
		case e.What == walk.Lost || e.What == walk.Failed:
			p.cannotOpen(e.Path, e.Err)
		case e.What == walk.Here && e.Info.IsRegular():
			p.t.Grow(len(e.Path) + 16)
			files = append(files, e.Path)
		}
		return walk.Next
	})
	for _, f := range files {
		if _, ok := p.target(f); ok || !p.unpack {
			p.file(f)
		}
	}
}
