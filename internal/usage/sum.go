package usage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// A Query selects and groups records for Summarize.
type Query struct {
	Tenant string    // empty is all
	From   time.Time // full hours, or full days where hours were merged
	To     time.Time
	By     string            // a label: one line for each value; empty is one line for each tenant
	Where  map[string]string // labels that a sandbox must have had; nil matches all
	Each   bool              // one line for each sandbox, and one without a name for merged ones
}

// A Line is one sum of a summary.
type Line struct {
	Tenant string `json:"tenant"`
	Label  string `json:"label,omitempty"` // the value of Query.By

	Sandbox paddock.ID `json:"sandbox,omitempty"` // with Query.Each

	Sum
}

// A Sum is the total usage of sandboxes. Its numbers have no upper limit.
type Sum struct {
	Sandboxes   int     `json:"sandboxes"`    // number of sandboxes
	Wall        big.Int `json:"wall"`         // nanoseconds in which they existed
	Paused      big.Int `json:"paused"`       // part of Wall in which they were paused
	CPU         big.Int `json:"cpu"`          // nanoseconds of processor time
	Memory      big.Int `json:"memory"`       // byte-seconds in use
	CPUAsked    big.Int `json:"cpu_asked"`    // thousandths of a processor times milliseconds, while running
	MemoryAsked big.Int `json:"memory_asked"` // byte-seconds, reserved while running
	DiskAsked   big.Int `json:"disk_asked"`   // byte-seconds, reserved
	NetIn       big.Int `json:"net_in"`       // bytes
	NetOut      big.Int `json:"net_out"`

	// Unmeasured names the quantities that were not measured for some of it: cpu, memory, network.
	Unmeasured []string `json:"unmeasured,omitempty"`
}

// add adds a record.
func (s *Sum) add(r store.Record) {
	for _, part := range []struct {
		to     *big.Int
		amount int64
		name   string // quantity that may be unmeasured
	}{
		{&s.Wall, int64(r.Wall), ""}, {&s.Paused, int64(r.Paused), ""},
		{&s.CPU, int64(r.CPU), "cpu"}, {&s.Memory, r.Memory, "memory"},
		{&s.CPUAsked, r.CPUAsked, ""}, {&s.MemoryAsked, r.MemoryAsked, ""}, {&s.DiskAsked, r.DiskAsked, ""},
		{&s.NetIn, r.NetIn, "network"}, {&s.NetOut, r.NetOut, "network"},
	} {
		if part.amount >= 0 {
			part.to.Add(part.to, big.NewInt(part.amount))
		} else if !slices.Contains(s.Unmeasured, part.name) {
			s.Unmeasured = append(s.Unmeasured, part.name)
			slices.Sort(s.Unmeasured)
		}
	}
}

// A lineKey identifies a line.
type lineKey struct{ tenant, label, token string }

// Summarize adds up the records that began within a time, by tenant and label. A time that does not begin and end on a
// full hour is [paddock.Invalid], because records are of hours. So is a time that begins or ends within a day whose
// hours are merged.
func Summarize(ctx context.Context, s *store.Store, q Query) ([]Line, error) {
	return SummarizeAll(ctx, []*store.Store{s}, q)
}

// SummarizeAll is [Summarize] of the records of several stores together.
func SummarizeAll(ctx context.Context, stores []*store.Store, q Query) ([]Line, error) {
	for _, t := range []time.Time{q.From, q.To} {
		if !t.Equal(t.Truncate(time.Hour)) {
			return nil, fmt.Errorf("%s: usage is summed by full hours: %w", t.UTC().Format(time.RFC3339), paddock.Invalid)
		}
		for _, s := range stores {
			if folded, err := s.Folded(ctx, q.Tenant, t); err != nil {
				return nil, fmt.Errorf("sum usage: %w", err)
			} else if folded {
				return nil, fmt.Errorf("%s: usage this old is known by full days, from midnight to midnight UTC: %w", t.UTC().Format(time.RFC3339), paddock.Invalid)
			}
		}
	}
	if q.To.Before(q.From) {
		return nil, fmt.Errorf("a time that ends before it begins: %w", paddock.Invalid)
	}
	lines := make(map[lineKey]*Line)
	seen := make(map[lineKey]map[string]bool)
	crowd := make(map[lineKey]int) // of sandboxes without records of their own
	add := func(r store.Record) error {
		if !has(r.Labels, q.Where) {
			return nil
		}
		key := lineKey{tenant: r.Tenant}
		if q.By != "" {
			key.label = r.Labels[q.By]
		}
		alone := r.Sandbox != "" || r.Boxes == 0
		if q.Each && alone {
			key.token = r.Token // a name may have belonged to another sandbox
		}
		if lines[key] == nil {
			lines[key] = &Line{Tenant: key.tenant, Label: key.label}
			if q.Each {
				lines[key].Sandbox = r.Sandbox
			}
			seen[key] = make(map[string]bool)
		}
		lines[key].add(r)
		if alone {
			seen[key][r.Token] = true
		} else {
			crowd[key] += int(r.Boxes)
		}
		return nil
	}
	for _, s := range stores {
		if err := s.Records(ctx, q.Tenant, q.From, q.To, add); err != nil {
			return nil, fmt.Errorf("sum usage: %w", err)
		}
	}
	var list []Line
	for _, key := range slices.SortedFunc(maps.Keys(lines), func(a, b lineKey) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.label, b.label), cmp.Compare(lines[a].Sandbox, lines[b].Sandbox), cmp.Compare(a.token, b.token))
	}) {
		lines[key].Sandboxes = len(seen[key]) + crowd[key]
		list = append(list, *lines[key])
	}
	return list, nil
}

// has reports whether labels include all of where.
func has(labels, where map[string]string) bool {
	for name, value := range where {
		if got, ok := labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}
