package sed

import "github.com/paddock-sandbox/paddock/internal/sim/regex"

// kind says what an address is.
type kind uint8

const (
	aLine     kind = iota // number
	aStep                 // number~step
	aLast                 // $
	aRegex                // /re/
	aPlus                 // +number, as the second one
	aMultiple             // ~number, as the second one
)

type address struct {
	kind   kind
	number int64
	step   int64
	re     *regex.Regexp // nil is the one that was used last
}

// An instr is a command of the script. Blocks are jumps: a { that does not
// apply goes behind its }.
type instr struct {
	name   byte
	first  *address
	second *address
	not    bool

	active bool  // between the addresses
	closed bool  // and not again, as the first one was a number
	until  int64 // the line that ends that, where it is known

	text   []byte  // of a, i, c and e
	jump   int     // of {, b, t and T
	number int     // of q, Q, l and L
	file   *output // of w, W
	name2  string  // of r
	reader *lines  // of R
	sub    *substitution
	table  *translation
	label  string // of :, b, t and T
}

// A substitution is the command s.
type substitution struct {
	re     *regex.Regexp // nil is the one that was used last
	parts  []part
	refs   int  // the largest group that is referred to
	simple bool // the replacement is one text

	global, eval bool
	number       int  // the match to begin with
	before       bool // print before evaluation
	print        bool
	file         *output
}

// letters says how a part of a replacement is written.
type letters uint8

const (
	asIs letters = iota
	upper
	lower
)

// A part of a replacement is a text and a group behind it.
type part struct {
	text  []byte
	group int     // -1 is none
	all   letters // \U or \L
	first letters // \u or \l
}

// A translation is the command y.
type translation struct {
	bytes *[256]byte // where all characters are ASCII
	chars map[string]string
}

// begins says whether a command is 0r: for before the first line.
func (i *instr) begins() bool {
	return i.name == 'r' && i.second == nil && i.first != nil && i.first.kind == aLine && i.first.number == 0
}

// rewind makes an instr as it was before the first line.
func (i *instr) rewind() {
	i.active = i.second != nil && i.first.kind == aLine && i.first.number == 0
	i.closed = false
}
