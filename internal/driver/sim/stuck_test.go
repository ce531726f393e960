package sim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A command that reaches no checkpoint cannot be ended, which is told: nobody waits for ever.
func TestRemoveTellsOfACommandThatDoesNotEnd(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	d, err := sim.New(sim.Options{Patience: time.Millisecond, Commands: []command.Command{{Name: "stuck", Run: func(*kernel.Task) int {
		close(running)
		<-release
		return 0
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{ID: "box"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"stuck"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	<-running
	for range 2 {
		if err := sb.Remove(t.Context()); !errors.Is(err, kernel.ErrStuck) || !errors.Is(err, paddock.Unavailable) || !strings.Contains(err.Error(), `"stuck"`) {
			t.Errorf("remove: %v", err)
		}
	}
	if err := d.Close(); !errors.Is(err, kernel.ErrStuck) {
		t.Errorf("close: %v", err)
	}
	if _, err := sb.Status(t.Context()); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("status: %v", err)
	}
	close(release)
	if _, err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	for {
		err := sb.Remove(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, kernel.ErrStuck) {
			t.Fatal(err)
		}
	}
}

// What a library does in the background is paid for by the next command.
func TestALibraryIsHeldToTheLimitOfProcessors(t *testing.T) {
	for name, script := range map[string]string{
		"sqlite3": `sqlite3 :memory: 'SELECT 1 UNION ALL SELECT count(*) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c)'`,
		"python3": `python3 -c 'while True: pass'`,
	} {
		t.Run(name, func(t *testing.T) {
			o := sim.Options{}
			if name == "python3" {
				o.Python = interpreter(t)
			}
			d, err := sim.New(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			sb, err := d.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{CPUs: 0.25}})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			for range 4 {
				exit, out := do(t, sb, "timeout -s KILL 1 "+script+" >/dev/null & wait", forgiven)
				if exit.Cause != paddock.Exited {
					t.Fatalf("%+v, %q", exit, out)
				}
			}
			if exit, out := do(t, sb, "echo alive", forgiven); out != "alive\n" || exit.Code != 0 { // it waits for what is owed
				t.Errorf("%+v, %q", exit, out)
			}
			st, err := sb.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if had, of := st.Usage.CPU, time.Since(begun); had > of/2 {
				t.Errorf("it had %v in %v of a quarter of a processor", had, of)
			}
		})
	}
}
