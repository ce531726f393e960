package regex

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A dfa is the deterministic automaton of a byteProg, built while it runs. Its
// memory is bounded: when the bound is reached it forgets all and starts again
// from the state that it is in.
type dfa struct {
	p        *byteProg
	meter    *gauge
	anchored bool // a match starts where the run starts
	exists   bool // the question is only whether a match ends here
	stride   int
	trans    []int32 // [state+class], see the constants below
	states   []dstate
	known    map[string]int32
	starts   [8]int32
	memory   int
	skip     searcher // for what every match starts with, or nil

	// Scratch space.
	mark  []uint32
	gen   uint32
	queue []uint32
	next  []uint32
	stack []uint32
	key   []byte
}

// A state number is the index of its row in trans. Below zero stands what the
// loop has to look at.
const (
	unknown  = -1
	dead     = -2
	quit     = -3
	special  = -4 // minus the state: it says that a match ended before the byte
	maxCache = 1 << 20
)

// A dstate is a set of instructions. Groups of them, one for each place where
// a match may have started, are divided by newGroup, the earliest first.
type dstate struct {
	insts   []uint32
	before  side
	decided bool // a match was seen: no later start is of interest
	match   bool
}

const newGroup = ^uint32(0)

// A side is what an assertion can ask about one side of a position.
type side uint8

const (
	edge side = 1 << iota
	newline
	wordChar
)

func holds(op assertion, before, after side) bool {
	switch op {
	case aBeginText:
		return before&edge != 0
	case aEndText:
		return after&edge != 0
	case aBeginLine:
		return before&(edge|newline) != 0
	case aEndLine:
		return after&(edge|newline) != 0
	case aWordEdge:
		return (before^after)&wordChar != 0
	case aNotWordEdge:
		return (before^after)&wordChar == 0
	case aWordStart:
		return before&wordChar == 0 && after&wordChar != 0
	case aWordEnd:
		return before&wordChar != 0 && after&wordChar == 0
	case aNoWordBefore:
		return before&wordChar == 0
	case aNoWordAfter:
		return after&wordChar == 0
	default:
		return false
	}
}

func newDFA(p *byteProg, m *gauge, anchored, exists bool) *dfa {
	d := &dfa{p: p, meter: m, anchored: anchored, exists: exists, stride: len(p.samples) + 1}
	d.mark = make([]uint32, len(p.insts))
	d.forget()
	return d
}

func (d *dfa) forget() {
	d.trans = d.trans[:0]
	d.states = d.states[:0]
	d.known = make(map[string]int32)
	d.memory = 0
	for i := range d.starts {
		d.starts[i] = unknown
	}
}

// sideOf is the side that byte c makes, as far as the program asks.
func (d *dfa) sideOf(c byte) side {
	var x side
	if d.p.sep >= 0 && c == byte(d.p.sep) {
		x |= edge
	}
	if c == '\n' {
		x |= newline
	}
	if d.p.words && isWord(rune(c), true) {
		x |= wordChar
	}
	return x
}

// start gives the state before anything was read, where the byte on the other
// side of the position makes side x.
func (d *dfa) start(x side) int32 {
	if s := d.starts[x]; s != unknown {
		return s
	}
	d.queue = d.queue[:0]
	d.newGen()
	d.queue = d.follow(d.queue, d.p.start, x, 0, false)
	s := d.intern(d.queue, x, false, false)
	d.starts[x] = s
	return s
}

func (d *dfa) newGen() {
	d.gen++
	if d.gen == 0 {
		clear(d.mark)
		d.gen = 1
	}
}

// follow appends what can be reached from pc without a byte. Assertions are
// decided when both sides are known, and stay in the list otherwise, but for
// those that the known side decides alone.
func (d *dfa) follow(q []uint32, pc uint32, known, other side, both bool) []uint32 {
	d.stack = append(d.stack[:0], pc)
	for len(d.stack) > 0 {
		pc = d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		for d.mark[pc] != d.gen {
			d.mark[pc] = d.gen
			in := &d.p.insts[pc]
			switch in.op {
			case bSplit:
				d.stack = append(d.stack, in.arg)
				pc = in.out
				continue
			case bAssert:
				yes, decided := d.decide(assertion(in.arg), known, other, both)
				if decided {
					if yes {
						pc = in.out
						continue
					}
				} else {
					q = append(q, pc)
				}
			case bFail:
			default:
				q = append(q, pc)
			}
			break
		}
	}
	return q
}

func (d *dfa) decide(op assertion, known, other side, both bool) (yes, decided bool) {
	before, after := known, other
	if d.p.reverse {
		before, after = other, known
	}
	if both {
		return holds(op, before, after), true
	}
	switch op {
	case aBeginText, aBeginLine, aNoWordBefore:
		return holds(op, before, after), !d.p.reverse
	case aEndText, aEndLine, aNoWordAfter:
		return holds(op, before, after), d.p.reverse
	case aWordStart, aWordEnd:
		// Half of it may be known to fail.
		word := known&wordChar != 0
		if word == (op == aWordStart) != d.p.reverse {
			return false, true
		}
	default:
	}
	return false, false
}

func (d *dfa) intern(insts []uint32, x side, decided, match bool) int32 {
	if len(insts) == 0 && !match && (decided || d.anchored) {
		return dead
	}
	asks := false
	for _, pc := range insts {
		if pc != newGroup && d.p.insts[pc].op == bAssert {
			asks = true
			break
		}
	}
	if !asks {
		x = 0
	}
	if d.p.longest || d.exists {
		for i := 0; i < len(insts); {
			j := i
			for j < len(insts) && insts[j] != newGroup {
				j++
			}
			slices.Sort(insts[i:j])
			i = j + 1
		}
	}
	key := append(d.key[:0], byte(x))
	if decided {
		key[0] |= 0x40
	}
	if match {
		key[0] |= 0x80
	}
	for _, pc := range insts {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	d.key = key
	if s, ok := d.known[string(key)]; ok {
		return s
	}
	s := int32(len(d.trans))
	for range d.stride {
		d.trans = append(d.trans, unknown)
	}
	d.states = append(d.states, dstate{insts: slices.Clone(insts), before: x, decided: decided, match: match})
	d.memory += 2*len(key) + 4*d.stride + 128
	d.known[string(key)] = s
	return s
}

func (d *dfa) row(s int32) *dstate { return &d.states[int(s)/d.stride] }

// step computes where state s goes on class c, which is d.stride-1 for the end
// of the text. When the cache is full it is emptied first, so s is not valid
// afterwards unless the returned state is.
func (d *dfa) step(s int32, c int) (int32, error) {
	st := *d.row(s)
	end := c == d.stride-1
	sample, x := byte(0), edge
	if !end {
		sample = d.p.samples[c]
		if d.p.ascii && sample >= 0x80 {
			d.trans[int(s)+c] = quit
			return quit, nil
		}
		x = d.sideOf(sample)
	}
	if err := d.meter.step(len(st.insts) + 8); err != nil {
		return dead, err
	}
	fresh := !d.anchored && !st.decided
	q, matched := d.resolve(&st, x)
	decided := st.decided || matched
	d.next = d.next[:0]
	d.newGen()
	edgeByte := !end && d.p.sep >= 0 && sample == byte(d.p.sep)
	if !end && !edgeByte {
		for _, pc := range q {
			if pc == newGroup {
				if n := len(d.next); n > 0 && d.next[n-1] != newGroup {
					d.next = append(d.next, newGroup)
				}
				continue
			}
			if out, ok := d.p.accept(pc, sample); ok {
				d.next = d.follow(d.next, out, x, 0, false)
			}
		}
	}
	if !end && fresh && !matched {
		if n := len(d.next); !d.exists && d.p.longest && n > 0 && d.next[n-1] != newGroup {
			d.next = append(d.next, newGroup)
		}
		d.next = d.follow(d.next, d.p.start, x, 0, false)
	}
	if n := len(d.next); n > 0 && d.next[n-1] == newGroup {
		d.next = d.next[:n-1]
	}
	if d.memory > maxCache {
		d.forget()
		s = -1
	}
	t := d.intern(d.next, x, decided, matched)
	if t >= 0 {
		if matched {
			t = special - t
		} else if end {
			t = dead
		} else if d.idles(t, x) {
			t = special - t
		}
	}
	if s >= 0 {
		d.trans[int(s)+c] = t
	}
	return t, nil
}

// resolve decides the assertions of st now that the byte after it makes
// side x, and cuts off what a match makes pointless.
func (d *dfa) resolve(st *dstate, x side) (q []uint32, matched bool) {
	q = d.queue[:0]
	d.newGen()
	for _, pc := range st.insts {
		if pc == newGroup {
			if matched {
				break
			}
			if n := len(q); n > 0 && q[n-1] != newGroup {
				q = append(q, newGroup)
			}
			continue
		}
		from := len(q)
		if d.p.insts[pc].op == bAssert {
			q = d.follow(q, pc, st.before, x, true)
		} else if d.mark[pc] != d.gen {
			d.mark[pc] = d.gen
			q = append(q, pc)
		}
		if i := slices.IndexFunc(q[from:], func(pc uint32) bool {
			return pc != newGroup && d.p.insts[pc].op == bMatch
		}); i >= 0 {
			matched = true
			if !d.p.longest {
				q = q[:from+i]
				break
			}
		}
	}
	d.queue = q
	return q, matched
}

// accept says where instruction pc goes on byte c.
func (p *byteProg) accept(pc uint32, c byte) (uint32, bool) {
	in := &p.insts[pc]
	switch in.op {
	case bRange:
		return in.out, in.lo <= c && c <= in.hi
	case bSparse:
		for _, a := range p.sparse[in.arg] {
			if c <= a.hi {
				return a.out, a.lo <= c
			}
		}
	default:
	}
	return 0, false
}

type verdict uint8

const (
	nothing verdict = iota
	found
	undecided // a byte came up that the program does not know
)

// forward runs over b from from. It returns where the match ends that the
// flavour prefers; with exists, where any match ends first. For undecided, end
// is where the run stopped.
func (d *dfa) forward(b []byte, from int) (end int, v verdict, err error) {
	if err := d.meter.step(8); err != nil {
		return 0, nothing, err
	}
	x := edge
	if from > 0 {
		c := b[from-1]
		if d.p.words && d.p.ascii && c >= 0x80 {
			return from, undecided, nil
		}
		x = d.sideOf(c)
	}
	s := d.start(x)
	if s == dead {
		return 0, nothing, nil
	}
	last := -1
	i := from
	if d.idles(s, x) {
		if i, s, v = d.jump(b, i, s); v != found {
			return i, v, nil
		}
	}
	for i < len(b) {
		stop := min(len(b), i+meterBlock)
		begun := i
		var t int32
		i, s, t = d.scan(b[:stop], i, s)
		if err := d.meter.step((i - begun) >> 4); err != nil {
			return 0, nothing, err
		}
		if t >= 0 {
			continue
		}
		if t == unknown {
			if t, err = d.step(s, int(d.p.classes[b[i-1]])); err != nil {
				return 0, nothing, err
			}
		}
		switch {
		case t >= 0:
			s = t
		case t == dead:
			return last, ended(last), nil
		case t == quit:
			return i - 1, undecided, nil
		default:
			s = special - t
			if d.row(s).match {
				last = i - 1
				if d.exists {
					return last, found, nil
				}
				continue
			}
			if i, s, v = d.jump(b, i, s); v != found {
				return i, v, nil
			}
		}
	}
	t := d.trans[int(s)+d.stride-1]
	if t == unknown {
		if t, err = d.step(s, d.stride-1); err != nil {
			return 0, nothing, err
		}
	}
	if t <= special {
		last = len(b)
	}
	return last, ended(last), nil
}

// idles says whether state s, reached in side x, waits for something that is
// found faster than byte by byte.
func (d *dfa) idles(s int32, x side) bool {
	if d.anchored || d.row(s).match || d.row(s).decided {
		return false
	}
	return d.skip != nil && s == d.start(x) || d.stuck(s)
}

// stuck says whether nothing can match before the next line.
func (d *dfa) stuck(s int32) bool {
	return d.p.sep >= 0 && !d.p.words && !d.p.newline && len(d.row(s).insts) == 0
}

// jump moves on from an idle state.
func (d *dfa) jump(b []byte, i int, s int32) (at int, state int32, v verdict) {
	if d.stuck(s) {
		k := bytes.IndexByte(b[i:], byte(d.p.sep))
		if k < 0 {
			return -1, s, nothing
		}
		return i + k, s, found
	}
	k := d.skip.index(b, i)
	if k < 0 {
		return -1, s, nothing
	}
	if k > i && d.p.asserts {
		c := b[k-1]
		if d.p.words && d.p.ascii && c >= 0x80 {
			return k, s, undecided
		}
		s = d.start(d.sideOf(c))
	}
	return k, s, found
}

func ended(last int) verdict {
	if last < 0 {
		return nothing
	}
	return found
}

// scan runs from state s at i until a transition needs a look, which is then
// t, and has i behind its byte.
func (d *dfa) scan(b []byte, i int, s int32) (at int, state, t int32) {
	trans, classes := d.trans, &d.p.classes
	for i+4 <= len(b) {
		q := b[i : i+4 : i+4]
		t = trans[int(s)+int(classes[q[0]])]
		if t < 0 {
			return i + 1, s, t
		}
		s = trans[int(t)+int(classes[q[1]])]
		if s < 0 {
			return i + 2, t, s
		}
		t = trans[int(s)+int(classes[q[2]])]
		if t < 0 {
			return i + 3, s, t
		}
		s = trans[int(t)+int(classes[q[3]])]
		if s < 0 {
			return i + 4, t, s
		}
		i += 4
	}
	for i < len(b) {
		t = trans[int(s)+int(classes[b[i]])]
		i++
		if t < 0 {
			return i, s, t
		}
		s = t
	}
	return i, s, 0
}

// backward runs a reverse program from end down to from and returns where the
// longest match that ends at end starts.
func (d *dfa) backward(b []byte, from, end int) (start int, v verdict, err error) {
	x := edge
	if end < len(b) {
		c := b[end]
		if d.p.words && d.p.ascii && c >= 0x80 {
			return end, undecided, nil
		}
		x = d.sideOf(c)
	}
	if err := d.meter.step((end-from)>>4 + 8); err != nil {
		return 0, nothing, err
	}
	s := d.start(x)
	last := -1
	for i := end; s >= 0; {
		c := d.stride - 1
		if i > 0 {
			c = int(d.p.classes[b[i-1]])
		}
		t := d.trans[int(s)+c]
		if t == unknown {
			if t, err = d.step(s, c); err != nil {
				return 0, nothing, err
			}
		}
		if t == quit {
			if i == from && !d.p.asserts {
				// What stands before from does not matter.
				if t, err = d.step(s, d.stride-1); err != nil {
					return 0, nothing, err
				}
			} else {
				return i, undecided, nil
			}
		}
		if t <= special {
			last = i
			t = special - t
		}
		if t < 0 || i == from || i == 0 {
			break
		}
		i--
		s = t
	}
	return last, ended(last), nil
}
