package gvisor_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
)

// While a command starts, it shares the agent's memory and a thread of the agent waits. At
// that moment other commands can already stop it.
func TestACommandThatStopsAllOthersDoesNotStopTheAgent(t *testing.T) {
	d, _ := driver(t)
	sb := create(t, d, paddock.Spec{Ephemeral: true})
	stopper, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"python3", "-c", `
import os, signal, time
end = time.monotonic() + 4
while time.monotonic() < end:
    try: os.kill(-1, signal.SIGSTOP)
    except OSError: pass
`}, Output: paddock.Output{Detached: true}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"true"}, Output: paddock.Output{Detached: true}}); err != nil {
			t.Errorf("start: %v", err)
		}
	}
	if exit, err := stopper.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Errorf("%v %v", exit, err)
	}
	if got := said(t, sb, paddock.Cmd{Args: []string{"echo", "well"}}); got != "well\n" {
		t.Errorf("%q", got)
	}
}

func TestABoxWhoseInitIsKilledStillTellsWhatWasRefused(t *testing.T) {
	drivertest.KilledInit(t, open, gvisor.Runtime().Argv0)
}
