package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Options define what is kept ready.
type Options struct {
	Shelves []Shelf

	// Mark is the value of [Label] on ready sandboxes that outlive this process. It must be
	// unique among the pools of the driver, the same after a restart, and unknown to
	// callers. Without it, shelves may only have ephemeral sandboxes.
	Mark string

	// Log gets errors of the background work. Nil discards them.
	Log *slog.Logger
}

// A Shelf is a number of ready sandboxes with one spec.
type Shelf struct {
	Spec paddock.Spec // without an ID; ephemeral, unless Options.Mark is set
	Size int          // minimum number

	// Most is the maximum number if Size is too small. Each Create that finds the shelf
	// empty raises the target by one, and each minute without such a Create lowers it by
	// one. Zero is Size.
	Most int

	// TTL is the maximum age of a ready sandbox. An older one is replaced and never handed
	// out. Zero sets no bound.
	TTL time.Duration

	// Warm is a program with arguments that runs in each sandbox before it is ready, so
	// that its files are cached. A first command takes longer than a second one, most on a
	// tier with its own kernel. It must exit with status 0. Its process is visible to the
	// caller in Processes, and its processor time in Usage. Empty runs nothing.
	Warm []string
}

// A Pool is a driver that keeps sandboxes ready.
type Pool struct {
	d      paddock.Driver
	mark   string
	log    *slog.Logger
	stop   context.CancelFunc // cancels the worker
	worker sync.WaitGroup
	end    func() error // implements Close, once

	mu      sync.Mutex
	closed  bool                  // guarded by mu
	stocks  []*stock              // their fields are guarded by mu
	doomed  []*doomed             // guarded by mu; to be removed
	handing sync.WaitGroup        // sandboxes being handed out; Add only with mu held, before closed
	given   map[paddock.ID]*birth // guarded by mu; handed-out sandboxes
	hidden  map[paddock.ID]bool   // guarded by mu; sandboxes unknown to callers; false if removed
	listing int                   // guarded by mu; Lists in progress
	waiting int                   // guarded by mu; Creates that wait for the driver
	held    time.Time             // guarded by mu; since when they delay the worker; zero if not
	fixed   bool                  // guarded by mu; the driver cannot change labels
	changed chan struct{}         // guarded by mu; closed and replaced at every change of these
}

// A stock is the content of a shelf.
type stock struct {
	spec   paddock.Spec // normalized
	size   int          // the minimum
	most   int
	target int       // present target, from size to most
	calm   time.Time // last change of the target, or last miss
	ttl    time.Duration
	warm   []string
	ready  []kept        // oldest first
	short  time.Time     // when it was last full
	taken  time.Time     // when a sandbox was last taken
	took   time.Duration // duration of the last creation
	retry  retry         // after failed creations
	lost   error         // why it was given up, or nil
	count  Count
}

// A kept is a ready sandbox.
type kept struct {
	paddock.Sandbox
	made time.Time
}

// New starts to fill the shelves in the background; [Pool.Wait] waits for that. With a
// mark, call [Clean] first. The pool owns d and closes it. After an error, d still belongs
// to the caller.
func New(d paddock.Driver, o Options) (*Pool, error) {
	p := &Pool{
		d: d, mark: o.Mark, log: o.Log, changed: make(chan struct{}),
		given: make(map[paddock.ID]*birth), hidden: make(map[paddock.ID]bool),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	for i, shelf := range o.Shelves {
		s := newStock(shelf)
		if err := p.check(s); err != nil {
			return nil, fmt.Errorf("shelf %d: %w", i, err)
		}
		p.stocks = append(p.stocks, s)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.end = sync.OnceValue(p.shut)
	p.worker.Go(func() { p.work(ctx) })
	return p, nil
}

// HostMemory implements [paddock.MemoryPlanner].
func (p *Pool) HostMemory(tier paddock.Tier, l paddock.Limits) (int64, bool) {
	return paddock.HostMemory(p.d, tier, l)
}

func newStock(shelf Shelf) *stock {
	s := &stock{spec: normal(shelf.Spec), size: shelf.Size, most: shelf.Most, target: shelf.Size, ttl: shelf.TTL, warm: slices.Clone(shelf.Warm)}
	if s.most == 0 {
		s.most = s.size
	}
	return s
}

// check refuses an invalid shelf.
func (p *Pool) check(s *stock) error {
	switch {
	case s.size < 1:
		return fmt.Errorf("a size of %d: %w", s.size, paddock.Invalid)
	case s.most < s.size:
		return fmt.Errorf("at most %d, and at least %d: %w", s.most, s.size, paddock.Invalid)
	case s.ttl < 0 || s.ttl > 0 && s.ttl < time.Second:
		return fmt.Errorf("an age of at most %v, which is less than a second: %w", s.ttl, paddock.Invalid)
	case s.spec.ID != "":
		return fmt.Errorf("the ID %q for several sandboxes: %w", s.spec.ID, paddock.Invalid)
	case !s.spec.Ephemeral && p.mark == "":
		return fmt.Errorf("sandboxes that outlive this process, so that nobody could tell after a crash whether they are unused; set a mark, or make them ephemeral: %w", paddock.Invalid)
	case s.spec.Labels[Label] != "":
		return fmt.Errorf("the label %s, which is the pool's: %w", Label, paddock.Invalid)
	case p.stock(s.spec) != nil:
		return fmt.Errorf("the spec of an earlier shelf: %w", paddock.Invalid)
	}
	return nil
}

// stock returns the shelf for a spec, ignoring labels.
func (p *Pool) stock(spec paddock.Spec) *stock {
	if spec.ID != "" {
		return nil
	}
	spec = normal(spec)
	spec.Labels = nil
	for _, s := range p.stocks {
		have := s.spec
		have.Labels = nil
		if reflect.DeepEqual(have, spec) {
			return s
		}
	}
	return nil
}

// Info returns the wrapped driver's Info.
func (p *Pool) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	return p.d.Info(ctx, tier)
}

// Create implements paddock.Driver.
func (p *Pool) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	s := p.stock(spec)
	if s != nil {
		if sb := p.take(ctx, s, spec.Labels); sb != nil {
			return sb, nil
		}
	}
	p.mu.Lock()
	if s != nil {
		s.missed(time.Now())
	}
	p.waiting++
	p.mu.Unlock()
	sb, err := p.d.Create(ctx, spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting--; p.waiting == 0 {
		p.tell()
	}
	if s != nil && err == nil && s.retry.failures > 0 {
		s.retry, s.lost = retry{}, nil // creation works again
		p.tell()
	}
	return sb, err
}

// Open implements paddock.Driver. It does not find ready sandboxes.
func (p *Pool) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	p.mu.Lock()
	_, hidden := p.hidden[id]
	born := p.given[id]
	p.mu.Unlock()
	if hidden {
		return nil, fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
	}
	sb, err := p.d.Open(ctx, id)
	if err != nil || born == nil {
		return sb, err
	}
	return &sandbox{Sandbox: sb, p: p, born: born}, nil
}

// RemoveSnapshot implements paddock.Driver.
func (p *Pool) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	return p.d.RemoveSnapshot(ctx, id)
}

// List implements paddock.Driver. It leaves out ready sandboxes.
func (p *Pool) List(ctx context.Context) ([]paddock.Status, error) {
	p.mu.Lock()
	p.listing++ // so that removed ones stay hidden meanwhile
	p.mu.Unlock()
	all, err := p.d.List(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	all = slices.DeleteFunc(all, func(st paddock.Status) bool {
		_, hidden := p.hidden[st.ID]
		return hidden
	})
	for i := range all {
		if born := p.given[all[i].ID]; born != nil {
			born.amend(&all[i])
		}
	}
	slices.SortStableFunc(all, func(a, b paddock.Status) int { return a.Created.Compare(b.Created) })
	if p.listing--; p.listing == 0 {
		for id, there := range p.hidden {
			if !there {
				delete(p.hidden, id)
			}
		}
	}
	return all, err
}

// unhide forgets a removed sandbox. A List in progress may have seen it. mu is held.
func (p *Pool) unhide(id paddock.ID) {
	if p.listing > 0 {
		p.hidden[id] = false
	} else {
		delete(p.hidden, id)
	}
}

// Wait waits until all shelves are full at the same time. It returns the error of a shelf
// that was given up.
func (p *Pool) Wait(ctx context.Context) error {
	for {
		full, changed, err := p.full()
		if full || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			kind := paddock.Canceled
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				kind = paddock.Timeout
			}
			return fmt.Errorf("wait for ready sandboxes: %w: %w", kind, ctx.Err())
		}
	}
}

// full reports whether every shelf is full, and otherwise returns a channel that is closed
// at the next change.
func (p *Pool) full() (bool, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, nil, fmt.Errorf("the pool is closed: %w", paddock.Unavailable)
	}
	full := true
	for i, s := range p.stocks {
		if s.lost != nil {
			return false, nil, fmt.Errorf("shelf %d was given up: %w", i, s.lost)
		}
		full = full && len(s.ready) >= s.size
	}
	return full, p.changed, nil
}

// tell wakes everyone who waits for a change. mu is held.
func (p *Pool) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Close waits for the background work, removes the ready sandboxes, and closes the wrapped
// driver.
func (p *Pool) Close() error { return p.end() }

func (p *Pool) shut() error {
	p.mu.Lock()
	p.closed = true
	p.tell()
	p.mu.Unlock()
	p.stop()
	p.worker.Wait()
	p.handing.Wait()

	p.mu.Lock()
	left := p.doomed
	for _, s := range p.stocks {
		for _, sb := range s.ready {
			left = append(left, &doomed{sandbox: sb.Sandbox})
		}
		s.ready = nil
	}
	p.doomed = nil
	p.mu.Unlock()
	var errs []error
	for _, d := range left {
		errs = append(errs, d.remove(context.Background()))
	}
	err := errors.Join(append(errs, p.d.Close())...)

	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.hidden) // from now on List shows all
	return err
}
