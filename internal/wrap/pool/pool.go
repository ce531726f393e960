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

// Options say what is kept ready.
type Options struct {
	Shelves []Shelf

	// Mark is the value of the label [Label] on ready sandboxes that outlive this
	// process. No other pool of the driver has the same, it stays the same from
	// one process to the next, and no caller knows it. Without it shelves are of
	// ephemeral sandboxes alone.
	Mark string

	// Log is told what goes wrong in the background; nil is no one.
	Log *slog.Logger
}

// A Shelf is sandboxes of one spec that are kept ready.
type Shelf struct {
	Spec paddock.Spec // without an ID; ephemeral, or Options.Mark is set
	Size int          // how many, at least

	// Most is how many where Size proves too few: each Create that finds the
	// shelf empty has one more kept, and each minute without such a Create one
	// less. Zero is Size.
	Most int

	// TTL is how old a sandbox becomes on the shelf: an older one is handed out
	// to nobody, and replaced. Zero is any age.
	TTL time.Duration

	// Warm is a program, with its arguments, that runs in each sandbox before it
	// is ready. What it read the next command finds read: a first command takes
	// longer than a second one, most where the kernel is the sandbox's own. It
	// must end with status 0. Who takes the sandbox sees it among Processes, and
	// its processor time in Usage. Empty is none.
	Warm []string
}

// A Pool is a driver that keeps sandboxes ready. Make one with [New].
type Pool struct {
	d      paddock.Driver
	mark   string
	log    *slog.Logger
	stop   context.CancelFunc // ends what the worker does
	worker sync.WaitGroup
	end    func() error // what Close does, once

	mu      sync.Mutex
	closed  bool                  // guarded by mu
	stocks  []*stock              // their fields are guarded by mu
	doomed  []*doomed             // guarded by mu; to be removed
	handing sync.WaitGroup        // sandboxes between shelf and caller; Add only with mu held, before closed
	given   map[paddock.ID]*birth // guarded by mu; sandboxes that callers have
	hidden  map[paddock.ID]bool   // guarded by mu; sandboxes that only the pool knows; false if gone
	listing int                   // guarded by mu; how many Lists are under way
	waiting int                   // guarded by mu; how many Creates wait for the driver
	held    time.Time             // guarded by mu; since when they keep the worker waiting; zero if not
	fixed   bool                  // guarded by mu; the driver cannot change labels
	changed chan struct{}         // guarded by mu; closed, and made anew, when any of this changes
}

// A stock is what is on a shelf.
type stock struct {
	spec   paddock.Spec // as normal gives it
	size   int          // the least
	most   int
	target int       // how many now: from size to most
	calm   time.Time // when the target was changed, or too few, last
	ttl    time.Duration
	warm   []string
	ready  []kept        // oldest first
	short  time.Time     // when it ceased to be full
	taken  time.Time     // when one was taken last
	took   time.Duration // how long it took to make the last one
	retry  retry         // after failures to make one
	lost   error         // why it was given up; nil if it was not
	count  Count
}

// A kept sandbox is one that is ready.
type kept struct {
	paddock.Sandbox
	made time.Time
}

// New fills the shelves in the background; [Pool.Wait] waits for that. Where
// there is a mark, [Clean] is to be called before. The driver is the pool's from
// here on, and is closed with it. Of an error it stays the caller's.
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

func newStock(shelf Shelf) *stock {
	s := &stock{spec: normal(shelf.Spec), size: shelf.Size, most: shelf.Most, target: shelf.Size, ttl: shelf.TTL, warm: slices.Clone(shelf.Warm)}
	if s.most == 0 {
		s.most = s.size
	}
	return s
}

// check refuses a shelf that cannot be.
func (p *Pool) check(s *stock) error {
	switch {
	case s.size < 1:
		return fmt.Errorf("a size of %d: %w", s.size, paddock.Invalid)
	case s.most < s.size:
		return fmt.Errorf("at most %d, and at least %d: %w", s.most, s.size, paddock.Invalid)
	case s.ttl < 0 || s.ttl > 0 && s.ttl < time.Second:
		return fmt.Errorf("an age of at most %v, which is less than a second: %w", s.ttl, paddock.Invalid)
	case s.spec.ID != "":
		return fmt.Errorf("an ID, %q, for sandboxes that are many: %w", s.spec.ID, paddock.Invalid)
	case !s.spec.Ephemeral && p.mark == "":
		return fmt.Errorf("sandboxes that outlive this process, of which nobody would know after a crash whether they are unused; give a mark, or make them ephemeral: %w", paddock.Invalid)
	case s.spec.Labels[Label] != "":
		return fmt.Errorf("the label %s, which is the pool's: %w", Label, paddock.Invalid)
	case p.stock(s.spec) != nil:
		return fmt.Errorf("the spec of an earlier shelf: %w", paddock.Invalid)
	}
	return nil
}

// stock finds the shelf for a spec, whatever its labels.
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

// Info is the driver's: to be quicker is nothing that it tells.
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
		s.retry, s.lost = retry{}, nil // it can be made now
		p.tell()
	}
	return sb, err
}

// Open implements paddock.Driver. A ready sandbox is not found.
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

// List implements paddock.Driver. Ready sandboxes are left out.
func (p *Pool) List(ctx context.Context) ([]paddock.Status, error) {
	p.mu.Lock()
	p.listing++ // so that what goes meanwhile stays hidden
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

// unhide forgets a sandbox that is gone, with mu held. A List under way may
// have seen it.
func (p *Pool) unhide(id paddock.ID) {
	if p.listing > 0 {
		p.hidden[id] = false
	} else {
		delete(p.hidden, id)
	}
}

// Wait waits until every shelf is full at once. A shelf that was given up is an
// error, which says why.
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

// full tells whether every shelf is, and if not, when to ask again.
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

// tell wakes all who wait for a change, with mu held.
func (p *Pool) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Close waits for what the pool does in the background, removes the sandboxes
// that are ready, and closes the driver.
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
	clear(p.hidden) // now the driver answers for all
	return err
}
