package attack

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// hopeless lists the rows whose scripts never succeed in a simulated computer, with the
// reasons. Every other row has a script that succeeds if nothing is denied.
func hopeless() map[string]string {
	return map[string]string{
		"P17": "the files of a simulated computer's /proc and /sys change nothing, and take nothing",
		"P18": "as P17",
		"P26": "there is no System V or POSIX IPC in a simulated computer",
	}
}

// openWorld makes the targets of scripts, in one sandbox where nothing is denied.
func openWorld(t *testing.T) *world {
	t.Helper()
	place := t.TempDir()
	for _, d := range []string{"bin", "other"} {
		if err := os.Mkdir(filepath.Join(place, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w, err := newWorld(place, "control", false)
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	b := &w.brief
	b.Prepared, b.SUID, b.Hard, b.Target = b.Work+"/prepared", b.Self, b.Home+"/outside.txt", b.Home+"/outside.txt"
	b.Own = []string{b.State + "/own"}
	b.FDs, b.Canary.Stream, b.Canary.Datagram = []int{301}, b.Home+"/run.sock", b.Home+"/log.sock"
	for name, text := range map[string]string{
		b.Self: "#!/bin/bash\necho ran\n", b.Other: w.token("another user's file") + "\n", b.DenyReadLate: w.token("a late file") + "\n",
		b.Prepared: "x\n", b.Own[0]: "x\n", b.State + "/x": "x\n", b.Canary.Stream: "x\n", b.Canary.Datagram: "x\n",
	} {
		err = errors.Join(err, os.WriteFile(name, []byte(text), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTheScriptsSucceedWhereNothingIsDenied(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	x := &trial{t: t, caller: "root", h: Harness{Tier: paddock.Sim, Inside: true}, w: openWorld(t), driver: d}
	var lines []string
	for _, c := range Cases() {
		if c.way != nil {
			continue // network rows; each tries its scripts where all is allowed
		}
		x.c = c
		worked := false
		for _, s := range append(anywhere(), scripts(c.ID)...) {
			if slices.Contains(anywhere(), s) && c.ID != "A01" {
				continue // once is enough
			}
			line := x.control(s)
			worked = worked || line == "succeeds"
			lines = append(lines, c.ID+"\t"+s.name+"\t"+line)
		}
		why, never := hopeless()[c.ID]
		switch {
		case never && worked:
			t.Errorf("%s: a script succeeds, though %s", c.ID, why)
		case !never && !worked && len(scripts(c.ID)) > 0:
			t.Errorf("%s: %s: no script succeeds where nothing is denied, so a refusal proves nothing", c.ID, c.Attack)
		}
	}
	name := filepath.Join("testdata", "control.sim.golden")
	if *update {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for _, l := range lines {
		if !slices.Contains(want, l) {
			t.Errorf("%q is not in %s: run go test ./attack -update", l, name)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%s has %d lines for %d scripts", name, len(want), len(lines))
	}
}

// control runs one script in its own sandbox where nothing is denied.
func (x *trial) control(s spell) string {
	ctx := x.t.Context()
	b := &x.w.brief
	sb, err := x.driver.Create(ctx, paddock.Spec{
		Mounts: []paddock.Mount{{Source: b.Place, Overlay: true}},
		Limits: paddock.Limits{Memory: 32 << 20, PIDs: 100, Files: 512, Disk: 16 << 20},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(ctx); err != nil {
			x.t.Error(err)
		}
	}()
	prey, err := sb.Start(ctx, paddock.Cmd{Args: []string{"sleep", "1000"}, Env: map[string]string{"PADDOCK_CANARY_ENV": "x"}, Output: paddock.Output{Detached: true}})
	if err != nil {
		x.t.Fatal(err)
	}
	defer prey.Release()
	b.Canary.PID = int(prey.ID())
	open := s
	if x.terminal = nil; x.c.ID == "P14" || x.c.ID == "P15" {
		x.terminal = &paddock.Size{Rows: 24, Cols: 80}
	}
	if x.bound = 0; x.c.ID == "P22" || x.c.ID == "A17" {
		x.bound = 300 * time.Millisecond // it would run forever
	}
	if x.c.ID == "P16" {
		open.script = `exec 301< "$SECRET"` + "\n" + s.script
	}
	try, err := x.script(ctx, sb, open)
	switch {
	case err != nil:
		x.t.Fatalf("%s %s: %v", x.c.ID, s.name, err)
	case try.Outcome == protocol.Inside:
		return "succeeds"
	case strings.HasPrefix(try.Errno, "ENOSPC"), try.Errno == "EFBIG":
		return "succeeds" // in filling the disk
	case try.Errno == "ENOMEM":
		return "succeeds" // in filling the memory
	case slices.Contains([]string{string(paddock.OutOfBudget), string(paddock.OutOfMemory), string(paddock.TimedOut)}, try.Errno):
		return "succeeds" // in reaching a limit
	}
	return strings.TrimSpace("fails " + try.Errno)
}
