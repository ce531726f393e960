package envd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// Bounds of output that a reader has not accepted.
const (
	pieceSize    = 32 << 10
	ptyPieceSize = 16 << 10
	piecesAhead  = 1 // of one reader
)

// maxRunning bounds the running processes that are followed. It is above the default limit of
// processes of every tier, so that only a hostile agent reaches it.
const maxRunning = 4096

// Bounds of ended processes that can still be connected to.
const (
	keptFor  = 30 * time.Second
	maxEnded = 1000
)

// noPID is the first number for a program that was never started. No kernel uses such a
// large PID, and none is accepted from an agent.
const noPID = 1 << 30

// A process is a process known to the API.
type process struct {
	b   *Box
	pid uint32
	tag *string
	pty bool
	p   paddock.Process // nil if the program could not be started

	input chan piece    // input for pump to write; nil without input
	turn  chan struct{} // has an element while an input is being written

	mu      sync.Mutex
	config  *envdpb.ProcessConfig // guarded by mu; nil after the end, or if it is large
	readers map[*reader]struct{}  // guarded by mu; nil after the end
	end     ending                // guarded by mu until ended is closed
	ended   chan struct{}
}

// An ending is how a process ended: an event, or an error instead.
type ending struct {
	event *envdpb.ProcessEvent_End
	err   error
	late  bool // timed out: the stream that set the timeout gets an error instead of the event
}

// A reader is one stream that receives the output of a process.
type reader struct {
	data chan *envdpb.ProcessEvent_Data
	left chan struct{} // closed when the stream ends
}

func newReader() *reader {
	return &reader{data: make(chan *envdpb.ProcessEvent_Data, piecesAhead), left: make(chan struct{})}
}

// A writer is one of the outputs of a process.
type writer struct {
	p    *process
	wrap func([]byte) *envdpb.ProcessEvent_Data
	most int
}

func stdout(b []byte) *envdpb.ProcessEvent_Data {
	return &envdpb.ProcessEvent_Data{Output: &envdpb.ProcessEvent_Data_Stdout{Stdout: b}}
}

func stderr(b []byte) *envdpb.ProcessEvent_Data {
	return &envdpb.ProcessEvent_Data{Output: &envdpb.ProcessEvent_Data_Stderr{Stderr: b}}
}

func terminal(b []byte) *envdpb.ProcessEvent_Data {
	return &envdpb.ProcessEvent_Data{Output: &envdpb.ProcessEvent_Data_Pty{Pty: b}}
}

// output returns the Output of a command.
func (p *process) output() paddock.Output {
	if p.pty {
		return paddock.Output{Stdout: &writer{p, terminal, ptyPieceSize}}
	}
	return paddock.Output{Stdout: &writer{p, stdout, pieceSize}, Stderr: &writer{p, stderr, pieceSize}}
}

// Write sends output to all readers, and waits for them.
func (w *writer) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), w.most)
		w.p.emit(w.wrap(append([]byte(nil), rest[:n]...)))
		rest = rest[n:]
	}
	return len(b), nil
}

func (p *process) emit(data *envdpb.ProcessEvent_Data) {
	p.mu.Lock()
	now := make([]*reader, 0, len(p.readers))
	for r := range p.readers {
		now = append(now, r)
	}
	p.mu.Unlock()
	for _, r := range now {
		select {
		case r.data <- data:
		case <-r.left:
		case <-p.b.ctx.Done():
		}
	}
}

// join adds a reader. After the end of the process, the reader gets only the end.
func (p *process) join(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers != nil {
		p.readers[r] = struct{}{}
	}
}

// leave removes a reader, so that the process does not wait for it.
func (p *process) leave(r *reader) {
	close(r.left)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.readers, r)
}

// finish notes the end, once.
func (p *process) finish(e ending) {
	if p.p != nil {
		p.b.free()
	}
	p.mu.Lock()
	p.end = e
	p.readers, p.config = nil, nil
	p.mu.Unlock()
	close(p.ended)
}

// info describes a running process, and returns nil for an ended one. If the config was not
// kept, told has the sandbox's description.
func (p *process) info(told paddock.ProcessInfo) *envdpb.ProcessInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers == nil {
		return nil
	}
	config := p.config
	if config == nil {
		config = configOf(told)
	}
	return &envdpb.ProcessInfo{Config: config, Pid: p.pid, Tag: p.tag}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) ending() ending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
}

// errLetGo reports that the API was closed while a process ran.
var errLetGo = fmt.Errorf("the process was released: %w", paddock.Canceled)

// watch waits for the end of a process, and drops it some time later. It releases it then, because an input that the
// sandbox never answers would keep pump for ever.
func (p *process) watch() {
	defer p.p.Release()
	exit, err := p.p.Wait(p.b.ctx)
	switch {
	case err != nil && p.b.ctx.Err() != nil:
		p.finish(ending{err: errLetGo})
	case err != nil:
		p.finish(ending{err: err})
	default:
		p.finish(endOf(exit))
	}
	p.linger()
}

// linger keeps an ended process for some time, so that a late client can connect.
func (p *process) linger() {
	defer p.b.processes.drop(p)
	defer p.b.processes.ended.Add(-1)
	if p.b.processes.ended.Add(1) > maxEnded {
		return
	}
	t := time.NewTimer(keptFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.b.ctx.Done():
	}
}

// endOf converts an exit to the event of E2B's agent, which uses the texts of Go's os/exec.
func endOf(exit paddock.Exit) ending {
	switch {
	case exit.Cause == paddock.TimedOut:
		text := "signal: killed"
		return ending{event: &envdpb.ProcessEvent_End{ExitCode: -1, Status: text, Error: &text}, late: true}
	case exit.Cause == paddock.SandboxGone:
		return ending{err: errGone}
	case exit.Signal != 0:
		text := "signal: " + exit.Signal.String()
		why := text
		if exit.Reason != "" && exit.Cause != paddock.Signaled {
			why += ": " + exit.Reason
		}
		return ending{event: &envdpb.ProcessEvent_End{ExitCode: -1, Status: text, Error: &why}}
	}
	text := fmt.Sprintf("exit status %d", exit.Code)
	end := &envdpb.ProcessEvent_End{ExitCode: int32(exit.Code), Exited: true, Status: text}
	if exit.Code != 0 {
		end.Error = &text
	}
	return ending{event: end}
}

// A table has the processes known to the API.
type table struct {
	ended atomic.Int64 // number of ended processes in the table

	mu      sync.Mutex
	byPID   map[uint32]*process // guarded by mu
	next    uint32              // guarded by mu; next number for a program that was not started
	running int                 // guarded by mu; with those about to be started
}

func (t *table) init() {
	t.byPID, t.next = map[uint32]*process{}, noPID
}

// reserve counts a process that is about to be started or attached, until free.
func (t *table) reserve() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running >= maxRunning {
		return fmt.Errorf("%d processes run, which is the maximum: %w", t.running, paddock.Exhausted)
	}
	t.running++
	return nil
}

func (t *table) free() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
}

// add adds a process. It reports false if another process with the number runs.
func (t *table) add(p *process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.p == nil {
		p.pid = t.next
		t.next++
	}
	if other := t.byPID[p.pid]; other != nil && !other.hasEnded() {
		return false
	}
	t.byPID[p.pid] = p
	return true
}

// drop removes a process, unless another one now has its number.
func (t *table) drop(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byPID[p.pid] == p {
		delete(t.byPID, p.pid)
	}
}

func (t *table) all() []*process {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*process, 0, len(t.byPID))
	for _, p := range t.byPID {
		list = append(list, p)
	}
	return list
}

func (t *table) get(pid uint32) *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byPID[pid]
}

// release releases all processes, which continue.
func (t *table) release() {
	for _, p := range t.all() {
		if p.p != nil {
			p.p.Release()
		}
	}
}

// maxConfig bounds the memory of the config of a process to keep for lists. It is kept until
// the process ends.
const maxConfig = 16 << 10

// newProcess returns a process that is about to be started or attached.
func (b *Box) newProcess(config *envdpb.ProcessConfig, tag *string, pty bool) *process {
	if costOfMessage(config.ProtoReflect()) > maxConfig {
		config = nil
	}
	return &process{
		b: b, tag: tag, config: config, pty: pty,
		readers: map[*reader]struct{}{}, ended: make(chan struct{}),
	}
}

// track follows a running process that was reserved. It refuses a number that an agent must
// not give.
func (b *Box) track(p *process, run paddock.Process, input bool) error {
	id := run.ID()
	if id < 1 || id >= noPID {
		return fmt.Errorf("the sandbox started a process with the number %d: %w", id, paddock.Unavailable)
	}
	p.p, p.pid = run, uint32(id)
	if input {
		p.input, p.turn = make(chan piece), make(chan struct{}, 1)
	}
	if !b.processes.add(p) {
		return fmt.Errorf("the sandbox started a process with the number %d of one that runs: %w", id, paddock.Unavailable)
	}
	if !b.tasks.begin() {
		run.Release()
		p.finish(ending{err: errLetGo})
		return nil
	}
	if input && b.tasks.begin() {
		go func() {
			defer b.tasks.end()
			p.pump(run.Input())
		}()
	}
	go func() {
		defer b.tasks.end()
		p.watch()
	}()
	return nil
}

// signal sends a signal.
func (p *process) signal(ctx context.Context, sig syscall.Signal) error {
	if p.p == nil || p.hasEnded() {
		return unknownPID(p.pid)
	}
	err := p.p.Signal(ctx, sig)
	if paddock.KindOf(err) == paddock.NotFound && err != nil {
		p.b.alive(ctx, err)
		return unknownPID(p.pid)
	}
	return err
}

func unknownPID(pid uint32) error { return missing(fmt.Sprintf("process with pid %d not found", pid)) }
