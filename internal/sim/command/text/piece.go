package text

import (
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A piece is an open file, or a command that is fed.
type piece struct {
	name   string
	out    *command.Output
	w      *command.Writer
	pipe   *kernel.Desc
	child  *kernel.Task
	closed bool // the command does not read any more
}

func (s *splitter) create() *piece {
	name, err := s.names.next()
	if err != nil {
		s.t.Errorf("%s", err)
		s.t.Exit(1)
	}
	if s.verbose {
		w := command.Stdout(s.t)
		if s.filter == "" {
			w.String("creating file " + command.QuoteAlways(name) + "\n")
		} else {
			w.String("executing with FILE=" + command.QuoteAlways(name) + "\n")
		}
		w.Flush()
	}
	p := &piece{name: name}
	if s.filter != "" {
		s.spawn(p)
		return p
	}
	if same, err := s.sameAsInput(name); err == nil && same {
		s.t.Errorf("%s would overwrite input; aborting", command.QuoteAlways(name))
		s.t.Exit(1)
	}
	o, err := command.Create(s.t, name, linux.O_TRUNC)
	if err != nil {
		command.FailFile(s.t, name, err)
		s.t.Exit(1)
	}
	p.out = o
	p.w = command.NewWriter(o, func(err error) {
		command.FailFile(s.t, name, err)
		s.t.Exit(1)
	})
	return p
}

func (s *splitter) sameAsInput(name string) (bool, error) {
	i, err := s.t.View.Stat(name)
	if err != nil {
		return false, err
	}
	in, err := s.in.Desc().File.Info()
	if err != nil {
		return false, err
	}
	return i.IsRegular() && in.IsRegular() && i.Ino == in.Ino && i.Dev == in.Dev, nil
}

// spawn starts the filter for a piece.
func (s *splitter) spawn(p *piece) {
	r, w := kernel.Pipe()
	p.pipe = w.Hold()
	shell := s.t.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	env := make([]string, 0, len(s.t.Env)+1)
	for _, e := range s.t.Env {
		if !strings.HasPrefix(e, "FILE=") {
			env = append(env, e)
		}
	}
	env = append(env, "FILE="+p.name)
	args := []string{shell[strings.LastIndexByte(shell, '/')+1:], "-c", s.filter}
	child, err := s.t.Spawn(kernel.Command{Path: shell, Args: args, Env: env}, func(c *kernel.Task) error {
		return c.SetFD(0, r, false)
	})
	if err != nil {
		r.Drop()
		p.pipe.Drop()
		p.pipe = nil
		s.t.Errorf("failed to run command: \"%s -c %s\": %s", shell, s.filter, reason(err))
		s.t.Exit(1)
	}
	p.child = child
}

func (s *splitter) put(p *piece, b []byte) {
	switch {
	case p.w != nil:
		p.w.Bytes(b)
	case p.closed:
	default:
		s.t.Step(1)
		if _, err := p.pipe.File.Write(s.t, b); err != nil {
			p.closed = true
			if !errors.Is(err, linux.EPIPE) {
				command.FailFile(s.t, p.name, err)
				s.t.Exit(1)
			}
		}
	}
}

func (s *splitter) closePiece() {
	if s.out != nil {
		p := s.out
		s.out = nil
		s.end(p)
	}
}

// end closes a piece; of a filter it waits for the end.
func (s *splitter) end(p *piece) {
	if p.out != nil {
		p.w.Flush()
		_ = p.out.Close()
		p.out = nil
		return
	}
	if p.pipe == nil {
		return
	}
	p.pipe.Drop()
	p.pipe = nil
	st, err := s.t.Wait(p.child)
	switch {
	case err != nil:
		s.t.Errorf("waiting for child process: %s", reason(err))
		s.t.Exit(1)
	case st.Signal != 0 && st.Signal != linux.SIGPIPE:
		s.t.Errorf("with FILE=%s, signal %s from command: %s", p.name, signalName(st.Signal), s.filter)
		s.t.Exit(128 + int(st.Signal))
	case st.Code != 0:
		s.t.Errorf("with FILE=%s, exit %d from command: %s", p.name, st.Code, s.filter)
		s.t.Exit(st.Code)
	}
}

func signalName(sig linux.Signal) string { return fmt.Sprintf("%d", int(sig)) }

func (s *splitter) finish() {
	s.closePiece()
	for len(s.outputs) > 0 {
		p := s.outputs[0]
		s.outputs = s.outputs[1:]
		s.end(p)
	}
}

// abandon lets go of what is open when the task ends early.
func (s *splitter) abandon() {
	for _, p := range append(s.outputs, s.out) {
		if p == nil {
			continue
		}
		if p.out != nil {
			_ = p.out.Close()
			p.out = nil
		}
		if p.pipe != nil {
			p.pipe.Drop()
			p.pipe = nil
		}
	}
}
