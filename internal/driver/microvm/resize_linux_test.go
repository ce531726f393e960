package microvm

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// What the host gives is what is reserved.
func TestTheHostGivesMemoryLastAndNotToWhoeverHasLeft(t *testing.T) {
	full := errors.New("full")
	for name, row := range map[string]struct {
		n      int64
		leaves bool
		inside error   // of the first order to the machine
		host   []error // of each call
		told   []int64 // what the machine is told
		calls  int     // of the host's limits
		want   error
	}{
		"more":                              {900, false, nil, []error{nil}, []int64{900}, 1, nil},
		"more, and the machine is silent":   {900, false, paddock.Timeout, nil, []int64{900, 100}, 0, paddock.Timeout},
		"more, and the caller leaves":       {900, true, nil, nil, []int64{900, 100}, 0, paddock.Canceled},
		"more, and the host refuses":        {900, false, nil, []error{full}, []int64{900, 100}, 1, full},
		"less":                              {50, false, nil, []error{nil}, []int64{50}, 1, nil},
		"less, and memory is returned late": {50, false, nil, []error{paddock.Conflict, nil}, []int64{50}, 2, nil},
		"less, and the machine has ended":   {50, false, nil, []error{paddock.Conflict}, []int64{50, 100}, 1, paddock.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var told []int64
			calls, ended := 0, make(chan struct{})
			r := resizing{
				inside: func(ctx context.Context, n int64) error {
					if told = append(told, n); len(told) > 1 {
						return ctx.Err()
					}
					if row.leaves {
						cancel()
					}
					return row.inside
				},
				host: func() error {
					calls++
					if errors.Is(row.want, paddock.Unavailable) {
						close(ended)
					}
					return row.host[calls-1]
				},
				ended: ended, reason: func() string { return "it ended" },
			}
			err := resize(ctx, 100, row.n, r)
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) || calls != row.calls || !slices.Equal(told, row.told) {
				t.Errorf("%v; the host was asked %d times; the machine was told %v", err, calls, told)
			}
		})
	}
}
