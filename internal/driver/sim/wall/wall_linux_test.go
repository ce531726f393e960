package wall

import (
	"bytes"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestMain(m *testing.M) {
	if Main() {
		return
	}
	os.Exit(m.Run())
}

func TestAComputerInAChildAnswers(t *testing.T) {
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"cat", "/etc/hostname", "/proc/self/status"}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	t.Logf("%+v %v %s", exit, err, &out)
	st, err := sb.Status(t.Context())
	t.Logf("%+v %v", st, err)
}

func BenchmarkCreateAndRun(b *testing.B) {
	d, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for b.Loop() {
		sb, err := d.Create(b.Context(), paddock.Spec{})
		if err != nil {
			b.Fatal(err)
		}
		p, err := sb.Start(b.Context(), paddock.Cmd{Args: []string{"cat", "/etc/hostname"}})
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
