package infocache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/infocache"
)

// A tier is a driver that counts the questions for its Info. Each takes a second.
type tier struct {
	paddock.Driver // nil: only Info and Close are called

	mu     sync.Mutex
	asked  int   // guarded by mu
	fail   error // guarded by mu
	away   bool  // guarded by mu; the tier is not available
	closed bool  // guarded by mu
}

func (d *tier) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier != paddock.Auto && tier != paddock.Jail {
		return paddock.Info{}, paddock.Unsupported
	}
	d.set(func() { d.asked++ })
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return paddock.Info{}, paddock.Canceled
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return paddock.Info{
		Tier: paddock.Jail, Available: !d.away,
		Capabilities: []paddock.Capability{paddock.CanPause}, Controls: []paddock.Finding{{Control: paddock.ControlMemory}},
	}, d.fail
}

func (d *tier) Close() error {
	d.set(func() { d.closed = true })
	return nil
}

func (d *tier) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *tier) want(t *testing.T, asked int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked != asked {
		t.Errorf("the tier was asked %d times, want %d", d.asked, asked)
	}
}

// kept runs a test with a time of its own, on a tier whose Info is kept.
func kept(t *testing.T, test func(t *testing.T, inner *tier, d paddock.Driver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner := &tier{}
		d := infocache.New(inner, paddock.Jail)
		test(t, inner, d)
		if err := d.Close(); err != nil || !inner.closed {
			t.Errorf("close: %v, and the tier is closed: %v", err, inner.closed)
		}
	})
}

// pass lets the time of a test pass.
func pass(d time.Duration) { <-time.After(d) }

func info(t *testing.T, d paddock.Driver) paddock.Info {
	t.Helper()
	i, err := d.Info(t.Context(), paddock.Jail)
	if err != nil || i.Tier != paddock.Jail || !i.Can(paddock.CanPause) {
		t.Errorf("%+v, %v", i, err)
	}
	return i
}

func TestWhoeverAsksAtTheSameTimeSharesOneQuestion(t *testing.T) {
	kept(t, func(t *testing.T, inner *tier, d paddock.Driver) {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { info(t, d) })
		}
		all.Wait()
		inner.want(t, 1)
		pass(29 * time.Second)
		if i, err := d.Info(t.Context(), paddock.Auto); err != nil || i.Tier != paddock.Jail {
			t.Errorf("auto: %+v, %v", i, err)
		}
		inner.want(t, 1)
		pass(time.Second)
		info(t, d)
		inner.want(t, 2)
	})
}

func TestAnErrorAndAnUnavailableTierAreKeptForASecondOnly(t *testing.T) {
	for name, wrong := range map[string]func(*tier){
		"error":       func(d *tier) { d.fail = paddock.Timeout },
		"unavailable": func(d *tier) { d.away = true },
	} {
		t.Run(name, func(t *testing.T) {
			kept(t, func(t *testing.T, inner *tier, d paddock.Driver) {
				inner.set(func() { wrong(inner) })
				for range 100 {
					if i, err := d.Info(t.Context(), paddock.Jail); err == nil && i.Available {
						t.Errorf("%+v", i)
					}
				}
				inner.want(t, 1)
				inner.set(func() { inner.fail, inner.away = nil, false })
				pass(time.Second)
				if i := info(t, d); !i.Available {
					t.Error("what was mended is not noticed")
				}
				inner.want(t, 2)
			})
		})
	}
}

func TestACallerWhoGivesUpEndsNobodysQuestion(t *testing.T) {
	kept(t, func(t *testing.T, inner *tier, d paddock.Driver) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := d.Info(ctx, paddock.Jail); !errors.Is(err, paddock.Canceled) {
				t.Errorf("who gave up: %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() { info(t, d) })
		synctest.Wait()
		cancel()
		all.Wait()
		short, done := context.WithTimeout(t.Context(), time.Millisecond)
		defer done()
		pass(time.Minute)
		if _, err := d.Info(short, paddock.Jail); !errors.Is(err, paddock.Timeout) {
			t.Errorf("who waited a millisecond: %v", err)
		}
		synctest.Wait()
		inner.want(t, 2)
	})
}

func TestCloseEndsTheQuestion(t *testing.T) {
	kept(t, func(t *testing.T, inner *tier, d paddock.Driver) {
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := d.Info(t.Context(), paddock.Jail); !errors.Is(err, paddock.Canceled) {
				t.Errorf("whose driver was closed: %v", err)
			}
		})
		synctest.Wait()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		if _, err := d.Info(t.Context(), paddock.Jail); !errors.Is(err, paddock.Unavailable) {
			t.Errorf("after Close: %v", err)
		}
		inner.want(t, 1)
	})
}

func TestAnAnswerIsTheCallersOwn(t *testing.T) {
	kept(t, func(t *testing.T, _ *tier, d paddock.Driver) {
		i := info(t, d)
		i.Capabilities[0], i.Controls[0].Control = "changed", "changed"
		if again := info(t, d); again.Controls[0].Control != paddock.ControlMemory {
			t.Errorf("%+v", again)
		}
	})
}

func TestAnotherTierIsRefusedAndNotKept(t *testing.T) {
	kept(t, func(t *testing.T, inner *tier, d paddock.Driver) {
		if _, err := d.Info(t.Context(), "another"); !errors.Is(err, paddock.Unsupported) {
			t.Error(err)
		}
		info(t, d)
		inner.want(t, 1)
	})
}
