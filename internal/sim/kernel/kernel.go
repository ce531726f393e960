package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A Program is what an executable file of the computer does. It answers with
// its exit status. Its arguments are t.Args, its name the first.
type Program func(t *Task) int

// Options describe a computer.
type Options struct {
	FS       *vfs.FS
	Limits   budget.Limits
	Programs func(name string) (Program, bool) // what a file that says [Marker] runs
	Hostname string
	CPUs     float64          // processors' worth of time that all tasks have; 0 is as many as there are
	Now      func() time.Time // nil is the host's clock

	// ProcessorTime returns what this process has had so far. Time in which it had none is nobody's use of a
	// processor. Nil takes the time that passed for the time that was had.
	ProcessorTime func() time.Duration

	// Dial is the way to the network; nil is no network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Patience bounds how long Close waits; 0 is half a minute.
	Patience time.Duration

	// Refused is told what a task tried and may not; nil is nobody.
	Refused func(what, target, rule string)
}

// A Kernel is one simulated computer. It is safe for many goroutines.
type Kernel struct {
	Options

	heap *budget.Counter

	gate atomic.Pointer[gate] // nil while nothing is paused

	booted time.Time
	bootID string

	maxTasks, maxFDs atomic.Int64
	share            share

	mu    sync.Mutex
	tasks map[int]*Task         // guarded by mu
	next  int                   // guarded by mu
	fifos map[vfs.Ino]*pipe     // guarded by mu: named pipes that are open
	locks map[lockKey]*fileLock // guarded by mu
	ended bool                  // guarded by mu: nothing may start any more
	empty chan struct{}         // guarded by mu: after Close, closed when no task runs
	wg    sync.WaitGroup        // of goroutines that run tasks
}

// A gate holds tasks while the computer is paused.
type gate struct{ open chan struct{} }

// New makes a computer on which nothing runs.
func New(o Options) *Kernel {
	o.Limits = o.Limits.Filled()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Hostname == "" {
		o.Hostname = "paddock"
	}
	k := &Kernel{
		Options: o, heap: budget.NewCounter("heap", o.Limits.Heap),
		tasks: map[int]*Task{}, next: 1, fifos: map[vfs.Ino]*pipe{},
		booted: time.Now(), bootID: uuid(),
	}
	k.Relimit(o.Limits, o.CPUs)
	return k
}

// Relimit changes the limits of the machine that can change while it lives:
// heap, tasks, descriptors and processors. What is above a new limit stays.
func (k *Kernel) Relimit(l budget.Limits, cpus float64) {
	l = l.Filled()
	k.heap.SetLimit(l.Heap)
	k.maxTasks.Store(l.Tasks)
	k.maxFDs.Store(l.Descriptors)
	k.share.set(cpus)
}

// MaxDescriptors returns how many descriptors a task may have.
func (k *Kernel) MaxDescriptors() int { return int(k.maxFDs.Load()) }

// MaxTasks returns how many tasks there may be.
func (k *Kernel) MaxTasks() int { return int(k.maxTasks.Load()) }

// Heap counts the bytes of live values and buffers.
func (k *Kernel) Heap() *budget.Counter { return k.heap }

// Tasks lists the tasks that are alive, by number.
func (k *Kernel) Tasks() []*Task {
	k.mu.Lock()
	list := make([]*Task, 0, len(k.tasks))
	for _, t := range k.tasks {
		list = append(list, t)
	}
	k.mu.Unlock()
	slices.SortFunc(list, func(a, b *Task) int { return a.PID - b.PID })
	return list
}

// Task finds a living task.
func (k *Kernel) Task(pid int) (*Task, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, ok := k.tasks[pid]
	return t, ok
}

// SignalGroup signals every task of a process group, or gives ESRCH.
func (k *Kernel) SignalGroup(pgid int, sig linux.Signal) error {
	if !k.signalAll(sig, func(t *Task) bool { return int(t.pgid.Load()) == pgid }) {
		return linux.ESRCH
	}
	return nil
}

// Pause stops every task at its next checkpoint.
func (k *Kernel) Pause() {
	k.gate.CompareAndSwap(nil, &gate{make(chan struct{})})
}

// Resume undoes Pause.
func (k *Kernel) Resume() {
	if g := k.gate.Swap(nil); g != nil {
		close(g.open)
	}
}

// Close kills every task, waits for their ends, and lets nothing start any
// more. A task that reaches no checkpoint cannot be ended: after
// [Options.Patience] that is an error, and Close may be called again.
func (k *Kernel) Close() error {
	k.mu.Lock()
	k.ended = true
	if k.empty == nil {
		k.empty = make(chan struct{})
		go func() { // nothing starts any more, so it ends with the last task
			k.wg.Wait()
			close(k.empty)
		}()
	}
	k.mu.Unlock()
	for _, t := range k.Tasks() {
		t.Signal(linux.SIGKILL)
	}
	k.Resume()
	timer := time.NewTimer(k.Patience)
	defer timer.Stop()
	select {
	case <-k.empty:
		return nil
	case <-timer.C:
	}
	var names []string
	for _, t := range k.Tasks() {
		names = append(names, t.program())
	}
	return fmt.Errorf("%w: %q", ErrStuck, names)
}

// ErrStuck is the error of a computer on which a task computes and reaches no
// checkpoint.
var ErrStuck = errors.New("a command was killed and does not stop computing")

// A Run is a command that was started from outside, with all that it started.
type Run struct {
	k *Kernel

	commands, iterations, output, steps, traversal, toolCalls *budget.Counter

	started time.Time
	busy    atomic.Int64 // nanoseconds in which a task of it ran
	live    atomic.Int64 // tasks
	timer   *time.Timer

	cause atomic.Pointer[error] // why it was stopped
}

// NewRun makes a run; its wall-clock limit begins now. Whoever makes one ends
// it with [Run.End].
func (k *Kernel) NewRun() *Run {
	l := k.Limits
	r := &Run{
		k:          k,
		commands:   budget.NewCounter("commands", l.Commands),
		iterations: budget.NewCounter("iterations", l.Iterations),
		output:     budget.NewCounter("output", l.Output),
		steps:      budget.NewCounter("steps", l.Steps),
		traversal:  budget.NewCounter("traversal", l.Traversal),
		toolCalls:  budget.NewCounter("tool_calls", l.ToolCalls),
		started:    time.Now(),
	}
	r.timer = time.AfterFunc(l.Wall, func() {
		r.Stop(&budget.Exceeded{Name: "wall", Limit: int64(l.Wall / time.Second)})
	})
	return r
}

// Within lets a run that has a timeout of its own take that long, where the
// limit on wall-clock time is less.
func (r *Run) Within(timeout time.Duration) {
	if timeout > r.k.Limits.Wall {
		r.timer.Reset(timeout + time.Second) // whoever set the timeout ends it
	}
}

// Stop ends every task of the run; the first cause stays.
func (r *Run) Stop(cause error) {
	r.cause.CompareAndSwap(nil, &cause)
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	for _, t := range r.k.tasks {
		if t.Run == r {
			t.wakeUp()
		}
	}
}

// Stop ends every task of the computer, whichever run it is of and whether or not the run's first task is still there. The
// first cause of a run stays.
func (k *Kernel) Stop(cause error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.tasks {
		t.Run.cause.CompareAndSwap(nil, &cause)
		t.wakeUp()
	}
}

// SetRun moves a task to another run: what it does and starts from now on
// counts there.
func (t *Task) SetRun(r *Run) {
	t.clock.lap(t.Run)
	r.live.Add(1)
	t.K.mu.Lock()
	old := t.Run
	t.Run = r
	t.K.mu.Unlock()
	old.Release()
}

// Release takes away what a task held of the run; the end of the last one ends
// the run.
func (r *Run) Release() {
	if r.live.Add(-1) == 0 {
		r.End()
	}
}

// Cause returns why the run was stopped, or nil.
func (r *Run) Cause() error {
	if c := r.cause.Load(); c != nil {
		return *c
	}
	return nil
}

// Aside reports whether a process substitution of the run is alive. What it
// still writes belongs to the output of the command that it was made for.
func (r *Run) Aside() bool {
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	for _, t := range r.k.tasks {
		if t.Run == r && t.Aside {
			return true
		}
	}
	return false
}

// Busy returns for how long tasks of the run have run, each by itself, up to
// their last checkpoints.
func (r *Run) Busy() time.Duration { return time.Duration(r.busy.Load()) }

// Started returns when the run began.
func (r *Run) Started() time.Time { return r.started }

// End releases the run's timer. The end of its last task does so too.
func (r *Run) End() { r.timer.Stop() }

// Commands counts the commands of the run.
func (r *Run) Commands() *budget.Counter { return r.commands }

// Output counts the bytes that the run wrote to the outside.
func (r *Run) Output() *budget.Counter { return r.output }
