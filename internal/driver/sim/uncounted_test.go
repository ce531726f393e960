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
}
