package regex

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A backtracker runs what needs back-references or lookaround. Its steps are
// charged, as there may be exponentially many.
type backtracker struct {
	p     *charProg
	s     *subject
	m     *gauge
	slots []int // then the marks
	best  []int
	stack []frame
	seen  visits
	steps int
	paid  int // of steps, what the meter was told of
	held  int // bytes that the meter counts
}

// A visit is a state that the backtracker need not enter again: all that
// decides about what follows.
type visit struct {
	pc, pos uint32
	refs    [4]int32
}

// visits is a set of them, which is emptied by a new generation.
type visits struct {
	slots      []stamped // a power of two of them, or none
	count      int
	hits       int
	generation uint32
}

type stamped struct {
	visit
	generation uint32
}

func (v *visits) clear() {
	v.count, v.hits = 0, 0
	if v.generation++; v.generation == 0 {
		clear(v.slots)
		v.generation = 1
	}
}

// add puts a visit into the set unless that is full, and says whether it was
// there.
func (v *visits) add(at visit) bool {
	if 2*v.count >= len(v.slots) && len(v.slots) < 2*maxMemo {
		v.grow()
	}
	s := v.slot(at)
	if s.generation == v.generation {
		v.hits++
		return true
	}
	if v.count < maxMemo {
		v.count++
		*s = stamped{at, v.generation}
	}
	return false
}

// useless says that the set is full, and that next to nothing was met again.
func (v *visits) useless() bool { return v.count == maxMemo && v.hits < maxMemo/16 }

// slot gives the place of a visit, or the one where it would be.
func (v *visits) slot(at visit) *stamped {
	h := uint64(at.pc)<<32 | uint64(at.pos)
	for _, r := range at.refs {
		h = h*0x9e3779b97f4a7c15 + uint64(uint32(r))
	}
	h *= 0x9e3779b97f4a7c15
	mask := uint64(len(v.slots) - 1)
	for i := (h >> 32) & mask; ; i = (i + 1) & mask {
		if s := &v.slots[i]; s.generation != v.generation || s.visit == at {
			return s
		}
	}
}

func (v *visits) grow() {
	old := v.slots
	v.slots = make([]stamped, max(1024, 2*len(old)))
	for i := range old {
		if old[i].generation == v.generation {
			*v.slot(old[i].visit) = old[i]
		}
	}
}

const (
	memoAfter = 4096    // steps after which it pays to remember
	maxMemo   = 1 << 16 // visits
	maxStack  = 1 << 22 // frames

	// A search may hold this much without counting it, and keeps it for the next.
	freeStack = 2048 // frames
	freeSlots = 1024 // of visits

	frameSize, visitSize = 24, 28 // bytes of a frame, and of a slot
)

// account counts what the search holds. The stack grows by a part of itself, so
// what is counted late is bounded by what is counted.
func (k *backtracker) account() error {
	now := max(cap(k.stack)-freeStack, 0)*frameSize + max(len(k.seen.slots)-freeSlots, 0)*visitSize
	more := now - k.held
	if more <= 0 {
		return nil
	}
	if err := k.m.grow(more); err != nil {
		return err
	}
	k.held = now
	return nil
}

// release ends a search. It gives back what was counted.
func (k *backtracker) release() {
	if cap(k.stack) > freeStack {
		k.stack = nil
	}
	if len(k.seen.slots) > freeSlots {
		k.seen = visits{}
	}
	if k.held > 0 {
		_ = k.m.grow(-k.held) // a meter refuses nothing that is given back
		k.held = 0
	}
}

// begin begins a search. What was visited in vain from one start need not be
// from the next.
func (k *backtracker) begin() {
	k.seen.clear()
	k.steps, k.paid = 0, 0
}

// run tries a match that starts at from, and says whether there is one; then
// k.best holds its slots.
func (k *backtracker) run(from int) (bool, error) {
	n := k.p.slots + k.p.marks
	if cap(k.slots) < n {
		k.slots = make([]int, n)
		k.best = make([]int, n)
	}
	k.slots, k.best = k.slots[:n], k.best[:n]
	for i := range k.slots {
		k.slots[i] = -1
	}
	k.best[1] = -1
	k.slots[0] = from
	k.stack = k.stack[:0]
	end, ok, err := k.try(k.p.start, from, k.p.longer, -1)
	if err != nil || !ok {
		return false, err
	}
	if !k.p.longer {
		copy(k.best, k.slots)
		k.best[1] = end
	}
	return true, nil
}

// try runs from pc at pos to the first match, or with longest to the longest,
// which it leaves in k.best. A match must end at must unless that is negative.
// On success the frames that it pushed stay on the stack for the caller.
func (k *backtracker) try(pc uint32, pos int, longest bool, must int) (end int, ok bool, err error) {
	base := len(k.stack)
	k.stack = append(k.stack, frame{pc: pc, pos: pos})
	for len(k.stack) > base {
		f := k.stack[len(k.stack)-1]
		k.stack = k.stack[:len(k.stack)-1]
		if f.pc == restore {
			k.slots[f.arg] = f.pos
			continue
		}
		end, ok, err := k.walk(f.pc, f.pos)
		if err != nil {
			return 0, false, err
		}
		if !ok || must >= 0 && end != must {
			continue
		}
		if !longest {
			return end, true, nil
		}
		if end > k.best[1] {
			copy(k.best, k.slots)
			k.best[1] = end
		}
		if end == len(k.s.b) {
			break
		}
	}
	if longest {
		return k.best[1], k.best[1] >= 0, nil
	}
	return 0, false, nil
}

func (k *backtracker) save(slot, pos int) {
	k.stack = append(k.stack, frame{pc: restore, pos: k.slots[slot], arg: slot})
	k.slots[slot] = pos
}

// walk follows one way until it fails or matches, and leaves the others on the
// stack.
func (k *backtracker) walk(pc uint32, pos int) (end int, ok bool, err error) {
	for {
		k.steps++
		if n := k.steps - k.paid; n >= 64 {
			k.paid = k.steps
			if err := k.m.backtrack(n); err != nil {
				return 0, false, err
			}
			if len(k.stack) > maxStack {
				return 0, false, ErrBacktrack
			}
			if err := k.account(); err != nil {
				return 0, false, err
			}
		}
		in := &k.p.insts[pc]
		switch in.op {
		case cMatch:
			return pos, true, nil
		case cFail:
			return 0, false, nil
		case cChar, cSet:
			if pos >= len(k.s.b) {
				return 0, false, nil
			}
			r, n := k.s.next(pos)
			if in.op == cChar && r != in.c || in.op == cSet && !in.set.has(r) {
				return 0, false, nil
			}
			pos += n
		case cSplit:
			if k.visited(pc, pos) {
				return 0, false, nil
			}
			k.stack = append(k.stack, frame{pc: in.arg, pos: pos})
		case cLoop:
			if k.slots[k.p.slots+int(in.c)] == pos {
				if !in.lazy {
					pc = in.arg
					continue
				}
				break
			}
			if k.visited(pc, pos) {
				return 0, false, nil
			}
			k.stack = append(k.stack, frame{pc: in.arg, pos: pos})
		case cSave:
			k.save(int(in.arg), pos)
		case cMark:
			k.save(k.p.slots+int(in.arg), pos)
		case cAssert:
			if !k.s.holds(assertion(in.arg), pos) {
				return 0, false, nil
			}
		case cBackref:
			n, ok := k.backref(int(in.arg), pos, in.fold)
			if !ok {
				return 0, false, nil
			}
			pos += n
		case cKeep:
			k.save(0, pos)
		case cLook:
			end, ok, err := k.look(k.p.looks[in.arg], pos)
			if err != nil || !ok {
				return 0, false, err
			}
			pos = end
		}
		pc = in.out
	}
}

// visited says whether the backtracker was in this state before.
func (k *backtracker) visited(pc uint32, pos int) bool {
	if k.steps < memoAfter || !k.p.canMemo || k.seen.useless() {
		return false
	}
	v := visit{pc: pc, pos: uint32(pos)}
	for i, g := range k.p.memo {
		v.refs[2*i], v.refs[2*i+1] = int32(k.slots[2*g]), int32(k.slots[2*g+1])
	}
	return k.seen.add(v)
}

// backref reports whether what group matched stands at pos, and the length that it
// has there. What is compared counts as steps, whether it is the same or not.
func (k *backtracker) backref(group, pos int, fold bool) (n int, ok bool) {
	from, to := k.slots[2*group], k.slots[2*group+1]
	if from < 0 || to < from {
		return 0, false
	}
	text := k.s.b[from:to]
	rest := k.s.b[pos:]
	if k.same(text, rest) {
		return len(text), true
	}
	if !fold {
		return 0, false
	}
	for n < len(rest) && len(text) > 0 {
		a, an := utf8.DecodeRune(text)
		b, bn := utf8.DecodeRune(rest[n:])
		if a != b && !sameFold(a, b) || a == utf8.RuneError && text[0] != rest[n] {
			break
		}
		text = text[an:]
		n += bn
	}
	k.steps += n
	return n, len(text) == 0
}

// same reports whether rest begins with text. It looks at ever larger pieces, so
// that what does not count costs no more than what does.
func (k *backtracker) same(text, rest []byte) bool {
	if len(text) > len(rest) {
		return false
	}
	for at, size := 0, 64; at < len(text); at, size = at+size, 2*size {
		size = min(size, len(text)-at)
		k.steps += size >> 3
		if !bytes.Equal(text[at:at+size], rest[at:at+size]) {
			return false
		}
	}
	return true
}

func sameFold(a, b rune) bool {
	for f := unicode.SimpleFold(a); f != a; f = unicode.SimpleFold(f) {
		if f == b {
			return true
		}
	}
	return false
}

// look runs a lookaround or an atomic group at pos and returns where matching
// goes on.
func (k *backtracker) look(l *look, pos int) (end int, ok bool, err error) {
	base := len(k.stack)
	switch {
	case l.behind:
		at := pos
		for n := 0; n <= l.most; n++ {
			if n > 0 {
				if at == 0 {
					break
				}
				_, width := k.s.previous(at)
				at -= width
			}
			if n < l.least {
				continue
			}
			if _, ok, err = k.try(l.start, at, false, pos); err != nil {
				return 0, false, err
			}
			if ok {
				break
			}
		}
		end = pos
	default:
		if end, ok, err = k.try(l.start, pos, false, -1); err != nil {
			return 0, false, err
		}
		if !l.atomic {
			end = pos
		}
	}
	if l.neg {
		k.undo(base)
		return pos, !ok, nil
	}
	k.commit(base)
	return end, ok, nil
}

// undo takes back everything since base.
func (k *backtracker) undo(base int) {
	for len(k.stack) > base {
		f := k.stack[len(k.stack)-1]
		k.stack = k.stack[:len(k.stack)-1]
		if f.pc == restore {
			k.slots[f.arg] = f.pos
		}
	}
}

// commit drops the other ways since base but keeps what undoes the slots.
func (k *backtracker) commit(base int) {
	kept := k.stack[:base]
	for _, f := range k.stack[base:] {
		if f.pc == restore {
			kept = append(kept, f)
		}
	}
	k.stack = kept
}
