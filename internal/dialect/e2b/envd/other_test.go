package envd

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A stalled sandbox's commands say that their file is open, and then neither read nor
// write nor end, whatever signal they get.
type stalled struct {
	nothing

	asked chan struct{} // gets one for each write of input
}

func (s *stalled) Start(_ context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	p := &stuck{s: s, released: make(chan struct{})}
	go func() { _, _ = cmd.Output.Stdout.Write([]byte(opened)) }()
	return p, nil
}

type stuck struct {
	paddock.Process

	s        *stalled
	once     sync.Once
	released chan struct{}
}

func (p *stuck) Wait(ctx context.Context) (paddock.Exit, error) {
	select {
	case <-p.released:
		return paddock.Exit{}, paddock.Canceled
	case <-ctx.Done():
		return paddock.Exit{}, ctx.Err()
	}
}

func (p *stuck) Write([]byte) (int, error) {
	p.s.asked <- struct{}{}
	<-p.released
	return 0, paddock.Canceled
}

func (p *stuck) Close() error                                 { return nil }
func (p *stuck) Input() io.WriteCloser                        { return p }
func (p *stuck) Signal(context.Context, syscall.Signal) error { return nil }
func (p *stuck) Release()                                     { p.once.Do(func() { close(p.released) }) }

func TestACommandThatStopsHoldsUpNobodyWhoseTimeIsOver(t *testing.T) {
	sb := &stalled{asked: make(chan struct{}, 1)}
	o := &otherFiles{b: &Box{o: Options{Sandbox: sb}}, user: "root"}
	t.Run("read", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := o.Open(ctx, "/f", paddock.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("write", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := o.Create(ctx, "/f", paddock.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-sb.asked
			cancel()
		}()
		if _, err := w.Write([]byte("x")); err == nil {
			t.Error("it was written")
		}
		if err := w.Close(); err == nil {
			t.Error("all was written")
		}
	})
	t.Run("the end of a write", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := o.Create(ctx, "/f", paddock.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := w.Close(); err == nil {
			t.Error("all was written")
		}
	})
}

func TestContentThatWasLostIsNotTakenForWhole(t *testing.T) {
	exit := paddock.Exit{Cause: paddock.Exited, Dropped: 7}
	if err := outcome("/f", exit, ""); !errors.Is(err, paddock.Unavailable) || !strings.Contains(err.Error(), "7 bytes") {
		t.Errorf("%v", err)
	}
}
