package kernel

import (
	"errors"
	"runtime"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// alone is a task that has not run, and its computer.
func alone(t *testing.T) (*Kernel, *Task) {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	k := New(Options{FS: fs, Programs: func(string) (Program, bool) { return nil, false }})
	task, err := k.NewRun().NewTask(vfs.View{FS: fs, Dir: vfs.Root}, []string{"/usr/bin/first"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k, task
}

func TestWhatPanicsBesideATaskEndsItsRunAndNotTheProcess(t *testing.T) {
	for what, f := range map[string]func(*Task) (int, error){
		"a bug":                      func(*Task) (int, error) { panic("a bug") },
		"a checkpoint":               func(t *Task) (int, error) { t.Check(); return 0, nil },
		"an end":                     func(t *Task) (int, error) { t.Die(linux.SIGKILL); return 0, nil },
		"steps":                      func(t *Task) (int, error) { t.Step(2 * stepsPerCheck); return 0, nil },
		"a limit":                    func(t *Task) (int, error) { t.Bound("input", 2, 1); t.Check(); return 0, nil },
		"a checkpoint after the end": func(t *Task) (int, error) { t.Run.Stop(errors.New("over")); <-t.Done(); t.Check(); return 0, nil },
	} {
		t.Run(what, func(t *testing.T) {
			k, task := alone(t)
			task.Go(func(task *Task) int {
				ended := make(chan struct{})
				_, err := Beside(task, func() (int, error) {
					defer close(ended)
					for !task.waits.Load() {
						runtime.Gosched()
					}
					return f(task)
				})
				<-ended
				return map[bool]int{true: 0, false: 1}[err == nil]
			})
			<-task.Done()
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			if task.Run.Cause() == nil {
				t.Error("the run has no cause of its end")
			}
		})
	}
}

func TestBesideGivesWhatItsFunctionGave(t *testing.T) {
	k, task := alone(t)
	wrong := errors.New("wrong")
	var n int
	var err error
	task.Go(func(task *Task) int {
		n, err = Beside(task, func() (int, error) { return 3, wrong })
		return 0
	})
	<-task.Done()
	if n != 3 || !errors.Is(err, wrong) || task.Run.Cause() != nil || k.Close() != nil {
		t.Error(n, err, task.Run.Cause())
	}
}

func TestTasksAreListedByNumber(t *testing.T) {
	k, task := alone(t)
	var all []*Task
	for range 50 {
		c, err := task.Fork()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for i := 0; i < len(all); i += 2 {
		all[i].Abandon()
	}
	k.next += 1 << 40 // as after as many that ended
	last, err := task.Fork()
	if err != nil {
		t.Fatal(err)
	}
	list := k.Tasks()
	if len(list) != 27 || list[0] != task || list[26] != last {
		t.Fatalf("%d tasks", len(list))
	}
	for i := range list[1:] {
		if list[i].PID >= list[i+1].PID {
			t.Errorf("%d before %d", list[i].PID, list[i+1].PID)
		}
	}
}
