//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

const (
	fresh = 40 // sandboxes that are made, each way
	// rest is between two of them: what the last one left to do is done, and
	// the pool has made another.
	rest = 400 * time.Millisecond
)

// coldBoxes measures from before Create to the first output of a command.
func coldBoxes(ctx context.Context, _ options, d paddock.Driver, t tier) ([]row, error) {
	took, err := firstOutputs(ctx, d, t)
	if err != nil {
		return nil, err
	}
	return []row{{what: t.box + ": create to the first output of `echo`, in process", p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)}}, nil
}

// pooledBoxes measures the same where a pool has made the sandbox before.
func pooledBoxes(ctx context.Context, o options, _ paddock.Driver, t tier) ([]row, error) {
	return warmedBoxes(ctx, o, t, "true")
}

// pooledEchoes measures it where that very program has run in the sandbox.
func pooledEchoes(ctx context.Context, o options, _ paddock.Driver, t tier) ([]row, error) {
	return warmedBoxes(ctx, o, t, "echo")
}

func warmedBoxes(ctx context.Context, o options, t tier, warm string) (_ []row, err error) {
	d, err := t.open(o, "")
	if err != nil {
		return nil, err
	}
	p, err := pool.New(d, pool.Options{Shelves: []pool.Shelf{{Spec: t.spec(), Size: 2, Warm: []string{warm}}}})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	took, err := firstOutputs(ctx, p, t)
	if err != nil {
		return nil, err
	}
	return []row{{what: t.box + " from a pool, where `" + warm + "` has run: create to the first output of `echo`", p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)}}, nil
}

// A waiter can be waited for before something is measured.
type waiter interface {
	Wait(ctx context.Context) error
}

func firstOutputs(ctx context.Context, d paddock.Driver, t tier) (samples, error) {
	var took samples
	for i := range warmUp + fresh {
		if w, ok := d.(waiter); ok {
			if err := w.Wait(ctx); err != nil {
				return nil, err
			}
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		one, err := firstOutput(ctx, d, t.spec())
		if err != nil {
			return nil, err
		}
		if i >= warmUp {
			took = append(took, one)
		}
	}
	return took, nil
}

// firstOutput makes a sandbox, and removes it when a command has said
// something.
func firstOutput(ctx context.Context, d paddock.Driver, spec paddock.Spec) (took time.Duration, err error) {
	began := time.Now()
	sb, err := d.Create(ctx, spec)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	said := make(mouth, 1)
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"echo", "hi"}, Output: paddock.Output{Stdout: said}})
	if err != nil {
		return 0, err
	}
	select {
	case at := <-said:
		took = at.Sub(began)
	case <-time.After(time.Minute):
		return 0, errors.New("echo says nothing")
	}
	exit, err := p.Wait(ctx)
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("echo ended with %d: %s", exit.Code, exit.Reason)
	}
	return took, err
}

// A mouth tells when it was first written to.
type mouth chan time.Time

func (m mouth) Write(data []byte) (int, error) {
	select {
	case m <- time.Now():
	default:
	}
	return len(data), nil
}
