package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// A session is one command in one sandbox with the caller's streams.
type session struct {
	sandbox paddock.Sandbox
	stdin   io.Reader // nil: the command reads from an empty file
	stdout  io.Writer
	stderr  io.Writer
	relay   *relay
	tty     bool
}

// run starts the command and stays with it to its end.
func (s *session) run(ctx context.Context, cmd paddock.Cmd) (paddock.Exit, error) {
	cmd.Input = s.stdin != nil
	cmd.Output = paddock.Output{
		Stdout: &outlet{to: s.stdout, broken: s.relay.breakPipe},
		Stderr: &outlet{to: s.stderr, broken: s.relay.breakPipe},
	}
	restore := func() error { return nil }
	if s.tty {
		var err error
		if restore, err = rawMode(s.stdin); err != nil {
			return paddock.Exit{}, err
		}
	}
	exit, err := s.follow(ctx, cmd)
	if back := restore(); back != nil && err == nil {
		err = fmt.Errorf("restore the terminal: %w", back)
	}
	return exit, err
}

func (s *session) follow(ctx context.Context, cmd paddock.Cmd) (paddock.Exit, error) {
	proc, err := s.sandbox.Start(ctx, cmd)
	if err != nil {
		return paddock.Exit{}, err
	}
	s.relay.started <- proc
	if s.stdin != nil {
		// Nothing can interrupt a read of someone else's pipe or terminal, so
		// this one goroutine may outlive the session; it ends with its next
		// read or with the program, and touches nothing but proc.
		go feed(proc.Input(), s.stdin)
	}

	var exit paddock.Exit
	var wg sync.WaitGroup
	ended := make(chan struct{})
	wg.Go(func() {
		defer close(ended)
		exit, err = proc.Wait(context.Background())
	})
	select {
	case <-ended:
	case <-s.relay.abandon:
		proc.Release()
		<-ended
		err = interrupted{syscall.SIGINT}
	}
	wg.Wait()
	return exit, err
}

// feed copies until the input ends or the command no longer takes it.
func feed(to io.WriteCloser, from io.Reader) {
	// An error is the command's own choice not to read, or its end.
	_, _ = io.Copy(to, onlyReader{from})
	_ = to.Close()
}

// onlyReader hides WriteTo, by which an *os.File would hand its descriptor on
// in ways that only make sense between files.
type onlyReader struct{ io.Reader }

// An outlet is where output goes. When its reader has gone it tells so once
// and swallows the rest, so that the other stream goes on.
type outlet struct {
	to     io.Writer
	broken func()
	gone   bool
}

func (o *outlet) Write(p []byte) (int, error) {
	if o.gone {
		return len(p), nil
	}
	n, err := o.to.Write(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, syscall.EPIPE), errors.Is(err, os.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		o.gone = true
		o.broken()
		return len(p), nil
	}
	// A full disk behind our standard output, for example: the command must
	// not go on as if all were written.
	o.gone = true
	o.broken()
	return n, err
}
