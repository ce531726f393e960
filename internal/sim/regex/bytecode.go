package regex

import (
	"slices"
	"unicode/utf8"
)

// A byteProg is a non-deterministic automaton over bytes, the source of the
// lazy automaton in dfa.go. It has no captures. Where the pattern has what an
// automaton cannot do, the program accepts more than the pattern (approx).
type byteProg struct {
	insts   []byteInst
	sparse  [][]arc
	start   uint32
	longest bool
	reverse bool
	ascii   bool // every byte above 0x7f ends the run undecided
	asserts bool
	words   bool // an assertion asks for word characters
	newline bool // or for newlines
	sep     int  // the byte that ends a line, -1 for none
	classes [256]uint8
	samples []byte // one byte of each class
}

type byteOp uint8

const (
	bMatch  byteOp = iota
	bFail          // no way on
	bRange         // a byte from lo to hi, then out
	bSparse        // the arc of sparse[arg] that has the byte
	bSplit         // out first, then arg
	bAssert        // out where assertion arg holds
)

type byteInst struct {
	op     byteOp
	lo, hi byte
	out    uint32
	arg    uint32
}

// An arc leads to out for the bytes lo to hi. Arcs of one instruction are
// sorted and do not overlap.
type arc struct {
	lo, hi byte
	out    uint32
}

type byteCompiler struct {
	p     *byteProg
	bytes bool
	full  bool // the program has outgrown maxSize
}

// compileBytes makes the program of n. With ascii it knows nothing above 0x7f.
func compileBytes(n *node, opt *Options, reverse, ascii bool) (*byteProg, error) {
	c := &byteCompiler{
		p: &byteProg{
			longest: opt.Flavour != Perl || reverse,
			reverse: reverse,
			ascii:   ascii,
			sep:     opt.separator(),
		},
		bytes: opt.Bytes,
	}
	c.p.start = c.node(n, c.add(byteInst{op: bMatch}))
	if c.full {
		return nil, syntaxErrorf(msgTooBig)
	}
	c.p.classify()
	return c.p, nil
}

func (o *Options) separator() int {
	switch {
	case !o.Lines:
		return -1
	case o.NULSep:
		return 0
	default:
		return '\n'
	}
}

func (c *byteCompiler) add(i byteInst) uint32 {
	if len(c.p.insts) > 4*maxSize {
		c.full = true
		return 0
	}
	c.p.insts = append(c.p.insts, i)
	return uint32(len(c.p.insts) - 1)
}

// node compiles n to be followed by next and returns where it starts.
func (c *byteCompiler) node(n *node, next uint32) uint32 {
	if c.full {
		return 0
	}
	switch n.kind {
	case kFail:
		return c.add(byteInst{op: bFail})
	case kSet:
		return c.set(n.set, next)
	case kCat:
		for i := range n.sub {
			s := n.sub[i]
			if !c.p.reverse {
				s = n.sub[len(n.sub)-1-i]
			}
			next = c.node(s, next)
		}
		return next
	case kAlt:
		at := c.node(n.sub[len(n.sub)-1], next)
		for i := len(n.sub) - 2; i >= 0; i-- {
			first := c.node(n.sub[i], next)
			at = c.add(byteInst{op: bSplit, out: first, arg: at})
		}
		return at
	case kRepeat:
		return c.repeat(n, next)
	case kGroup, kAtomic:
		return c.node(n.sub[0], next)
	case kAssert:
		c.p.asserts = true
		switch n.op {
		case aBeginLine, aEndLine:
			c.p.newline = true
		case aWordEdge, aNotWordEdge, aWordStart, aWordEnd, aNoWordBefore, aNoWordAfter:
			c.p.words = true
		default:
		}
		return c.add(byteInst{op: bAssert, arg: uint32(n.op), out: next})
	case kBackref:
		loop := c.add(byteInst{op: bSplit, arg: next})
		c.p.insts[loop].out = c.anyByte(loop)
		return loop
	default: // kEmpty, and kLook and kKeep in an approximation
		return next
	}
}

// anyByte accepts every byte but the separator.
func (c *byteCompiler) anyByte(next uint32) uint32 {
	if c.p.sep < 0 {
		return c.add(byteInst{op: bRange, hi: 0xff, out: next})
	}
	sep := byte(c.p.sep)
	high := c.add(byteInst{op: bRange, lo: sep + 1, hi: 0xff, out: next})
	if sep == 0 {
		return high
	}
	low := c.add(byteInst{op: bRange, hi: sep - 1, out: next})
	return c.add(byteInst{op: bSplit, out: low, arg: high})
}

func (c *byteCompiler) repeat(n *node, next uint32) uint32 {
	body := n.sub[0]
	switch {
	case n.max < 0:
		loop := c.add(byteInst{op: bSplit})
		in := c.node(body, loop)
		c.setSplit(loop, in, next, n.lazy)
		next = loop
	default:
		end := next
		for i := n.min; i < n.max && !c.full; i++ {
			split := c.add(byteInst{op: bSplit})
			in := c.node(body, next)
			c.setSplit(split, in, end, n.lazy)
			next = split
		}
	}
	for i := 0; i < n.min && !c.full; i++ {
		next = c.node(body, next)
	}
	return next
}

func (c *byteCompiler) setSplit(at, in, out uint32, lazy bool) {
	if lazy {
		in, out = out, in
	}
	c.p.insts[at].out, c.p.insts[at].arg = in, out
}

// set compiles one character.
func (c *byteCompiler) set(s *set, next uint32) uint32 {
	var seqs [][]span
	spans := s.known
	switch {
	case c.p.ascii && s.late != nil:
		spans = s.lowSpans()
	case s.late != nil:
		spans = s.spans()
	}
	for _, sp := range spans {
		switch {
		case c.bytes:
			seqs = append(seqs, []span{sp})
		case sp.lo >= rawByte:
			seqs = append(seqs, []span{{sp.lo - rawByte, sp.hi - rawByte}})
		case c.p.ascii:
			if sp.lo <= 0x7f {
				seqs = append(seqs, []span{{sp.lo, min(sp.hi, 0x7f)}})
			}
			if sp.hi > 0x7f {
				// Never taken, but it keeps alive what waits for such a byte.
				seqs = append(seqs, []span{{0x80, 0xff}})
			}
		default:
			seqs = utf8Sequences(seqs, sp.lo, sp.hi)
		}
	}
	if c.p.ascii {
		seqs = slices.CompactFunc(seqs, func(a, b []span) bool { return a[0] == b[0] })
	}
	if len(seqs) == 1 {
		return c.sequence(seqs[0], next)
	}
	if c.p.reverse && slices.ContainsFunc(seqs, func(q []span) bool { return len(q) > 1 }) {
		at := c.sequence(seqs[0], next)
		for _, q := range seqs[1:] {
			one := c.sequence(q, next)
			at = c.add(byteInst{op: bSplit, out: one, arg: at})
		}
		return at
	}
	return c.trie(seqs, next, map[string]uint32{})
}

// lowSpans gives the spans below 128, and one beyond.
func (s *set) lowSpans() []span {
	var out []span
	for c := rune(0); c < 128; c++ {
		if s.has(c) {
			if n := len(out); n > 0 && out[n-1].hi == c-1 {
				out[n-1].hi = c
			} else {
				out = append(out, span{c, c})
			}
		}
	}
	return append(out, span{0x80, 0x80})
}

func (c *byteCompiler) sequence(q []span, next uint32) uint32 {
	for i := range q {
		sp := q[i]
		if !c.p.reverse {
			sp = q[len(q)-1-i]
		}
		next = c.add(byteInst{op: bRange, lo: byte(sp.lo), hi: byte(sp.hi), out: next})
	}
	return next
}

// trie compiles sequences, sorted as utf8Sequences makes them, into a
// deterministic tree that shares equal tails.
func (c *byteCompiler) trie(seqs [][]span, next uint32, seen map[string]uint32) uint32 {
	var arcs []arc
	for i := 0; i < len(seqs); {
		head := seqs[i][0]
		j := i + 1
		for j < len(seqs) && seqs[j][0] == head {
			j++
		}
		out := next
		if len(seqs[i]) > 1 {
			tails := make([][]span, 0, j-i)
			for _, q := range seqs[i:j] {
				tails = append(tails, q[1:])
			}
			out = c.trie(tails, next, seen)
		}
		if k := len(arcs); k > 0 && arcs[k-1].out == out && rune(arcs[k-1].hi)+1 == head.lo {
			arcs[k-1].hi = byte(head.hi)
		} else {
			arcs = append(arcs, arc{byte(head.lo), byte(head.hi), out})
		}
		i = j
	}
	key := make([]byte, 0, 6*len(arcs))
	for _, a := range arcs {
		key = append(key, a.lo, a.hi, byte(a.out), byte(a.out>>8), byte(a.out>>16), byte(a.out>>24))
	}
	if at, ok := seen[string(key)]; ok {
		return at
	}
	var at uint32
	if len(arcs) == 1 {
		at = c.add(byteInst{op: bRange, lo: arcs[0].lo, hi: arcs[0].hi, out: arcs[0].out})
	} else {
		c.p.sparse = append(c.p.sparse, arcs)
		at = c.add(byteInst{op: bSparse, arg: uint32(len(c.p.sparse) - 1)})
	}
	seen[string(key)] = at
	return at
}

// utf8Sequences splits the characters lo to hi into runs whose encodings are
// all combinations of one range per byte, and appends those in order.
func utf8Sequences(out [][]span, lo, hi rune) [][]span {
	for _, limit := range []rune{0x7f, 0x7ff, 0xffff} {
		if lo <= limit && hi > limit {
			out = utf8Sequences(out, lo, limit)
			lo = limit + 1
		}
	}
	if hi <= 0x7f {
		return append(out, []span{{lo, hi}})
	}
	for i := 1; i < 4; i++ {
		m := rune(1)<<(6*i) - 1
		if lo&^m == hi&^m {
			continue
		}
		if lo&m != 0 {
			out = utf8Sequences(out, lo, lo|m)
			return utf8Sequences(out, lo|m+1, hi)
		}
		if hi&m != m {
			out = utf8Sequences(out, lo, hi&^m-1)
			return utf8Sequences(out, hi&^m, hi)
		}
	}
	var a, b [utf8.UTFMax]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	q := make([]span, n)
	for i := range q {
		q[i] = span{rune(a[i]), rune(b[i])}
	}
	return append(out, q)
}

// classify groups the bytes that the program never tells apart.
func (p *byteProg) classify() {
	var cut [257]bool // cut[b]: b and b-1 differ
	mark := func(lo, hi byte) {
		cut[lo] = true
		cut[int(hi)+1] = true
	}
	for i := range p.insts {
		switch in := &p.insts[i]; in.op {
		case bRange:
			mark(in.lo, in.hi)
		case bSparse:
			for _, a := range p.sparse[in.arg] {
				mark(a.lo, a.hi)
			}
		default:
		}
	}
	if p.sep >= 0 {
		mark(byte(p.sep), byte(p.sep))
	}
	if p.newline {
		mark('\n', '\n')
	}
	if p.words {
		for _, sp := range wordSpans() {
			mark(byte(sp.lo), byte(sp.hi))
		}
	}
	if p.ascii {
		mark(0x80, 0xff)
	}
	n := -1
	for b := range 256 {
		if b == 0 || cut[b] {
			n++
			p.samples = append(p.samples, byte(b))
		}
		p.classes[b] = uint8(n)
	}
}
