package paddock

import (
	"context"
	"fmt"
)

// As returns the outermost layer of v that has the methods of T. v is a [Driver] or a
// [Sandbox]. Its layers are v itself, the result of its Unwrap method, and so on. The
// package comment says which layers have an Unwrap method.
func As[T any](v any) (T, bool) {
	for {
		if t, ok := v.(T); ok {
			return t, true
		}
		switch layer := v.(type) {
		case interface{ Unwrap() Driver }:
			v = layer.Unwrap()
		case interface{ Unwrap() Sandbox }:
			v = layer.Unwrap()
		default:
			var none T
			return none, false
		}
	}
}

// A MemoryPlanner is a [Driver] that knows how much memory of the host its sandboxes can take. A driver
// around others passes the question on.
type MemoryPlanner interface {
	// HostMemory returns the bytes of the host's memory that a sandbox with these limits can
	// take: its memory limit, private files that are in memory beside that limit, and the
	// memory of what the tier runs around the commands. The gateway is not included. Zero
	// limits are the tier's defaults. For [Auto] it is the maximum over the tiers that Auto
	// may choose. It makes no trial sandbox. known is false if the driver cannot tell.
	HostMemory(tier Tier, l Limits) (bytes int64, known bool)
}

// HostMemory asks the outermost layer of d that is a [MemoryPlanner]. Without one, the answer is not
// known, and the memory limit is all that a caller has.
func HostMemory(d Driver, tier Tier, l Limits) (bytes int64, known bool) {
	if p, ok := As[MemoryPlanner](d); ok {
		return p.HostMemory(tier, l)
	}
	return 0, false
}

// FirstStatus returns the status of a sandbox that Create has just returned. It calls
// Status only if the driver captured none.
func FirstStatus(ctx context.Context, sb Sandbox) (Status, error) {
	if st, ok := sb.Born(); ok {
		return st, nil
	}
	return sb.Status(ctx)
}

// A SnapshotKeeper is a [Driver] that knows which tier took a snapshot of files. Drivers of several tiers may share
// snapshots: each makes sandboxes that begin with them, as far as its tier can have what is in them.
type SnapshotKeeper interface {
	// SnapshotTier returns the tier. A snapshot that the driver does not know, or one of memory, is [NotFound].
	SnapshotTier(ctx context.Context, id SnapshotID) (Tier, error)
}

// A Specified sandbox knows the spec that it was made with. A wrapper that has no Unwrap passes it on with its own checks.
type Specified interface {
	// Spec returns the spec as it was asked for, with the changes of limits and policy since, and with the values of
	// secrets. No server tells it to a client. Its labels may be those of the creation.
	Spec(ctx context.Context) (Spec, error)
}

// SpecOf asks the outermost layer of sb that is [Specified]. Without one, the error is [Unsupported].
func SpecOf(ctx context.Context, sb Sandbox) (Spec, error) {
	if s, ok := As[Specified](sb); ok {
		return s.Spec(ctx)
	}
	return Spec{}, fmt.Errorf("nobody knows how sandbox %s was made: %w", sb.ID(), Unsupported)
}
