package regex

// A charProg is a program over characters, for the engines that find
// submatches and for what no automaton can do.
type charProg struct {
	insts  []charInst
	start  uint32
	slots  int // two for each group, group 0 first
	marks  int // positions that loops remember, behind the slots
	looks  []*look
	longer bool // of the matches at a start the longest counts
	// memo lists the groups that back-references name, when the backtracker
	// may remember where it has been.
	memo    []int
	canMemo bool
}

type charOp uint8

const (
	cMatch   charOp = iota
	cFail           // no way on
	cChar           // character c
	cSet            // a character of set
	cSplit          // out, or else arg
	cSave           // remember the position in slot arg
	cAssert         // assertion arg
	cMark           // remember the position in mark arg
	cLoop           // cSplit that does not go round if nothing was consumed since mark c
	cBackref        // what group arg matched
	cLook           // looks[arg]
	cKeep           // the match starts here
)

type charInst struct {
	op   charOp
	fold bool // of cBackref
	lazy bool // of cLoop: arg goes round
	out  uint32
	arg  uint32
	c    rune // cChar; the mark of a cLoop
	set  *set
}

// A look is a program that runs on its own: a lookaround or an atomic group.
type look struct {
	start  uint32
	atomic bool
	neg    bool
	behind bool
	least  int // characters, of one behind
	most   int
}

type charCompiler struct {
	p    *charProg
	full bool
}

func compileChars(n *node, groups int, longer bool) (*charProg, error) {
	c := &charCompiler{p: &charProg{slots: 2 * (groups + 1), longer: longer, canMemo: true}}
	c.p.start = c.node(n, c.add(charInst{op: cMatch}))
	if c.full {
		return nil, syntaxErrorf(msgTooBig)
	}
	c.p.canMemo = c.p.canMemo && len(c.p.memo) <= 2
	return c.p, nil
}

func (c *charCompiler) add(i charInst) uint32 {
	if len(c.p.insts) > 4*maxSize {
		c.full = true
		return 0
	}
	c.p.insts = append(c.p.insts, i)
	return uint32(len(c.p.insts) - 1)
}

func (c *charCompiler) node(n *node, next uint32) uint32 {
	if c.full {
		return 0
	}
	switch n.kind {
	case kEmpty:
		return next
	case kSet:
		if r, ok := n.set.one(); ok {
			return c.add(charInst{op: cChar, c: r, out: next})
		}
		return c.add(charInst{op: cSet, set: n.set, out: next})
	case kCat:
		for i := len(n.sub) - 1; i >= 0; i-- {
			next = c.node(n.sub[i], next)
		}
		return next
	case kAlt:
		at := c.node(n.sub[len(n.sub)-1], next)
		for i := len(n.sub) - 2; i >= 0; i-- {
			first := c.node(n.sub[i], next)
			at = c.add(charInst{op: cSplit, out: first, arg: at})
		}
		return at
	case kRepeat:
		return c.repeat(n, next)
	case kGroup:
		end := c.add(charInst{op: cSave, arg: uint32(2*n.group + 1), out: next})
		return c.add(charInst{op: cSave, arg: uint32(2 * n.group), out: c.node(n.sub[0], end)})
	case kAssert:
		return c.add(charInst{op: cAssert, arg: uint32(n.op), out: next})
	case kBackref:
		known := false
		for _, g := range c.p.memo {
			known = known || g == n.group
		}
		if !known {
			c.p.memo = append(c.p.memo, n.group)
		}
		return c.add(charInst{op: cBackref, arg: uint32(n.group), fold: n.fold, out: next})
	case kLook, kAtomic:
		c.p.canMemo = false
		l := &look{
			atomic: n.kind == kAtomic, neg: n.neg, behind: n.behind, least: n.minimum, most: n.maximum,
			start: c.node(n.sub[0], c.add(charInst{op: cMatch})),
		}
		c.p.looks = append(c.p.looks, l)
		return c.add(charInst{op: cLook, arg: uint32(len(c.p.looks) - 1), out: next})
	case kKeep:
		return c.add(charInst{op: cKeep, out: next})
	default:
		return c.add(charInst{op: cFail})
	}
}

func (c *charCompiler) repeat(n *node, next uint32) uint32 {
	body := n.sub[0]
	least := n.min
	switch {
	case n.max >= 0:
		end := next
		for i := n.min; i < n.max && !c.full; i++ {
			split := c.add(charInst{op: cSplit})
			in := c.node(body, next)
			c.setSplit(split, in, end, n.lazy)
			next = split
		}
	case body.nullable():
		// The way back is not the way in, so that one round that matches the
		// empty string is made, and no second one.
		mark := c.p.marks
		c.p.marks++
		loop := c.add(charInst{op: cLoop, c: rune(mark), lazy: n.lazy})
		in := c.add(charInst{op: cMark, arg: uint32(mark), out: c.node(body, loop)})
		c.setSplit(loop, in, next, n.lazy)
		if least > 0 {
			least--
			next = in
			break
		}
		enter := c.add(charInst{op: cSplit})
		c.setSplit(enter, in, next, n.lazy)
		next = enter
	case least > 0:
		// x+ needs no copy of x.
		least--
		loop := c.add(charInst{op: cSplit})
		in := c.node(body, loop)
		c.setSplit(loop, in, next, n.lazy)
		next = in
	default:
		loop := c.add(charInst{op: cSplit})
		in := c.node(body, loop)
		c.setSplit(loop, in, next, n.lazy)
		next = loop
	}
	for i := 0; i < least && !c.full; i++ {
		next = c.node(body, next)
	}
	return next
}

func (c *charCompiler) setSplit(at, in, out uint32, lazy bool) {
	if lazy {
		in, out = out, in
	}
	c.p.insts[at].out, c.p.insts[at].arg = in, out
}
