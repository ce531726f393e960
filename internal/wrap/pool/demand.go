package pool

import (
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// calmTime is how long no Create finds a shelf empty before it keeps one less.
const calmTime = time.Minute

// A Count is what happened on a shelf since the pool was made.
type Count struct {
	Ready  int // now
	Target int // how many are kept, now

	Hits    uint64 // Creates that took a ready sandbox
	Misses  uint64 // Creates of the shelf's spec that the driver had to serve
	Made    uint64 // sandboxes that were put on the shelf
	Failed  uint64 // that could not be
	Expired uint64 // that were too old
	Spoiled uint64 // that could not be handed out
}

// Counts tells of every shelf, in the order of Options.
func (p *Pool) Counts() []Count {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := make([]Count, len(p.stocks))
	for i, s := range p.stocks {
		counts[i] = s.count
		counts[i].Ready, counts[i].Target = len(s.ready), s.target
	}
	return counts
}

// Ready gives the spec of every sandbox that is ready: who counts what a machine has
// to bear counts these too. It is not to be changed.
func (p *Pool) Ready() []paddock.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []paddock.Spec
	for _, s := range p.stocks {
		for range s.ready {
			all = append(all, s.spec)
		}
	}
	return all
}

// missed has one more kept, with mu held: there were too few.
func (s *stock) missed(now time.Time) {
	s.count.Misses++
	s.calm = now
	if len(s.ready) == 0 && s.lost == nil {
		s.target = min(s.most, s.target+1)
	}
}

// tidy takes from a shelf what is too old or too many, with mu held.
func (p *Pool) tidy(s *stock, now time.Time, due func(time.Time) bool) {
	for s.target > s.size && due(s.calm.Add(calmTime)) {
		s.target--
		s.calm = s.calm.Add(calmTime)
		if len(s.ready) > s.target {
			p.discard(s)
		}
	}
	p.expire(s, now)
	if s.ttl > 0 && len(s.ready) > 0 {
		due(s.ready[0].made.Add(s.ttl))
	}
}

// expire takes what is too old from a shelf, with mu held.
func (p *Pool) expire(s *stock, now time.Time) {
	for s.ttl > 0 && len(s.ready) > 0 && !s.ready[0].made.Add(s.ttl).After(now) {
		s.count.Expired++
		p.discard(s)
	}
}

// discard has the worker remove the oldest sandbox of a shelf, with mu held.
func (p *Pool) discard(s *stock) {
	p.doomed = append(p.doomed, &doomed{sandbox: s.ready[0].Sandbox})
	s.ready = slices.Delete(s.ready, 0, 1)
	p.tell()
}
