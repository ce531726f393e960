// Package execserver answers Codex's exec-server protocol from a sandbox: processes and files of the model's tools are
// those of the box. Codex starts the server and speaks over its standard streams, one JSON object a line; nothing
// listens, so nobody else can connect.
//
// # The boundary
//
// The caller is Codex, on the host. What it passes on was written by a model: arguments, paths and contents go to the
// box as they are, and the host uses none of them for itself. What comes from the box (output, names, contents, links)
// is data for the caller. It is bounded here, and a path that it holds is looked up in the box again, never on the host.
package execserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what a caller and a box may make the host hold.
const (
	maxMessage   = 24 << 20 // bytes of a line, so that a file of maxFile fits
	maxFile      = 16 << 20 // bytes of a file that is read or written whole
	maxBlock     = 1 << 20  // bytes that are read of an open file at once
	maxBusy      = 32       // requests that are answered at the same time
	maxWhole     = 2        // whole files that are held at the same time
	maxProcesses = 64       // that run
	maxEnded     = 64       // whose output is kept
	maxKept      = 1 << 20  // bytes of output that are kept of a process, with pieceCost for each piece
	maxPending   = 1 << 20  // bytes of input that a process has not taken, with pieceCost for each piece
	pieceCost    = 128      // bytes that a piece costs beside its own: its place in a list, its allocation, its words in JSON
	maxHandles   = 256
	maxEntries   = 20_000 // of a directory
	maxWait      = time.Minute
	maxFileTime  = 5 * time.Minute // of one request about files
	endTime      = 30 * time.Second
)

// Options configure Serve.
type Options struct {
	Sandbox paddock.Sandbox // stays the caller's
	Dir     string          // working directory of what names none, inside
	Home    string          // of the box's user, inside
	Shell   string          // path of the box's shell
}

// Serve answers one client until in ends. Then it ends the processes that it started. Nothing can interrupt a read of
// in; where ctx ends first, Serve returns and one goroutine waits for the next line, which it throws away.
func Serve(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{
		Options: o, out: out, fs: o.Sandbox.FS(), cancel: cancel,
		busy: make(chan struct{}, maxBusy), whole: make(chan struct{}, maxWhole),
		processes: map[string]*process{}, handles: map[string]string{},
	}
	lines, read := make(chan []byte), make(chan error, 1)
	go func() { read <- readLines(ctx, in, lines) }()
	err := s.answerAll(ctx, lines, read)
	cancel()
	s.end(context.WithoutCancel(ctx))
	s.work.Wait()
	if failed := s.failure(); failed != nil {
		return failed
	}
	return err
}

// readLines reads lines until the input ends.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 0, 64<<10), maxMessage)
	for scan.Scan() {
		select {
		case lines <- append([]byte(nil), scan.Bytes()...):
		case <-ctx.Done():
			return nil
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a message is longer than %d bytes: %w", maxMessage, paddock.Exhausted)
	}
	if scan.Err() != nil {
		return fmt.Errorf("read messages: %w: %w", scan.Err(), paddock.Unavailable)
	}
	return nil
}

// A server is what one client has.
type server struct {
	Options
	fs     paddock.FS
	cancel context.CancelFunc
	work   sync.WaitGroup
	busy   chan struct{} // a place for each request that is answered
	whole  chan struct{} // a place for each file that is held whole

	writing sync.Mutex
	out     io.Writer
	broken  error // guarded by writing: why nothing can be written any more

	mu        sync.Mutex
	greeted   bool
	processes map[string]*process
	ended     []string          // those of processes that ended, the oldest first
	handles   map[string]string // a path of each file that is open
}

func (s *server) answerAll(ctx context.Context, lines <-chan []byte, read <-chan error) error {
	for {
		select {
		case line := <-lines:
			s.take(ctx, line)
		case err := <-read:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// take begins to answer one message. What has an order is done before it returns: the greeting, the claim of a
// process's name, and input.
func (s *server) take(ctx context.Context, line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.Method == "" {
		s.send(failure{ID: json.RawMessage("-1"), Error: problem{invalidRequest, "that is not a request"}})
		return
	}
	if len(m.ID) == 0 {
		if m.Method != "initialized" {
			s.send(failure{ID: json.RawMessage("-1"), Error: problem{invalidRequest, "a notification that is not known"}})
		}
		return
	}
	if !validID(m.ID) {
		s.send(failure{ID: json.RawMessage("-1"), Error: problem{invalidRequest, "the id is neither a number nor a text"}})
		return
	}
	later, err := s.begin(m)
	if err != nil {
		s.answer(m.ID, nil, err)
		return
	}
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.work.Go(func() {
		defer func() { <-s.busy }()
		result, err := later(ctx)
		s.answer(m.ID, result, err)
		switch r := result.(type) {
		case startResult:
			r.sent()
		case fileResult:
			r.sent()
		}
	})
}

// A later does the rest of a request.
type later func(ctx context.Context) (any, error)

// done is a request of which nothing is left to do.
func done(result any) later { return func(context.Context) (any, error) { return result, nil } }

func (s *server) begin(m message) (later, error) {
	if m.Method == "initialize" {
		return s.greet(m.Params)
	}
	s.mu.Lock()
	greeted := s.greeted
	s.mu.Unlock()
	if !greeted {
		return nil, problem{invalidRequest, "initialize comes first"}
	}
	switch m.Method {
	case "environment/info":
		return done(s.about()), nil
	case "process/start":
		return decoded(m.Params, s.start)
	case "process/read":
		return decoded(m.Params, s.read)
	case "process/write":
		return decoded(m.Params, s.write)
	case "process/signal":
		return decoded(m.Params, s.signal)
	case "process/terminate":
		return decoded(m.Params, s.terminate)
	}
	return s.file(m)
}

// decoded decodes parameters for a method.
func decoded[T any](params json.RawMessage, do func(T) (later, error)) (later, error) {
	var p T
	if len(params) > 0 {
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, problem{invalidParams, "the parameters: " + err.Error()}
		}
	}
	return do(p)
}

func (s *server) greet(params json.RawMessage) (later, error) {
	return decoded(params, func(p struct {
		ResumeSessionID *string `json:"resumeSessionId"`
	},
	) (later, error) {
		if p.ResumeSessionID != nil {
			return nil, problem{invalidRequest, "there is no such session: each process of the server is one"}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.greeted {
			return nil, problem{invalidRequest, "initialize comes once"}
		}
		s.greeted = true
		return done(map[string]any{"sessionId": string(s.Sandbox.ID()), "environmentInfo": s.about()}), nil
	})
}

// about tells what the box is. It names no capability: what those stand for is not offered.
func (s *server) about() map[string]any {
	name := "sh"
	if s.Shell == "/bin/bash" || s.Shell == "/usr/bin/bash" {
		name = "bash"
	}
	info := map[string]any{
		"shell": map[string]string{"name": name, "path": s.Shell}, "cwd": fileURI(s.Dir),
		"platformOs": "linux", "tempDir": fileURI("/tmp"), "temporaryDirectories": []string{},
	}
	if s.Home != "" {
		info["userHomeDir"] = fileURI(s.Home)
	}
	return info
}

func (s *server) answer(id json.RawMessage, result any, err error) {
	if err == nil {
		s.send(success{ID: id, Result: result})
		return
	}
	s.send(failure{ID: id, Error: problemOf(err)})
}

// send writes a message. A client that does not read makes everything wait, and the text of one message be held.
func (s *server) send(m any) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.broken != nil {
		return
	}
	line, err := json.Marshal(m)
	if err == nil {
		_, err = s.out.Write(append(line, '\n'))
	}
	if err != nil {
		s.broken = fmt.Errorf("write a message: %w: %w", err, paddock.Unavailable)
		s.cancel()
	}
}

func (s *server) failure() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.broken
}

// aboutFiles gives a request about files its time.
func aboutFiles(do later) later {
	return func(ctx context.Context) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, maxFileTime)
		defer cancel()
		return do(ctx)
	}
}
