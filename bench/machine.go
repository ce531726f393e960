//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/program"
)

const (
	machineExecs = 200
	pings        = 1000
	machines     = 20 // for the count of what is left: each takes seconds where it is emulated
	boots        = 3
)

// machineTier is the tier of machines, whose numbers have a table of their own:
// they are others where machines are emulated.
func machineTier() tier {
	t := tier{name: paddock.MicroVM, box: "machine with KVM", many: "machines with KVM", open: openMicroVM}
	if microvm.Emulated() != "" {
		t.box, t.many = "emulated machine", "emulated machines"
	}
	return t
}

// openMicroVM opens the driver with the programs that `make build` made. An empty
// state is the usual directory, and what is saved is in it or in the usual one.
func openMicroVM(o options, state string) (paddock.Driver, error) {
	mo, err := machineOptions(o, state)
	if err != nil {
		return nil, err
	}
	return microvm.New(mo)
}

func machineOptions(o options, state string) (microvm.Options, error) {
	mo := microvm.Options{State: state, Environ: os.Environ(), Hosts: o.hosts, Roots: o.roots}
	for name, to := range map[string]*program.Program{o.guest: &mo.Guest, o.monitor: &mo.Init} {
		data, err := os.ReadFile(name)
		if err != nil {
			return mo, fmt.Errorf("read the program that make build made: %w", err)
		}
		*to = program.Embedded(filepath.Base(name), data)
	}
	var err error
	mo.Gateway, err = o.wayOut()
	return mo, err
}

// measureMachines measures the tier of machines.
func measureMachines(ctx context.Context, o options) (_ []row, err error) {
	if f := microvm.Lack(microvm.Options{Environ: os.Environ()}); f != nil {
		return []row{{what: "not measured: " + f.Cause}}, nil
	}
	t := machineTier()
	rows, err := coldMachines(ctx, o, t)
	if err != nil {
		return rows, err
	}
	d, err := t.open(o, "")
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	// The first of a shape boots, and shares nothing with a template: each shape is
	// there before.
	for _, spec := range []paddock.Spec{t.spec(), largeSpec(t)} {
		if _, err := firstOutput(ctx, d, spec); err != nil {
			return rows, err
		}
	}
	for _, measure := range []func(context.Context, options, paddock.Driver, tier) ([]row, error){runningMachine, severalBoxes, coldBoxes, pooledBoxes, pooledEchoes, forkedBoxes} {
		more, err := measure(ctx, o, d, t)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	more, err := manyBoxes(ctx, d, t, machines)
	return append(rows, more...), err
}

// coldMachines measures machines of a driver that has saved none: each boots its
// kernel.
func coldMachines(ctx context.Context, o options, t tier) (_ []row, err error) {
	var took samples
	for range boots {
		one, err := coldMachine(ctx, o, t)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return []row{{what: t.box + " that boots, nothing prepared: create to the first output of `echo`", p50: ms(took.p50()), runs: len(took)}}, nil
}

func coldMachine(ctx context.Context, o options, t tier) (took time.Duration, err error) {
	dir, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	mo, err := machineOptions(o, "")
	if err != nil {
		return 0, err
	}
	mo.Data = dir
	d, err := microvm.New(mo)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return firstOutput(ctx, d, t.spec())
}

// runningMachine measures one: its idle memory, commands, questions of its agent,
// and a large file in and out.
func runningMachine(ctx context.Context, _ options, d paddock.Driver, t tier) (_ []row, err error) {
	rows, err := runningBox(ctx, d, t, machineExecs)
	if err != nil {
		return nil, err
	}
	sb, err := d.Create(ctx, largeSpec(t))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	var asked samples
	for range pings {
		began := time.Now()
		if _, err := sb.FS().Stat(ctx, "/"); err != nil {
			return rows, err
		}
		asked = append(asked, time.Since(began))
	}
	rows = append(rows, row{what: "a question to the agent of a " + t.box + " (stat of `/`)", p50: ms(asked.p50()), p99: ms(asked.p99()), runs: len(asked)})
	in, err := putFile(ctx, sb)
	if err != nil {
		return rows, err
	}
	out, err := getFile(ctx, sb)
	return append(rows,
		row{what: t.box + ": 1 GiB written into a file of it", p50: rate(large, in), runs: 1},
		row{what: t.box + ": that file read", p50: rate(large, out), runs: 1}), err
}

// largeSpec is of a machine that a large file has room in.
func largeSpec(t tier) paddock.Spec {
	spec := t.spec()
	spec.Limits.Memory, spec.Limits.Disk = 4<<30, 2*large
	return spec
}

const bulkFile = "/tmp/bulk"

func putFile(ctx context.Context, sb paddock.Sandbox) (time.Duration, error) {
	began := time.Now()
	w, err := sb.FS().Create(ctx, bulkFile, paddock.CreateOptions{})
	if err != nil {
		return 0, err
	}
	_, err = io.CopyN(w, zeros{}, large)
	return time.Since(began), errors.Join(err, w.Close())
}

func getFile(ctx context.Context, sb paddock.Sandbox) (time.Duration, error) {
	began := time.Now()
	r, err := sb.FS().Open(ctx, bulkFile, paddock.OpenOptions{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	if err == nil && n != large {
		err = fmt.Errorf("%d bytes came of %d", n, int64(large))
	}
	return time.Since(began), err
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
