package envd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// Bounds of output on its way to a reader.
const (
	pieceSize    = 32 << 10
	ptyPieceSize = 16 << 10
	piecesAhead  = 16 // of one reader
)

// A process that ended can still be connected to for a while; so can only so many.
const (
	keptFor  = 30 * time.Second
	maxEnded = 1000
)

// noPID is the first number given to what never was a process: no kernel counts
// that far.
const noPID = 1 << 30

// A process is one that the API knows.
type process struct {
	b   *Box
	pid uint32
	tag *string
	pty bool
	p   paddock.Process // nil of a program that could not be started

	input chan piece // nil without one; what the pump is to write

	mu      sync.Mutex
	config  *envdpb.ProcessConfig // guarded by mu; nil once it has ended, and where it is long
	readers map[*reader]struct{}  // guarded by mu; nil once it has ended
	end     ending                // guarded by mu; until ended is closed
	ended   chan struct{}
}

// An ending says how a process ended: with an event, or with an error in its place.
type ending struct {
	event *envdpb.ProcessEvent_End
	err   error
	late  bool // its time was over: the stream that set it is told so in place of the event
}

// A reader is one stream that a process's output goes to.
type reader struct {
	data chan *envdpb.ProcessEvent_Data
	left chan struct{} // closed when nobody reads any more
}

func newReader() *reader {
	return &reader{data: make(chan *envdpb.ProcessEvent_Data, piecesAhead), left: make(chan struct{})}
}

// A writer is one of a process's outputs.
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

// output says where the output of a command goes.
func (p *process) output() paddock.Output {
	if p.pty {
		return paddock.Output{Stdout: &writer{p, terminal, ptyPieceSize}}
	}
	return paddock.Output{Stdout: &writer{p, stdout, pieceSize}, Stderr: &writer{p, stderr, pieceSize}}
}

// Write hands output to who reads now, and waits for them.
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

// join adds a reader. One of a process that has ended finds its end only.
func (p *process) join(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers != nil {
		p.readers[r] = struct{}{}
	}
}

// leave takes a reader away: the process waits for it no longer.
func (p *process) leave(r *reader) {
	close(r.left)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.readers, r)
}

// finish notes the end.
func (p *process) finish(e ending) {
	p.mu.Lock()
	p.end = e
	p.readers, p.config = nil, nil
	p.mu.Unlock()
	close(p.ended)
}

// info describes a process that runs; nil one that does not. What it was started with is
// as the sandbox tells it where that was not kept.
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

// errLetGo is that the API was closed while a process ran.
var errLetGo = fmt.Errorf("the process was let go: %w", paddock.Canceled)

// watch waits for the end of a process, and forgets it a while later.
func (p *process) watch() {
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

// linger keeps what ended for who comes late.
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

// endOf says an exit as E2B does, which says it as Go does.
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

// A table is the processes that the API knows.
type table struct {
	ended atomic.Int64 // those that are kept for who comes late

	mu    sync.Mutex
	byPID map[uint32]*process // guarded by mu
	next  uint32              // guarded by mu; a number for what never was a process
}

func (t *table) init() {
	t.byPID, t.next = map[uint32]*process{}, noPID
}

func (t *table) add(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.p == nil {
		p.pid = t.next
		t.next++
	}
	t.byPID[p.pid] = p
}

// drop forgets a process, unless another has its number now.
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

// release lets go of all processes, which go on.
func (t *table) release() {
	for _, p := range t.all() {
		if p.p != nil {
			p.p.Release()
		}
	}
}

// maxConfig is how long what a process was started with may be, in bytes, to be kept for
// lists while it runs. It is kept when its client has gone, too.
const maxConfig = 16 << 10

// newProcess makes one that is about to be started or joined.
func (b *Box) newProcess(config *envdpb.ProcessConfig, tag *string, pty bool) *process {
	if proto.Size(config) > maxConfig {
		config = nil
	}
	return &process{
		b: b, tag: tag, config: config, pty: pty,
		readers: map[*reader]struct{}{}, ended: make(chan struct{}),
	}
}

// track follows a process that runs.
func (b *Box) track(p *process, run paddock.Process, input bool) {
	p.p, p.pid = run, uint32(run.ID())
	if input {
		p.input = make(chan piece)
	}
	b.processes.add(p)
	if !b.tasks.begin() {
		run.Release()
		p.finish(ending{err: errLetGo})
		return
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
}

// signal sends one.
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
