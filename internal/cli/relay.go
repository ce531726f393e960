package cli

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	// twice is how soon a second interrupt must follow the first to mean
	// "at once".
	twice = time.Second
	// grace is what a command gets to end by itself when the reader of its
	// output has gone.
	grace = 2 * time.Second
	// Patience bounds each call to a sandbox that may not answer.
	Patience = 5 * time.Second
)

// A relay carries what happens outside to the command: signals, a resized
// terminal, a reader who went away. Before the command has started, a signal
// cancels the start. One goroutine, which run is, does all of it.
type relay struct {
	signals <-chan os.Signal
	cancel  context.CancelCauseFunc // of the start
	size    func() paddock.Size     // of the outer terminal; nil without one
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time

	started chan paddock.Process // the command, once
	broken  chan struct{}        // closed when nobody reads our output any more
	abandon chan struct{}        // closed when the caller wants out, whatever the sandbox does
	breakit sync.Once
}

func newRelay(signals <-chan os.Signal, cancel context.CancelCauseFunc) *relay {
	return &relay{
		signals: signals, cancel: cancel, now: time.Now, after: time.After,
		started: make(chan paddock.Process, 1), broken: make(chan struct{}), abandon: make(chan struct{}),
	}
}

// breakPipe tells that nobody reads our output any more.
func (r *relay) breakPipe() { r.breakit.Do(func() { close(r.broken) }) }

// run relays until done is closed. A first interrupt is an interrupt, a second
// one soon after kills, and one after that gives up on the sandbox, as does one
// that the sandbox does not answer.
func (r *relay) run(done <-chan struct{}) {
	var (
		proc    paddock.Process
		pending []syscall.Signal
		last    time.Time // of the last interrupt
		killed  bool
		broken  <-chan struct{} // r.broken once there is a command
		mute    bool            // the sandbox did not answer a signal
		expired <-chan time.Time
		started = (<-chan paddock.Process)(r.started)
	)
	kill := func() {
		killed = true
		mute = !send(proc, syscall.SIGKILL) || mute
	}
	pass := func(s syscall.Signal) {
		switch {
		case s == syscall.SIGINT && !last.IsZero() && r.now().Sub(last) <= twice:
			kill()
		default:
			mute = !send(proc, s) || mute
			if s == syscall.SIGINT {
				last = r.now()
			}
		}
	}
	for {
		if mute {
			// A sandbox whose agent is stopped or broken would hold us for ever.
			close(r.abandon)
			<-done
			return
		}
		select {
		case <-done:
			return
		case proc = <-started:
			started, broken = nil, r.broken
			for _, s := range pending {
				pass(s)
			}
		case <-broken:
			broken = nil
			mute = !send(proc, syscall.SIGPIPE)
			expired = r.after(grace)
		case <-expired:
			kill()
		case sig := <-r.signals:
			s, ok := sig.(syscall.Signal)
			switch {
			case !ok || sig == brokenPipe:
				// The write that caused it fails, and its writer tells us.
			case sig == windowMoved:
				if proc != nil && r.size != nil {
					resize(proc, r.size())
				}
			case proc == nil:
				pending = append(pending, s)
				r.cancel(Interrupted{s})
			case s == syscall.SIGINT && killed:
				close(r.abandon)
				<-done
				return
			default:
				pass(s)
			}
		}
	}
}

// send signals the command's group, and tells whether the sandbox answered. One
// that has ended is for Wait to tell.
func send(proc paddock.Process, s syscall.Signal) bool {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return paddock.KindOf(proc.Signal(ctx, s)) != paddock.Timeout
}

// resize tells the command the terminal's new size; a lost one is not worth a
// word, the next one mends it.
func resize(proc paddock.Process, size paddock.Size) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	_ = proc.Resize(ctx, size)
}
