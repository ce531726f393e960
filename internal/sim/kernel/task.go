package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A Status says how a task ended.
type Status struct {
	Code   int          // of its own exit
	Signal linux.Signal // that killed it, or 0
}

// Shell returns the status as a shell has it: 128+n for signal n.
func (s Status) Shell() int {
	if s.Signal != 0 {
		return 128 + int(s.Signal)
	}
	return s.Code
}

// A Task is a process of the computer.
type Task struct {
	K    *Kernel
	Run  *Run
	View vfs.View

	PID, PPID int
	Args      []string // of the program; the first is its name
	Env       []string // "NAME=value", what programs that it starts inherit
	Depth     int      // shells and programs that started each other
	Nest      int      // how deep the goroutine's stack is already, in units of the shell
	Aside     bool     // it is, or belongs to, a process substitution: see [Run.Aside]

	fds  []fdEntry
	kept []*Desc // beside the descriptors

	rlimit rlimit

	public atomic.Pointer[known]

	clock *clock // of the goroutine that it runs on

	parent *Task                // that forked it
	unborn []*Task              // that it forked and that have not run yet
	outer  *Task                // on whose goroutine it runs, and which waits for it
	inner  atomic.Pointer[Task] // that runs on its goroutine meanwhile

	fuel int   // steps until the next checkpoint
	held int64 // bytes of heap that end with the task

	pgid    atomic.Int32
	pending atomic.Uint64 // bit n is signal n
	halted  atomic.Bool   // a signal has stopped it
	action  [65]Action
	caught  uint64 // bit n is signal n: arrived, for the program to take
	wake    chan struct{}
	waits   atomic.Bool // in await: its goroutine does nothing else

	out *bufio.Writer
	in  *bufio.Reader

	late time.Duration // guarded by K.mu: see [Kernel.Overdue]

	mu     sync.Mutex
	status Status // guarded by mu until done is closed
	ended  bool   // guarded by mu
	done   chan struct{}
}

// known is what other tasks may know of one.
type known struct {
	args, env []string
	uid, gid  int
}

func (t *Task) publish() { t.public.Store(&known{t.Args, t.Env, t.View.UID, t.View.GID}) }

func (t *Task) known() *known { return t.public.Load() }

// An Action is what a signal does to a task.
type Action uint8

// What a signal can do.
const (
	Default Action = iota
	Ignore
	Catch // it interrupts, and Task.Caught tells
)

// An unwind is what a task panics with in order to end.
type unwind struct {
	task   *Task
	status Status
}

// NewTask makes the first task of a run. It has no descriptors.
func (r *Run) NewTask(view vfs.View, args, env []string) (*Task, error) {
	t := &Task{K: r.k, Run: r, View: view, Args: args, Env: env, clock: r.k.clock()}
	if err := r.k.enter(t, true); err != nil {
		return nil, err
	}
	t.pgid.Store(int32(t.PID))
	t.View.Self = t
	return t, nil
}

// kept is how many tasks of the limit, at most, are only for what is started
// from outside: a box that its own tasks have filled can still be looked at.
const kept = 8

// enter gives a task its number. EAGAIN is no more tasks.
func (k *Kernel) enter(t *Task, outside bool) error {
	t.wake = make(chan struct{}, 1)
	t.done = make(chan struct{})
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return linux.EPERM
	}
	limit := k.maxTasks.Load()
	if !outside {
		limit -= min(kept, limit/8)
	}
	if int64(len(k.tasks)) >= limit {
		return linux.EAGAIN
	}
	if own := t.rlimit.tasks; own > 0 && int64(len(k.tasks)) >= own-1 {
		return linux.EAGAIN
	}
	t.publish()
	t.PID = k.next
	k.next++
	k.tasks[t.PID] = t
	t.Run.live.Add(1)
	return nil
}

// Fork makes a copy of t that shares its descriptors. It runs when the caller
// gives it to [Task.Go] or [Task.Do]. EAGAIN is no more tasks.
func (t *Task) Fork() (*Task, error) {
	c := &Task{
		K: t.K, Run: t.Run, View: t.View, PPID: t.PID, Args: t.Args, Env: t.Env, Depth: t.Depth, Aside: t.Aside,
		action: t.action, clock: t.clock, parent: t, rlimit: t.rlimit,
	}
	c.View.Groups = t.View.Groups
	if err := t.K.enter(c, false); err != nil {
		return nil, err
	}
	c.View.Self = c
	c.pgid.Store(t.pgid.Load())
	// What the keyboard sent to the group and t has not taken yet is as if it
	// was sent now.
	c.pending.Or((t.pending.Load()|t.caught)&(bit(linux.SIGINT)|bit(linux.SIGQUIT)) | t.pending.Load()&bit(linux.SIGKILL))
	c.fds = slices.Clone(t.fds)
	for _, e := range c.fds {
		if e.d != nil {
			e.d.ref()
		}
	}
	t.unborn = append(t.unborn, c)
	return c, nil
}

// born takes a task that runs, or never will, from those that wait for it. Its
// parent calls it, by starting or abandoning it.
func (t *Task) born() {
	if p := t.parent; p != nil {
		if i := slices.Index(p.unborn, t); i >= 0 {
			p.unborn = slices.Delete(p.unborn, i, i+1)
		}
	}
}

// Go runs a task on a goroutine of its own.
func (t *Task) Go(run func(*Task) int) { t.GoThen(run, nil) }

// GoThen is Go; then is called with how the task ended, before [Kernel.Close]
// takes it for gone.
func (t *Task) GoThen(run func(*Task) int, then func(Status)) {
	t.born()
	t.clock = t.K.clock()
	t.K.wg.Add(1)
	go func() {
		defer t.K.wg.Done()
		t.clock.start()
		s := t.do(run)
		t.clock.stop(t.Run)
		t.end(s)
		if then != nil {
			then(s)
		}
	}()
}

// Do runs a task on the caller's goroutine and answers how it ended. All of
// its descriptors are closed then. The caller is the task that forked it: a
// signal that kills that one meanwhile kills both.
func (t *Task) Do(run func(*Task) int) Status {
	t.born()
	if p := t.parent; p != nil {
		t.outer = p
		p.inner.Store(t)
		defer p.inner.Store(nil)
	}
	s, other := t.try(run)
	t.end(s)
	if other != nil {
		panic(*other)
	}
	return s
}

func (t *Task) do(run func(*Task) int) Status {
	s, _ := t.try(run) // no other task is on this goroutine
	return s
}

// try runs a task to its end, which may be that of another one that it runs
// on the goroutine of. A program that panics ends its run, as a [*Broken]
// error, and not the process that the computer is in: what one sandbox does
// shall not reach another.
func (t *Task) try(run func(*Task) int) (s Status, other *unwind) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unwind:
			s = r.status
			if r.task != t {
				other = &r
			}
		default:
			t.Run.Stop(broken(t, r))
			s = Status{Signal: linux.SIGKILL}
		}
	}()
	t.Check()
	t.K.share.pay(t, 0) // what ended tasks owe
	s.Code = run(t) & 0xff
	if err := t.Flush(); err != nil {
		t.complain(err)
		s.Code = max(s.Code, 1)
	}
	return s, nil
}

// complain tells of output that could not be written, as programs do.
func (t *Task) complain(err error) {
	t.Errorf("write error: %s", vfs.Message(err))
}

func (t *Task) end(s Status) {
	for _, c := range t.unborn { // t ended between forking and starting it
		c.end(Status{Signal: linux.SIGKILL})
	}
	t.unborn = nil
	for i := range t.fds {
		if d := t.fds[i].d; d != nil {
			t.fds[i].d = nil
			d.unref()
		}
	}
	t.unkeep()
	if t.held != 0 {
		_ = t.K.heap.Add(-t.held)
		t.held = 0
	}
	t.K.mu.Lock()
	delete(t.K.tasks, t.PID)
	parent := t.K.tasks[t.PPID]
	t.K.mu.Unlock()
	t.Run.Release()
	t.mu.Lock()
	t.status, t.ended = s, true
	t.mu.Unlock()
	close(t.done)
	if parent != nil {
		parent.Signal(linux.SIGCHLD)
	}
}

// Abandon ends a task that was forked and will not run.
func (t *Task) Abandon() {
	t.born()
	t.end(Status{})
}

// Done is closed when the task has ended.
func (t *Task) Done() <-chan struct{} { return t.done }

// Status returns how the task ended; ok is false while it has not.
func (t *Task) Status() (s Status, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.ended
}

// Exit ends the task with a status code, from however deep in its program.
func (t *Task) Exit(code int) {
	if err := t.Flush(); err != nil {
		t.complain(err)
		code = max(code, 1)
	}
	panic(unwind{t, Status{Code: code & 0xff}})
}

// Die ends the task as if sig had killed it.
func (t *Task) Die(sig linux.Signal) { panic(unwind{t, Status{Signal: sig}}) }

// PGID returns the process group.
func (t *Task) PGID() int { return int(t.pgid.Load()) }

// SetPGID moves the task to a process group; 0 is one of its own.
func (t *Task) SetPGID(pgid int) {
	if pgid == 0 {
		pgid = t.PID
	}
	t.pgid.Store(int32(pgid))
}

// stepsPerCheck is how much work passes between two checkpoints.
const stepsPerCheck = 4096

// Step counts n units of work, about a record, a character class or a state
// each. It is cheap: call it in every loop whose length the guest chooses.
func (t *Task) Step(n int) {
	t.fuel -= n
	if uint(t.fuel) > stepsPerCheck { // below zero, or n was
		t.refuel()
	}
}

func (t *Task) refuel() {
	if t.waits.Load() {
		t.stray()
		return
	}
	used := max(0, int64(stepsPerCheck-t.fuel))
	t.fuel = stepsPerCheck
	_ = t.Must(t.Run.steps.Add(used))
	t.Check()
	t.K.share.pay(t, t.clock.lap(t.Run))
}

// Command counts a command that is executed.
func (t *Task) Command() {
	_ = t.Must(t.Run.commands.Add(1))
	t.Step(8)
}

// Iterate counts a round of a loop of the shell.
func (t *Task) Iterate() { _ = t.Must(t.Run.iterations.Add(1)) }

// Traverse counts directory entries that a tool visits.
func (t *Task) Traverse(n int) {
	_ = t.Must(t.Run.traversal.Add(int64(n)))
	t.Step(n)
}

// ToolCall counts a call of one of the caller's tools.
func (t *Task) ToolCall() { _ = t.Must(t.Run.toolCalls.Add(1)) }

// Grow counts bytes of live values. What is not given back by [Task.Shrink]
// is when the task ends.
func (t *Task) Grow(n int) {
	if n < 0 {
		t.Shrink(-n)
		return
	}
	_ = t.Must(t.K.heap.Add(int64(n)))
	t.held += int64(n)
}

// Shrink returns bytes back. A task that gives back more than it has taken would take it from what others have taken: it
// gives back what it has, and its run is over, because it is no longer known what it holds.
func (t *Task) Shrink(n int) {
	if n < 0 {
		t.Grow(-n)
		return
	}
	if int64(n) > t.held {
		t.Run.Stop(broken(t, fmt.Sprintf("%d bytes of memory were given back, and %d were taken", n, t.held)))
		n = int(t.held)
	}
	_ = t.K.heap.Add(-int64(n))
	t.held -= int64(n)
}

// Must ends the whole run if err is a limit that was reached; other errors it
// gives back.
func (t *Task) Must(err error) error {
	if err == nil {
		return nil
	}
	var e *budget.Exceeded
	if errors.As(err, &e) {
		t.Run.Stop(e)
		t.Check()
	}
	return err
}

// Bound ends the run where n is over a limit.
func (t *Task) Bound(name budget.Name, n, limit int64) {
	if n > limit {
		_ = t.Must(&budget.Exceeded{Name: name, Limit: limit})
	}
}

// Check is a checkpoint: it waits while the computer is paused or the task is
// stopped, ends the task if it is to end, and takes in signals.
func (t *Task) Check() {
	if t.waits.Load() {
		t.stray()
		return
	}
	if g := t.K.gate.Load(); g != nil {
		t.paused(g)
	}
	if t.Run.cause.Load() != nil {
		t.Die(linux.SIGKILL)
	}
	if t.pending.Load() != 0 {
		t.deliver()
	}
	for o := t.outer; o != nil; o = o.outer {
		if p := o.pending.Load(); p != 0 {
			o.dieOf(p)
		}
	}
}

func (t *Task) paused(g *gate) {
	for g != nil {
		select {
		case <-g.open:
		case <-t.wake:
			if t.pending.Load()&bit(linux.SIGKILL) != 0 || t.Run.cause.Load() != nil {
				return
			}
			continue
		}
		g = t.K.gate.Load()
	}
}

// Out returns the buffered standard output. It is flushed when the program
// returns, and before it starts another or waits for something.
func (t *Task) Out() *bufio.Writer {
	if t.out == nil {
		t.out = bufio.NewWriterSize(t.Stream(1), 32<<10)
	}
	return t.out
}

// In returns the buffered standard input.
func (t *Task) In() *bufio.Reader {
	if t.in == nil {
		t.in = bufio.NewReaderSize(t.Stream(0), 32<<10)
	}
	return t.in
}

// Flush writes out what Out holds.
func (t *Task) Flush() error {
	if t.out == nil {
		return nil
	}
	err := t.out.Flush()
	t.out.Reset(t.Stream(1))
	return err
}

// A Stream is a descriptor of a task as an [io.Reader] and [io.Writer].
type Stream struct {
	t  *Task
	fd int
}

// Stream returns descriptor fd as a reader and writer, open or not.
func (t *Task) Stream(fd int) Stream { return Stream{t, fd} }

func (s Stream) Read(p []byte) (int, error) { return s.t.Read(s.fd, p) }

func (s Stream) Write(p []byte) (int, error) { return s.t.Write(s.fd, p) }

var (
	_ io.Reader = Stream{}
	_ io.Writer = Stream{}
)
