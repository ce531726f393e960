//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const execs = 1000

// measureBoxes measures what only the owner of a driver can: commands in a
// sandbox that runs, its memory when idle, and whether anything is left of
// many. The error is about the promise that nothing is.
func measureBoxes(ctx context.Context, o options) ([]row, error) {
	d, err := openJail(o)
	if err != nil {
		return nil, err
	}
	rows, err := runningBox(ctx, d)
	if err == nil {
		var more []row
		more, err = manyBoxes(ctx, d, o.boxes)
		rows = append(rows, more...)
	}
	return rows, errors.Join(err, d.Close())
}

// runningBox measures one sandbox: its idle memory, then commands in it.
func runningBox(ctx context.Context, d paddock.Driver) (_ []row, err error) {
	before, own := count(), descendants()
	sb, err := d.Create(ctx, paddock.Spec{Tier: paddock.Jail, Ephemeral: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	if _, err := command(ctx, sb); err != nil {
		return nil, err
	}
	idle, processes := proportional(own)
	if there := count().minus(before); there.processes < 1 || there.descriptors < 1 {
		return nil, fmt.Errorf("a sandbox is there and the count says %s: it would not see a leak", there)
	}

	for range warmUp {
		if _, err := command(ctx, sb); err != nil {
			return nil, err
		}
	}
	var took samples
	for range execs {
		one, err := command(ctx, sb)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return []row{
		{what: "`true` in a running jail", p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)},
		{what: fmt.Sprintf("memory of an idle jail (PSS of its %d processes)", processes), p50: fmt.Sprintf("%.1f MiB", float64(idle)/(1<<20)), runs: 1},
	}, nil
}

// command times a command from before Start to after Wait.
func command(ctx context.Context, sb paddock.Sandbox) (time.Duration, error) {
	began := time.Now()
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"true"}})
	if err != nil {
		return 0, err
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		return 0, err
	}
	if exit.Code != 0 {
		return 0, fmt.Errorf("true ended with %d: %s", exit.Code, exit.Reason)
	}
	return time.Since(began), nil
}

// manyBoxes makes and removes n sandboxes, two at a time, and counts what is
// there before and after.
func manyBoxes(ctx context.Context, d paddock.Driver, n int) ([]row, error) {
	if err := wholeLife(ctx, d, new(sync.Mutex), &samples{}); err != nil {
		return nil, err // the first one warms up what stays by design
	}
	before := count()
	var (
		mu   sync.Mutex
		took samples // guarded by mu
		wg   sync.WaitGroup
	)
	errs := make([]error, 2)
	for worker := range errs {
		wg.Go(func() {
			for range n / len(errs) {
				if errs[worker] = wholeLife(ctx, d, &mu, &took); errs[worker] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	left := count().minus(before)
	rows := []row{
		{what: "a jail's whole life: create, `true`, remove (two at a time)", p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)},
		{what: fmt.Sprintf("left of %d jails: %s", len(took), left), runs: 1},
	}
	if left != (things{}) {
		return rows, fmt.Errorf("something is left of %d sandboxes: %s", n, left)
	}
	return rows, nil
}

func wholeLife(ctx context.Context, d paddock.Driver, mu *sync.Mutex, took *samples) error {
	began := time.Now()
	sb, err := d.Create(ctx, paddock.Spec{Tier: paddock.Jail, Ephemeral: true})
	if err != nil {
		return err
	}
	_, err = command(ctx, sb)
	if err := errors.Join(err, sb.Remove(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	*took = append(*took, time.Since(began))
	return nil
}
