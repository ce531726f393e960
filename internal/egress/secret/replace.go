package secret

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// A pair is a text and its replacement.
type pair struct {
	from, to []byte
	name     string // of the secret
}

const (
	// patience is how long a few bytes that may begin a text are held back without further
	// input, because a program may wait for them.
	patience = 20 * time.Millisecond

	// sure is the number of matching bytes that are no accident. They are held back until
	// it is clear what they are.
	sure = 8

	chunk = 32 << 10
)

// An exchange is the set of replacements for one stream.
type exchange struct {
	pairs   []pair
	longest int
	used    func(name string) // called once for each name; may be nil
	seen    map[string]bool

	// late determines what happens to the rest of a text whose first bytes were already
	// returned after patience: it is replaced, or, if a partial text is useless, kept.
	late bool
}

func newExchange(pairs []pair, used func(string), late bool) *exchange {
	x := &exchange{pairs: pairs, used: used, seen: map[string]bool{}, late: late}
	for _, p := range pairs {
		x.longest = max(x.longest, len(p.from))
	}
	return x
}

// apply appends b with replacements to out, as far as the result is certain, and returns
// how much of b that was. The first given bytes of b were already returned and are not
// appended. At the end of a stream everything is certain.
func (x *exchange) apply(out, b []byte, given int, end bool) (grown []byte, done int) {
	next := make([]int, len(x.pairs)) // position of each from done on; -1 if none
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
		// A longer text may begin at or before the same position, and be incomplete.
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

// put appends the replacement of p, of which gone bytes were already returned.
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

// begins returns the first position in b, from done and before limit, at which an
// incomplete text longer than `than` begins, or -1.
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

// appendFrom appends b[from:to] without the first given bytes of b.
func appendFrom(out, b []byte, from, to, given int) []byte {
	from = max(from, given)
	if from >= to {
		return out
	}
	return append(out, b[from:to]...)
}

// bytesOf applies the replacements to a whole text.
func (x *exchange) bytesOf(b []byte) []byte {
	out, _ := x.apply(nil, b, 0, true)
	return out
}

// A stream is a reader with replacements. It holds back bytes that may begin a text until
// more arrive, and a few bytes only for patience. It holds at most two chunks, and has a
// goroutine while it waits for more.
type stream struct {
	r io.Reader
	x *exchange

	in    []byte // read, not certain
	given int    // bytes of in that were already returned
	out   []byte // to be returned, starting at the offset at
	at    int
	err   error // from r

	pending chan struct{} // closed when a read in the background has ended
	mu      sync.Mutex
	closed  bool // guarded by mu
	wg      sync.WaitGroup
	ahead   []byte // buffer of that read
	n       int    // bytes that it read
	aheadE  error
}

func newStream(r io.Reader, x *exchange) *stream { return &stream{r: r, x: x} }

// Read returns bytes that are certain.
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

// fill reads once, or stops holding back bytes after patience.
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

// take applies replacements to the bytes that were read.
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

// Close closes the underlying reader and waits for a pending read.
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
