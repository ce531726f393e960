package description

import (
	"math"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

func TestFilesAndTheProcessAreMemoryOfTheHost(t *testing.T) {
	const mib = 1 << 20
	for _, row := range []struct {
		bounds budget.Limits
		l      paddock.Limits
		want   int64
	}{
		{budget.Limits{}, paddock.Limits{}, (256 + 1024 + 256) * mib},
		{budget.Limits{}, paddock.Limits{Memory: mib, Disk: 64 << 30}, 64<<30 + 257*mib},
		{budget.Limits{Heap: 10 * mib, Disk: 20 * mib}, paddock.Limits{}, 286 * mib},
		{budget.Limits{}, paddock.Limits{Memory: math.MaxInt64, Disk: math.MaxInt64}, math.MaxInt64},
	} {
		if got := HostMemory(row.bounds, row.l); got != row.want {
			t.Errorf("%+v: %d, want %d", row.l, got, row.want)
		}
	}
	if _, known := Planned(budget.Limits{}, paddock.Jail, paddock.Limits{}); known {
		t.Error("another tier is known")
	}
}
