//go:build linux

package jail

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

func openWithSpares(state string) (paddock.Driver, error) {
	return New(Options{State: state, Environ: os.Environ(), Hosts: drivertest.Hosts(), Spares: 2})
}

// keepers lists the keepers that this process has started.
func keepers(t *testing.T) (pids []int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		stat, err := os.ReadFile(name)
		args, argsErr := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil || argsErr != nil || !strings.HasPrefix(string(args), "paddock-keeper\x00") {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[1] != fmt.Sprint(os.Getpid()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// until waits for n keepers, and returns them.
func until(t *testing.T, n int) []int {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		pids := keepers(t)
		if len(pids) == n {
			return pids
		}
		if time.Now().After(end) {
			t.Fatalf("keepers: %v, want %d", pids, n)
		}
	}
}

func TestSpareKeepersAreTakenReplacedAndEndWithTheDriver(t *testing.T) {
	until(t, 0) // those of earlier tests may still be ending
	d, err := openWithSpares(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = d.Close()
		}
	}()
	weak := drivertest.Weak(t, open)
	make := func() paddock.Sandbox {
		t.Helper()
		sb, err := d.Create(t.Context(), paddock.Spec{AllowMissing: weak})
		if err != nil {
			t.Fatal(err)
		}
		p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
			t.Fatalf("%+v, %v", exit, err)
		}
		return sb
	}
	if got := keepers(t); len(got) != 0 {
		t.Errorf("%v are there before there is a sandbox", got)
	}
	first := make()
	spare := until(t, 3)
	second := make()
	until(t, 4)
	if err := second.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if now := until(t, 3); slices.Equal(now, spare) {
		t.Errorf("of %v all are there: no spare one was taken", spare)
	}
	if err := first.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	for _, pid := range until(t, 2) { // those without a sandbox
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	until(t, 0)
	third := make() // although both are dead
	if err := third.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	until(t, 2)
	closed = true
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	until(t, 0)
}

// children counts this process's, also those that have ended and were not reaped.
func children(t *testing.T) (n int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); fields[1] == fmt.Sprint(os.Getpid()) {
			n++
		}
	}
	return n
}

// A keeper lives as long as its sandbox, which is longer than a driver does. Spare ones have none.
func TestACloseWaitsForTheEndOfSpareKeepers(t *testing.T) {
	until(t, 0) // those of earlier tests may still be ending
	before, state := children(t), t.TempDir()
	d, err := openWithSpares(state)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{AllowMissing: drivertest.Weak(t, open)})
	if err != nil {
		t.Fatal(err)
	}
	until(t, 3)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n := children(t) - before; n != 1 {
		t.Errorf("%d processes are left of a closed driver with one sandbox", n)
	}
	next, err := open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if sb, err = next.Open(t.Context(), sb.ID()); err != nil {
		t.Fatal(err)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(3 * time.Minute); children(t) > before; {
		if time.Now().After(end) {
			t.Fatal("the keeper is not reaped")
		}
	}
}
