package sim_test

import (
	"bytes"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
)

func TestABoxRunsAProgram(t *testing.T) {
	d, err := sim.New(sim.Options{Commands: []command.Command{{Name: "hello", Run: func(t *proc.Task) int {
		_, _ = t.Out().WriteString("hi\n")
		return 3
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"hello"}, Output: paddock.Output{Stdout: &out}})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Code != 3 || out.String() != "hi\n" {
		t.Errorf("%+v %v %q", exit, err, &out)
	}
}

func BenchmarkNewAndHello(b *testing.B) {
	d, err := sim.New(sim.Options{Commands: []command.Command{{Name: "hello", Run: func(t *proc.Task) int {
		_, _ = t.Out().WriteString("hi\n")
		return 3
	}}}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	b.ReportAllocs()
	for b.Loop() {
		sb, err := d.Create(b.Context(), paddock.Spec{})
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		p, err := sb.Start(b.Context(), paddock.Cmd{Args: []string{"hello"}, Output: paddock.Output{Stdout: &out}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := sb.Remove(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
