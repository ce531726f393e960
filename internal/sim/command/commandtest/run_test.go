package commandtest_test

import (
	"io"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

func catCommand() command.Command {
	spec := &command.Spec{Name: "cat", Options: []command.Option{{Short: 'u'}, {Short: 'A', Long: "show-all"}, {Short: 'e', Long: "show-ends"}}}
	return command.Command{Name: "cat", Run: func(t *kernel.Task) int {
		a, status, ok := spec.Parse(t)
		if !ok {
			return status
		}
		if len(a.Operands) == 0 {
			a.Operands = []string{"-"}
		}
		for _, name := range a.Operands {
			in, err := command.Open(t, name)
			if err != nil {
				t.Fail(name, err)
				status = 1
				continue
			}
			if _, err := io.Copy(t.Out(), in); err != nil {
				t.Fail(name, err)
				status = 1
			}
			_ = in.Close()
		}
		return status
	}}
}

func TestTheRefereeAgreesWithATool(t *testing.T) {
	commandtest.Compare(t, []command.Command{catCommand()}, []commandtest.Case{
		{Args: []string{"cat"}, Stdin: "a\x00b\xff"},
		{Args: []string{"cat", "x", "d/y", "none", "d"}, Files: map[string]string{"x": "1\n", "d/y": "-> ../x"}, Stderr: true},
		{Args: []string{"cat", "--nope"}, Stderr: true},
		{Args: []string{"cat", "-Q"}, Stderr: true},
		{Args: []string{"cat", "--show"}, Why: "the real one has more options of that beginning"},
		{Args: []string{"cat", "--u=1"}, Why: "abbreviation of what the real one has not"},
	})
}

func TestATaskThatReadsNothingEndsItsWriterBySIGPIPE(t *testing.T) {
	yes := command.Command{Name: "yes", Run: func(t *kernel.Task) int {
		for {
			if _, err := t.Out().WriteString("y\n"); err != nil {
				return 1
			}
		}
	}}
	pipe := command.Command{Name: "pipe", Run: func(t *kernel.Task) int {
		r, w := kernel.Pipe()
		child, err := t.Spawn(kernel.Command{Args: []string{"yes"}}, func(c *kernel.Task) error { return c.SetFD(1, w, false) })
		if err != nil {
			r.Drop()
			t.Fail("yes", err)
			return 1
		}
		b, err := r.File.Read(t, make([]byte, 10))
		if b == 0 || err != nil {
			return 2
		}
		r.Drop()
		s, err := t.Wait(child)
		if err != nil || s.Signal != linux.SIGPIPE {
			t.Errorf("%v %v", s, err)
			return 3
		}
		return 0
	}}
	if r := commandtest.Run(t, []command.Command{yes, pipe}, commandtest.Case{Args: []string{"pipe"}}); r.Status != 0 {
		t.Errorf("%+v", r)
	}
}

func TestTheRealToolHasNoRightsOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root does not run this test")
	}
	c := commandtest.Case{Args: []string{"sh", "-c", "id -u; id -G; echo x >made && cat made; echo a >>given; cat given; echo b >" + t.TempDir() + "/not"}, Files: map[string]string{"given": ""}}
	if r := commandtest.Real(t, c); r.Stdout != "65534\n65534\nx\na\n" || r.Status == 0 {
		t.Errorf("%+v", r)
	}
	c.Args, c.Privileged = []string{"id", "-u"}, true
	if r := commandtest.Real(t, c); r.Stdout != "0\n" {
		t.Errorf("%+v", r)
	}
}
