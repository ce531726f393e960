package secret

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// A pair is a text and what comes in its place.
type pair struct {
	from, to []byte
	name     string // of the secret
}

const (
	// patience is how long a few bytes that may begin a text are held back
	// while nothing else comes: a program may wait for them.
	patience = 20 * time.Millisecond

	// sure is how many bytes are no accident: they are held back until it is
	// clear what they are.
	sure = 8

	chunk = 32 << 10
)

// An exchange is how a stream is changed. It is for one stream.
type exchange struct {
	pairs   []pair
	longest int
	used    func(name string) // told each name once; nil is nobody
	seen    map[string]bool

	// late says what is done with a text of which some bytes were given away
	// already, because patience was over: its rest is replaced, or, where half a
	// text is of no use, left.
	late bool
}

func newExchange(pairs []pair, used func(string), late bool) *exchange {
	x := &exchange{pairs: pairs, used: used, seen: map[string]bool{}, late: late}
	for _, p := range pairs {
		x.longest = max(x.longest, len(p.from))
	}
	return x
}

// apply appends what b becomes to out, as far as that is certain, and gives how much of
// b that was. The first given bytes of b went out before and are not appended.
// At the end of a stream everything is certain.
func (x *exchange) apply(out, b []byte, given int, end bool) (grown []byte, done int) {
	next := make([]int, len(x.pairs)) // where each is found from done on; -1: nowhere
	for i := range x.pairs {
		next[i] = -2
	}
	for {
		best := -1
		for i, p := range x.pairs {
			if next[i] == -2 || next[i] >= 0 && next[i] < done {
				next[i] = bytes.Index(b[done:], p.from)
				if next[i] >= 0 {
					next[i] += done
				}
			}
			if next[i] < 0 {
				continue
			}
			if best < 0 || next[i] < next[best] || next[i] == next[best] && len(p.from) > len(x.pairs[best].from) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		// A longer text may begin before or at the same place and not be whole.
		if from := x.begins(b, done, next[best]+1, len(x.pairs[best].from)); !end && from >= 0 {
			return appendFrom(out, b, done, from, given), from
		}
		p, at := x.pairs[best], next[best]
		out = appendFrom(out, b, done, at, given)
		done = at + len(p.from)
		out = x.put(out, p, given-at)
	}
	rest := len(b)
	if !end {
		if from := x.begins(b, done, len(b), 0); from >= 0 {
			rest = from
		}
	}
	return appendFrom(out, b, done, rest, given), rest
}

// put appends what comes in the place of p, of which gone bytes went out.
func (x *exchange) put(out []byte, p pair, gone int) []byte {
	if gone > 0 && !x.late {
		return append(out, p.from[min(gone, len(p.from)):]...)
	}
	if x.used != nil && !x.seen[p.name] {
		x.seen[p.name] = true
		x.used(p.name)
	}
	return append(out, p.to[min(max(gone, 0), len(p.to)):]...)
}

// begins gives the first place in b, from done and before limit, where a text of
// more than so many bytes begins that b does not hold whole; -1 is nowhere.
func (x *exchange) begins(b []byte, done, limit, than int) int {
	for at := max(done, len(b)-x.longest+1); at < limit; at++ {
		for _, p := range x.pairs {
			if len(p.from) > than && len(p.from) > len(b)-at && bytes.HasPrefix(p.from, b[at:]) {
				return at
			}
		}
	}
	return -1
}

// appendFrom appends b[from:to] without the bytes before given.
func appendFrom(out, b []byte, from, to, given int) []byte {
	from = max(from, given)
	if from >= to {
		return out
	}
	return append(out, b[from:to]...)
}

// bytesOf changes a whole text.
func (x *exchange) bytesOf(b []byte) []byte {
	out, _ := x.apply(nil, b, 0, true)
	return out
}

// A stream is a reader whose bytes are exchanged. What may be the begin of a text is
// held back until more comes; a few bytes for patience only. It holds two chunks
// at most, and a goroutine as long as something is held back and waited for.
type stream struct {
	r io.Reader
	x *exchange

	in    []byte // read, and not certain
	given int    // bytes of in that went out before they were certain
	out   []byte // to be given, from at on
	at    int
	err   error // of r

	pending chan struct{} // closed when a read in the background is over
	mu      sync.Mutex
	closed  bool // guarded by mu
	wg      sync.WaitGroup
	ahead   []byte // it reads into this
	n       int    // and got so much
	aheadE  error
}

func newStream(r io.Reader, x *exchange) *stream { return &stream{r: r, x: x} }

// Read gives what is certain.
func (s *stream) Read(b []byte) (int, error) {
	for s.at == len(s.out) {
		s.out, s.at = s.out[:0], 0
		if s.err != nil {
			if len(s.in) == 0 {
				return 0, s.err
			}
			s.flush(true)
			continue
		}
		s.fill()
	}
	n := copy(b, s.out[s.at:])
	s.at += n
	return n, nil
}

// fill reads once, or gives up what was held back too long.
func (s *stream) fill() {
	if s.ahead == nil {
		s.ahead = make([]byte, chunk)
	}
	hold := len(s.in) - s.given
	if s.pending == nil && (hold == 0 || len(s.in) >= sure) {
		s.n, s.aheadE = s.r.Read(s.ahead)
		s.take()
		return
	}
	if s.pending == nil && !s.begin() {
		s.err = io.ErrClosedPipe
		return
	}
	if hold == 0 || len(s.in) >= sure {
		<-s.pending
	} else {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-s.pending:
		case <-timer.C:
			s.out = append(s.out, s.in[s.given:]...)
			s.given = len(s.in)
			return
		}
	}
	s.pending = nil
	s.take()
}

// begin reads in the background, unless the stream is closed.
func (s *stream) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	pending := make(chan struct{})
	s.pending = pending
	s.wg.Go(func() {
		defer close(pending)
		s.n, s.aheadE = s.r.Read(s.ahead)
	})
	return true
}

// take exchanges what was read.
func (s *stream) take() {
	s.in = append(s.in, s.ahead[:s.n]...)
	s.err = s.aheadE
	s.flush(false)
}

func (s *stream) flush(end bool) {
	out, done := s.x.apply(s.out, s.in, s.given, end)
	s.out = out
	s.in = append(s.in[:0], s.in[done:]...)
	s.given = max(0, s.given-done)
}

// Close closes what is read from and waits until nobody reads it.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var err error
	if c, ok := s.r.(io.Closer); ok {
		err = c.Close()
	}
	s.wg.Wait()
	return err
}
