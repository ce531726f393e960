package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/outputring"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A process is a command that was started in a box.
type process struct {
	b       *box
	run     *kernel.Run
	task    *kernel.Task
	args    []string
	dir     string
	user    string
	started time.Time
	out     *outputring.Ring
	holding holding        // of out, by the descriptors that lead there
	in      io.WriteCloser // nil without input
	tty     *kernel.TTY    // nil without a terminal
	timer   *time.Timer    // nil without a timeout

	done chan struct{}
	exit paddock.Exit // set before done is closed

	counting sync.Mutex
	counted  int64 // guarded by counting: bytes of out that were seen, and count as the heap until the end
	over     bool  // guarded by counting: the process has ended
}

// Start implements paddock.Sandbox.
func (b *box) Start(ctx context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.gate.RUnlock()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start: %w", paddock.Canceled)
	}
	p, load, err := b.prepare(cmd)
	if err != nil {
		return nil, err
	}
	h := p.attach(cmd.Output)
	b.mu.Lock()
	b.processes[p.ID()] = p
	b.mu.Unlock()
	p.begin(cmd, load)
	return h, nil
}

// prepare makes the task of a command, with all that can go wrong.
func (b *box) prepare(cmd paddock.Cmd) (*process, kernel.Program, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return nil, nil, fmt.Errorf("there is no command: %w", paddock.Invalid)
	}
	for _, a := range cmd.Args {
		if slices.Contains([]byte(a), 0) {
			return nil, nil, fmt.Errorf("an argument holds a NUL byte: %w", paddock.Invalid)
		}
	}
	if err := checkEnv(cmd.Env); err != nil {
		return nil, nil, err
	}
	if cmd.Timeout < 0 {
		return nil, nil, fmt.Errorf("a timeout is negative: %w", paddock.Invalid)
	}
	if cmd.Output.From < 0 {
		return nil, nil, fmt.Errorf("offset %d: %w", cmd.Output.From, paddock.Invalid)
	}
	user := b.user
	if cmd.User != "" {
		var err error
		if user, err = find(b.accounts, cmd.User); err != nil {
			return nil, nil, err
		}
	}
	env := maps.Clone(b.env)
	if user != b.user {
		env["HOME"], env["USER"], env["LOGNAME"] = user.home, user.name, user.name
	}
	maps.Copy(env, cmd.Env)
	list := make([]string, 0, len(env)+1)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	view := b.view(user)
	dir, err := b.chdir(&view, cmd.Dir)
	if err != nil {
		return nil, nil, err
	}
	p := &process{
		b: b, args: slices.Clone(cmd.Args), dir: dir, user: user.name, started: time.Now(),
		out: outputring.New(b.keeps()), done: make(chan struct{}),
	}
	p.run = b.kernel.NewRun()
	p.run.Within(cmd.Timeout)
	if p.task, err = p.run.NewTask(view, p.args, list); err != nil {
		p.run.End()
		return nil, nil, fmt.Errorf("start %s: the sandbox has no room for another process: %w", cmd.Args[0], paddock.Exhausted)
	}
	if err := p.connect(cmd); err != nil {
		p.abandon()
		return nil, nil, err
	}
	load, err := p.task.Load(kernel.Command{Args: p.args})
	if err != nil {
		p.abandon()
		return nil, nil, startError(cmd.Args[0], err)
	}
	return p, load, nil
}

func (p *process) abandon() {
	p.task.Abandon()
	p.run.End()
	p.closeInput()
}

func (b *box) chdir(v *vfs.View, dir string) (string, error) {
	if dir == "" {
		dir = b.dir
	}
	if err := description.CheckPath(dir); err != nil {
		return "", fmt.Errorf("directory: %w", err)
	}
	if err := v.Chdir(dir); err != nil {
		kind, words := classify(err)
		if err == linux.ENOTDIR {
			kind = paddock.NotFound
		}
		return "", fmt.Errorf("directory %s %s: %w", dir, words, kind)
	}
	return path.Clean(dir), nil
}

// startError says why a program cannot be started, with a shell's status.
func startError(name string, err error) error {
	e := &paddock.StartError{Path: name, Code: 126}
	switch {
	case errors.Is(err, linux.ENOENT):
		e.Code = 127
		e.Err = fmt.Errorf("there is no such program: %w", paddock.NotFound)
		var i *kernel.Interpreter
		if errors.As(err, &i) {
			e.Code = 126
			e.Err = fmt.Errorf("its interpreter %s does not exist: %w", i.Path, paddock.NotFound)
		}
	case errors.Is(err, linux.ENOTDIR):
		e.Code = 127
		e.Err = fmt.Errorf("there is no such program: %w", paddock.NotFound)
	case errors.Is(err, linux.EACCES), errors.Is(err, linux.EPERM):
		e.Err = fmt.Errorf("it may not be executed: %w", paddock.Denied)
	case errors.Is(err, linux.ENOEXEC):
		e.Err = fmt.Errorf("exec format error: it is neither a script with an interpreter nor one of this computer's own programs, and others do not run on this tier: %w", paddock.Unsupported)
	case errors.Is(err, linux.E2BIG):
		e.Err = fmt.Errorf("its arguments and environment are too long: %w", paddock.Invalid)
	default:
		e.Err = fmt.Errorf("%s: %w", vfs.Message(err), paddock.Invalid)
	}
	return e
}

// connect gives the task its three descriptors.
func (p *process) connect(cmd paddock.Cmd) error {
	t := p.task
	set := func(fd int, d *kernel.Desc) {
		_ = t.SetFD(fd, d, false) // 0 to 2 are always within the limit
	}
	if cmd.Terminal != nil {
		if cmd.Terminal.Rows == 0 || cmd.Terminal.Cols == 0 {
			return fmt.Errorf("a terminal of %d rows and %d columns: %w", cmd.Terminal.Rows, cmd.Terminal.Cols, paddock.Invalid)
		}
		tty, d := kernel.NewTTY(p.b.kernel, int(cmd.Terminal.Rows), int(cmd.Terminal.Cols), &sink{p: p})
		p.tty, p.in = tty, tty
		for fd := range 3 {
			set(fd, d)
		}
		tty.SetForeground(t.PGID())
		return nil
	}
	if cmd.Input {
		d, w := kernel.PipeFromOutside()
		p.in = w
		set(0, d)
	} else {
		d, err := t.Open("/dev/null", linux.O_RDONLY, 0)
		if err != nil {
			return fmt.Errorf("open /dev/null: %w", err)
		}
		set(0, d)
	}
	for fd := 1; fd <= 2; fd++ {
		p.holding.hold()
		set(fd, kernel.NewDesc(&sink{p: p, stderr: fd == 2}, "pipe"))
	}
	return nil
}

func (p *process) closeInput() {
	if p.in != nil {
		_ = p.in.Close()
	}
}

// A sink is a descriptor whose writes are the process's output.
type sink struct {
	p      *process
	stderr bool
}

func (s *sink) Read(*kernel.Task, []byte) (int, error) { return 0, linux.EBADF }

func (s *sink) Write(t *kernel.Task, b []byte) (int, error) {
	_ = t.Must(t.Run.Output().Add(int64(len(b))))
	s.p.holding.wrote()
	done := 0
	for {
		n, room := s.p.out.Offer(s.stderr, b[done:])
		_ = t.Must(s.p.count())
		if done += n; done == len(b) {
			return done, nil
		}
		if err := t.AwaitIO(room); err != nil {
			return done, err
		}
	}
}

func (s *sink) Info() (vfs.Info, error) {
	return vfs.Info{Mode: linux.S_IFIFO | 0o600, Nlink: 1}, nil
}

// Close is for the last descriptor. A terminal's sink has none.
func (s *sink) Close() { s.p.holding.drop() }

// Show keeps what a terminal shows by itself, as far as there is room.
func (s *sink) Show(p []byte) {
	_, _ = s.p.out.Offer(s.stderr, p)
	_ = s.p.count() // where the heap is full, the next Write ends the run
}

// A sandbox keeps the newest output of a process up to a part of its heap. That of a living process counts as
// the heap. That of ended ones has a bound of its own, and is a small part of what the process around the
// computer may hold beside its limits.
const (
	keptPart  = 8        // of the heap, for one process
	endedPart = 4        // of the heap, for all that have ended
	maxEnded  = 32 << 20 // bytes of all that have ended
)

// keeps returns how much output of one process is kept.
func (b *box) keeps() int {
	return int(min(outputring.DefaultKept, b.kernel.Heap().Limit()/keptPart))
}

// count counts what the kept output has grown by.
func (p *process) count() error {
	size := int64(p.out.Memory())
	p.counting.Lock()
	defer p.counting.Unlock()
	more := size - p.counted
	switch {
	case more <= 0:
		return nil
	case p.over: // what it left running still writes
		p.counted = size
		p.b.mu.Lock()
		defer p.b.mu.Unlock()
		p.b.trim()
		return nil
	}
	if err := p.b.kernel.Heap().Add(more); err != nil {
		return err
	}
	p.counted = size
	return nil
}

// settle ends the count in the heap.
func (p *process) settle() {
	p.counting.Lock()
	defer p.counting.Unlock()
	if !p.over {
		p.over = true
		_ = p.b.kernel.Heap().Add(-p.counted) // nothing is refused that is given back
	}
}

// begin lets the task run.
func (p *process) begin(cmd paddock.Cmd, program kernel.Program) {
	p.b.mu.Lock()
	bound := p.b.limits.Lifetime
	p.b.mu.Unlock()
	if cmd.Timeout > 0 && (bound == 0 || cmd.Timeout < bound) {
		bound = cmd.Timeout
	}
	if bound > 0 {
		p.timer = time.AfterFunc(bound, func() { p.run.Stop(&timedOut{bound}) })
	}
	p.task.GoThen(program, p.finish)
}

// A timedOut error stops a run that took too long.
type timedOut struct{ after time.Duration }

func (e *timedOut) Error() string { return fmt.Sprintf("it ran for longer than %v", e.after) }

// finish is called when the first task has ended.
func (p *process) finish(s kernel.Status) {
	p.exit = p.explain(s)
	p.closeInput()
	p.holding.settle(p.run, nil, false)
	if p.timer != nil {
		p.timer.Stop()
	}
	p.out.End()
	p.settle()
	close(p.done)
	p.b.keep(p)
}

// keep remembers an ended process.
func (b *box) keep(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = append(b.ended, p)
	b.trim()
}

// trim forgets the oldest of too many ended processes, or of those with too much output. The newest one stays.
// The caller holds mu.
func (b *box) trim() {
	sum := int64(0)
	for _, p := range b.ended {
		sum += int64(p.out.Memory())
	}
	most := min(b.kernel.Heap().Limit()/endedPart, maxEnded)
	for len(b.ended) > keptProcesses || sum > most && len(b.ended) > 1 {
		old := b.ended[0]
		b.ended = b.ended[1:]
		sum -= int64(old.out.Memory())
		delete(b.processes, old.ID())
		b.cpu += old.run.Busy()
	}
}

// explain says how a process ended, and why.
func (p *process) explain(s kernel.Status) paddock.Exit {
	heap := p.b.kernel.Heap()
	exit := paddock.Exit{
		Code: s.Shell(), Signal: syscall.Signal(s.Signal), Cause: paddock.Exited,
		Usage: paddock.Usage{Wall: time.Since(p.started), CPU: p.run.Busy(), Memory: 0, MemoryPeak: heap.Peak(), PIDs: 0},
	}
	cause := p.task.Run.Cause() // a session moves from run to run
	var limit *budget.Exceeded
	var late *timedOut
	var rest *uncounted
	switch {
	case cause == nil:
		if s.Signal != 0 {
			exit.Cause = paddock.Signaled
			exit.Reason = fmt.Sprintf("it was ended by the signal %d (%v)", int(s.Signal), s.Signal)
		}
		return exit
	case errors.As(cause, &late):
		exit.Cause = paddock.TimedOut
		exit.Reason = late.Error()
	case errors.As(cause, &rest): // no limit of the caller's was reached
		exit.Cause, exit.Reason = paddock.OutOfBudget, rest.Error()
	case errors.As(cause, &limit):
		exit.Cause, exit.Reason = paddock.OutOfBudget, limit.Error()
		if ofMemory(limit, heap.Limit()) {
			exit.Cause, exit.Limit, exit.Peak = paddock.OutOfMemory, heap.Limit(), min(max(heap.Peak(), limit.Limit), heap.Limit())
		}
	case errors.Is(cause, errGone{}):
		exit.Cause, exit.Reason = paddock.SandboxGone, cause.Error()
	default:
		exit.Cause, exit.Reason = paddock.KilledByPolicy, cause.Error()
	}
	exit.Signal, exit.Code = syscall.Signal(linux.SIGKILL), 128+int(linux.SIGKILL)
	return exit
}

// ofMemory reports whether a limit that was reached is that of memory. A limit of
// one value is where it leaves as much: that of memory would have been next.
func ofMemory(x *budget.Exceeded, heap int64) bool {
	switch x.Name {
	case "heap":
		return true
	case "string", "record", "input", "heredoc":
		return x.Limit >= heap
	}
	return false
}

// ID is the number of the first task.
func (p *process) ID() paddock.PID { return paddock.PID(p.task.PID) }

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Attach implements paddock.Sandbox.
func (b *box) Attach(_ context.Context, pid paddock.PID, out paddock.Output) (paddock.Process, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.gate.RUnlock()
	if out.From < 0 {
		return nil, fmt.Errorf("offset %d: %w", out.From, paddock.Invalid)
	}
	b.mu.Lock()
	p := b.processes[pid]
	b.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("process %d: %w", pid, paddock.NotFound)
	}
	return p.attach(out), nil
}

// Processes implements paddock.Sandbox.
func (b *box) Processes(context.Context) ([]paddock.ProcessInfo, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.gate.RUnlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]paddock.ProcessInfo, 0, len(b.processes))
	for _, pid := range slices.Sorted(maps.Keys(b.processes)) {
		p := b.processes[pid]
		i := paddock.ProcessInfo{PID: pid, Args: slices.Clone(p.args), Dir: p.dir, User: p.user, Terminal: p.tty != nil, Started: p.started}
		i.First, i.Next, _ = p.out.Bounds()
		if p.hasEnded() {
			exit := p.exit
			i.Exit = &exit
		}
		list = append(list, i)
	}
	return list, nil
}

// A Follower is a process whose output can be had with its offsets. The
// processes of this driver are Followers.
type Follower interface {
	Follow(ctx context.Context, from int64, to func(stderr bool, offset int64, b []byte) error) (dropped int64)
}

// A handle is a caller's hold on a process: its copy of the output.
type handle struct {
	*process
	ctx     context.Context // ends with Release
	cancel  context.CancelFunc
	copied  chan struct{}      // closed when no more output is copied
	dropped int64              // set before copied is closed
	held    *outputring.Reader // what Follow begins with, if the caller said Hold
	once    sync.Once
}

// Hold as the standard output of a command of this driver keeps its output for
// [Follower]: none is lost between the start and Follow, however much there
// is.
type Hold struct{}

// Write takes nothing; it is never called.
func (Hold) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func (p *process) attach(out paddock.Output) *handle {
	h := &handle{process: p, copied: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if out.Detached {
		close(h.copied)
		return h
	}
	r := p.out.Join(out.From)
	if _, ok := out.Stdout.(Hold); ok {
		h.held = r
		close(h.copied)
		return h
	}
	go h.copy(r, out)
	return h
}

// copyChunk is how much output is handed on at once.
const copyChunk = 32 << 10

// copy hands output to the caller's writers until the end, or until one of
// them fails, or Release.
func (h *handle) copy(r *outputring.Reader, out paddock.Output) {
	defer close(h.copied)
	defer h.out.Leave(r)
	h.dropped = h.follow(h.ctx, r, func(stderr bool, _ int64, b []byte) error {
		w := out.Stdout
		if stderr {
			w = out.Stderr
		}
		if w == nil {
			return nil
		}
		_, err := w.Write(b)
		return err
	})
}

// Follow hands the process's output, kept and live, from an offset on to a
// function with its stream and offset, until the end, an error of the function
// or the end of ctx. It tells how much was wanted and not kept. After [Hold] it
// is called once, and begins where the output was joined.
func (h *handle) Follow(ctx context.Context, from int64, to func(stderr bool, offset int64, b []byte) error) (dropped int64) {
	r := h.held
	if r == nil {
		r = h.out.Join(from)
	}
	defer h.out.Leave(r)
	return h.follow(ctx, r, to)
}

func (h *handle) follow(ctx context.Context, r *outputring.Reader, to func(stderr bool, offset int64, b []byte) error) (dropped int64) {
	var buf []byte
	for h.out.Wait(ctx, r) == nil {
		if buf == nil {
			first, next, _ := h.out.Bounds()
			buf = make([]byte, min(copyChunk, max(512, next-first)))
		}
		n, stderr, offset, err := h.out.Take(r, buf)
		if n > 0 {
			if err := to(stderr, offset, buf[:n]); err != nil {
				return 0
			}
			if n == len(buf) && n < copyChunk {
				buf = make([]byte, copyChunk)
			}
		}
		if err != nil {
			return h.out.Missed(r)
		}
	}
	return 0
}

func (h *handle) Input() io.WriteCloser {
	if h.in == nil {
		return noInput{}
	}
	return &input{h}
}

type noInput struct{}

func errNoInput() error {
	return fmt.Errorf("the command was started without input: %w", paddock.Conflict)
}

func (noInput) Write([]byte) (int, error) { return 0, errNoInput() }
func (noInput) Close() error              { return errNoInput() }

// An input is the way into a process, with errors of the contract's kinds.
type input struct{ h *handle }

func (i *input) Write(p []byte) (int, error) {
	n, err := i.h.in.Write(p)
	switch {
	case err == nil:
		return n, nil
	case i.h.b.removed():
		return n, fmt.Errorf("sandbox %s was removed: %w", i.h.b.id, paddock.Unavailable)
	case i.h.hasEnded():
		return n, fmt.Errorf("process %d has ended: %w", i.h.ID(), paddock.NotFound)
	}
	return n, fmt.Errorf("the input is closed: %w", paddock.Conflict)
}

func (i *input) Close() error {
	if i.h.tty != nil {
		i.h.tty.EOF()
		return nil
	}
	return i.h.in.Close()
}

func (b *box) removed() bool {
	b.gate.RLock()
	defer b.gate.RUnlock()
	return b.gone
}

func (h *handle) Wait(ctx context.Context) (paddock.Exit, error) {
	for _, c := range []<-chan struct{}{h.done, h.copied} {
		select {
		case <-c:
			continue
		default:
		}
		select {
		case <-c:
		case <-h.ctx.Done():
			return paddock.Exit{}, fmt.Errorf("the process was released: %w", paddock.Canceled)
		case <-ctx.Done():
			return paddock.Exit{}, ended(ctx, "wait")
		}
	}
	exit := h.exit
	exit.Dropped = h.dropped
	return exit, nil
}

// ended gives the kind of a context that ended.
func ended(ctx context.Context, what string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, paddock.Timeout)
	}
	return fmt.Errorf("%s: %w", what, paddock.Canceled)
}

func (h *handle) Signal(_ context.Context, sig syscall.Signal) error {
	if err := h.b.enter(); err != nil {
		return err
	}
	defer h.b.gate.RUnlock()
	if sig < 1 || sig > 64 {
		return fmt.Errorf("signal %d: %w", int(sig), paddock.Invalid)
	}
	if h.hasEnded() {
		return fmt.Errorf("process %d has ended: %w", h.ID(), paddock.NotFound)
	}
	if err := h.b.kernel.SignalGroup(h.task.PID, linux.Signal(sig)); err != nil {
		return fmt.Errorf("process %d has ended: %w", h.ID(), paddock.NotFound)
	}
	return nil
}

func (h *handle) Resize(_ context.Context, size paddock.Size) error {
	if h.tty == nil {
		return fmt.Errorf("process %d has no terminal: %w", h.ID(), paddock.Conflict)
	}
	if size.Rows == 0 || size.Cols == 0 {
		return fmt.Errorf("a terminal of %d rows and %d columns: %w", size.Rows, size.Cols, paddock.Invalid)
	}
	if h.hasEnded() {
		return fmt.Errorf("process %d has ended: %w", h.ID(), paddock.NotFound)
	}
	h.tty.Resize(int(size.Rows), int(size.Cols))
	return nil
}

func (h *handle) Release() {
	h.once.Do(func() {
		h.cancel()
		if h.held != nil {
			h.out.Leave(h.held) // so that the process does not wait for it
		}
	})
}

// HasInput reports whether a process of this driver was started with a way in.
func HasInput(p paddock.Process) bool {
	h, ok := p.(*handle)
	return ok && h.in != nil
}
