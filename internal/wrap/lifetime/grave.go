package lifetime

import (
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	mourning  = 24 * time.Hour // how long the cause of a removal is kept
	maxGraves = 1000           // maximum number; the oldest are dropped
)

// graves are the records of removed sandboxes, oldest first.
type graves struct {
	order []paddock.ID
	by    map[paddock.ID]Record
}

// add adds a record, and returns the dropped ones.
func (g *graves) add(rec Record, now time.Time) (old []Record) {
	if g.by == nil {
		g.by = make(map[paddock.ID]Record)
	}
	g.remove(rec.ID)
	g.by[rec.ID] = rec
	g.order = append(g.order, rec.ID)
	for len(g.order) > 0 {
		first := g.by[g.order[0]]
		if len(g.order) <= maxGraves && now.Sub(first.Ended) < mourning {
			break
		}
		old = append(old, first)
		g.remove(first.ID)
	}
	return old
}

// find returns the record of a removed sandbox.
func (g *graves) find(id paddock.ID, now time.Time) (Record, bool) {
	rec, ok := g.by[id]
	return rec, ok && now.Sub(rec.Ended) < mourning
}

func (g *graves) remove(id paddock.ID) {
	if _, ok := g.by[id]; !ok {
		return
	}
	delete(g.by, id)
	g.order = slices.DeleteFunc(g.order, func(other paddock.ID) bool { return other == id })
}
