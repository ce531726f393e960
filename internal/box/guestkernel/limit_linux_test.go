package guestkernel

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestLimitsOfTheHostDoNotChangeWhenTheCallerHasLeft(t *testing.T) {
	full := errors.New("full")
	for name, row := range map[string]struct {
		pids   int
		leaves bool
		host   error
		inside []int // the limits that the guest is told
		called bool  // the host's are set
		want   error
	}{
		"the caller stays":                   {50, false, nil, []int{50}, true, nil},
		"it leaves while the guest is asked": {50, true, nil, []int{50, 10}, false, paddock.Canceled},
		"it has left":                        {0, true, nil, nil, false, paddock.Canceled},
		"the host refuses":                   {50, false, full, []int{50, 10}, true, full},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var told []int
			inside := func(n int) error {
				if told = append(told, n); row.leaves {
					cancel()
				}
				return nil
			}
			if row.pids == 0 {
				inside = nil
				cancel()
			}
			called := false
			err := updatePIDs(ctx, 10, row.pids, inside, func() error { called = true; return row.host })
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) || called != row.called || !slices.Equal(told, row.inside) {
				t.Errorf("%v; the host was asked: %v; the guest was told %v", err, called, told)
			}
		})
	}
}
