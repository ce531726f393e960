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

func TestALimitOfZeroStaysAsItIs(t *testing.T) {
	has := paddock.Limits{Memory: 64 << 20, CPUs: 2, Lifetime: 3}
	l := Changed(has, paddock.Limits{PIDs: 30, CPUs: 1})
	if want := (paddock.Limits{Memory: 64 << 20, CPUs: 1, PIDs: 30, Lifetime: 3}); l != want {
		t.Errorf("%+v, want %+v", l, want)
	}
	// One that was never set stays the default in all that it implies.
	if _, counted := Limits(budget.Limits{}, Changed(paddock.Limits{}, paddock.Limits{PIDs: 30})); counted.String != (budget.Limits{}).Filled().String {
		t.Errorf("%+v", counted)
	}
}
