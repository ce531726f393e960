package box

import (
	"math"
	"testing"

	"github.com/paddock-sandbox/paddock"
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
		want measure
	}{
		{"what is so", boxinit.Inspection{Kills: 2, Memory: 40, Peak: 50, PIDs: 3}, measure{Kills: 3, Usage: usage(7, 8, 3), Peak: 50}},
		{"a peak below", boxinit.Inspection{Memory: 40, Peak: 5}, measure{Kills: 1, Usage: usage(7, 8, 0), Peak: 40}},
		{"too much", boxinit.Inspection{Kills: math.MaxInt64, Memory: math.MaxInt64, Peak: math.MaxInt64, PIDs: math.MaxInt}, measure{Kills: 1<<30 + 1, Usage: usage(7, 8, 1<<30), Peak: made}},
		{"less than nothing", boxinit.Inspection{Kills: -9, Memory: -9, Peak: -9, PIDs: -9}, measure{Kills: 1, Usage: usage(7, 8, 0), Peak: 8}},
	} {
		m := measure{Kills: 1, Usage: usage(7, 8, 9), Peak: 8}
		if m.believe(row.says, made); m != row.want {
			t.Errorf("%s: %+v, and not %+v", row.what, m, row.want)
		}
	}
	m := measure{Usage: usage(-1, -1, -1), Peak: -1}
	if m.believe(boxinit.Inspection{Memory: 40, Peak: 50}, made); m.Usage != usage(40, 50, 0) {
		t.Errorf("where the host cannot measure it is %+v", m.Usage)
	}
}

// What goes on from the same memory knows the agent by the same token, and is another
// machine all the same.
func TestAForkIsAnotherMachine(t *testing.T) {
	was := &boxinit.KernelConfig{Token: []byte("token"), Number: []byte("one")}
	var m checkpoint
	m.about.Memory = true
	m.about.Order.Layout.Config.Kernel = was
	l := &layout{config: boxinit.Config{Kernel: &boxinit.KernelConfig{Token: []byte("other"), Number: []byte("two")}}}
	if err := m.fits(l); err != nil {
		t.Fatal(err)
	}
	if k := l.config.Kernel; string(k.Token) != "token" || string(k.Number) != "two" {
		t.Errorf("token %q, number %q", k.Token, k.Number)
	}
}
