package pattern

type opcode uint8

const (
	opChar  opcode = iota // takes the character c
	opAny                 // takes any character
	opSet                 // takes a character of the set
	opRest                // takes any character, a slash too
	opSplit               // goes on at x and at y
	opNot                 // takes what sub does not match
	opMatch
)

// inst is one instruction of a nondeterministic automaton; x is what follows it.
type inst struct {
	op   opcode
	c    rune
	set  *set
	sub  *program
	x, y int32
}

type program struct {
	inst  []inst
	entry int32
}

// assemble compiles items from their end to their start, so that what follows
// an instruction is known when it is made; with backward set it makes the
// program that reads the string from its end.
type assembler struct {
	inst     []inst
	opt      Options
	backward bool
}

func assemble(items sequence, o Options, backward, top bool) *program {
	a := assembler{opt: o, backward: backward}
	end := a.emit(inst{op: opMatch})
	entry := a.sequence(items, end, top)
	return &program{inst: a.inst, entry: entry}
}

func (a *assembler) emit(i inst) int32 {
	a.inst = append(a.inst, i)
	return int32(len(a.inst) - 1)
}

func (a *assembler) sequence(items sequence, next int32, top bool) int32 {
	for k := range items {
		last := len(items) - 1 - k
		if a.backward {
			last = k
		}
		next = a.item(&items[last], next, top && last == len(items)-1)
	}
	return next
}

func (a *assembler) item(it *item, next int32, last bool) int32 {
	switch it.kind {
	case itemLiteral:
		return a.literal(it.lit, next)
	case itemAny:
		return a.emit(inst{op: opAny, x: next})
	case itemSet:
		return a.emit(inst{op: opSet, set: it.set, x: next})
	case itemStar:
		op := opAny
		if last {
			op = opRest
		}
		split := a.emit(inst{op: opSplit, y: next})
		a.inst[split].x = a.emit(inst{op: op, x: split})
		return split
	}
	switch it.op {
	case '!':
		sub := assemble(sequence{{kind: itemGroup, op: '@', alts: it.alts}}, a.opt, a.backward, false)
		return a.emit(inst{op: opNot, sub: sub, x: next})
	case '@':
		return a.alternatives(it.alts, next)
	case '?':
		return a.emit(inst{op: opSplit, x: a.alternatives(it.alts, next), y: next})
	}
	split := a.emit(inst{op: opSplit, y: next})
	body := a.alternatives(it.alts, split)
	a.inst[split].x = body
	if it.op == '+' {
		return body
	}
	return split
}

func (a *assembler) alternatives(alts []sequence, next int32) int32 {
	entry := a.sequence(alts[0], next, false)
	for _, alt := range alts[1:] {
		entry = a.emit(inst{op: opSplit, x: entry, y: a.sequence(alt, next, false)})
	}
	return entry
}

func (a *assembler) literal(lit string, next int32) int32 {
	for lit != "" {
		var (
			c rune
			n int
		)
		if a.backward {
			c, n = a.opt.decode(lit)
			lit = lit[n:]
		} else {
			c, n = a.opt.decodeLast(lit)
			lit = lit[:len(lit)-n]
		}
		if a.opt.IgnoreCase {
			c = lower(c)
		}
		next = a.emit(inst{op: opChar, c: c, x: next})
	}
	return next
}

func (p *Pattern) program(backward bool) *lazy {
	l := &p.forward
	if backward {
		l = &p.backward
	}
	l.once.Do(func() { l.prog = assemble(p.items, p.opt, backward, true) })
	return l
}

// scratch is the memory of a run.
type scratch struct {
	cur, next *state
	stack     []int32
}

func (l *lazy) take() *scratch {
	if m := l.spare.Swap(nil); m != nil {
		m.cur.reset()
		m.next.reset()
		return m
	}
	return &scratch{cur: newState(l.prog), next: newState(l.prog)}
}

// give keeps the memory of a run, unless it is much.
func (l *lazy) give(m *scratch, stack []int32) {
	const most = 256
	if len(l.prog.inst) > most || len(m.cur.not)+len(m.next.not) > most || cap(stack) > most {
		return
	}
	clear(m.cur.not)
	clear(m.next.not)
	m.stack = stack[:0]
	l.spare.Store(m)
}

// state is the set of instructions that the automaton stands at, each with the
// place where its match began.
type state struct {
	prog    *program
	pc      []int32
	start   []int
	where   []int32 // index of an instruction in pc, valid if pc agrees
	not     []negation
	matched bool
	began   int // where the match began, if matched
}

// negation is a run of an opNot instruction. Once sub is nil, what has been
// read is no longer the start of anything it matches: it takes all.
type negation struct {
	pc    int32
	start int
	fresh bool
	sub   *state
}

func newState(p *program) *state {
	n := len(p.inst)
	buf := make([]int32, 2*n)
	return &state{prog: p, pc: buf[:0:n], where: buf[n:], start: make([]int, 0, n)}
}

func (s *state) reset() {
	s.pc, s.start, s.not, s.matched = s.pc[:0], s.start[:0], s.not[:0], false
}

func (s *state) dead() bool { return len(s.pc) == 0 && len(s.not) == 0 }

// sim runs an automaton.
type sim struct {
	meter Meter
	work  int
	fold  bool
	path  bool
	stack []int32
}

// add enters an instruction and all that follow it without taking a character.
func (v *sim) add(s *state, pc int32, start int) {
	base := len(v.stack)
	v.stack = append(v.stack, pc)
	for len(v.stack) > base {
		pc := v.stack[len(v.stack)-1]
		v.stack = v.stack[:len(v.stack)-1]
		v.work++
		in := &s.prog.inst[pc]
		if w := s.where[pc]; int(w) < len(s.pc) && s.pc[w] == pc {
			if s.start[w] <= start {
				continue
			}
			s.start[w] = start
		} else {
			s.where[pc] = int32(len(s.pc))
			s.pc = append(s.pc, pc)
			s.start = append(s.start, start)
		}
		switch in.op {
		case opSplit:
			v.stack = append(v.stack, in.y, in.x)
		case opMatch:
			if !s.matched || start < s.began {
				s.matched, s.began = true, start
			}
		case opNot:
			if v.negate(s, pc, start, in.sub) {
				v.stack = append(v.stack, in.x)
			}
		}
	}
}

// negate begins a negation, and reports whether it may take nothing.
func (v *sim) negate(s *state, pc int32, start int, sub *program) bool {
	for i := range s.not {
		if n := &s.not[i]; n.pc == pc && n.fresh {
			n.start = start
			return !n.sub.matched
		}
	}
	t := newState(sub)
	v.work += len(sub.inst)
	v.add(t, sub.entry, 0)
	s.not = append(s.not, negation{pc: pc, start: start, fresh: true, sub: t})
	return !t.matched
}

// step reads the character c; limit drops the runs that began after it.
func (v *sim) step(from, to *state, c rune, limit int, wild bool) {
	folded := c
	if v.fold {
		folded = lower(c)
	}
	slash := v.path && c == '/'
	for i, pc := range from.pc {
		if from.start[i] > limit {
			continue
		}
		in := &from.prog.inst[pc]
		ok := false
		switch in.op {
		case opChar:
			ok = in.c == folded
		case opAny:
			ok = wild && !slash
		case opRest:
			ok = wild
		case opSet:
			ok = wild && !slash && in.set.has(c)
		}
		if ok {
			v.add(to, in.x, from.start[i])
		}
	}
	v.work += len(from.pc)
	if len(from.not) == 0 || slash || !wild {
		return
	}
	all := make(map[int32]int)
	for _, n := range from.not {
		if n.start > limit {
			continue
		}
		next := negation{pc: n.pc, start: n.start}
		if n.sub != nil {
			next.sub = newState(n.sub.prog)
			v.step(n.sub, next.sub, c, 0, true)
			v.work += len(n.sub.prog.inst)
			if next.sub.dead() {
				next.sub = nil
			}
		}
		if next.sub == nil || !next.sub.matched {
			v.add(to, from.prog.inst[n.pc].x, n.start)
		}
		if next.sub != nil {
			to.keep(next)
			continue
		}
		if i, ok := all[n.pc]; ok {
			to.not[i].start = min(to.not[i].start, n.start)
			continue
		}
		all[n.pc] = len(to.not)
		to.not = append(to.not, next)
	}
}

// keep adds a negation, unless one like it is there.
func (s *state) keep(n negation) {
	const look = 4
	for i := max(0, len(s.not)-look); i < len(s.not); i++ {
		if o := &s.not[i]; o.pc == n.pc && o.sub != nil && o.sub.same(n.sub) {
			o.start = min(o.start, n.start)
			return
		}
	}
	s.not = append(s.not, n)
}

func (s *state) same(t *state) bool {
	if len(s.pc) != len(t.pc) || len(s.not) > 0 || len(t.not) > 0 || s.matched != t.matched {
		return false
	}
	for _, pc := range s.pc {
		if w := t.where[pc]; int(w) >= len(t.pc) || t.pc[w] != pc {
			return false
		}
	}
	return true
}

func (v *sim) charge() error {
	if v.work < stride {
		return nil
	}
	n := v.work
	v.work = 0
	return step(v.meter, n)
}

// scan says what an anchored run looks for.
type scan struct {
	meter    Meter
	whole    bool // a match of all of it
	shortest bool
	backward bool
	period   bool // a dot at the start is taken by a dot only
}

const never = int(^uint(0) >> 1)

// scan runs the automaton from one end of s and returns the length of what it
// matched.
func (p *Pattern) scan(s string, o scan) (int, bool, error) {
	if n, ok, done := p.quick(s, o); done {
		return n, ok, nil
	}
	l := p.program(o.backward)
	mem := l.take()
	v := sim{meter: o.meter, fold: p.opt.IgnoreCase, path: p.opt.Path, stack: mem.stack}
	defer func() { l.give(mem, v.stack) }()
	cur, next := mem.cur, mem.next
	v.add(cur, l.prog.entry, 0)
	best, found := 0, cur.matched
	for n := 0; n < len(s); {
		if found && o.shortest {
			break
		}
		var (
			c rune
			k int
		)
		if o.backward {
			c, k = p.opt.decodeLast(s[:len(s)-n])
		} else {
			c, k = p.opt.decode(s[n:])
		}
		v.step(cur, next, c, never, n > 0 || !o.period)
		n += k
		cur, next = next, cur
		next.reset()
		if cur.matched {
			best, found = n, true
		}
		if cur.dead() {
			break
		}
		if err := v.charge(); err != nil {
			return 0, false, err
		}
	}
	if o.whole {
		found = found && best == len(s)
	}
	return best, found, nil
}

// quick answers for the patterns that need no automaton: those without stars,
// and those with only one, at their end.
func (p *Pattern) quick(s string, o scan) (n int, ok, done bool) {
	if p.groups || o.period || p.opt.Path {
		return 0, false, false
	}
	star := p.items.star()
	if star >= 0 && star < len(p.items)-1 {
		return 0, false, false
	}
	if star < 0 {
		if o.backward {
			return 0, false, false
		}
		n, ok = p.fixed(p.items, s)
		return n, ok, true
	}
	items := p.items[:star]
	switch {
	case !o.backward:
		n, ok = p.fixed(items, s)
		if ok && !o.shortest {
			n = len(s)
		}
		return n, ok, true
	case len(items) != 1 || items[0].kind == itemLiteral:
		return 0, false, false
	case o.shortest:
		for i := len(s); i > 0; {
			_, k := p.opt.decodeLast(s[:i])
			i -= k
			if _, ok := p.fixed(items, s[i:]); ok {
				return len(s) - i, true, true
			}
		}
		return 0, false, true
	}
	for i := 0; i < len(s); i += p.size(s[i:]) {
		if _, ok := p.fixed(items, s[i:]); ok {
			return len(s) - i, true, true
		}
	}
	return 0, false, true
}

// search finds the leftmost match in s, and of those the longest.
func (p *Pattern) search(s string, m Meter) (start, end int, ok bool, err error) {
	l := p.program(false)
	mem := l.take()
	v := sim{meter: m, fold: p.opt.IgnoreCase, path: p.opt.Path, stack: mem.stack}
	defer func() { l.give(mem, v.stack) }()
	cur, next := mem.cur, mem.next
	limit := never
	for i := 0; ; {
		if !ok {
			if cur.dead() {
				if i = p.skip(s, i); i > len(s) {
					break
				}
			}
			v.add(cur, l.prog.entry, i)
		}
		if cur.matched && cur.began <= limit {
			start, end, ok = cur.began, i, true
			limit = start
		}
		if i == len(s) || ok && cur.dead() {
			break
		}
		c, k := p.opt.decode(s[i:])
		v.step(cur, next, c, limit, true)
		i += k
		cur, next = next, cur
		next.reset()
		if err := v.charge(); err != nil {
			return 0, 0, false, err
		}
	}
	return start, end, ok, nil
}
