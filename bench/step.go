//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// stepScripts are what a command does in a workspace whose changes are recorded, and in one whose are not. Each gets a
// number of its own.
func stepScripts() []task {
	return []task{
		{what: "a command that changes nothing, workspace of 100,000 files", script: `true`},
		{what: "a command that changes 10 files", script: `for i in 0 1 2 3 4 5 6 7 8 9; do echo $n >> $work/changed$i; done`},
		{what: "untar of 5,000 files", script: `mkdir $work/out; tar xf $data/files.tar -C $work/out`, after: `rm -rf $work/out`},
		{what: "removal of 10,000 files", script: `rm -rf $work/many`, after: `mkdir $work/many; tar xf $data/many.tar -C $work/many`},
		{what: "`go build` after a change, warm", program: goProgram,
			script: `cd $work/prog; echo "package main; const nonce = $n" > nonce.go; HOME=$tmp GOCACHE=/tmp/gocache GOFLAGS= GOPROXY=off ` + goProgram + ` build -o $work/prog/out .`},
	}
}

// measureSteps compares commands whose changes are recorded with those whose are not, in turns.
func measureSteps(ctx context.Context, o options) (_ []row, err error) {
	top, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(top)
	data := filepath.Join(top, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"files.tar": archive(5000), "many.tar": archive(10_000), "main.go": []byte(mainGo)} {
		if err := os.WriteFile(filepath.Join(data, name), content, 0o644); err != nil {
			return nil, err
		}
	}
	var rows []row
	for _, t := range tiers() {
		more, err := stepsOf(ctx, o, t, filepath.Join(top, string(t.name)), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// stepsOf measures one tier.
func stepsOf(ctx context.Context, o options, t tier, top, data string) (_ []row, err error) {
	journal, err := step.Open(filepath.Join(top, "steps"), step.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	var places []place
	for _, name := range []string{"plain", "recorded"} {
		work := filepath.Join(top, name)
		if err := emptyFiles(work, 100_000); err != nil {
			return nil, err
		}
		with := o
		if name == "recorded" {
			with.steps = journal
		}
		d, err := t.open(with, "")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		p, remove, err := inSandbox(ctx, d, t, work, data)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, remove()) }()
		if err := p.run(ctx, `mkdir $work/many $work/prog; tar xf $data/many.tar -C $work/many; cp $data/main.go $work/prog; echo "module prog" > $work/prog/go.mod`); err != nil {
			return nil, err
		}
		n := 0
		run := p.run
		p.run = func(ctx context.Context, script string) error {
			n++
			return run(ctx, fmt.Sprintf("n=%d; tmp=/tmp; %s", n, script))
		}
		places = append(places, p)
	}
	var rows []row
	for _, j := range stepScripts() {
		if j.program != "" {
			if _, err := os.Stat(j.program); err != nil {
				fmt.Fprintf(os.Stderr, "%s is left out: %v\n", j.what, err)
				continue
			}
		}
		took, err := inTurns(ctx, j, places)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.what, err)
		}
		plain, recorded := took[0].p50(), took[1]
		rows = append(rows, row{
			what: string(t.name) + ": " + j.what, p50: ms(recorded.p50()), p99: ms(recorded.quantile(1)), runs: len(recorded),
			ratio: fmt.Sprintf("not recorded %s; %+.2f ms, %.2f times", ms(plain), float64(recorded.p50()-plain)/float64(time.Millisecond), float64(recorded.p50())/float64(plain)),
		})
	}
	undo, err := undoOf(ctx, journal, places[1])
	if err != nil {
		return nil, err
	}
	return append(rows, row{what: string(t.name) + ": undo of the removal of 10,000 files", p50: ms(undo.p50()), p99: ms(undo.quantile(1)), runs: len(undo)}), nil
}

// undoOf removes files in a sandbox, and measures how long it takes to bring them back.
func undoOf(ctx context.Context, journal *step.Journal, p place) (samples, error) {
	var took samples
	for range repeats {
		if err := p.run(ctx, `rm -rf $work/many`); err != nil {
			return nil, err
		}
		list, err := journal.List(ctx, step.Filter{Last: 1})
		if err != nil {
			return nil, err
		}
		began := time.Now()
		result, err := journal.Undo(ctx, step.Request{Steps: []int64{list[0].Number}})
		took = append(took, time.Since(began))
		if err != nil {
			return nil, err
		}
		if len(result.Conflicts) > 0 {
			return nil, fmt.Errorf("%d conflicts, such as %q: %s: %w", len(result.Conflicts), result.Conflicts[0].Path, result.Conflicts[0].Why, paddock.Internal)
		}
	}
	return took, nil
}

// emptyFiles makes a directory with so many empty files.
func emptyFiles(dir string, files int) error {
	for i := range files {
		sub := filepath.Join(dir, "large", fmt.Sprintf("dir%d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(sub, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("file%d", i)), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}
