package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/paddock-sandbox/paddock"
)

// Label is on every ready sandbox that outlives the process which made it. A caller never
// sees it, because handing the sandbox out replaces the labels.
const Label = "paddock.shelf"

// labels returns the labels of a shelf's sandboxes while they are ready.
func (p *Pool) labels(s *stock) map[string]string {
	if s.spec.Ephemeral {
		return s.spec.Labels
	}
	labels := make(map[string]string, len(s.spec.Labels)+1)
	maps.Copy(labels, s.spec.Labels)
	labels[Label] = p.mark
	return labels
}

// Clean removes the ready sandboxes of a killed pool with this mark. They were never handed
// out. Call it before making that pool again, and if the pool is not used any more. It
// continues after an error and returns the errors.
func Clean(ctx context.Context, d paddock.Driver, mark string) (removed []paddock.ID, err error) {
	if mark == "" {
		return nil, fmt.Errorf("the mark of a pool is empty: %w", paddock.Invalid)
	}
	all, err := d.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("find ready sandboxes of an earlier process: %w", err)
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
			errs = append(errs, fmt.Errorf("remove the ready sandbox %s of an earlier process: %w", st.ID, err))
		}
	}
	return removed, errors.Join(errs...)
}
