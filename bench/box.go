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

const (
	execs   = 1000
	several = 8
	settled = 2 * time.Second // after which a sandbox with nothing to do is idle
)

// A leakError says that sandboxes were removed and something of them is left.
// It ends nothing before all is measured.
type leakError struct{ error }

func (e *leakError) Unwrap() error { return e.error }

// measureBoxes measures what only the owner of a driver can: commands in a
// sandbox that runs, its memory when idle, how soon one is there, and whether
// anything is left of many.
func measureBoxes(ctx context.Context, o options) ([]row, error) {
	var rows []row
	var leaks error
	for _, t := range tiers() {
		more, err := measureTier(ctx, o, t)
		rows = append(rows, more...)
		if leak := (*leakError)(nil); errors.As(err, &leak) {
			leaks = errors.Join(leaks, err)
		} else if err != nil {
			return rows, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return rows, leaks
}

func measureTier(ctx context.Context, o options, t tier) (_ []row, err error) {
	d, err := t.open(o, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	rows, err := runningBox(ctx, d, t, execs)
	if err != nil {
		return rows, err
	}
	for _, measure := range []func(context.Context, options, paddock.Driver, tier) ([]row, error){severalBoxes, coldBoxes, pooledBoxes, forkedBoxes} {
		more, err := measure(ctx, o, d, t)
		if err != nil {
			return rows, err
		}
		rows = append(rows, more...)
	}
	more, err := manyBoxes(ctx, d, t, o.boxes)
	return append(rows, more...), err
}

// severalBoxes measures what each of several idle sandboxes takes, which share
// their programs' text.
func severalBoxes(ctx context.Context, _ options, d paddock.Driver, t tier) (_ []row, err error) {
	own := descendants()
	for range several {
		sb, err := d.Create(ctx, t.spec())
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
		if _, err := command(ctx, sb); err != nil {
			return nil, err
		}
	}
	time.Sleep(settled)
	all := memoryBut(own)
	what := fmt.Sprintf("memory of each of %d idle %s (PSS; %s of it private)", several, t.many, mib(all.private/several))
	return []row{{what: what, p50: mib(all.proportional / several), runs: several}}, nil
}

// runningBox measures one sandbox: its idle memory, then commands in it.
func runningBox(ctx context.Context, d paddock.Driver, t tier, times int) (_ []row, err error) {
	before, own := count(), descendants()
	sb, err := d.Create(ctx, t.spec())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	if _, err := command(ctx, sb); err != nil {
		return nil, err
	}
	time.Sleep(settled)
	idle := memoryBut(own)
	if there := count().minus(before); there.processes < 1 || there.descriptors < 1 {
		return nil, fmt.Errorf("a sandbox is there and the count says %s: it would not see a leak", there)
	}

	for range warmUp {
		if _, err := command(ctx, sb); err != nil {
			return nil, err
		}
	}
	var took samples
	for range times {
		one, err := command(ctx, sb)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return []row{
		{what: "`true` in a running " + t.box, p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)},
		{what: fmt.Sprintf("memory of an idle %s (PSS of its %d processes; %s of it private)", t.box, idle.processes, mib(idle.private)), p50: mib(idle.proportional), runs: 1},
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
func manyBoxes(ctx context.Context, d paddock.Driver, t tier, n int) ([]row, error) {
	if err := wholeLife(ctx, d, t, new(sync.Mutex), &samples{}); err != nil {
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
				if errs[worker] = wholeLife(ctx, d, t, &mu, &took); errs[worker] != nil {
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
		{what: fmt.Sprintf("a %s's whole life: create, `true`, remove (two at a time)", t.box), p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)},
		{what: fmt.Sprintf("left of %d %s: %s", len(took), t.many, left), runs: 1},
	}
	if left != (things{}) {
		return rows, &leakError{fmt.Errorf("something is left of %d %s: %s", n, t.many, left)}
	}
	return rows, nil
}

func wholeLife(ctx context.Context, d paddock.Driver, t tier, mu *sync.Mutex, took *samples) error {
	began := time.Now()
	sb, err := d.Create(ctx, t.spec())
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

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
