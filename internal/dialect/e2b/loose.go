package e2b

import (
	"context"
	"errors"

	"github.com/paddock-sandbox/paddock"
)

// A loose snapshot is one without a stored reference: it was just taken, or its reference
// was just removed. A note of it lets the next server remove the snapshot if this one is
// killed.
type loose struct {
	tenant string
	id     paddock.SnapshotID
}

// loosen stores a note of a snapshot.
func (h *Handler) loosen(ctx context.Context, tenant string, id paddock.SnapshotID) error {
	return h.o.Store.Keep(ctx, kindLoose, tenant, string(id), "{}")
}

// settle deletes the note of a snapshot that is removed or referenced.
func (h *Handler) settle(ctx context.Context, tenant string, id paddock.SnapshotID) {
	if err := h.o.Store.Forget(ctx, kindLoose, tenant, string(id)); err != nil { // the next start checks again
		h.log.Warn("e2b: the note of a snapshot is left", "snapshot", id, "error", err)
	}
}

// discard removes a loose snapshot.
func (h *Handler) discard(ctx context.Context, d paddock.Driver, tenant string, id paddock.SnapshotID) error {
	err := d.RemoveSnapshot(ctx, id)
	if err != nil && !errors.Is(err, paddock.NotFound) {
		return err
	}
	h.settle(ctx, tenant, id)
	return nil
}

// orphans returns the notes of an earlier handler, and deletes those of snapshots that are
// referenced.
func (h *Handler) orphans(ctx context.Context) ([]loose, error) {
	var all, left []loose
	err := h.o.Store.Each(ctx, kindLoose, func(tenant, id, _ string) error {
		all = append(all, loose{tenant, paddock.SnapshotID(id)})
		return nil
	})
	used := map[loose]bool{}
	for _, b := range h.boxes {
		rec, _ := b.record()
		used[loose{rec.Tenant, rec.Cold}] = true
	}
	for _, t := range h.templates {
		for _, b := range t.Builds {
			used[loose{t.Tenant, b.Snapshot}] = true
		}
	}
	for _, l := range all {
		if used[l] {
			h.settle(ctx, l.tenant, l.id)
		} else {
			left = append(left, l)
		}
	}
	return left, err
}

// adopt removes the loose snapshots of an earlier handler.
func (h *Handler) adopt(ctx context.Context) {
	for _, l := range h.left {
		d, err := h.o.Tenant(ctx, l.tenant)
		if err == nil {
			err = h.discard(ctx, d, l.tenant, l.id)
		}
		if err != nil {
			h.log.Warn("e2b: an unreferenced snapshot was not removed, the next start tries again", "snapshot", l.id, "error", err)
		}
	}
}
