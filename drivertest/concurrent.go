package drivertest

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func concurrentPromises() []group {
	return []group{{promises: []promise{
		{"200 processes run at once", twoHundred},
		{"fifty callers use one sandbox at once, each as if alone", fiftyCallers},
		{"eight sandboxes are made, used and removed at once, and do not see each other", manySandboxes},
	}}}
}

func twoHundred(t *testing.T, s *suite) {
	const n = 200
	b := s.own(t, func(spec *paddock.Spec) {
		if s.enforces(paddock.ControlPIDs) {
			spec.Limits.PIDs = 1000
		}
	})
	ctx := bounded(t)
	ps := make([]paddock.Process, n)
	outs := make([]bytes.Buffer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			ps[i], err = b.Start(ctx, paddock.Cmd{Args: []string{"cat"}, Input: true, Output: paddock.Output{Stdout: &outs[i]}})
			if err != nil {
				t.Errorf("start %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	all, err := b.Processes(ctx)
	if err != nil {
		t.Fatalf("processes: %v", err)
	}
	running := 0
	for _, p := range all {
		if p.Exit == nil {
			running++
		}
	}
	if running != n {
		t.Errorf("%d run at once, want %d", running, n)
	}
	for i, p := range ps {
		wg.Go(func() {
			defer p.Release()
			if _, err := fmt.Fprintf(p.Input(), "I am %d\n", i); err != nil {
				t.Errorf("write %d: %v", i, err)
			}
			if err := p.Input().Close(); err != nil {
				t.Errorf("close %d: %v", i, err)
			}
			exit, err := p.Wait(ctx)
			if err != nil || exit.Code != 0 || outs[i].String() != fmt.Sprintf("I am %d\n", i) {
				t.Errorf("process %d: %+v, %v, output %q", i, exit, err, &outs[i])
			}
		})
	}
	wg.Wait()
}

func fiftyCallers(t *testing.T, s *suite) {
	b := s.box(t)
	ctx := bounded(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for round := range 4 {
				name := b.in(fmt.Sprintf("caller-%d", i))
				want := fmt.Sprintf("caller %d, round %d", i, round)
				if err := b.write(ctx, name, bytes.NewReader([]byte(want)), paddock.CreateOptions{}); err != nil {
					t.Errorf("write: %v", err)
				}
				if r, err := b.try(ctx, b.shell(`cat "$1"; echo "$2" >&2`, name, want)); err != nil || r.out != want || r.err != want+"\n" {
					t.Errorf("%s: %+v, %v", want, r, err)
				}
				if got, err := b.read(ctx, name, paddock.OpenOptions{}); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", want, got, err)
				}
				if fi, err := b.FS().Stat(ctx, name); err != nil || fi.Size != int64(len(want)) {
					t.Errorf("%s: %+v, %v", want, fi, err)
				}
				if found, err := b.list(ctx, b.dir, 1); err != nil || len(found) == 0 {
					t.Errorf("%s: %d files, %v", want, len(found), err)
				}
				if st, err := b.Status(ctx); err != nil || st.State != paddock.Ready {
					t.Errorf("%s: %+v, %v", want, st, err)
				}
				if _, err := b.Processes(ctx); err != nil {
					t.Errorf("%s: %v", want, err)
				}
			}
		})
	}
	wg.Wait()
}

func manySandboxes(t *testing.T, s *suite) {
	ctx := bounded(t)
	specs := make([]paddock.Spec, 8)
	for i := range specs {
		specs[i] = s.spec()
	}
	var made, gone sync.WaitGroup
	made.Add(len(specs))
	for _, spec := range specs {
		gone.Go(func() {
			sb, err := s.driver.Create(ctx, spec)
			if err != nil {
				made.Done()
				t.Errorf("create: %v", err)
				return
			}
			b := box{Sandbox: sb, s: s}
			script := `umask 077; echo "$1" > "$HOME/mine"; read -r go; cat "$HOME/mine"`
			cmd := b.shell(script, string(spec.ID))
			var out bytes.Buffer
			cmd.Input = true
			cmd.Output = paddock.Output{Stdout: &out}
			p, err := sb.Start(ctx, cmd)
			made.Done()
			if err != nil {
				t.Errorf("start: %v", err)
			} else {
				made.Wait() // all of them exist at once
				if _, err := io.WriteString(p.Input(), "go\n"); err != nil {
					t.Errorf("write: %v", err)
				}
				if _, err := p.Wait(ctx); err != nil || !s.absent(paddock.ControlMountNS) && out.String() != string(spec.ID)+"\n" {
					t.Errorf("%s sees %q: %v", spec.ID, &out, err)
				}
				p.Release()
			}
			if err := sb.Remove(ctx); err != nil {
				t.Errorf("remove: %v", err)
			}
		})
	}
	gone.Wait()
}
