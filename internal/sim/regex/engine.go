package regex

import "bytes"

// An engine answers questions about texts with the cheapest means that can:
// a search for a string, the automaton, and only where those cannot, the
// engines of capture.go and backtrack.go.
type engine struct {
	gauge   gauge
	subject subject
	tree    *node
	options *Options
	total   int // groups

	must    *finder  // for what every match contains, or nil
	prefix  searcher // for what every match starts with, or nil
	literal bool     // a match is must and nothing else
	special bool     // there are back-references or lookaround: the automaton is approximate
	noDFA   bool     // not even that
	begins  bool     // a match starts at the start of the text
	wide    bool     // there are sets that are costly beyond ASCII
	words   bool     // there are assertions about words
	width   int      // the bytes of every match, or -1

	automata [4]lazy
	chars    *charProg
	tracer   tracer
	pike     pike
	back     backtracker
}

// What an automaton is for.
const (
	forExists = iota
	forSpan
	forAnchored
	forStart // backwards
)

// A lazy automaton is made when it is first needed: first one that knows
// ASCII only if the other is costly.
type lazy struct {
	ascii *dfa
	full  *dfa
}

const meterBlock = 64 << 10

// A gauge passes on to the Meter what has added up.
type gauge struct {
	meter   Meter
	pending int
	tried   int // steps of the backtracker in this search
}

// Steps of one search by backtracking. PCRE allows fewer.
const maxBacktrack = 50_000_000

func (g *gauge) step(n int) error {
	g.pending += n
	if g.pending < 4096 || g.meter == nil {
		return nil
	}
	n = g.pending
	g.pending = 0
	return g.meter.Step(n)
}

func (g *gauge) grow(n int) error {
	if g.meter == nil {
		return nil
	}
	return g.meter.Grow(n)
}

func (g *gauge) backtrack(n int) error {
	if g.tried += n; g.tried > maxBacktrack {
		return ErrBacktrack
	}
	return g.step(n)
}

func newEngine(root *node, opt *Options, groups int) engine {
	e := engine{tree: root, options: opt, total: groups}
	e.gauge.meter = opt.Meter
	ascii := opt.Bytes || opt.Flavour == Perl
	e.subject = subject{bytes: opt.Bytes, ascii: ascii, sep: opt.separator()}
	m := musts(root, opt)
	raw := false
	asserts := false
	root.contains(func(n *node) bool {
		switch n.kind {
		case kBackref, kLook, kAtomic, kKeep:
			e.special = true
		case kAssert:
			asserts = true
			switch n.op {
			case aEndTextNL:
				e.noDFA = true
			case aBeginText, aEndText, aBeginLine, aEndLine:
			default:
				e.words = !ascii
			}
		case kSet:
			if k := n.set.known; len(k) > 0 && k[len(k)-1].hi >= rawByte {
				raw = true
			}
			if !opt.Bytes && wide(n.set) {
				e.wide = true
			}
		default:
		}
		return false
	})
	// A byte that is not UTF-8 must not be found inside a character, which an
	// automaton over bytes cannot know.
	e.noDFA = e.noDFA || raw
	if len(m.inner) > 0 {
		e.must = newFinder(m.inner, opt.IgnoreCase)
	}
	e.prefix = prefixes(root, opt)
	e.literal = m.exact && !asserts && !raw && len(m.inner) > 0
	e.begins = opt.separator() < 0 && beginsText(root)
	e.width = byteWidth(root, opt)
	return e
}

// wide says whether s is so scattered beyond ASCII that its automaton should
// wait until such a character comes up.
func wide(s *set) bool { return s.late != nil || len(s.known) > 16 }

func beginsText(n *node) bool {
	switch n.kind {
	case kAssert:
		return n.op == aBeginText
	case kCat:
		for _, s := range n.sub {
			if beginsText(s) {
				return true
			}
			if s.kind != kAssert {
				return false
			}
		}
		return false
	case kGroup, kAtomic:
		return beginsText(n.sub[0])
	case kRepeat:
		return n.min > 0 && beginsText(n.sub[0])
	case kAlt:
		for _, s := range n.sub {
			if !beginsText(s) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// byteWidth gives the length of every match of n, -1 when it varies.
func byteWidth(n *node, opt *Options) int {
	switch n.kind {
	case kSet:
		if opt.Bytes || n.set.isASCII() {
			return 1
		}
		if b, ok := literalBytes(n.set, opt); ok {
			return len(b)
		}
		return -1
	case kCat:
		total := 0
		for _, s := range n.sub {
			w := byteWidth(s, opt)
			if w < 0 {
				return -1
			}
			total += w
		}
		return total
	case kAlt:
		w := byteWidth(n.sub[0], opt)
		for _, s := range n.sub[1:] {
			if byteWidth(s, opt) != w {
				return -1
			}
		}
		return w
	case kRepeat:
		w := byteWidth(n.sub[0], opt)
		if w < 0 || n.min != n.max {
			return -1
		}
		return w * n.min
	case kGroup:
		return byteWidth(n.sub[0], opt)
	case kEmpty, kAssert:
		return 0
	default:
		return -1
	}
}

// automaton gives the automaton for a purpose. all asks for the one that knows
// every byte; it is nil when there is none.
func (e *engine) automaton(purpose int, all bool) (*dfa, error) {
	l := &e.automata[purpose]
	split := (e.wide || e.words) && !e.options.Bytes
	slot := &l.full
	if split && !all {
		slot = &l.ascii
	}
	if *slot != nil || split && all && e.words {
		return *slot, nil
	}
	p, err := compileBytes(e.tree, e.options, purpose == forStart, split && !all)
	if err != nil {
		return nil, err
	}
	if err := e.gauge.step(len(p.insts)); err != nil {
		return nil, err
	}
	d := newDFA(p, &e.gauge, purpose >= forAnchored || e.begins, purpose == forExists)
	if !d.anchored && e.prefix != nil {
		d.skip = e.prefix
	}
	*slot = d
	return d, nil
}

func (e *engine) program() (*charProg, error) {
	if e.chars == nil {
		p, err := compileChars(e.tree, e.total, e.options.Flavour != Perl)
		if err != nil {
			return nil, err
		}
		e.chars = p
		if err := e.gauge.step(len(p.insts)); err != nil {
			return nil, err
		}
	}
	return e.chars, nil
}

// exists says whether there is a match in b.
func (e *engine) exists(b []byte) (bool, error) {
	if e.must != nil {
		if err := e.gauge.step(len(b)>>6 + 1); err != nil {
			return false, err
		}
		i := e.must.index(b, 0)
		if i < 0 || e.literal {
			return i >= 0, nil
		}
	}
	if e.noDFA {
		start, _, err := e.span(b, 0, false)
		return start >= 0, err
	}
	v, err := e.run(forExists, b, 0)
	if err != nil || v.verdict == nothing || v.verdict == found && !e.special {
		return v.verdict == found, err
	}
	start, _, err := e.span(b, 0, false)
	return start >= 0, err
}

type outcome struct {
	end     int
	verdict verdict
	all     bool // by the automaton that knows every byte
}

// run lets the automata for a purpose look at b from on.
func (e *engine) run(purpose int, b []byte, from int) (outcome, error) {
	if e.begins && from > 0 {
		return outcome{}, nil
	}
	for _, all := range []bool{false, true} {
		d, err := e.automaton(purpose, all)
		if err != nil {
			return outcome{}, err
		}
		if d == nil {
			break
		}
		end, v, err := d.forward(b, from)
		if err != nil || v != undecided {
			return outcome{end, v, all}, err
		}
	}
	return outcome{verdict: undecided}, nil
}

// sought finds what every match contains, and charges for what it looks at, not
// for what is left: a long line is searched once.
func (e *engine) sought(b []byte, from int) (int, error) {
	i := e.must.index(b, from)
	passed := i - from
	if i < 0 {
		passed = len(b) - from
	}
	return i, e.gauge.step(passed>>6 + 1)
}

// span finds the first match at or after from, or exactly there.
func (e *engine) span(b []byte, from int, anchored bool) (start, end int, err error) {
	if from > len(b) {
		return -1, -1, nil
	}
	if e.must != nil && !anchored {
		i, err := e.sought(b, from)
		if err != nil || i < 0 {
			return -1, -1, err
		}
		if e.literal {
			return i, i + len(e.must.text), nil
		}
	}
	e.gauge.tried = 0
	if e.noDFA || e.special {
		slots, err := e.search(b, from, anchored)
		if slots == nil {
			return -1, -1, err
		}
		return slots[0], slots[1], err
	}
	purpose := forSpan
	if anchored {
		purpose = forAnchored
	}
	v, err := e.run(purpose, b, from)
	if err != nil || v.verdict == nothing {
		return -1, -1, err
	}
	if v.verdict == found {
		start, err = e.startOf(b, from, v.end, anchored)
		if err != nil || start >= 0 {
			return start, v.end, err
		}
	}
	slots, err := e.search(b, from, anchored)
	if slots == nil {
		return -1, -1, err
	}
	return slots[0], slots[1], err
}

// startOf finds the start of the match that ends at end, -1 when the automata
// cannot tell.
func (e *engine) startOf(b []byte, from, end int, anchored bool) (int, error) {
	switch {
	case anchored || e.begins:
		return from, nil
	case e.width >= 0:
		return end - e.width, nil
	}
	d, err := e.automaton(forStart, false)
	if err != nil {
		return -1, err
	}
	start, v, err := d.backward(b, from, end)
	if err != nil || v == found {
		return start, err
	}
	return -1, nil
}

// search finds a match with its submatches without knowing its span.
func (e *engine) search(b []byte, from int, anchored bool) ([]int, error) {
	p, err := e.program()
	if err != nil {
		return nil, err
	}
	e.subject.b = b
	if !e.special {
		return e.pike.run(p, &e.subject, from, -1, anchored, &e.gauge)
	}
	if !e.noDFA {
		// The approximate automaton knows where there is certainly nothing.
		v, err := e.run(forExists, b, from)
		if err != nil || v.verdict == nothing {
			return nil, err
		}
	}
	e.back.p, e.back.s, e.back.m = p, &e.subject, &e.gauge
	e.back.begin()
	defer e.back.release()
	for at := from; at <= len(b); at++ {
		if !e.subject.boundary(at) {
			continue
		}
		ok, err := e.back.run(at)
		if err != nil {
			return nil, err
		}
		if ok {
			return e.back.best[:p.slots], nil
		}
		if anchored || e.begins {
			break
		}
		if err := e.gauge.backtrack(1); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// find is span with submatches.
func (e *engine) find(b []byte, from int, dst []int, anchored bool) ([]int, error) {
	dst = dst[:0]
	if e.noDFA || e.special {
		if from > len(b) {
			return nil, nil
		}
		if e.must != nil && !anchored {
			if i, err := e.sought(b, from); err != nil || i < 0 {
				return nil, err
			}
		}
		e.gauge.tried = 0
		slots, err := e.search(b, from, anchored)
		if slots == nil || err != nil {
			return nil, err
		}
		if e.options.NoSub {
			slots = slots[:2]
		}
		return append(dst, slots...), nil
	}
	start, end, err := e.span(b, from, anchored)
	if err != nil || start < 0 {
		return nil, err
	}
	dst = append(dst, start, end)
	if e.total == 0 || e.options.NoSub {
		return dst, nil
	}
	p, err := e.program()
	if err != nil {
		return nil, err
	}
	for range 2 * e.total {
		dst = append(dst, -1)
	}
	e.subject.b = b
	if e.tracer.fits(p, end-start) {
		ok, err := e.tracer.run(p, &e.subject, start, end, dst, &e.gauge)
		if err != nil || ok {
			dst[0], dst[1] = start, end
			return dst, err
		}
		return dst, nil
	}
	slots, err := e.pike.run(p, &e.subject, start, end, true, &e.gauge)
	if err != nil || slots == nil {
		return dst, err
	}
	return append(dst[:0], slots...), nil
}

// line finds the first line from on that has a match.
func (e *engine) line(b []byte, from int) (start, end int, err error) {
	sep := byte(max(e.subject.sep, 0))
	n := len(b)
	if n > from && b[n-1] == sep {
		n-- // it ends the last line and starts none
	}
	if from >= len(b) {
		return -1, -1, nil
	}
	b = b[:n]
	if !e.noDFA && e.must == nil {
		return e.lineByDFA(b, from, sep)
	}
	for wasted := 0; from <= n; {
		if e.must != nil {
			i := e.must.index(b, from)
			if err := e.gauge.step((max(i, from)-from)>>6 + 1); err != nil {
				return -1, -1, err
			}
			if i < 0 {
				return -1, -1, e.gauge.step((n - from) >> 6)
			}
			start = from + bytes.LastIndexByte(b[from:i], sep) + 1
			if e.literal {
				return start, lineEnd(b, i, sep), nil
			}
			// Where the string is in about every line it only costs.
			if wasted++; i-from > 512 {
				wasted = 0
			}
		} else {
			start = from
		}
		if wasted > 8 && !e.noDFA {
			return e.lineByDFA(b, start, sep)
		}
		end = lineEnd(b, start, sep)
		ok, err := e.lineMatches(b[:end], start)
		if err != nil || ok {
			return start, end, err
		}
		from = end + 1
	}
	return -1, -1, nil
}

func lineEnd(b []byte, at int, sep byte) int {
	if i := bytes.IndexByte(b[at:], sep); i >= 0 {
		return at + i
	}
	return len(b)
}

func (e *engine) lineMatches(b []byte, from int) (bool, error) {
	if !e.noDFA {
		v, err := e.run(forExists, b, from)
		if err != nil || v.verdict == nothing || v.verdict == found && !e.special {
			return v.verdict == found, err
		}
	}
	e.gauge.tried = 0
	slots, err := e.search(b, from, false)
	return slots != nil, err
}

// lineByDFA lets the automaton run across lines. Where it meets what it does
// not know, that line is looked at alone.
func (e *engine) lineByDFA(b []byte, from int, sep byte) (start, end int, err error) {
	d, err := e.automaton(forExists, false)
	if err != nil {
		return -1, -1, err
	}
	for from <= len(b) {
		at, v, err := d.forward(b, from)
		if err != nil || v == nothing {
			return -1, -1, err
		}
		start = from + bytes.LastIndexByte(b[from:at], sep) + 1
		end = lineEnd(b, at, sep)
		if v == found && !e.special {
			return start, end, nil
		}
		ok, err := e.lineMatches(b[:end], start)
		if err != nil || ok {
			return start, end, err
		}
		from = end + 1
	}
	return -1, -1, nil
}
