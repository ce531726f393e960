package regex

// A pattern is read into a tree of nodes, from which every engine compiles its
// own program.

type kind uint8

const (
	kEmpty   kind = iota
	kFail         // matches nothing at all
	kSet          // one character of set
	kCat          // sub in order
	kAlt          // one of sub, the earlier preferred
	kRepeat       // sub[0] from min to max times; max < 0 is no limit
	kGroup        // sub[0], remembered as number group
	kAssert       // an empty match where op holds
	kBackref      // what group matched
	kLook         // sub[0] matches ahead or behind, or does not (neg)
	kAtomic       // sub[0], its first way only
	kKeep         // \K: the match starts here
)

type assertion uint8

const (
	aBeginText assertion = iota
	aEndText
	aBeginLine
	aEndLine
	aEndTextNL // before a newline that ends the text, too
	aWordEdge
	aNotWordEdge
	aWordStart
	aWordEnd
	aNoWordBefore
	aNoWordAfter
)

type node struct {
	kind    kind
	op      assertion
	lazy    bool
	neg     bool
	behind  bool
	fold    bool // a back-reference that ignores case
	group   int
	min     int
	max     int
	set     *set
	sub     []*node
	minimum int // of characters, of a kLook behind
	maximum int
}

func cat(sub ...*node) *node {
	if len(sub) == 1 {
		return sub[0]
	}
	if len(sub) == 0 {
		return &node{kind: kEmpty}
	}
	return &node{kind: kCat, sub: sub}
}

func alt(sub ...*node) *node {
	if len(sub) == 1 {
		return sub[0]
	}
	return &node{kind: kAlt, sub: sub}
}

func assert(op assertion) *node { return &node{kind: kAssert, op: op} }

// nullable says whether n can match without consuming anything. A
// back-reference can.
func (n *node) nullable() bool {
	switch n.kind {
	case kSet, kFail:
		return false
	case kCat:
		for _, s := range n.sub {
			if !s.nullable() {
				return false
			}
		}
		return true
	case kAlt:
		for _, s := range n.sub {
			if s.nullable() {
				return true
			}
		}
		return false
	case kRepeat:
		return n.min == 0 || n.sub[0].nullable()
	case kGroup, kAtomic:
		return n.sub[0].nullable()
	default:
		return true
	}
}

// The bound on a program, in instructions before counted repetition of sets
// is weighed by what the set costs. glibc allows more and dies of it.
const maxSize = 300_000

// size counts the instructions of n with its repetitions written out, and
// stops counting past maxSize.
func (n *node) size() int {
	total := 1
	switch n.kind {
	case kSet:
		if !n.set.isASCII() {
			total = 8
		}
	case kRepeat:
		one := n.sub[0].size() + 1
		times := max(n.min, n.max, 1)
		if n.max < 0 {
			times++
		}
		if one > maxSize || times > maxSize || one*times > maxSize {
			return maxSize + 1
		}
		return one * times
	default:
		for _, s := range n.sub {
			total += s.size()
			if total > maxSize {
				return maxSize + 1
			}
		}
	}
	return total
}

// lengths gives the least and the most characters that n consumes, -1 for no
// bound.
func (n *node) lengths() (least, most int) {
	switch n.kind {
	case kSet:
		return 1, 1
	case kCat:
		for _, s := range n.sub {
			l, m := s.lengths()
			least += l
			most = addLength(most, m)
		}
		return least, most
	case kAlt:
		for i, s := range n.sub {
			l, m := s.lengths()
			if i == 0 {
				least, most = l, m
				continue
			}
			least = min(least, l)
			if m < 0 || most < 0 {
				most = -1
			} else {
				most = max(most, m)
			}
		}
		return least, most
	case kRepeat:
		l, m := n.sub[0].lengths()
		least = l * n.min
		switch {
		case m == 0:
			most = 0
		case m < 0 || n.max < 0:
			most = -1
		default:
			most = m * n.max
		}
		return least, most
	case kGroup, kAtomic:
		return n.sub[0].lengths()
	case kBackref:
		return 0, -1
	default:
		return 0, 0
	}
}

func addLength(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// contains says whether n or anything below it satisfies f.
func (n *node) contains(f func(*node) bool) bool {
	if f(n) {
		return true
	}
	for _, s := range n.sub {
		if s.contains(f) {
			return true
		}
	}
	return false
}
