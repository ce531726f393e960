//go:build linux

package guestclient_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A mute guest starts a process with input, which ends when a test says so, and answers a call of its input when a test
// says so.
type mute struct {
	end, answer chan struct{}
	asked       chan *guestpb.InputRequest
	calls       atomic.Int32
}

func (m *mute) process(t *testing.T, end *guestpb.ProcessEvent, grace time.Duration) paddock.Process {
	t.Helper()
	m.end, m.answer, m.asked = make(chan struct{}), make(chan struct{}), make(chan *guestpb.InputRequest, 1)
	g := (&fake{
		start: func(ctx context.Context, _ *guestpb.StartRequest, s *connect.ServerStream[guestpb.ProcessEvent]) error {
			begun := started(7)
			begun.GetStarted().Input = true
			if err := s.Send(begun); err != nil {
				return err
			}
			select {
			case <-m.end:
				return s.Send(end)
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		input: func(ctx context.Context, r *guestpb.InputRequest) error {
			m.calls.Add(1)
			m.asked <- r
			select {
			case <-m.answer:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}).serve(t, guestclient.Options{})
	g.SetGrace(grace)
	return start(t, g, paddock.Cmd{Args: []string{"x"}, Input: true})
}

func exited() *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Exited{Exited: &guestpb.Exited{Cause: guestpb.Cause_CAUSE_EXITED}}}
}

// result is what a call in another goroutine returned.
type result struct {
	n   int
	err error
}

func (m *mute) write(p paddock.Process) <-chan result {
	written := make(chan result, 1)
	go func() {
		n, err := p.Input().Write([]byte("x"))
		written <- result{n, err}
	}()
	<-m.asked
	return written
}

func given(t *testing.T, c <-chan result) result {
	t.Helper()
	select {
	case r := <-c:
		return r
	case <-limit(t).Done():
		t.Fatal("it waits for the guest")
		return result{}
	}
}

func TestAnInputThatTheGuestDoesNotAnswerEndsWithItsProcess(t *testing.T) {
	for name, c := range map[string]struct {
		end  *guestpb.ProcessEvent
		want paddock.Kind
	}{
		"exit":          {exited(), paddock.NotFound},
		"a false event": {output(1000, nil), paddock.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			var m mute
			p := m.process(t, c.end, 100*time.Millisecond)
			written := m.write(p)
			close(m.end)
			_, told := p.Wait(limit(t))
			if r := given(t, written); r.n != 0 || r.err == nil || told == nil && !errors.Is(r.err, c.want) || told != nil && paddock.KindOf(r.err) != paddock.KindOf(told) {
				t.Errorf("the write answers %d, %v; the process %v", r.n, r.err, told)
			}
			if _, err := p.Input().Write([]byte("x")); err == nil || m.calls.Load() != 1 {
				t.Errorf("a later write answers %v, after %d calls", err, m.calls.Load())
			}
		})
	}
}

func TestTheAnswerToTheLastInputMayComeAfterTheExit(t *testing.T) {
	var m mute
	p := m.process(t, exited(), time.Minute)
	written := m.write(p)
	close(m.end)
	wait(t, p)
	close(m.answer)
	if r := given(t, written); r.n != 1 || r.err != nil {
		t.Errorf("the write answers %d, %v", r.n, r.err)
	}
}

func TestReleaseEndsACloseThatTheGuestDoesNotAnswer(t *testing.T) {
	var m mute
	p := m.process(t, exited(), time.Minute)
	closed := make(chan result, 1)
	go func() { closed <- result{0, p.Input().Close()} }()
	if r := <-m.asked; !r.GetClose() {
		t.Fatalf("the guest was asked for %v", r)
	}
	p.Release()
	if r := given(t, closed); !errors.Is(r.err, io.ErrClosedPipe) {
		t.Errorf("the close answers %v", r.err)
	}
}
