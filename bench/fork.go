//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	forks = 20

	// holder is a process that holds 20 MB and answers, with all of it, whom
	// it finds to have asked.
	holder = `
import os, time
held = bytearray(os.urandom(20 << 20))
open("/tmp/begun", "w").close()
while not os.path.exists("/tmp/asked"):
    time.sleep(0.001)
with open("/tmp/answer.new", "w") as f:
    f.write(str(sum(min(4096, len(held[i:i+4096])) for i in range(0, len(held), 4096))))
os.rename("/tmp/answer.new", "/tmp/answer")
time.sleep(1000)
`
	answer = "20971520"
)

// forkedBoxes measures sandboxes that go on from a snapshot of a process with
// memory, from before Create to the process's answer.
func forkedBoxes(ctx context.Context, o options, _ paddock.Driver, t tier) (_ []row, err error) {
	what := t.box + ": fork of a Python process that holds 20 MB, to its first answer"
	state, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(state) // the snapshot is in it
	d, err := t.open(o, state)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	info, err := d.Info(ctx, paddock.Auto)
	if err != nil {
		return nil, err
	}
	if !info.Can(paddock.CanSnapshotMemory) {
		if t.name != paddock.GVisor {
			return nil, nil // nobody promises it
		}
		return []row{{what: what + ": not measured, the tier has no snapshots of memory"}}, nil
	}
	id, saved, err := saveProcess(ctx, d, t)
	if err != nil {
		return nil, err
	}
	spec := t.spec()
	spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
	var took samples
	for i := range warmUp + forks {
		one, err := firstAnswer(ctx, d, spec)
		if err != nil {
			return nil, err
		}
		if i >= warmUp {
			took = append(took, one)
		}
		time.Sleep(rest)
	}
	return []row{
		{what: t.box + ": snapshot of that process, which goes on", p50: ms(saved), runs: 1},
		{what: what, p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)},
	}, nil
}

// saveProcess makes the process and the snapshot of it.
func saveProcess(ctx context.Context, d paddock.Driver, t tier) (_ paddock.SnapshotID, took time.Duration, err error) {
	sb, err := d.Create(ctx, t.spec())
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	if _, err := sb.Start(ctx, paddock.Cmd{Args: []string{python3, "-c", holder}}); err != nil {
		return "", 0, err
	}
	if err := appears(ctx, sb, "/tmp/begun"); err != nil {
		return "", 0, err
	}
	began := time.Now()
	id, err := sb.Snapshot(ctx, paddock.SnapshotOptions{Memory: true})
	return id, time.Since(began), err
}

func firstAnswer(ctx context.Context, d paddock.Driver, spec paddock.Spec) (took time.Duration, err error) {
	began := time.Now()
	sb, err := d.Create(ctx, spec)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	w, err := sb.FS().Create(ctx, "/tmp/asked", paddock.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	if err := appears(ctx, sb, "/tmp/answer"); err != nil {
		return 0, err
	}
	r, err := sb.FS().Open(ctx, "/tmp/answer", paddock.OpenOptions{})
	if err != nil {
		return 0, err
	}
	said, err := io.ReadAll(r)
	took = time.Since(began)
	if err := errors.Join(err, r.Close()); err != nil {
		return 0, err
	}
	if !strings.HasPrefix(string(said), answer) {
		return 0, fmt.Errorf("the process answers %q, not %s", said, answer)
	}
	return took, nil
}

// appears waits for a file.
func appears(ctx context.Context, sb paddock.Sandbox, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := sb.FS().Stat(ctx, name)
		if !errors.Is(err, paddock.NotFound) {
			return err
		}
		select {
		case <-time.After(500 * time.Microsecond):
		case <-ctx.Done():
			return fmt.Errorf("%s does not appear: %w", name, ctx.Err())
		}
	}
}
