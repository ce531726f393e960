package drivertest

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// KilledGateway tests a sandbox whose gateway process was killed. The gateway is the child
// of this process with the given name. The sandbox must continue without network and report
// the kill in its status. No processor time may be wasted, and no gateway process may be
// left.
func KilledGateway(t *testing.T, open func(state string) (paddock.Driver, error), name string) {
	s := newSuite(t, Harness{New: open, Base: paddock.Spec{AllowMissing: Weak(t, open)}})
	if !s.info.Can(paddock.CanNetworkList) {
		t.Skip("this host can give no sandbox a network: see Info")
	}
	port := greeter(t)
	before := children(t, name)
	b := s.within(t, listing(port), func(spec *paddock.Spec) { spec.Ephemeral = true })
	b.reaches(t, hostListed, port)
	crossed := b.crossed(t)
	mine := slices.DeleteFunc(children(t, name), func(pid int) bool { return slices.Contains(before, pid) })
	if len(mine) != 1 {
		t.Fatalf("the gateways are %v", mine)
	}
	if err := syscall.Kill(mine[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the status tells that the way out has gone", func() bool {
		st, err := b.Status(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range st.Enforced {
			if f.Control == paddock.ControlNetwork && strings.Contains(f.How, "killed by signal 9") && f.Strength == paddock.Full {
				return slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool { return strings.Contains(r.Rule, "killed by signal 9") && r.Remedy != "" })
			}
		}
		return false
	})
	b.reachesNot(t, hostListed, port)
	b.must(t, "echo goes on")
	if got := b.crossed(t); got != crossed || got.In != sent {
		t.Errorf("%+v crossed the way out, and %+v when its gateway was killed", crossed, got)
	}
	err := b.Update(bounded(t), paddock.Update{Policy: &paddock.Policy{Network: listing(port)}})
	wantKind(t, "new rules", err, paddock.Unavailable)
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	b.must(t, "sleep 1")
	again, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	const little = 500_000_000 // nanoseconds within a second of sleep, on any number of processors
	if used := again.Usage.CPU - st.Usage.CPU; st.Usage.CPU >= 0 && used > little {
		t.Errorf("%v of processor time went by while nothing ran", used)
	}
	if err := b.Remove(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if left := children(t, name); len(left) != len(before) {
		t.Errorf("gateways are left: %v", left)
	}
}

// HeldOverPause tests that a program sees the end of a connection that a pause has cut.
func HeldOverPause(t *testing.T, open func(state string) (paddock.Driver, error)) {
	s := newSuite(t, Harness{New: open, Base: paddock.Spec{AllowMissing: Weak(t, open)}})
	port := greeter(t)
	b := s.within(t, listing(port), func(spec *paddock.Spec) { spec.Ephemeral = true })
	var out syncBuffer
	at := net.JoinHostPort(hostListed, strconv.Itoa(int(port)))
	held := b.start(t, paddock.Cmd{Args: []string{b.helper(t), "hold", at}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	says(t, &out, "connected")
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatal(err)
	}
	says(t, &out, "over")
	wait(t, held)
}

// children returns the children of this process with the given name.
func children(t *testing.T, name string) []int {
	t.Helper()
	return slices.DeleteFunc(named(t, name), func(pid int) bool { return parent(pid) != os.Getpid() })
}
