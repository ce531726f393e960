package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// fullMeter is a meter of a box that reached its limits.
type fullMeter struct{ kills, hits int64 }

func (m fullMeter) Usage() (paddock.Usage, error)                  { return paddock.Usage{}, nil }
func (m fullMeter) OOM() (kills, peak int64, err error)            { return m.kills, -1, nil }
func (m fullMeter) PIDsHit() (int64, error)                        { return m.hits, nil }
func (m fullMeter) Update(l paddock.Limits, paths ...string) error { return nil }
func (m fullMeter) Remove(ctx context.Context) error               { return nil }

// tripled is a Limiter that allows the host three times the processes.
type tripled struct{ Limiter }

func (tripled) HostLimits(_ *Layout, l paddock.Limits) paddock.Limits {
	l.PIDs *= 3
	return l
}

func TestTheEndOfABoxNamesTheLimitsThatWereReached(t *testing.T) {
	const memory, processes = "memory limit of 77 bytes", "limit of 30 processes and threads for a sandbox with 10"
	exit := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	for what, status := range map[string]syscall.WaitStatus{
		"a kernel that ended": exit(boxinit.GuestKernelEnded), "a crash": exit(boxinit.Crashed), "a broker that ended": exit(boxinit.BrokerFailed), "a signal": syscall.WaitStatus(syscall.SIGKILL),
	} {
		for _, row := range []struct {
			meter             meter
			memory, processes bool
		}{
			{nil, false, false}, {fullMeter{-1, -1}, false, false}, {fullMeter{0, 0}, false, false},
			{fullMeter{1, 0}, true, false}, {fullMeter{0, 1}, false, true}, {fullMeter{2, 3}, true, true},
		} {
			b := &Box{meter: row.meter, limits: paddock.Limits{Memory: 77, PIDs: 10}, plan: Plan{Runtime: &Runtime{Limiter: tripled{}}}}
			why := b.ending(status)
			if strings.Contains(why, memory) != row.memory || strings.Contains(why, processes) != row.processes {
				t.Errorf("%s, %+v: %q", what, row.meter, why)
			}
		}
	}
}

func TestTheEndOfABrokerIsToldInItsOwnWords(t *testing.T) {
	ours, theirs := channels(t)
	b := &Box{control: ours}
	b.stood.Store(true)
	data, err := json.Marshal(boxinit.Report{Error: "it panicked: \x1b[31mwhy"})
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.Send(data); err != nil {
		t.Fatal(err)
	}
	if why := b.ending(syscall.WaitStatus(boxinit.BrokerFailed << 8)); !strings.Contains(why, "it panicked: ") || strings.Contains(why, "\x1b") {
		t.Errorf("%q", why)
	}
}

// channels makes both ends of a control channel.
func channels(t *testing.T) (a, b *sys.Channel) {
	t.Helper()
	a, f, err := sys.NewChannelPair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if b, err = sys.NewChannelOf(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return a, b
}

// A box can send its end of a socket over another one, in which that end then lives on.
func TestABoxThatEndedIsNotWaitedForWhereSomebodyKeepsItsEndOfASocket(t *testing.T) {
	for name, wait := range map[string]func(*Box) error{
		"its last words": func(b *Box) error {
			b.stood.Store(true)
			b.mu.Lock() // as reap has it
			defer b.mu.Unlock()
			if why := b.ending(syscall.WaitStatus(boxinit.GuestKernelEnded << 8)); why == "" {
				return errors.New("no reason")
			}
			return nil
		},
		"its first report": func(b *Box) error {
			if err := b.ready(context.Background()); !errors.Is(err, paddock.Unavailable) {
				return fmt.Errorf("ready: %w", err)
			}
			return nil
		},
		"an answer": func(b *Box) error {
			ours, theirs, err := sys.Pair()
			if err != nil {
				return err
			}
			defer theirs.Close()
			defer ours.Close()
			if err := b.Report(context.Background(), ours); !errors.Is(err, paddock.Unavailable) {
				return fmt.Errorf("report: %w", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, _ := channels(t)
			b := &Box{control: ours, ended: make(chan struct{})}
			close(b.ended)
			over := make(chan error, 1)
			go func() { over <- wait(b) }()
			select {
			case err := <-over:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(3 * time.Minute):
				t.Fatal("it is waited for without end")
			}
		})
	}
}
