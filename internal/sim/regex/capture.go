package regex

// The engines of this file find submatches, and matches where the automaton
// cannot decide about an assertion. Both take the first way through the
// program by its preferences among those that end where the match must end,
// which is what glibc does once it knows the match. They need no budget: their
// work is bounded by the size of the program times that of the text.

// A tracer walks the program depth first and never goes twice through the same
// instruction at the same place. It needs a bit for each pair.
type tracer struct {
	visited []uint64
	stack   []frame
}

const maxVisited = 1 << 18 // bits

type frame struct {
	pc  uint32 // or restore
	pos int
	arg int // the slot to restore to pos
}

const restore = ^uint32(0)

func (t *tracer) fits(p *charProg, length int) bool {
	return len(p.insts) <= maxVisited && (length+1)*len(p.insts) <= maxVisited
}

// run fills slots with the match of p that starts at from and ends at end.
func (t *tracer) run(p *charProg, s *subject, from, end int, slots []int, m *gauge) (bool, error) {
	width := end - from + 1
	n := (width*len(p.insts) + 63) / 64
	if cap(t.visited) < n {
		t.visited = make([]uint64, max(n, 64))
	}
	t.visited = t.visited[:n]
	clear(t.visited)
	t.stack = append(t.stack[:0], frame{pc: p.start, pos: from})
	steps := n/8 + 1
	for len(t.stack) > 0 {
		f := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		if f.pc == restore {
			slots[f.arg] = f.pos
			continue
		}
		ok, n := t.walk(p, s, f.pc, f.pos, from, end, slots)
		steps += n
		if ok {
			return true, m.step(steps)
		}
	}
	return false, m.step(steps)
}

func (t *tracer) walk(p *charProg, s *subject, pc uint32, pos, from, end int, slots []int) (ok bool, steps int) {
	width := end - from + 1
	for {
		steps++
		bit := int(pc)*width + pos - from
		if t.visited[bit>>6]&(1<<(bit&63)) != 0 {
			return false, steps
		}
		t.visited[bit>>6] |= 1 << (bit & 63)
		in := &p.insts[pc]
		switch in.op {
		case cMatch:
			if pos == end {
				return true, steps
			}
			return false, steps
		case cChar, cSet:
			if pos >= end {
				return false, steps
			}
			r, n := s.next(pos)
			if in.op == cChar && r != in.c || in.op == cSet && !in.set.has(r) || pos+n > end {
				return false, steps
			}
			pos += n
		case cSplit, cLoop:
			t.stack = append(t.stack, frame{pc: in.arg, pos: pos})
		case cSave:
			t.stack = append(t.stack, frame{pc: restore, pos: slots[in.arg], arg: int(in.arg)})
			slots[in.arg] = pos
		case cAssert:
			if !s.holds(assertion(in.arg), pos) {
				return false, steps
			}
		case cMark:
		default: // cFail; the rest never gets here
			return false, steps
		}
		pc = in.out
	}
}

// A pike runs all ways at once, character by character, each with its slots.
type pike struct {
	clist, nlist threads
	stack        []pikeFrame
	slots        []int
	best         []int
}

type threads struct {
	dense  []uint32
	sparse []uint32
	slots  []int // of each of dense
}

type pikeFrame struct {
	pc   uint32 // or restore
	slot int
	old  int
}

func (l *threads) has(pc uint32) bool {
	i := l.sparse[pc]
	return int(i) < len(l.dense) && l.dense[i] == pc
}

// run finds the match of p from on. With end >= 0 the match must start at
// from and end there; otherwise the leftmost is found, and of those what the
// flavour prefers. anchored keeps the start at from.
func (k *pike) run(p *charProg, s *subject, from, end int, anchored bool, m *gauge) ([]int, error) {
	n := len(p.insts)
	for _, l := range []*threads{&k.clist, &k.nlist} {
		if len(l.sparse) < n {
			l.sparse = make([]uint32, n)
		}
		l.dense = l.dense[:0]
		l.slots = l.slots[:0]
	}
	if cap(k.slots) < p.slots {
		k.slots = make([]int, p.slots)
		k.best = make([]int, p.slots)
	}
	k.slots, k.best = k.slots[:p.slots], k.best[:p.slots]
	stop := len(s.b)
	if end >= 0 {
		stop = end
	}
	matched := false
	for pos := from; ; {
		if !matched && (pos == from || !anchored) {
			for i := range k.slots {
				k.slots[i] = -1
			}
			k.slots[0] = pos
			k.add(p, s, p.start, pos)
		}
		if len(k.clist.dense) == 0 && (matched || anchored) {
			break
		}
		if err := m.step(1 + len(k.clist.dense)); err != nil {
			return nil, err
		}
		r := noChar
		width := 1
		if pos < stop {
			r, width = s.next(pos)
		}
		if k.advance(p, s, pos, width, r, end) {
			matched = true
		}
		if pos >= stop {
			break
		}
		pos += width
	}
	if !matched {
		return nil, nil
	}
	return k.best, nil
}

// advance moves every thread over r and says whether one ended in a match that
// is better than what was seen.
func (k *pike) advance(p *charProg, s *subject, pos, width int, r rune, end int) bool {
	matched := false
	k.nlist.dense, k.nlist.slots = k.nlist.dense[:0], k.nlist.slots[:0]
	k.clist, k.nlist = k.nlist, k.clist
	first := -1 // the start of the match of this round
	for i, pc := range k.nlist.dense {
		slots := k.nlist.slots[i*p.slots : (i+1)*p.slots]
		if first >= 0 && slots[0] > first {
			break
		}
		in := &p.insts[pc]
		switch in.op {
		case cMatch:
			if end >= 0 && pos != end || first >= 0 {
				continue
			}
			copy(k.best, slots)
			k.best[1] = pos
			matched = true
			first = slots[0]
			if !p.longer && end < 0 {
				return true
			}
		case cChar:
			if r == in.c {
				copy(k.slots, slots)
				k.add(p, s, in.out, pos+width)
			}
		case cSet:
			if r >= 0 && in.set.has(r) {
				copy(k.slots, slots)
				k.add(p, s, in.out, pos+width)
			}
		default:
		}
	}
	return matched
}

// add puts what can be reached from pc into clist, with k.slots.
func (k *pike) add(p *charProg, s *subject, pc uint32, pos int) {
	k.stack = append(k.stack[:0], pikeFrame{pc: pc})
	l := &k.clist
	for len(k.stack) > 0 {
		f := k.stack[len(k.stack)-1]
		k.stack = k.stack[:len(k.stack)-1]
		if f.pc == restore {
			k.slots[f.slot] = f.old
			continue
		}
		pc := f.pc
	follow:
		for !l.has(pc) {
			l.sparse[pc] = uint32(len(l.dense))
			l.dense = append(l.dense, pc)
			l.slots = append(l.slots, k.slots...)
			in := &p.insts[pc]
			switch in.op {
			case cSplit, cLoop:
				k.stack = append(k.stack, pikeFrame{pc: in.arg})
			case cSave:
				k.stack = append(k.stack, pikeFrame{pc: restore, slot: int(in.arg), old: k.slots[in.arg]})
				k.slots[in.arg] = pos
			case cAssert:
				if !s.holds(assertion(in.arg), pos) {
					break follow
				}
			case cMark:
			default:
				break follow
			}
			pc = in.out
		}
	}
}
