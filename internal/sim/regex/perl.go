package regex

import (
	"strings"
	"unicode"
)

// perlFlags are what (?imsx) and their like switch.
type perlFlags struct {
	fold     bool
	multi    bool
	dotAll   bool
	extended bool
	noGroup  bool // (?n)
	swap     bool // (?U)
}

// PCRE's words.
const (
	pcreOpen       = "missing closing parenthesis"
	pcreClose      = "unmatched closing parenthesis"
	pcreClass      = "missing terminating ] for character class"
	pcreOrder      = "numbers out of order in {} quantifier"
	pcreBig        = "number too big in {} quantifier"
	pcreRepeat     = "quantifier does not follow a repeatable item"
	pcreName       = "syntax error in subpattern name (missing terminator?)"
	pcreEnd        = `\ at end of pattern`
	pcreBehind     = "lookbehind assertion is not fixed length"
	pcreFlag       = "unrecognized character after (? or (?-"
	pcreProperty   = `unknown property after \P or \p`
	pcreReference  = "reference to non-existent subpattern"
	pcreClassName  = "unknown POSIX class name"
	pcreRange      = "range out of order in character class"
	pcreRecurse    = "recursion and conditions in a pattern are not supported"
	pcreUnknown    = `unrecognized character follows \`
	pcreDeep       = "parentheses are too deeply nested"
	pcreBrace      = `missing terminating } or invalid digits in \x{} or \o{}`
	pcreBadNameRef = `\k is not followed by a braced, angle-bracketed, or quoted name`
)

// A pending reference waits for the end of the pattern, as it may be to a group
// that comes later.
type reference struct {
	n    *node
	name string
	at   int // number, of no name
}

func (p *parser) parsePerl() (*node, error) {
	p.perl = perlFlags{fold: p.opt.IgnoreCase, multi: p.opt.Multiline && !p.opt.Lines}
	n, err := p.perlAlternatives()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.src) {
		return nil, syntaxErrorf(pcreClose)
	}
	for _, r := range p.refs {
		g := r.at
		if r.name != "" {
			g = 0
			for i, name := range p.names {
				if name == r.name {
					g = i + 1
					break
				}
			}
		}
		if g < 1 || g > p.groups {
			return nil, syntaxErrorf(pcreReference)
		}
		r.n.group = p.base + g
	}
	return n, nil
}

// perlAlternatives reads up to the end or a closing parenthesis, which it
// leaves. Flags that are set inside end with it.
func (p *parser) perlAlternatives() (*node, error) {
	p.depth++
	flags := p.perl
	defer func() {
		p.depth--
		p.perl = flags
	}()
	if p.depth > maxDepth/2 {
		return nil, syntaxErrorf(pcreDeep)
	}
	var branches []*node
	for {
		n, err := p.perlBranch()
		if err != nil {
			return nil, err
		}
		branches = append(branches, n)
		if p.at >= len(p.src) || p.src[p.at] != '|' {
			return alt(branches...), nil
		}
		p.at++
	}
}

func (p *parser) perlBranch() (*node, error) {
	var seq []*node
	for p.at < len(p.src) && p.src[p.at] != '|' && p.src[p.at] != ')' {
		if p.perl.extended && p.perlBlank() {
			continue
		}
		n, repeatable, err := p.perlAtom()
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if repeatable {
			if n, err = p.perlRepeat(n); err != nil {
				return nil, err
			}
		}
		seq = append(seq, n)
	}
	return cat(seq...), nil
}

// perlBlank passes over what (?x) ignores.
func (p *parser) perlBlank() bool {
	switch p.src[p.at] {
	case ' ', '\t', '\n', '\v', '\f', '\r':
		p.at++
		return true
	case '#':
		for p.at < len(p.src) && p.src[p.at] != '\n' {
			p.at++
		}
		return true
	default:
		return false
	}
}

// perlAtom reads one item. It returns nil for one that is nothing.
func (p *parser) perlAtom() (n *node, repeatable bool, err error) {
	c, width := p.opt.decode(p.src[p.at:])
	switch c {
	case '(':
		p.at++
		return p.perlGroup()
	case '[':
		p.at++
		n, err = p.perlBracket()
		return n, true, err
	case '\\':
		return p.perlEscape()
	case '.':
		p.at++
		return p.setNode(universe(p.opt.Bytes), !p.perl.dotAll), true, nil
	case '^':
		p.at++
		if p.perl.multi {
			return assert(aBeginLine), false, nil
		}
		return assert(aBeginText), true, nil
	case '$':
		p.at++
		switch {
		case p.perl.multi:
			return assert(aEndLine), false, nil
		case p.sep == '\n':
			return assert(aEndText), true, nil
		default:
			return assert(aEndTextNL), true, nil
		}
	case '*', '+', '?':
		return nil, false, syntaxErrorf(pcreRepeat)
	case '{':
		if _, _, ok, err := p.perlInterval(); err != nil || ok {
			return nil, false, syntaxErrorf(pcreRepeat)
		}
	}
	p.at += width
	return p.perlChar(c), true, nil
}

func (p *parser) perlChar(c rune) *node {
	if p.opt.Bytes && c > 0xff {
		return &node{kind: kFail}
	}
	spans := []span{{c, c}}
	if p.perl.fold {
		spans = foldSpans(spans, p.opt.Bytes)
	}
	return p.setNode(spans, false)
}

// perlInterval reads {n}, {n,} or {n,m} at p.at, if it is one.
func (p *parser) perlInterval() (least, most int, ok bool, err error) {
	at := p.at
	p.at++
	least = p.count()
	most = least
	if least >= 0 && p.at < len(p.src) && p.src[p.at] == ',' {
		p.at++
		most = p.count()
	}
	if least < 0 || p.at >= len(p.src) || p.src[p.at] != '}' {
		p.at = at
		return 0, 0, false, nil
	}
	p.at++
	if max(least, most) > 65535 || max(least, most) > maxRepeat {
		return 0, 0, false, syntaxErrorf(pcreBig)
	}
	if most >= 0 && least > most {
		return 0, 0, false, syntaxErrorf(pcreOrder)
	}
	return least, most, true, nil
}

func (p *parser) perlRepeat(n *node) (*node, error) {
	for p.perl.extended && p.at < len(p.src) && p.perlBlank() {
	}
	if p.at >= len(p.src) {
		return n, nil
	}
	least, most := 0, -1
	switch p.src[p.at] {
	case '*':
		p.at++
	case '+':
		p.at++
		least = 1
	case '?':
		p.at++
		most = 1
	case '{':
		var ok bool
		var err error
		if least, most, ok, err = p.perlInterval(); err != nil || !ok {
			return n, err
		}
	default:
		return n, nil
	}
	n = &node{kind: kRepeat, min: least, max: most, lazy: p.perl.swap, sub: []*node{n}}
	if p.at < len(p.src) {
		switch p.src[p.at] {
		case '?':
			p.at++
			n.lazy = !n.lazy
		case '+':
			p.at++
			return &node{kind: kAtomic, sub: []*node{n}}, nil
		}
	}
	return n, nil
}

// perlGroup reads what follows an opening parenthesis.
func (p *parser) perlGroup() (n *node, repeatable bool, err error) {
	rest := p.src[p.at:]
	switch {
	case strings.HasPrefix(rest, "*"):
		return nil, false, syntaxErrorf("(*VERB) not recognized or malformed")
	case !strings.HasPrefix(rest, "?"):
		if p.perl.noGroup {
			return p.perlInside(&node{kind: kGroup})
		}
		return p.perlCapture("")
	}
	for _, c := range []struct {
		text string
		node node
	}{
		{"?:", node{kind: kGroup}},
		{"?=", node{kind: kLook}},
		{"?!", node{kind: kLook, neg: true}},
		{"?<=", node{kind: kLook, behind: true}},
		{"?<!", node{kind: kLook, behind: true, neg: true}},
		{"?>", node{kind: kAtomic}},
	} {
		if strings.HasPrefix(rest, c.text) {
			p.at += len(c.text)
			return p.perlInside(&c.node)
		}
	}
	switch {
	case strings.HasPrefix(rest, "?#"):
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			return nil, false, syntaxErrorf("missing ) after (?# comment")
		}
		p.at += end + 1
		return nil, false, nil
	case strings.HasPrefix(rest, "?|"):
		p.at += 2
		return p.perlReset()
	case strings.HasPrefix(rest, "?P="):
		return p.perlNamed(3, ')')
	case strings.HasPrefix(rest, "?<"):
		return p.perlNamedGroup(2, '>')
	case strings.HasPrefix(rest, "?P<"):
		return p.perlNamedGroup(3, '>')
	case strings.HasPrefix(rest, "?'"):
		return p.perlNamedGroup(2, '\'')
	}
	return p.perlSwitch()
}

// perlInside reads the rest of a group into n. A kGroup without a number is no
// group at all.
func (p *parser) perlInside(n *node) (*node, bool, error) {
	inner, err := p.perlAlternatives()
	if err != nil {
		return nil, false, err
	}
	if p.at >= len(p.src) {
		return nil, false, syntaxErrorf(pcreOpen)
	}
	p.at++
	if n.kind == kGroup && n.group == 0 {
		return inner, true, nil
	}
	n.sub = []*node{inner}
	if n.behind {
		least, most := inner.lengths()
		if most < 0 || !fixedBranches(inner) {
			return nil, false, syntaxErrorf(pcreBehind)
		}
		n.minimum, n.maximum = least, most
	}
	return n, true, nil
}

// fixedBranches says whether each alternative of n has one length.
func fixedBranches(n *node) bool {
	if n.kind == kAlt {
		for _, s := range n.sub {
			if !fixedBranches(s) {
				return false
			}
		}
		return true
	}
	least, most := n.lengths()
	if least == most {
		return true
	}
	if n.kind == kGroup {
		return fixedBranches(n.sub[0])
	}
	return false
}

func (p *parser) perlCapture(name string) (*node, bool, error) {
	p.groups++
	g := p.groups
	for len(p.names) < g {
		p.names = append(p.names, "")
	}
	if name != "" {
		p.names[g-1] = name
	}
	return p.perlInside(&node{kind: kGroup, group: p.base + g})
}

// perlReset reads (?|...), in which every alternative counts from the same
// number.
func (p *parser) perlReset() (*node, bool, error) {
	first, last := p.groups, p.groups
	var branches []*node
	for {
		p.groups = first
		n, err := p.perlBranch()
		if err != nil {
			return nil, false, err
		}
		branches = append(branches, n)
		last = max(last, p.groups)
		if p.at >= len(p.src) {
			return nil, false, syntaxErrorf(pcreOpen)
		}
		p.at++
		if p.src[p.at-1] == ')' {
			p.groups = last
			return alt(branches...), true, nil
		}
	}
}

// perlWord reads a name that starts at p.at+skip and ends with end.
func (p *parser) perlWord(skip int, end byte) (string, error) {
	rest := p.src[p.at+skip:]
	n := 0
	for n < len(rest) && isWord(rune(rest[n]), true) {
		n++
	}
	if n == 0 || n >= len(rest) || rest[n] != end || '0' <= rest[0] && rest[0] <= '9' {
		return "", syntaxErrorf(pcreName)
	}
	p.at += skip + n + 1
	return rest[:n], nil
}

func (p *parser) perlNamedGroup(skip int, end byte) (*node, bool, error) {
	name, err := p.perlWord(skip, end)
	if err != nil {
		return nil, false, err
	}
	return p.perlCapture(name)
}

// perlNamed reads a reference by name.
func (p *parser) perlNamed(skip int, end byte) (*node, bool, error) {
	name, err := p.perlWord(skip, end)
	if err != nil {
		return nil, false, err
	}
	return p.perlReference(reference{name: name}), true, nil
}

func (p *parser) perlReference(r reference) *node {
	r.n = &node{kind: kBackref, fold: p.perl.fold}
	p.refs = append(p.refs, r)
	return r.n
}

// perlSwitch reads (?flags) and (?flags:...).
func (p *parser) perlSwitch() (*node, bool, error) {
	outer := p.perl
	flags := p.perl
	on := true
	for at := p.at + 1; at < len(p.src); at++ {
		switch p.src[at] {
		case '^':
			flags = perlFlags{}
		case '-':
			on = false
		case 'i':
			flags.fold = on
		case 'm':
			flags.multi = on && !p.opt.Lines
		case 's':
			flags.dotAll = on
		case 'x':
			flags.extended = on
		case 'n':
			flags.noGroup = on
		case 'U':
			flags.swap = on
		case 'J':
		case ')':
			p.at = at + 1
			p.perl = flags
			return nil, false, nil
		case ':':
			p.at = at + 1
			p.perl = flags
			n, ok, err := p.perlInside(&node{kind: kGroup})
			p.perl = outer
			return n, ok, err
		case 'R', '(', '&', 'P', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+':
			return nil, false, syntaxErrorf(pcreRecurse)
		default:
			return nil, false, syntaxErrorf(pcreFlag)
		}
	}
	return nil, false, syntaxErrorf(pcreOpen)
}

// perlEscape reads a backslash and what belongs to it, outside a class.
func (p *parser) perlEscape() (n *node, repeatable bool, err error) {
	if p.at+1 >= len(p.src) {
		return nil, false, syntaxErrorf(pcreEnd)
	}
	c := p.src[p.at+1]
	switch c {
	case 'Q':
		return p.perlQuoted()
	case 'E':
		p.at += 2
		return nil, false, nil
	case 'A', 'z', 'Z', 'b', 'B', 'G':
		p.at += 2
		op := aBeginText
		switch c {
		case 'z':
			op = aEndText
		case 'Z':
			op = aEndTextNL
			if p.sep == '\n' {
				op = aEndText
			}
		case 'b':
			op = aWordEdge
		case 'B':
			op = aNotWordEdge
		}
		return assert(op), true, nil
	case 'K':
		p.at += 2
		return &node{kind: kKeep}, false, nil
	case 'R':
		p.at += 2
		crlf := cat(p.perlChar('\r'), p.perlChar('\n'))
		one := p.setNode([]span{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}, false)
		return &node{kind: kAtomic, sub: []*node{alt(crlf, one)}}, true, nil
	case 'X':
		p.at += 2
		marks := p.setNode(normalize(tableSpans(nil, unicode.M)), false)
		return &node{kind: kAtomic, sub: []*node{cat(p.setNode(universe(p.opt.Bytes), false),
			&node{kind: kRepeat, max: -1, sub: []*node{marks}})}}, true, nil
	case 'k', 'g':
		return p.perlBackref(c)
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		at := p.at
		p.at++
		g := p.count()
		if g <= 9 || g <= p.groups {
			return p.perlReference(reference{at: g}), true, nil
		}
		p.at = at
	}
	spans, class, err := p.perlClassEscape()
	if err != nil {
		return nil, false, err
	}
	if class {
		return p.setNode(spans, false), true, nil
	}
	return p.perlChar(spans[0].lo), true, nil
}

func (p *parser) perlQuoted() (*node, bool, error) {
	text := p.src[p.at+2:]
	p.at = len(p.src)
	if end := strings.Index(text, `\E`); end >= 0 {
		p.at -= len(text) - end - 2
		text = text[:end]
	}
	var seq []*node
	for len(text) > 0 {
		c, n := p.opt.decode(text)
		text = text[n:]
		seq = append(seq, p.perlChar(c))
	}
	if len(seq) == 0 {
		return nil, false, nil
	}
	last, err := p.perlRepeat(seq[len(seq)-1])
	seq[len(seq)-1] = last
	return cat(seq...), false, err
}

// perlBackref reads \k and \g.
func (p *parser) perlBackref(c byte) (*node, bool, error) {
	rest := p.src[p.at+2:]
	for _, q := range []string{"{}", "<>", "''"} {
		if rest == "" || rest[0] != q[0] || c == 'g' && q[0] != '{' {
			continue
		}
		if c == 'g' {
			digits := strings.TrimPrefix(rest[1:], "-")
			if digits != "" && '0' <= digits[0] && digits[0] <= '9' {
				p.at += 3
				return p.perlNumbered('}')
			}
		}
		return p.perlNamed(3, q[1])
	}
	if c == 'k' {
		return nil, false, syntaxErrorf(pcreBadNameRef)
	}
	p.at += 2
	return p.perlNumbered(0)
}

// perlNumbered reads the number of a group, which a minus makes relative.
func (p *parser) perlNumbered(end byte) (*node, bool, error) {
	relative := p.at < len(p.src) && p.src[p.at] == '-'
	if relative {
		p.at++
	}
	g := p.count()
	if g < 0 {
		return nil, false, syntaxErrorf("a numbered reference must not be zero")
	}
	if relative {
		g = p.groups + 1 - g
	}
	if end != 0 {
		if p.at >= len(p.src) || p.src[p.at] != end {
			return nil, false, syntaxErrorf(pcreBadNameRef)
		}
		p.at++
	}
	return p.perlReference(reference{at: g}), true, nil
}
