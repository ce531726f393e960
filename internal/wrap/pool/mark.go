package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/paddock-sandbox/paddock"
)

// Label is on every ready sandbox that outlives the process which made it. Who
// takes the sandbox never sees it: the change of labels that makes it its caller's
// takes it away.
const Label = "paddock.shelf"

// labels are those of a shelf's sandboxes while they are ready.
func (p *Pool) labels(s *stock) map[string]string {
	if s.spec.Ephemeral {
		return s.spec.Labels
	}
	labels := make(map[string]string, len(s.spec.Labels)+1)
	maps.Copy(labels, s.spec.Labels)
	labels[Label] = p.mark
	return labels
}

// Clean removes the ready sandboxes of a pool with this mark that was killed: what
// carries it was never handed out. It is called before that pool is made again,
// and where none is. What cannot be removed is told, and the rest is done.
func Clean(ctx context.Context, d paddock.Driver, mark string) (removed []paddock.ID, err error) {
	if mark == "" {
		return nil, fmt.Errorf("the mark of a pool is empty: %w", paddock.Invalid)
	}
	all, err := d.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for ready sandboxes of before: %w", err)
	}
	var errs []error
	for _, st := range all {
		if st.Labels[Label] != mark {
			continue
		}
		sb, err := d.Open(ctx, st.ID)
		if err == nil {
			err = sb.Remove(ctx)
		}
		switch {
		case err == nil:
			removed = append(removed, st.ID)
		case !errors.Is(err, paddock.NotFound):
			errs = append(errs, fmt.Errorf("remove the ready sandbox %s of before: %w", st.ID, err))
		}
	}
	return removed, errors.Join(errs...)
}
