package regex

// A dialect is what the flavours of the POSIX syntax differ in.
type dialect struct {
	bareGroup    bool // ( ) and | are operators without a backslash
	bareInterval bool // { } too
	barePlus     bool // + and ? too
	interval     bool // there are intervals at all
	classes      bool // [:alpha:] is a class
	anchors      bool // ^ and $ are anchors everywhere
	operators    bool // an operator with no operand is not a character
	refuseStray  bool // and is an error; otherwise it is skipped
	refuseDouble bool // a* may not be repeated by * or \{
	ordinary     bool // a { that opens no valid interval is a character
	strayClose   bool // an unmatched ) is a character
	emptyRange   bool // [b-a] holds nothing and is no error
	colonCheck   bool // [:space:] is an error, as where gnulib's dfa reads along
	escapes      bool // \n, \t, \x41 and their like, in brackets too
}

func (f Flavour) dialect() dialect {
	d := dialect{interval: true, classes: true}
	switch f {
	case BRE:
		d.refuseDouble, d.colonCheck, d.escapes = true, true, true
	case GrepBRE:
		d.colonCheck = true
	case Expr:
		d.emptyRange = true
	case Emacs:
		d = dialect{barePlus: true, emptyRange: true}
	case ERE, Shell, GrepERE:
		d.bareGroup, d.bareInterval, d.barePlus, d.anchors, d.operators = true, true, true, true, true
		d.refuseStray = f != GrepERE
		d.ordinary = f == GrepERE
		d.strayClose = f != ERE
		d.colonCheck = f != Shell
		d.escapes = f == ERE
	case Literal, Perl:
	}
	return d
}
