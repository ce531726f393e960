package kernel_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// computer makes one, and a first task that has not run.
func computer(t *testing.T, limits budget.Limits) (*kernel.Kernel, *kernel.Task) {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	k := kernel.New(kernel.Options{FS: fs, Limits: limits, Programs: func(string) (kernel.Program, bool) { return nil, false }})
	t.Cleanup(func() { _ = k.Close() })
	task, err := k.NewRun().NewTask(vfs.View{FS: fs, Dir: vfs.Root, Umask: 0o022}, []string{"test"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k, task
}

// ends waits for a task's end.
func ends(t *testing.T, task *kernel.Task) kernel.Status {
	t.Helper()
	select {
	case <-task.Done():
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	s, _ := task.Status()
	return s
}

func TestAPipeHoldsBackItsWriterAndKeepsTheOrder(t *testing.T) {
	_, task := computer(t, budget.Limits{})
	r, w := kernel.Pipe()
	child, err := task.Fork()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.SetFD(1, w, false); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range 200_000 {
		want.WriteByte(byte('a' + i%26))
	}
	child.Go(func(c *kernel.Task) int {
		_, err := c.Write(1, []byte(want.String()))
		if err != nil {
			return 1
		}
		return 0
	})
	var got strings.Builder
	task.Go(func(t *kernel.Task) int {
		if err := t.SetFD(0, r, false); err != nil {
			return 1
		}
		if _, err := io.Copy(&got, t.Stream(0)); err != nil {
			return 2
		}
		return 0
	})
	if a, b := ends(t, child), ends(t, task); a.Shell() != 0 || b.Shell() != 0 || got.String() != want.String() {
		t.Errorf("%v %v, %d bytes of %d", a, b, got.Len(), want.Len())
	}
}

func TestASignalDoesWhatTheTaskSaysOfIt(t *testing.T) {
	for _, row := range []struct {
		action kernel.Action
		sig    linux.Signal
		want   kernel.Status
	}{
		{kernel.Default, linux.SIGTERM, kernel.Status{Signal: linux.SIGTERM}},
		{kernel.Catch, linux.SIGTERM, kernel.Status{Code: 15}},
		{kernel.Ignore, linux.SIGKILL, kernel.Status{Signal: linux.SIGKILL}},
		{kernel.Catch, linux.SIGKILL, kernel.Status{Signal: linux.SIGKILL}},
	} {
		_, task := computer(t, budget.Limits{})
		started := make(chan struct{})
		task.Go(func(t *kernel.Task) int {
			t.On(row.sig, row.action)
			close(started)
			if err := t.Sleep(time.Hour); !errors.Is(err, linux.EINTR) {
				return 1
			}
			return int(t.Caught())
		})
		<-started
		task.Signal(row.sig)
		if got := ends(t, task); got != row.want {
			t.Errorf("%v %v: %v, want %v", row.action, row.sig, got, row.want)
		}
	}
}

func TestALimitEndsEveryTaskOfItsRunAndNoOther(t *testing.T) {
	k, task := computer(t, budget.Limits{Commands: 10})
	other, err := k.NewRun().NewTask(task.View, []string{"other"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other.Go(func(t *kernel.Task) int { _ = t.Sleep(time.Hour); return 0 })
	child, err := task.Fork()
	if err != nil {
		t.Fatal(err)
	}
	child.Go(func(t *kernel.Task) int { _ = t.Sleep(time.Hour); return 0 })
	task.Go(func(t *kernel.Task) int {
		for {
			t.Command()
		}
	})
	var limit *budget.Exceeded
	if s := ends(t, task); s.Signal != linux.SIGKILL || !errors.As(task.Run.Cause(), &limit) || limit.Name != "commands" || limit.Limit != 10 {
		t.Errorf("%v, %v", s, task.Run.Cause())
	}
	if s := ends(t, child); s.Signal != linux.SIGKILL {
		t.Errorf("the child: %v", s)
	}
	if _, ended := other.Status(); ended {
		t.Error("a task of another run ended too")
	}
}

func TestWhatIsPausedStandsStillUntilItIsResumed(t *testing.T) {
	k, task := computer(t, budget.Limits{})
	k.Pause()
	ran := make(chan struct{})
	task.Go(func(*kernel.Task) int { close(ran); return 0 })
	select {
	case <-ran:
		t.Fatal("it ran")
	case <-time.After(20 * time.Millisecond):
	}
	k.Resume()
	<-ran
	ends(t, task)
}

// The task sleeps in a way that the computer's kernel does not know of, on a host that gives this
// process no processor.
func TestWhatTheHostDidNotGiveIsNotUsed(t *testing.T) {
	const stall = 500 * time.Millisecond
	fs := vfs.New(vfs.Options{})
	k := kernel.New(kernel.Options{FS: fs, ProcessorTime: func() time.Duration { return time.Hour }})
	t.Cleanup(func() { _ = k.Close() })
	task, err := k.NewRun().NewTask(vfs.View{FS: fs, Dir: vfs.Root}, []string{"test"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	task.Go(func(*kernel.Task) int {
		time.Sleep(stall)
		return 0
	})
	ends(t, task)
	if used := task.Run.Busy(); used > stall/2 {
		t.Errorf("used %v of %v without a processor", used, stall)
	}
}

func TestTasksAndDescriptorsAreBounded(t *testing.T) {
	_, task := computer(t, budget.Limits{Tasks: 2, Descriptors: 4})
	child, err := task.Fork()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.Fork(); !errors.Is(err, linux.EAGAIN) {
		t.Errorf("a third task: %v", err)
	}
	child.Abandon()
	again, err := task.Fork()
	if err != nil {
		t.Errorf("after one is gone: %v", err)
	}
	again.Abandon()
	r, w := kernel.Pipe()
	for range 4 {
		if _, err := task.AddFD(r, 0, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := task.AddFD(w, 0, false); !errors.Is(err, linux.EMFILE) {
		t.Errorf("a fifth descriptor: %v", err)
	}
	w.Drop()
	task.Abandon()
}

type shown struct {
	kernel.File
	b strings.Builder
}

func (s *shown) Show(p []byte) { s.b.Write(p) }

func TestATerminalEditsLinesAndEchoes(t *testing.T) {
	k, task := computer(t, budget.Limits{})
	out := &shown{}
	tty, d := kernel.NewTTY(k, 24, 80, out)
	if err := task.SetFD(0, d, false); err != nil {
		t.Fatal(err)
	}
	tty.SetForeground(task.PGID())
	if _, err := tty.Write([]byte("abx\x7f\tc\x15one two\x17\r\x04")); err != nil {
		t.Fatal(err)
	}
	var got []string
	task.Go(func(t *kernel.Task) int {
		for {
			b := make([]byte, 100)
			n, err := t.Read(0, b)
			if err != nil {
				return 0
			}
			got = append(got, string(b[:n]))
		}
	})
	ends(t, task)
	if len(got) != 1 || got[0] != "one \n" || !strings.HasSuffix(out.b.String(), "\r\n") {
		t.Errorf("%q, shown %q", got, out.b.String())
	}
}

func TestANamedPipeWaitsForItsOtherEnd(t *testing.T) {
	_, task := computer(t, budget.Limits{})
	if err := task.View.Mkfifo("/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	child, err := task.Fork()
	if err != nil {
		t.Fatal(err)
	}
	child.Go(func(t *kernel.Task) int {
		d, err := t.Open("/fifo", linux.O_WRONLY, 0)
		if err != nil || t.SetFD(1, d, false) != nil {
			return 1
		}
		_, _ = t.Write(1, []byte("through"))
		return 0
	})
	var got []byte
	task.Go(func(t *kernel.Task) int {
		d, err := t.Open("/fifo", linux.O_RDONLY, 0)
		if err != nil || t.SetFD(0, d, false) != nil {
			return 1
		}
		got, _ = io.ReadAll(t.Stream(0))
		return 0
	})
	if s := ends(t, task); s.Shell() != 0 || string(got) != "through" {
		t.Errorf("%v %q", s, got)
	}
	ends(t, child)
}
