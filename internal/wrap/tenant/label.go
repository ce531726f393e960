package tenant

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// Label is on every sandbox that is made for a tenant: the name of the store, and
// which of its records is of this sandbox. No caller may set it.
const Label = "paddock.owner"

// mark is the label of the sandbox that a record is of.
func (ts *Set) mark(token string) string { return ts.o.Store.ID() + "." + token }

// Marked gives what tells whether a sandbox was made for a tenant of a store,
// whatever the store knows of it. No sandbox is of a store without an ID.
func Marked(storeID string) func(paddock.Status) bool {
	return func(st paddock.Status) bool { return storeID != "" && strings.HasPrefix(st.Labels[Label], storeID+".") }
}

// is tells whether a record is of this sandbox, and not of another of its name.
func (ts *Set) is(st paddock.Status, b store.Sandbox) bool {
	return st.ID == b.ID && st.Labels[Label] == ts.mark(b.Token)
}

// open opens the sandbox that a record is of. Where another has its name by now
// it is missing, in the words of one that never was.
func (ts *Set) open(ctx context.Context, b store.Sandbox) (paddock.Sandbox, error) {
	sb, err := ts.d.Open(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	st, err := sb.Status(ctx)
	switch {
	case ts.is(st, b): // also of one that can tell little more than that
		return sb, nil
	case err != nil:
		return nil, err
	}
	return nil, missing("sandbox", string(b.ID))
}

// look tells how the sandbox is that a record is of.
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

// owned adds the label to those of a caller.
func (ts *Set) owned(labels map[string]string, token string) map[string]string {
	all := make(map[string]string, len(labels)+1)
	maps.Copy(all, labels)
	all[Label] = ts.mark(token)
	return all
}

// How much labels may be: they are kept, and told with every list.
const (
	mostLabels = 64
	longName   = 128
	longValue  = 1024
	longLabels = 16 << 10
)

// ordinary refuses labels that are not a caller's to set, or too much.
func ordinary(labels map[string]string) error {
	if len(labels) > mostLabels {
		return fmt.Errorf("%d labels, and there may be %d: %w", len(labels), mostLabels, paddock.Invalid)
	}
	sum := 0
	for name, value := range labels {
		if len(name) > longName {
			return fmt.Errorf("label %.32q…: its name has %d bytes, and may have %d: %w", name, len(name), longName, paddock.Invalid)
		}
		if len(value) > longValue {
			return fmt.Errorf("label %q: its value has %d bytes, and may have %d: %w", name, len(value), longValue, paddock.Invalid)
		}
		sum += len(name) + len(value)
	}
	if sum > longLabels {
		return fmt.Errorf("the labels have %d bytes in sum, and may have %d: %w", sum, longLabels, paddock.Invalid)
	}
	if _, ok := labels[Label]; ok {
		return fmt.Errorf("label %s is the server's: %w", Label, paddock.Invalid)
	}
	return nil
}

// plain takes the owner label out of a status.
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
