package microvm

import (
	"math"
	"reflect"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

func TestAMachineIsBelievedWhatCanBe(t *testing.T) {
	const made = 100
	usage := func(memory, peak int64, pids int) paddock.Usage {
		return paddock.Usage{Memory: memory, MemoryPeak: peak, PIDs: pids}
	}
	for _, row := range []struct {
		what string
		says boxinit.Inspection
		want box.Measure
	}{
		{"what is so", boxinit.Inspection{Kills: 2, Memory: 40, Peak: 50, PIDs: 3}, box.Measure{Kills: 3, Usage: usage(7, 8, 3), Peak: 50}},
		{"a peak below", boxinit.Inspection{Memory: 40, Peak: 5}, box.Measure{Kills: 1, Usage: usage(7, 8, 0), Peak: 40}},
		{"too much", boxinit.Inspection{Kills: math.MaxInt64, Memory: math.MaxInt64, Peak: math.MaxInt64, PIDs: math.MaxInt}, box.Measure{Kills: 1<<30 + 1, Usage: usage(7, 8, 1<<30), Peak: made}},
		{"less than nothing", boxinit.Inspection{Kills: -9, Memory: -9, Peak: -9, PIDs: -9}, box.Measure{Kills: 1, Usage: usage(7, 8, 0), Peak: 8}},
	} {
		m := box.Measure{Kills: 1, Usage: usage(7, 8, 9), Peak: 8}
		if believe(&m, row.says, made); !reflect.DeepEqual(m, row.want) {
			t.Errorf("%s: %+v, and not %+v", row.what, m, row.want)
		}
	}
	m := box.Measure{Usage: usage(-1, -1, -1), Peak: -1}
	if believe(&m, boxinit.Inspection{Memory: 40, Peak: 50}, made); m.Usage != usage(40, 50, 0) {
		t.Errorf("where the host cannot measure it is %+v", m.Usage)
	}
}
