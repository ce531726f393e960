package parent

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A governor holds the limit of processors of a child from outside, by the
// processor time that the kernel counts for it. The child makes its tasks wait by
// itself, more finely; but a library of a tool may compute for as long as it likes
// without coming to where it could be made to wait, and a child that was taken
// over waits for nobody. What a child has had beyond its limit, it stands still
// for, all of it, by a signal that it cannot refuse. It also stands still while it
// is paused. That it does is not believed: its clock is looked at, the signal is sent
// again and again, and a child that goes on all the same is ended.
type governor struct {
	child *child
	lost  func(error)   // is told why the child is ended
	done  chan struct{} // closed when it has ended
	wake  chan struct{} // has an element when the limit has changed, or a pause has begun

	mu      sync.Mutex
	allowed allowance     // guarded by mu
	last    time.Duration // guarded by mu: the most that the clock has told
	paused  bool          // guarded by mu
	resting bool          // guarded by mu: it has had too much
	stopped bool          // guarded by mu: which the child was told
	stood   time.Duration // guarded by mu: what the clock told when it was stopped
	seen    time.Duration // guarded by mu: and at the last look since
}

var errGoesOn = errors.New("it went on while it was stopped")

// An allowance is the processor time that a child may have. It is what the child has
// not used of its limit, and negative where it has had too much.
type allowance struct {
	cpus float64
	left time.Duration
	used time.Duration // by the child, at the time at
	at   time.Time
}

const (
	// leastCPUs is the smallest limit that is held from outside: a child with less
	// could not answer its host in time.
	leastCPUs = 0.02
	// leastRun and leastLook bound how often a child is stopped and looked at.
	leastRun  = 20 * time.Millisecond
	leastLook = 50 * time.Millisecond
	mostLook  = time.Second
	// mostStanding is the processor time that a child may have while it is stopped:
	// for calls that its threads were in, which the kernel finishes first.
	mostStanding = 2 * time.Second
)

// most is what may be saved up: a second's worth. The child holds its tasks within
// less, so that only what it does not count, and its own work, comes near.
func (b *allowance) most() time.Duration {
	return max(time.Duration(b.cpus*float64(time.Second)), 2*leastLook)
}

// look takes what the child has used until now from the allowance.
func (b *allowance) look(now time.Time, used time.Duration) {
	earned := float64(max(now.Sub(b.at), 0)) * b.cpus
	left := float64(b.left) + earned - float64(max(used-b.used, 0))
	b.left = time.Duration(min(max(left, math.MinInt64/2), float64(b.most())))
	b.used, b.at = max(b.used, used), now
}

// rest returns how long the child stands still until it may go on; zero is not at all.
func (b *allowance) rest() time.Duration {
	if b.left >= 0 {
		return 0
	}
	return time.Duration(min(-float64(b.left)/b.cpus, math.MaxInt64/2)) + time.Millisecond
}

// next returns when a child that goes on is looked at again: not after it can have
// had too much, with as many processors as it takes by itself.
func (b *allowance) next() time.Duration {
	return min(max(time.Duration(float64(b.left)/math.Ceil(b.cpus)), leastLook), mostLook)
}

// govern begins to hold a limit, to the end of the child. It tells lost why it ends
// the child, if it does.
func govern(c *child, cpus float64, lost func(error)) (*governor, error) {
	<-c.found
	used, err := sys.ProcessorTime(c.process.Pid)
	select {
	case <-c.ended:
		return nil, fmt.Errorf("the computer's process has ended: %w", paddock.Internal)
	default:
	}
	if err != nil {
		return nil, fmt.Errorf("the limit of processors cannot be held: %w: %w", err, paddock.Unsupported)
	}
	g := &governor{child: c, lost: lost, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	g.allowed = allowance{cpus: max(cpus, leastCPUs), used: used, at: time.Now()}
	g.allowed.left = g.allowed.most()
	go g.run()
	return g, nil
}

// run looks at the child until that has ended.
func (g *governor) run() {
	defer close(g.done)
	timer := time.NewTimer(leastLook)
	defer timer.Stop()
	for {
		select {
		case <-g.child.ended:
			return
		case <-timer.C:
		case <-g.wake:
		}
		next, err := g.look()
		if err != nil {
			g.lost(err)
			_ = g.child.process.Kill() // it may have ended
			<-g.child.ended
			return
		}
		timer.Reset(next)
	}
}

// look stops the child, or lets it go on, and returns when to look again. The error
// says that the child goes on while it is stopped.
func (g *governor) look() (next time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowed.look(time.Now(), g.read())
	rest := g.allowed.rest()
	if !g.resting && g.allowed.cpus >= float64(runtime.NumCPU()) {
		rest = 0 // it cannot have more
	}
	g.resting = rest > 0
	fresh := !g.stopped
	g.apply()
	if !g.stopped {
		return g.allowed.next(), nil
	}
	used := g.read()
	if used-g.stood > mostStanding {
		return 0, errGoesOn
	}
	next = mostLook
	if fresh || used > g.seen {
		next = leastLook
	}
	if g.seen = used; !g.paused {
		next = min(next, max(rest, leastRun))
	}
	return next, nil
}

// apply tells the child whether it stands still. That it does so it is told each time:
// who can send itself a signal takes it back. The caller holds mu.
func (g *governor) apply() {
	stop := g.paused || g.resting
	if !stop && !g.stopped {
		return
	}
	sig := os.Signal(syscall.SIGCONT)
	if stop {
		sig = syscall.SIGSTOP
	}
	<-g.child.found
	_ = g.child.process.Signal(sig) // it may have ended
	if stop && !g.stopped {
		g.stood = g.read()
		g.seen = g.stood
	}
	g.stopped = stop
}

// limit changes the limit.
func (g *governor) limit(cpus float64) {
	g.mu.Lock()
	g.allowed.cpus = max(cpus, leastCPUs)
	g.mu.Unlock()
	g.lookSoon()
}

func (g *governor) lookSoon() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// pause has the child stand still, or go on as far as its limit permits.
func (g *governor) pause(paused bool) {
	g.mu.Lock()
	g.paused = paused
	g.apply()
	g.mu.Unlock()
	g.lookSoon()
}

// used returns the processor time that the child has had.
func (g *governor) used() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.read()
}

// read asks for the processor time of the child, which never falls. The caller
// holds mu.
func (g *governor) read() time.Duration {
	select {
	case <-g.child.ended:
		if st := g.child.state; st != nil {
			g.last = max(g.last, st.UserTime()+st.SystemTime())
		}
		return g.last
	default:
	}
	<-g.child.found
	had, err := sys.ProcessorTime(g.child.process.Pid)
	// The number is the child's as long as nobody has waited for the child.
	if err == nil && g.child.process.Signal(syscall.Signal(0)) == nil {
		g.last = max(g.last, had)
	}
	return g.last
}
