package process

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A job is one command of parallel.
type job struct {
	seq, slot, tries int
	records          [][]string
	args             []string // of all records
	line             string   // what the shell runs
	input            []byte   // of --pipe

	task      *kernel.Task
	out, errs *sink
	begun     time.Time
	ran       time.Duration
	deadline  time.Time
	timedOut  bool
	status    kernel.Status
}

func (j *job) failed() bool { return j.timedOut || j.status.Code != 0 || j.status.Signal != 0 }

// code is the job's status as --joblog has it.
func (j *job) code() int {
	if j.timedOut {
		return -1
	}
	return j.status.Code
}

// A sink is a job's output: kept until its turn comes, or passed on by lines.
type sink struct {
	k     *kernel.Kernel
	limit int64
	tag   string
	lines *gateway // where whole lines go at once; nil is nowhere

	mu   sync.Mutex
	b    []byte // guarded by mu
	all  int    // guarded by mu: bytes that came
	gone bool   // guarded by mu: nobody asks for it any more
}

// A gateway is a descriptor that several jobs write lines to, one at a time.
type gateway struct {
	d    *kernel.Desc
	turn chan struct{}
}

func (s *sink) Read(*kernel.Task, []byte) (int, error) { return 0, linux.EBADF }

func (s *sink) Write(t *kernel.Task, p []byte) (int, error) {
	whole, err := s.take(t, p)
	if err != nil || len(whole) == 0 {
		return len(p), err
	}
	defer func() { _ = s.k.Heap().Add(-int64(len(whole))) }()
	if err := t.AwaitIO(s.lines.turn); err != nil {
		return 0, err
	}
	defer func() { s.lines.turn <- struct{}{} }()
	if _, err := s.lines.d.File.Write(t, tagged(s.tag, whole)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// take keeps what was written, and gives the lines that are whole where those
// go on at once.
func (s *sink) take(t *kernel.Task, p []byte) (whole []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all += len(p)
	if s.gone {
		return nil, linux.EPIPE
	}
	t.Bound("string", int64(len(s.b)+len(p)), s.limit)
	_ = t.Must(s.k.Heap().Add(int64(len(p)))) // an excess ends the run
	s.b = append(s.b, p...)
	if s.lines == nil {
		return nil, nil
	}
	if i := bytes.LastIndexByte(s.b, '\n'); i >= 0 {
		whole = bytes.Clone(s.b[:i+1])
		s.b = append(s.b[:0], s.b[i+1:]...)
	}
	return whole, nil
}

// Info says that it is a pipe.
func (s *sink) Info() (vfs.Info, error) {
	return vfs.Info{Mode: linux.S_IFIFO | 0o600, Nlink: 1}, nil
}

// Close has nothing to do: the job's end is what counts.
func (s *sink) Close() {}

// drop forgets what is kept, and all that is still to come.
func (s *sink) drop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone {
		_ = s.k.Heap().Add(-int64(len(s.b)))
		s.b, s.gone = nil, true
	}
}

func (s *sink) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b
}

// tagged puts a tag before each line.
func tagged(tag string, b []byte) []byte {
	if tag == "" || len(b) == 0 {
		return b
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	out := make([]byte, 0, len(b)+len(lines)*(len(tag)+1))
	for _, l := range lines {
		if len(l) > 0 {
			out = append(append(append(out, tag...), '\t'), l...)
		}
	}
	return out
}

// A block is what a job of --pipe reads.
type block struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

func (b *block) Read(_ *kernel.Task, p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.b)
	b.b = b.b[n:]
	return n, nil
}

func (b *block) Write(*kernel.Task, []byte) (int, error) { return 0, linux.EBADF }

// Info says that it is a pipe.
func (b *block) Info() (vfs.Info, error) {
	return vfs.Info{Mode: linux.S_IFIFO | 0o600, Nlink: 1}, nil
}

// Close has nothing to do.
func (b *block) Close() {}

// start runs a job. EAGAIN is that there are too many tasks for now.
func (p *parallel) start(j *job) error {
	t := p.t
	j.slot = p.freeSlot()
	j.args = flat(j.records)
	j.line = p.command(j)
	if p.verbose == 't' {
		p.tell(j.line)
	}
	if p.verbose == 'v' && p.ungroup {
		_, _ = t.Write(1, []byte(j.line+"\n")) // a reader that is gone ends it
	}
	env := make([]string, 0, len(t.Env)+3)
	for _, e := range t.Env {
		if !strings.HasPrefix(e, "PARALLEL_SEQ=") && !strings.HasPrefix(e, "PARALLEL_JOBSLOT=") && !strings.HasPrefix(e, "PARALLEL_PID=") {
			env = append(env, e)
		}
	}
	env = append(env, "PARALLEL_SEQ="+strconv.Itoa(j.seq), "PARALLEL_JOBSLOT="+strconv.Itoa(j.slot), "PARALLEL_PID="+strconv.Itoa(t.PID))
	if !p.ungroup {
		tag := p.tagOf(j)
		limit := t.K.Limits.Input
		j.out, j.errs = &sink{k: t.K, limit: limit}, &sink{k: t.K, limit: limit}
		if p.byLine && p.results == "" && !p.keep {
			j.out.lines, j.out.tag = p.outs[0], tag
			j.errs.lines, j.errs.tag = p.outs[1], tag
		}
	}
	child, err := t.Spawn(kernel.Command{Args: []string{p.shell, "-c", j.line}, Env: env}, func(c *kernel.Task) error { return p.prepare(c, j) })
	if err != nil {
		j.out.drop()
		j.errs.drop()
		return err
	}
	j.task, j.begun = child, t.K.Now()
	p.last = time.Now()
	if p.timeout > 0 {
		j.deadline = p.last.Add(p.timeout)
	}
	p.first = false
	p.running = append(p.running, j)
	return nil
}

// prepare gives a job its descriptors.
func (p *parallel) prepare(c *kernel.Task, j *job) error {
	if p.dir != "" {
		if err := c.View.Chdir(p.dir); err != nil {
			return err
		}
	}
	switch {
	case j.input != nil:
		if err := c.SetFD(0, kernel.NewDesc(&block{b: j.input}, "pipe"), false); err != nil {
			return err
		}
	case p.deaf || !p.first:
		if d, err := c.Open("/dev/null", linux.O_RDONLY, 0); err == nil {
			if err := c.SetFD(0, d, false); err != nil {
				return err
			}
		}
	}
	if p.ungroup {
		return nil
	}
	if err := c.SetFD(1, kernel.NewDesc(j.out, "pipe"), false); err != nil {
		return err
	}
	return c.SetFD(2, kernel.NewDesc(j.errs, "pipe"), false)
}

// freeSlot gives the lowest number that no running job has.
func (p *parallel) freeSlot() int {
	used := make([]bool, len(p.running)+1)
	for _, j := range p.running {
		if j.slot <= len(used) {
			used[j.slot-1] = true
		}
	}
	for i, u := range used {
		if !u {
			return i + 1
		}
	}
	return len(used)
}

// reap waits for a job to end, or for a deadline, and deals with it.
func (p *parallel) reap(deadline time.Time) {
	tasks := make([]*kernel.Task, len(p.running))
	for i, j := range p.running {
		tasks[i] = j.task
		if !j.deadline.IsZero() && !j.timedOut && (deadline.IsZero() || j.deadline.Before(deadline)) {
			deadline = j.deadline
		}
	}
	i, err := p.t.WaitAny(deadline, tasks...)
	if err == linux.ETIMEDOUT {
		now := time.Now()
		for _, j := range p.running {
			if !j.deadline.IsZero() && !j.timedOut && !now.Before(j.deadline) {
				j.timedOut = true
				p.t.Errorf("Warning: This job was killed because it timed out:")
				p.t.Errorf("Warning: %s", j.line)
				p.kill(j)
			}
		}
		return
	}
	if err != nil {
		p.stop, p.broken = true, true
		return
	}
	j := p.running[i]
	p.running = append(p.running[:i], p.running[i+1:]...)
	j.status, _ = j.task.Status()
	j.ran = p.t.K.Now().Sub(j.begun)
	p.ended(j)
}

// kill ends a job and what it started.
func (p *parallel) kill(j *job) {
	family := map[int]bool{j.task.PID: true}
	for _, o := range p.t.K.Tasks() { // by number: children come after parents
		if family[o.PPID] {
			family[o.PID] = true
		}
	}
	for _, o := range p.t.K.Tasks() {
		if family[o.PID] {
			o.Signal(linux.SIGTERM)
		}
	}
	j.task.Signal(linux.SIGKILL) // a shell that ignores it ends too
}

// ended deals with a job that has.
func (p *parallel) ended(j *job) {
	if j.failed() && !p.stop {
		if j.tries++; j.tries < p.retries {
			j.out.drop()
			j.errs.drop()
			j.timedOut, j.deadline = false, time.Time{}
			p.again = append(p.again, j)
			return
		}
	}
	p.count++
	if j.failed() {
		p.fails++
	}
	p.log(j)
	if p.keep {
		p.held[j.seq] = j
		p.release()
	} else {
		p.show(j)
	}
	p.halted(j)
}

// release shows the jobs whose turn has come.
func (p *parallel) release() {
	for {
		j, ok := p.held[p.turn]
		if !ok {
			return
		}
		delete(p.held, p.turn)
		p.turn++
		p.show(j)
	}
}

// show writes the output of a job that has ended.
func (p *parallel) show(j *job) {
	p.t.Shrink(len(j.input))
	j.input = nil
	if p.ungroup {
		return
	}
	defer j.out.drop()
	defer j.errs.drop()
	out, errs := j.out.bytes(), j.errs.bytes()
	if p.results != "" {
		p.save(j, out, errs)
	}
	tag := p.tagOf(j)
	if p.verbose == 'v' && j.out.lines == nil {
		_, _ = p.t.Write(1, tagged(tag, []byte(j.line+"\n"))) // a reader that is gone ends it
	}
	if len(out) > 0 {
		_, _ = p.t.Write(1, tagged(tag, out))
	}
	if len(errs) > 0 {
		_, _ = p.t.Write(2, tagged(tag, errs))
	}
}

// halted ends the run where --halt says so.
func (p *parallel) halted(j *job) {
	h := p.halt
	if h.when == "" || p.stop {
		return
	}
	var n int
	switch h.what {
	case "fail":
		n = p.fails
	case "success":
		n = p.count - p.fails
	default:
		n = p.count
	}
	same := h.what == "done" || j.failed() == (h.what == "fail")
	if !same || h.percent == 0 && n < h.number || h.percent > 0 && (n < 3 || n*100 < h.percent*p.count) {
		return
	}
	p.stop = true
	if h.what == "fail" || h.what == "done" {
		p.final = j.status.Shell()
		if j.timedOut {
			p.final = 255
		}
	}
	p.hasFinal = true
	what := map[string]string{"fail": "failed", "success": "succeeded", "done": "finished"}[h.what]
	p.t.Errorf("This job %s:\n%s", what, j.line)
	if h.when == "now" {
		for _, o := range p.running {
			p.kill(o)
		}
		return
	}
	if len(p.running) > 0 {
		p.t.Errorf("Starting no more jobs. Waiting for %d jobs to finish.", len(p.running))
	}
}

// log writes a line of --joblog.
func (p *parallel) log(j *job) {
	if p.journal == nil {
		return
	}
	received := 0
	if j.out != nil {
		j.out.mu.Lock()
		received = j.out.all
		j.out.mu.Unlock()
	}
	line := fmt.Sprintf("%d\t:\t%.3f\t%10.3f\t%d\t%d\t%d\t%d\t%s\n", j.seq, float64(j.begun.UnixMilli())/1000, j.ran.Seconds(),
		len(j.input), received, j.code(), int(j.status.Signal), strings.ReplaceAll(j.line, "\n", "\x00"))
	if _, err := p.journal.Write([]byte(line)); err != nil {
		p.t.Errorf("Error: Cannot write to %s: %s.", p.logName, reason(err))
		p.stop, p.broken = true, true
	}
}

func (p *parallel) tell(line string) {
	_ = p.t.Flush() // the end of the program tells of it
	_, _ = p.t.Write(2, []byte(line+"\n"))
}

func flat(records [][]string) []string {
	if len(records) == 1 {
		return records[0]
	}
	var list []string
	for _, r := range records {
		list = append(list, r...)
	}
	return list
}
