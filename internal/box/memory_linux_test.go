package box

import (
	"math"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestPrivateFilesCountAsTheMemoryLimit(t *testing.T) {
	plain := &Driver{tier: Tier{Name: paddock.Jail}}
	beside := &Driver{tier: Tier{Name: paddock.MicroVM, Overhead: func(memory int64) int64 { return memory / 2 }}}
	for _, row := range []struct {
		d    *Driver
		tier paddock.Tier
		l    paddock.Limits
		want int64
	}{
		{plain, paddock.Jail, paddock.Limits{Memory: 100, Disk: 1 << 40}, 100},
		{plain, paddock.Auto, paddock.Limits{}, Defaults().Memory},
		{beside, paddock.MicroVM, paddock.Limits{Memory: 100}, 150},
		{beside, paddock.MicroVM, paddock.Limits{Memory: math.MaxInt64}, math.MaxInt64},
	} {
		if got, known := row.d.HostMemory(row.tier, row.l); !known || got != row.want {
			t.Errorf("%s, %+v: %d, %v, want %d", row.tier, row.l, got, known, row.want)
		}
	}
	if _, known := plain.HostMemory(paddock.Sim, paddock.Limits{}); known {
		t.Error("another tier is known")
	}
}
