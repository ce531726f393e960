package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	return s.join(func(out paddock.Output) (paddock.Process, error) {
		cmd.Output = out
		return s.sandbox.Start(ctx, cmd)
	})
}

// join stays with a process to its end. begin gives it, with its output going
// where it is told.
func (s *session) join(begin func(paddock.Output) (paddock.Process, error)) (paddock.Exit, error) {
	out := &outlet{to: s.stdout, broken: s.relay.breakPipe}
	errs := &outlet{to: s.stderr, broken: s.relay.breakPipe}
	restore := func() error { return nil }
	if s.tty {
		var err error
		if restore, err = rawMode(s.stdin); err != nil {
			return paddock.Exit{}, err
		}
	}
	exit, err := s.follow(func() (paddock.Process, error) {
		return begin(paddock.Output{Stdout: out, Stderr: errs})
	})
	back := restore()
	switch {
	case err != nil:
	case out.failed != nil:
		err = WithHint(fmt.Errorf("write standard output: %w: %w", out.failed, paddock.Exhausted), "the command was ended, because its output was lost")
	case errs.failed != nil:
		err = WithHint(fmt.Errorf("write standard error: %w: %w", errs.failed, paddock.Exhausted), "the command was ended, because its output was lost")
	case back != nil:
		err = fmt.Errorf("restore the terminal: %w", back)
	}
	return exit, err
}

func (s *session) follow(begin func() (paddock.Process, error)) (paddock.Exit, error) {
	proc, err := begin()
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
		err = Interrupted{syscall.SIGINT}
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

// An outlet is where output goes. When it cannot be written any more it tells
// so once and swallows the rest, so that the other stream goes on until the
// command has ended.
type outlet struct {
	to     io.Writer
	broken func()
	gone   bool
	failed error // other than a reader who went away; to be read after Wait
}

func (o *outlet) Write(p []byte) (int, error) {
	if o.gone {
		return len(p), nil
	}
	n, err := o.to.Write(p)
	if err == nil {
		return n, nil
	}
	o.gone = true
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.ErrClosedPipe) {
		o.failed = err // a full disk: the command must not go on as if all were written
	}
	o.broken()
	return len(p), nil
}
