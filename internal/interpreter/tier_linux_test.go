package interpreter_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
	"github.com/paddock-sandbox/paddock/internal/program/programtest"
)

// TestAsUser runs some of this package's tests again as an unprivileged user.
func TestAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^("+strings.Join([]string{
		"TestPythonKeepsItsState", "TestJavaScriptKeepsItsState", "TestBashKeepsItsState", "TestAnInterruptedCellLeavesItsContextAsItWas",
		"TestKernelsOutliveTheirInterpreter",
	}, "|")+")$", 10)
}

func TestTheTierGVisorKeepsContextsToo(t *testing.T) {
	data := t.TempDir()
	open := func(state string) (paddock.Driver, error) {
		kernel, err := programtest.Program("paddock-gvisor")
		if err != nil {
			return nil, err
		}
		return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Hosts: drivertest.Hosts(), Init: kernel})
	}
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: true, AllowMissing: drivertest.Weak(t, open)})
	if err != nil {
		t.Fatal(err)
	}
	in, err := interpreter.New(interpreter.Options{Sandbox: sb, Stop: 10 * time.Second, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for _, l := range []interpreter.Language{interpreter.Python, interpreter.JavaScript, interpreter.Bash} {
		name, set, get := string(l)+" busy", "x = 6", "x * 7"
		if l == interpreter.Bash {
			name, set, get = "bash asleep", "x=6", "echo $((x * 7))"
		}
		run(t, in, interpreter.Cell{Language: l, Code: set})
		c, err := in.Default(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		o, done := started(t.Context(), t, in, loops()[name])
		if err := in.Interrupt(t.Context(), c.ID); err != nil {
			t.Error(err)
		}
		if err := wait(t, done); err != nil || len(o.errors) != 1 || o.errors[0].Name == interpreter.ErrorEnded {
			t.Errorf("%s: the interrupted cell ended with %v, %s", l, err, o.failure())
		}
		if o := run(t, in, interpreter.Cell{Language: l, Code: get}); o.main()+strings.TrimSpace(o.out) != "42" {
			t.Errorf("%s: %q %q (%s)", l, o.main(), o.out, o.failure())
		}
	}
	if err := sb.Pause(t.Context()); err != nil {
		t.Skipf("the tier cannot pause here: %v", err)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o := run(t, in, interpreter.Cell{Code: "x * 7"}); o.main() != "42" {
		t.Errorf("after a pause it is %q (%s)", o.main(), o.failure())
	}
}

func TestAPauseTakesNothingFromAContext(t *testing.T) {
	sb := sandbox(t, paddock.Spec{})
	in := open(t, interpreter.Options{Sandbox: sb})
	run(t, in, interpreter.Cell{Code: "x = 6"})
	if err := sb.Pause(t.Context()); err != nil {
		t.Skipf("the tier cannot pause here: %v", err)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o := run(t, in, interpreter.Cell{Code: "x * 7"}); o.main() != "42" {
		t.Errorf("it is %q (%s)", o.main(), o.failure())
	}
}

func TestTheTierSimIsRefusedInWords(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	in := open(t, interpreter.Options{Sandbox: sb})
	err = in.Run(t.Context(), interpreter.Cell{Code: "1"}, func(interpreter.Event) error { return nil })
	if paddock.KindOf(err) != paddock.Unsupported || !strings.Contains(err.Error(), "tier sim") {
		t.Errorf("it answers %v", err)
	}
}
