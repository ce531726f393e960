package execserver

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

type startParams struct {
	ProcessID string   `json:"processId"`
	Argv      []string `json:"argv"`
	Cwd       string   `json:"cwd"`
	EnvPolicy *struct {
		Set map[string]string `json:"set"`
	} `json:"envPolicy"`
	Env                   map[string]string `json:"env"`
	TTY                   bool              `json:"tty"`
	PipeStdin             bool              `json:"pipeStdin"`
	Arg0                  *string           `json:"arg0"`
	Sandbox               *wish             `json:"sandbox"`
	EnforceManagedNetwork bool              `json:"enforceManagedNetwork"`
}

// A chunk is output of a process.
type chunk struct {
	Seq    uint64 `json:"seq"`
	Stream string `json:"stream"`
	Chunk  []byte `json:"chunk"`
}

// A process is one that the client started, or that is being started.
type process struct {
	id     string
	server *server
	input  bool

	mu      sync.Mutex
	changed chan struct{} // closed and made anew with each change
	proc    paddock.Process
	stop    bool // it was terminated before it had started
	chunks  []chunk
	kept    int    // cost of chunks
	seq     uint64 // of the last event
	exited  bool
	closed  bool
	code    int
	failure string
	pending int // cost of the input that waits
	queue   [][]byte
	feeding bool
}

func (p *startParams) check() error {
	switch {
	case p.ProcessID == "" || len(p.ProcessID) > 256:
		return problem{invalidParams, "processId is empty or too long"}
	case len(p.Argv) == 0 || p.Argv[0] == "":
		return problem{invalidParams, "argv is empty"}
	case p.Arg0 != nil:
		return problem{invalidRequest, "arg0: a box starts a program by its own name"}
	case p.EnforceManagedNetwork:
		return problem{invalidRequest, "Codex's own rules of the network are not kept in a box: leave them out, and use --allow of paddock exec-server"}
	case p.EnvPolicy == nil:
		return problem{invalidRequest, "this Codex sends variables of its own environment into the box: use version 0.171 or a later one"}
	}
	return p.Sandbox.check()
}

// start claims the name of a process; what is left starts it.
func (s *server) start(p startParams) (later, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	dir, err := filePath(p.Cwd)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.processes[p.ProcessID]; ok {
		return nil, problem{invalidRequest, "there is a process with this processId"}
	}
	if len(s.processes)-len(s.ended) >= maxProcesses {
		return nil, problem{invalidRequest, "too many processes run: end some"}
	}
	one := &process{id: p.ProcessID, server: s, input: p.TTY || p.PipeStdin, changed: make(chan struct{})}
	s.processes[p.ProcessID] = one
	// Codex's variables are few and say how programs behave. Those of the host it keeps for programs of the host.
	env := maps.Clone(p.EnvPolicy.Set)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, p.Env)
	cmd := paddock.Cmd{Args: p.Argv, Dir: dir, Env: env, Input: one.input}
	cmd.Output = paddock.Output{Stdout: stream{one, "stdout"}, Stderr: stream{one, "stderr"}}
	if p.TTY {
		cmd.Terminal = &paddock.Size{Rows: 24, Cols: 80}
		cmd.Output.Stdout = stream{one, "pty"}
	}
	started := make(chan struct{}) // output comes after the answer
	cmd.Output.Stdout, cmd.Output.Stderr = after{started, cmd.Output.Stdout}, after{started, cmd.Output.Stderr}
	return func(ctx context.Context) (any, error) {
		proc, err := s.Sandbox.Start(ctx, cmd)
		if err != nil {
			s.forget(one.id)
			return nil, err
		}
		s.work.Go(func() { <-started; one.follow(ctx) })
		if one.begun(proc) {
			one.give(ctx)
		}
		return startResult{one.id, "none", func() { close(started) }}, nil
	}, nil
}

// A startResult is the answer to a start. Output comes after it.
type startResult struct {
	ProcessID   string `json:"processId"`
	SandboxType string `json:"sandboxType"`
	sent        func()
}

// give ends a process that was terminated while it was being started. Where the server itself ends, nobody waits for it.
func (p *process) give(ctx context.Context) {
	ending := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	_ = p.proc.Signal(ctx, syscall.SIGKILL) // it may have ended
	if ending {
		p.proc.Release()
	}
}

// An after writes when something has happened.
type after struct {
	when <-chan struct{}
	io.Writer
}

func (a after) Write(b []byte) (int, error) {
	<-a.when
	return a.Writer.Write(b)
}

func (s *server) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.processes, id)
}

// find returns a process, or nil.
func (s *server) find(id string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[id]
}

// begun tells the process that it runs. It reports whether it is to end at once.
func (p *process) begun(proc paddock.Process) (stop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proc = proc
	p.feed()
	return p.stop
}

// A stream is one stream of a process's output.
type stream struct {
	*process
	name string
}

func (s stream) Write(b []byte) (int, error) {
	const most = 64 << 10
	for rest := b; len(rest) > 0; {
		n := min(len(rest), most)
		s.output(s.name, append([]byte(nil), rest[:n]...))
		rest = rest[n:]
	}
	return len(b), nil
}

// cost is what the host holds for a piece. The box chooses how small pieces of output are, the model those of input.
func cost(piece []byte) int { return len(piece) + pieceCost }

// output keeps a piece of output, and sends it. The newest is kept.
func (p *process) output(name string, b []byte) {
	p.mu.Lock()
	p.seq++
	c := chunk{p.seq, name, b}
	p.chunks, p.kept = append(p.chunks, c), p.kept+cost(b)
	for p.kept > maxKept {
		p.kept -= cost(p.chunks[0].Chunk)
		p.chunks[0] = chunk{} // the list's memory lives on
		p.chunks = p.chunks[1:]
	}
	p.change()
	p.mu.Unlock()
	p.server.send(notification{"process/output", map[string]any{"processId": p.id, "seq": c.Seq, "stream": name, "chunk": b}})
}

// change wakes who waits. The lock is held.
func (p *process) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// follow stays with a process to its end. Nothing is written to its streams after that.
func (p *process) follow(ctx context.Context) {
	exit, err := p.proc.Wait(context.WithoutCancel(ctx))
	p.mu.Lock()
	p.exited, p.closed, p.code = true, true, exit.Code
	if err != nil {
		p.code, p.failure = 255, problemOf(err).Message
	} else if exit.Cause != paddock.Exited && exit.Reason != "" {
		p.failure = exit.Reason
	}
	p.seq += 2
	last, code := p.seq, p.code
	p.queue, p.pending = nil, 0
	p.change()
	p.mu.Unlock()
	p.server.send(notification{"process/exited", map[string]any{"processId": p.id, "seq": last - 1, "exitCode": code, "sandboxDenied": false}})
	p.server.send(notification{"process/closed", map[string]any{"processId": p.id, "seq": last}})
	p.server.over(p.id)
}

// over notes that a process has ended, and forgets the oldest that did.
func (s *server) over(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = append(s.ended, id); len(s.ended) > maxEnded {
		delete(s.processes, s.ended[0])
		s.ended = s.ended[1:]
	}
}

type readParams struct {
	ProcessID string  `json:"processId"`
	AfterSeq  *uint64 `json:"afterSeq"`
	MaxBytes  *int    `json:"maxBytes"`
	WaitMs    *int64  `json:"waitMs"`
}

type readResult struct {
	Chunks        []chunk `json:"chunks"`
	NextSeq       uint64  `json:"nextSeq"`
	Exited        bool    `json:"exited"`
	ExitCode      *int    `json:"exitCode"`
	Closed        bool    `json:"closed"`
	Failure       *string `json:"failure"`
	SandboxDenied bool    `json:"sandboxDenied"`
}

// read gives output that is kept, and may wait for more.
func (s *server) read(r readParams) (later, error) {
	p := s.find(r.ProcessID)
	if p == nil {
		return nil, problem{invalidRequest, "there is no such process"}
	}
	return func(ctx context.Context) (any, error) {
		var wait time.Duration
		if r.WaitMs != nil {
			wait = time.Duration(min(max(*r.WaitMs, 0), maxWait.Milliseconds())) * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		for {
			got, changed := p.since(r)
			if len(got.Chunks) > 0 || got.Exited {
				return got, nil
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return got, nil
			}
		}
	}, nil
}

func (p *process) since(r readParams) (readResult, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := readResult{Chunks: []chunk{}, NextSeq: p.seq + 1, Exited: p.exited, Closed: p.closed}
	if p.exited {
		code := p.code
		got.ExitCode = &code
	}
	if p.failure != "" {
		text := p.failure
		got.Failure = &text
	}
	room := maxKept
	if r.MaxBytes != nil {
		room = min(max(*r.MaxBytes, 0), maxKept)
	}
	for _, c := range p.chunks {
		if r.AfterSeq != nil && c.Seq <= *r.AfterSeq {
			continue
		}
		if len(got.Chunks) > 0 && len(c.Chunk) > room { // the first is given in any case
			got.NextSeq = c.Seq
			break
		}
		room -= len(c.Chunk)
		got.Chunks = append(got.Chunks, c)
	}
	return got, p.changed
}

type writeParams struct {
	ProcessID string `json:"processId"`
	Chunk     []byte `json:"chunk"`
}

// write queues input in the order in which it comes.
func (s *server) write(w writeParams) (later, error) {
	status := func(text string) (later, error) { return done(map[string]string{"status": text}), nil }
	p := s.find(w.ProcessID)
	if p == nil {
		return status("unknownProcess")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.input || p.exited:
		return status("stdinClosed")
	case len(w.Chunk) == 0:
		return status("accepted")
	case p.pending+cost(w.Chunk) > maxPending:
		return nil, problem{invalidRequest, "the process does not take its input"}
	}
	p.queue, p.pending = append(p.queue, w.Chunk), p.pending+cost(w.Chunk)
	p.feed()
	return status("accepted")
}

// feed has what is queued written, by one goroutine, once the process runs. The lock is held.
func (p *process) feed() {
	if p.proc == nil || p.feeding || len(p.queue) == 0 {
		return
	}
	p.feeding = true
	p.server.work.Go(func() {
		for {
			p.mu.Lock()
			if len(p.queue) == 0 {
				p.feeding = false
				p.mu.Unlock()
				return
			}
			b := p.queue[0]
			p.queue[0] = nil // the list's memory lives on
			p.queue = p.queue[1:]
			p.pending -= cost(b)
			p.mu.Unlock()
			if _, err := p.proc.Input().Write(b); err != nil { // it does not read any more
				p.mu.Lock()
				p.input, p.queue, p.pending, p.feeding = false, nil, 0, false
				p.mu.Unlock()
				return
			}
		}
	})
}

type signalParams struct {
	ProcessID string `json:"processId"`
	Signal    string `json:"signal"`
}

func (s *server) signal(r signalParams) (later, error) {
	if r.Signal != "interrupt" {
		return nil, problem{invalidParams, "the signal is not known"}
	}
	return func(ctx context.Context) (any, error) {
		p := s.find(r.ProcessID)
		if p == nil {
			return nil, problem{invalidRequest, "there is no such process"}
		}
		p.mu.Lock()
		proc := p.proc
		p.mu.Unlock()
		if proc == nil {
			return nil, problem{invalidRequest, "the process is being started"}
		}
		if err := proc.Signal(ctx, syscall.SIGINT); err != nil && !errors.Is(err, paddock.NotFound) {
			return nil, err
		}
		return struct{}{}, nil
	}, nil
}

func (s *server) terminate(r signalParams) (later, error) {
	return func(ctx context.Context) (any, error) {
		p := s.find(r.ProcessID)
		if p == nil {
			return map[string]bool{"running": false}, nil
		}
		running, err := p.kill(ctx)
		return map[string]bool{"running": running}, err
	}, nil
}

// kill ends a process, also one that is being started.
func (p *process) kill(ctx context.Context) (running bool, err error) {
	p.mu.Lock()
	p.stop = true
	proc, exited := p.proc, p.exited
	p.mu.Unlock()
	if exited || proc == nil {
		return !exited, nil
	}
	err = proc.Signal(ctx, syscall.SIGKILL)
	if errors.Is(err, paddock.NotFound) {
		return false, nil
	}
	return true, err
}

// end ends all processes. One that cannot be ended is left to the end of the box.
func (s *server) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	s.mu.Lock()
	var list []*process
	for _, p := range s.processes {
		list = append(list, p)
	}
	s.mu.Unlock()
	for _, p := range list {
		_, _ = p.kill(ctx)
		p.mu.Lock()
		proc := p.proc
		p.mu.Unlock()
		if proc != nil {
			proc.Release() // what waits for it goes on
		}
	}
}

// ShellOf finds the shell of a box: bash if it is there, else sh.
func ShellOf(ctx context.Context, sb paddock.Sandbox) string {
	for _, name := range strings.Fields("/bin/bash /usr/bin/bash") {
		if _, info, err := resolve(ctx, sb.FS(), name); err == nil && info.Mode.IsRegular() {
			return name
		}
	}
	return "/bin/sh"
}
