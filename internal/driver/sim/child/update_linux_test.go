package child

import (
	"errors"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
)

// objects returns the bytes that watchMemory looks at.
func objects() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// A seen sandbox notes what the process holds, and may, when its limits change.
type seen struct {
	paddock.Sandbox
	held  uint64
	limit int64
}

func (s *seen) Replace(l paddock.Limits) error {
	s.held, s.limit = objects(), debug.SetMemoryLimit(-1)
	r, ok := s.Sandbox.(replacer)
	if !ok {
		return paddock.Internal
	}
	return r.Replace(l)
}

func TestTheMemoryLimitOfTheProcessFollowsThatOfTheSandbox(t *testing.T) {
	const mib = 1 << 20
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Memory: 256 * mib, Disk: 256 * mib}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sb.FS().Create(t.Context(), "/tmp/f", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(make([]byte, 3*mib))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	before := debug.SetMemoryLimit(512*mib + sim.Overhead - slack)
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(percent)
	})
	c := &Served{Driver: d, data: 2*(512*mib+sim.Overhead) + reserve} // as bound would set it
	s := &seen{Sandbox: sb}
	for _, row := range []struct {
		what         string
		memory, disk int64 // in MiB
		kind         paddock.Kind
		limit        int64 // afterwards, in MiB, without the overhead
	}{
		{"a lower one", 64, 64, 0, 128},
		{"one below what is in use", 64, 1, paddock.Conflict, 128},
		{"a higher one", 512, 256, 0, 768},
		{"the highest one", 512, 512, 0, 1024},
		{"one that the process cannot have", 512, 513, paddock.Conflict, 1024},
		{"one that nobody has", 1 << 40, 1 << 40, paddock.Conflict, 1024},
	} {
		had := debug.SetMemoryLimit(-1)
		garbage := make([]byte, 100*mib)
		garbage[0] = 1
		full := objects()
		s.held = 0
		r := c.answer(t.Context(), s, protocol.Order{Op: "update", Update: paddock.Update{Limits: &paddock.Limits{Memory: row.memory * mib, Disk: row.disk * mib}}})
		if r.Kind != row.kind || (r.Error == "") != (row.kind == 0) {
			t.Errorf("%s: %v %s", row.what, r.Kind, r.Error)
		}
		want := row.limit*mib + sim.Overhead
		if got := debug.SetMemoryLimit(-1) + slack; got != want || d.MostMemory() != want {
			t.Errorf("%s: the process has a limit of %d, the sandbox %d, want %d", row.what, got, d.MostMemory(), want)
		}
		if lower := (row.memory+row.disk)*mib+sim.Overhead < had; lower && (s.held > full-90*mib || s.limit >= had) {
			t.Errorf("%s: of %d bytes it holds %d before its sandbox has less, with a limit of %d", row.what, full, s.held, s.limit)
		}
	}
	if r := c.answer(t.Context(), s, protocol.Order{Op: "update", Update: paddock.Update{Labels: map[string]string{}}}); r.Error != "" {
		t.Error(r.Error)
	}
}
