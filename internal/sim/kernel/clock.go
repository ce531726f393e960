package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A clock measures for how long a goroutine that runs tasks is not waiting.
// Its goroutine alone uses it. Where more of them run than there are
// processors, each is taken to have had its part of those. Where the host gave
// this process no processor for a while, nobody is taken to have had one.
type clock struct {
	since time.Time
	share *share // of the computer

	processor func() time.Duration // [Options.ProcessorTime]
	had       time.Duration        // its answer at asked, which is at most a stall before since
	asked     time.Time
}

// stall is the shortest time without a checkpoint that is compared with the
// processor time of this process: asking for that takes as long as a thousand
// steps of a script.
const stall = 10 * time.Millisecond

func (c *clock) start() {
	if c.since.IsZero() {
		c.share.running.Add(1)
	}
	c.read()
}

// read begins to measure at this moment, and gives what was measured until then.
func (c *clock) read() time.Duration {
	now := time.Now()
	d := now.Sub(c.since)
	if c.since.IsZero() {
		d = 0
	}
	c.since = now
	if c.processor == nil || now.Sub(c.asked) < stall {
		return c.part(d)
	}
	before := c.had
	c.had, c.asked = c.processor(), now
	if d >= stall {
		d = min(d, c.had-before)
	}
	return c.part(d)
}

// part is what of d the goroutine had of a processor.
func (c *clock) part(d time.Duration) time.Duration {
	if n, have := c.share.running.Load(), int64(runtime.GOMAXPROCS(0)); n > have {
		return d * time.Duration(have) / time.Duration(n)
	}
	return d
}

// stop counts what has passed for a run; what passes from now on is waiting.
// Whoever of the computer's tasks pays next, pays for that too.
func (c *clock) stop(r *Run) {
	if !c.since.IsZero() {
		d := c.read()
		r.busy.Add(int64(d))
		_ = c.share.owed(d)
		c.since = time.Time{}
		c.share.running.Add(-1)
	}
}

// lap counts what has passed so far, and gives it.
func (c *clock) lap(r *Run) time.Duration {
	if c.since.IsZero() {
		return 0
	}
	d := c.read()
	r.busy.Add(int64(d))
	return d
}

// A share is processors' worth of time that all tasks of a computer have.
// Whoever ran pays, and waits when there is nothing left. What a task had
// before it ended or waited, where it does not pay, is a debt of all.
type share struct {
	running atomic.Int64 // clocks

	mu   sync.Mutex
	cpus float64   // guarded by mu; 0 is no limit
	left float64   // guarded by mu: nanoseconds
	at   time.Time // guarded by mu: when left was known
}

// burst is how much time may be saved up.
const burst = float64(20 * time.Millisecond)

func (k *Kernel) clock() *clock { return &clock{share: &k.share, processor: k.ProcessorTime} }

func (s *share) set(cpus float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cpus >= float64(runtime.NumCPU()) {
		cpus = 0
	}
	s.cpus, s.left, s.at = cpus, burst, time.Now()
}

func (s *share) pay(t *Task, ran time.Duration) {
	if wait := s.owed(ran); wait > 0 {
		t.rest(wait)
	}
}

// owed takes what was had from the share, and returns how long it takes until
// there is something left.
func (s *share) owed(ran time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cpus <= 0 {
		return 0
	}
	now := time.Now()
	s.left = min(burst, s.left+float64(now.Sub(s.at))*s.cpus) - float64(ran)
	s.at = now
	if s.left >= 0 {
		return 0
	}
	return time.Duration(-s.left / s.cpus)
}

// rest waits, whatever signals arrive that do not kill.
func (t *Task) rest(d time.Duration) {
	t.clock.stop(t.Run)
	defer t.clock.start()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-t.wake:
			t.Check()
		}
	}
}
