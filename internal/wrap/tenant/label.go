package tenant

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// Label is on every sandbox of a tenant. It has the ID of the store and the token of the
// record. No caller may set it.
const Label = "paddock.owner"

// mark returns the label for a record.
func (ts *Set) mark(token string) string { return ts.o.Store.ID() + "." + token }

// Marked returns a function that reports whether a sandbox was made for a tenant of a
// store, even if the store has no record of it. Without an ID no sandbox matches.
func Marked(storeID string) func(paddock.Status) bool {
	return func(st paddock.Status) bool { return storeID != "" && strings.HasPrefix(st.Labels[Label], storeID+".") }
}

// is reports whether a record belongs to this sandbox, and not to another of the same name.
func (ts *Set) is(st paddock.Status, b store.Sandbox) bool {
	return st.ID == b.ID && st.Labels[Label] == ts.mark(b.Token)
}

// open opens the sandbox of a record. If another sandbox has its name, open returns the
// same error as for a missing one.
func (ts *Set) open(ctx context.Context, b store.Sandbox) (paddock.Sandbox, error) {
	sb, err := ts.d.Open(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	st, err := sb.Status(ctx)
	switch {
	case ts.is(st, b): // also if the status has little more than the label
		return sb, nil
	case err != nil:
		return nil, err
	}
	return nil, missing("sandbox", string(b.ID))
}

// look returns the status of the sandbox of a record.
func (ts *Set) look(ctx context.Context, b store.Sandbox) (paddock.Status, error) {
	sb, err := ts.d.Open(ctx, b.ID)
	if err != nil {
		return paddock.Status{}, err
	}
	st, err := sb.Status(ctx)
	if err == nil && !ts.is(st, b) {
		err = missing("sandbox", string(b.ID))
	}
	return st, err
}

// owned adds Label to a caller's labels.
func (ts *Set) owned(labels map[string]string, token string) map[string]string {
	all := make(map[string]string, len(labels)+1)
	maps.Copy(all, labels)
	all[Label] = ts.mark(token)
	return all
}

// Bounds of labels, because they are stored and sent with every list.
const (
	mostLabels = 64
	longName   = 128
	longValue  = 1024
	longLabels = 16 << 10
)

// ordinary refuses labels that a caller may not set, or that are too large.
func ordinary(labels map[string]string) error {
	if len(labels) > mostLabels {
		return fmt.Errorf("%d labels, but the maximum is %d: %w", len(labels), mostLabels, paddock.Invalid)
	}
	sum := 0
	for name, value := range labels {
		if len(name) > longName {
			return fmt.Errorf("label %.32q…: its name has %d bytes, but the maximum is %d: %w", name, len(name), longName, paddock.Invalid)
		}
		if len(value) > longValue {
			return fmt.Errorf("label %q: its value has %d bytes, but the maximum is %d: %w", name, len(value), longValue, paddock.Invalid)
		}
		sum += len(name) + len(value)
	}
	if sum > longLabels {
		return fmt.Errorf("the labels have %d bytes in total, but the maximum is %d: %w", sum, longLabels, paddock.Invalid)
	}
	if _, ok := labels[Label]; ok {
		return fmt.Errorf("label %s is reserved for the server: %w", Label, paddock.Invalid)
	}
	return nil
}

// plain removes Label from a status.
func plain(st paddock.Status) paddock.Status {
	if _, ok := st.Labels[Label]; !ok {
		return st
	}
	if len(st.Labels) == 1 {
		st.Labels = nil
		return st
	}
	st.Labels = maps.Clone(st.Labels)
	delete(st.Labels, Label)
	return st
}
