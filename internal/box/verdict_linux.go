package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// Verdicts are the newest events of a monitor, for whoever follows them from another process. Who asks for those after a number
// has all up to it, so that nobody who follows next gets them again.
type verdicts struct {
	mu   sync.Mutex
	list []audit.Event // guarded by mu: not yet had
	last int64         // guarded by mu: number of the newest event
	lost uint64        // guarded by mu: that nobody had before there were too many
	more chan struct{} // guarded by mu: closed at the next event; nil if nobody waits
}

// Bounds of what is kept for who follows, and of one answer.
const (
	maxVerdicts     = 500
	maxVerdictBytes = 100 << 10 // as JSON
	verdictTime     = 30 * time.Second
)

// put adds an event.
func (v *verdicts) put(e audit.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.list) == maxVerdicts {
		v.list = append(v.list[:0], v.list[1:]...)
		v.lost++
	}
	v.list = append(v.list, e)
	v.last++
	if v.more != nil {
		close(v.more)
		v.more = nil
	}
}

// after waits for events after a number, until ctx ends or a while is over, and returns them with the number of the newest of
// them.
func (v *verdicts) after(ctx context.Context, number int64) (list []audit.Event, last int64) {
	ctx, cancel := context.WithTimeout(ctx, verdictTime)
	defer cancel()
	for {
		list, last, more := v.next(number)
		if more == nil {
			return list, last
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, last
		}
	}
}

func (v *verdicts) next(number int64) (list []audit.Event, last int64, more <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	first := v.last - int64(len(v.list)) // number of the last event that somebody had
	if number = min(number, v.last); number > first {
		v.list = append(v.list[:0], v.list[number-first:]...)
		first = number
	}
	if len(v.list) == 0 {
		if v.more == nil {
			v.more = make(chan struct{})
		}
		return nil, first, v.more
	}
	if v.lost > 0 {
		list = append(list, audit.Event{Time: time.Now(), Sandbox: v.list[0].Sandbox, Kind: audit.Lost, Dropped: v.lost})
		v.lost = 0
	}
	size := 0
	last = first
	for _, e := range v.list {
		data, err := json.Marshal(e)
		if size += len(data); last > first && (err != nil || size > maxVerdictBytes) {
			break
		}
		list = append(list, e)
		last++
	}
	return list, last, nil
}

// FollowMonitor waits for events of the sandbox's monitor after a number, for up to half a minute, and returns them with the
// number of the newest. Zero is for those that nobody has followed. To ask for those after a number says that the others need
// not be kept any more. A sandbox that nothing owns has no events: the error is [paddock.Unavailable].
func (s *Sandbox) FollowMonitor(ctx context.Context, after int64) ([]audit.Event, int64, error) {
	var list []audit.Event
	var last int64
	var err error
	switch o := s.owner.(type) {
	case *Life:
		if o.guard == nil {
			return nil, 0, fmt.Errorf("sandbox %s: %w", s.id, errUnmonitored())
		}
		list, last = o.guard.told.after(ctx, after)
	case remoteOwner:
		list, last, err = o.verdicts(ctx, after)
	default:
		err = fmt.Errorf("an owner of another kind: %w", paddock.Internal)
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), EndKind(ctx.Err()))
	}
	if err != nil {
		return nil, 0, fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	return list, last, nil
}

// verdicts asks the keeper.
func (r remoteOwner) verdicts(ctx context.Context, after int64) ([]audit.Event, int64, error) {
	got, err := r.ask(ctx, request{Op: "verdicts", After: after})
	if errors.Is(err, paddock.Unavailable) {
		if _, e := r.read(); e != nil {
			err = e
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return got.Events, got.Last, nil
}
