package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// What no limit counts is not told as the limit of memory: raising that helps nothing.
func TestMemoryThatNoLimitCountsIsNamedWithItsFigure(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	sb, err := d.Create(t.Context(), paddock.Spec{Dir: "/tmp", Limits: paddock.Limits{Memory: 32 << 20, Disk: 32 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	// What a command leaves behind holds memory as well, also when the sandbox has forgotten the command.
	for range 2 {
		if exit, out := do(t, sb, "sleep 600 >/dev/null 2>&1 </dev/null &", time.Hour); exit.Code != 0 {
			t.Fatalf("%+v: %s", exit, out)
		}
	}
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sleep", "600"}, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	d.OutOfMemory(1600 << 20)
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Cause != paddock.OutOfBudget || exit.Limit != 0 || exit.Peak != 0 || exit.Code != 137 ||
		!strings.Contains(exit.Reason, "held 1600 MiB") || !strings.Contains(exit.Reason, "no limit counts") || !strings.Contains(exit.Reason, "smaller pieces") {
		t.Errorf("%+v, %v", exit, err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		st, err := sb.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st.Usage.PIDs == 0 {
			break
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("%d tasks go on", st.Usage.PIDs)
		}
	}
	if exit, out := do(t, sb, "echo alive", time.Hour); out != "alive\n" {
		t.Errorf("afterwards: %+v %q", exit, out)
	}
}
