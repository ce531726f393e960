package measure

import (
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// Change returns a change as a monitor judges it.
func Change(c step.Watched) monitor.Change {
	what := map[step.Verb]string{step.Created: monitor.Created, step.Removed: monitor.Removed, step.Moved: monitor.Moved, step.Edited: monitor.Edited, step.Unseen: monitor.Unseen}[c.Verb]
	return monitor.Change{
		Root: c.Root, Path: string(c.Path), What: what, From: string(c.From), FromRoot: c.FromRoot, Half: monitor.Half(c.Half), Link: c.Link,
		Was: string(c.Was), Old: c.Old, Links: c.Links, Inode: c.Inode,
	}
}

// Summary sums a step up as a monitor judges it.
func Summary(r *step.Record) monitor.Summary {
	s := monitor.Summary{Exit: r.Exit}
	for i := range r.Changes {
		c := &r.Changes[i]
		name, what := string(c.Path), monitor.Edited
		switch {
		case !c.Before.Exists():
			what = monitor.Created
			s.Files.Created++
		case !c.After.Exists() && monitor.Rebuildable(name):
			what = monitor.Removed
			s.Files.Rebuilt++
		case !c.After.Exists():
			what = monitor.Removed
			s.Files.Removed++
		case c.Before.Kind == step.File && c.Before.Size > 0 && c.After.Kind == step.File && c.After.Size == 0:
			s.Files.Emptied++
		default:
			s.Files.Changed++
		}
		if n, ok := monitor.NotableOf(name, what); ok && len(s.Notable) < maxNotable {
			s.Notable = append(s.Notable, n)
		}
	}
	return s
}

// maxNotable bounds what is listed of a step.
const maxNotable = 50
