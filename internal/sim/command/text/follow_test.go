package text

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// following runs tail beside a program that writes, and gives what tail wrote.
func following(t *testing.T, args []string, files map[string]string, write func(t *kernel.Task, tail func() string)) string {
	t.Helper()
	got := ""
	main := command.Command{Name: "main", Run: func(task *kernel.Task) int {
		r, w := kernel.Pipe()
		child, err := task.Spawn(kernel.Command{Args: args}, func(c *kernel.Task) error { return c.SetFD(1, w, false) })
		if err != nil {
			task.Errorf("%v", err)
			return 1
		}
		buf := make([]byte, 4096)
		write(task, func() string {
			n, err := r.File.Read(task, buf)
			if err != nil {
				return err.Error()
			}
			got += string(buf[:n])
			return string(buf[:n])
		})
		child.Signal(linux.SIGTERM)
		if _, err := task.Wait(child); err != nil {
			return 2
		}
		r.Drop()
		return 0
	}}
	r := commandtest.Run(t, append(Commands(), main), commandtest.Case{Args: []string{"main"}, Files: files})
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	return got
}

func put(t *kernel.Task, name, text string, flags int) {
	o, err := command.Create(t, name, flags)
	if err != nil {
		t.Errorf("%v", err)
		t.Exit(9)
	}
	defer func() { _ = o.Close() }()
	if _, err := o.Write([]byte(text)); err != nil {
		t.Errorf("%v", err)
		t.Exit(9)
	}
}

func TestTailFollowsWhatIsAppended(t *testing.T) {
	got := following(t, []string{"tail", "-n1", "-f", "log"}, map[string]string{"log": "1\n2\n"}, func(t *kernel.Task, tail func() string) {
		tail()
		put(t, "log", "3\n", linux.O_APPEND)
		tail()
		put(t, "log", "4\n5\n", linux.O_APPEND)
		tail()
	})
	if got != "2\n3\n4\n5\n" {
		t.Errorf("%q", got)
	}
}

func TestTailFollowsANameToANewFile(t *testing.T) {
	got := following(t, []string{"tail", "-F", "log"}, map[string]string{"log": "old\n", "new": "rotated\n"}, func(t *kernel.Task, tail func() string) {
		tail()
		if err := t.View.Rename("new", "log"); err != nil {
			t.Errorf("%v", err)
			t.Exit(9)
		}
		tail()
		put(t, "log", "more\n", linux.O_APPEND)
		tail()
	})
	if got != "old\nrotated\nmore\n" {
		t.Errorf("%q", got)
	}
}

func TestTailEndsWithTheTaskThatItIsTold(t *testing.T) {
	r := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"tail", "-f", "--pid=99999", "f"}, Files: map[string]string{"f": "x\n"}})
	if r.Stdout != "x\n" || r.Status != 0 {
		t.Errorf("%+v", r)
	}
}

func TestToolsEndWhenTheirReaderDoes(t *testing.T) {
	for _, line := range []string{"yes", "cat /dev/zero", "tr a b", "seq-like", "fold -w 10 /dev/zero", "head -c 100000000 /dev/zero", "tail -c +1 /dev/zero", "tee", "expand /dev/zero"} {
		args := strings.Fields(line)
		if args[0] == "seq-like" {
			args = []string{"yes", "a", "b"}
		}
		main := command.Command{Name: "main", Run: func(task *kernel.Task) int {
			r, w := kernel.Pipe()
			zero, err := task.Open("/dev/zero", linux.O_RDONLY, 0)
			if err != nil {
				return 1
			}
			child, err := task.Spawn(kernel.Command{Args: args}, func(c *kernel.Task) error {
				if err := c.SetFD(0, zero, false); err != nil {
					return err
				}
				return c.SetFD(1, w, false)
			})
			if err != nil {
				task.Errorf("%v", err)
				return 1
			}
			if _, err := r.File.Read(task, make([]byte, 10)); err != nil {
				return 2
			}
			r.Drop()
			s, err := task.Wait(child)
			if err != nil || s.Signal != linux.SIGPIPE {
				task.Errorf("%v %v", s, err)
				return 3
			}
			return 0
		}}
		if r := commandtest.Run(t, append(Commands(), main), commandtest.Case{Args: []string{"main"}}); r.Status != 0 {
			t.Errorf("%s: %+v", line, r)
		}
	}
}
