package condition

// Test decides the arguments of test, or those of [ before the ]. By how many
// there are it does as POSIX says; more than four are an expression, in which
// -a binds closer than -o. With deep parentheses it ends at nesting.
func (h *Host) Test(args []string, nesting int) (bool, error) {
	p := &parser{h: h, args: args, room: nesting}
	if len(args) == 0 {
		return false, nil
	}
	v, err := p.few(len(args))
	if err == nil && p.at < len(args) {
		err = &Error{TooMany, p.args[p.at]}
	}
	return v, err
}

type parser struct {
	h    *Host
	args []string
	at   int
	room int
}

func (p *parser) peek(i int) string {
	if p.at+i < len(p.args) {
		return p.args[p.at+i]
	}
	return ""
}

// few decides the next n arguments by POSIX's rules.
func (p *parser) few(n int) (bool, error) {
	switch n {
	case 1:
		p.at++
		return p.args[p.at-1] != "", nil
	case 2:
		return p.two()
	case 3:
		return p.three()
	case 4:
		switch {
		case p.peek(0) == "!":
			p.at++
			v, err := p.three()
			return !v, err
		case p.peek(0) == "(" && p.peek(3) == ")":
			p.at++
			v, err := p.two()
			p.at++
			return v, err
		}
	}
	return p.or()
}

func (p *parser) two() (bool, error) {
	first := p.peek(0)
	switch {
	case first == "!":
		v := p.peek(1) == ""
		p.at += 2
		return v, nil
	case IsUnary(first):
		return p.unary()
	}
	return false, &Error{NotUnary, first}
}

func (p *parser) three() (bool, error) {
	op := p.peek(1)
	switch {
	case p.h.isBinary(op):
		return p.binary()
	case op == "-a", op == "-o":
		a, b := p.peek(0) != "", p.peek(2) != ""
		p.at += 3
		if op == "-a" {
			return a && b, nil
		}
		return a || b, nil
	case p.peek(0) == "!":
		p.at++
		v, err := p.two()
		return !v, err
	case p.peek(0) == "(" && p.peek(2) == ")":
		v := op != ""
		p.at += 3
		return v, nil
	}
	return false, &Error{NotBinary, op}
}

func (p *parser) unary() (bool, error) {
	op, s := p.peek(0), p.peek(1)
	p.at += 2
	return p.h.Unary(op[1], s)
}

func (p *parser) binary() (bool, error) {
	a, op, b := p.peek(0), p.peek(1), p.peek(2)
	p.at += 3
	return p.h.Binary(a, op, b)
}

// or decides an expression of any length.
func (p *parser) or() (bool, error) {
	v, err := p.and()
	for err == nil && p.at < len(p.args) && p.args[p.at] == "-o" {
		p.at++
		var w bool
		w, err = p.and()
		v = v || w
	}
	return v, err
}

func (p *parser) and() (bool, error) {
	v, err := p.term()
	for err == nil && p.at < len(p.args) && p.args[p.at] == "-a" {
		p.at++
		var w bool
		w, err = p.term()
		v = v && w
	}
	return v, err
}

func (p *parser) term() (bool, error) {
	negate := false
	for p.at < len(p.args) && p.args[p.at] == "!" {
		p.at++
		negate = !negate
	}
	v, err := p.primary()
	return v != negate, err
}

func (p *parser) primary() (bool, error) {
	left := len(p.args) - p.at
	if left <= 0 {
		return false, &Error{Missing, p.last()}
	}
	switch {
	case p.args[p.at] == "(":
		return p.group()
	case left >= 3 && p.h.isBinary(p.peek(1)):
		return p.binary()
	case IsUnary(p.peek(0)) && left >= 2:
		return p.unary()
	case IsUnary(p.peek(0)) && p.peek(0) != "-a" && p.peek(0) != "-o" && left < 2 && p.at > 0:
		return false, &Error{Missing, p.peek(0)}
	}
	p.at++
	return p.args[p.at-1] != "", nil
}

func (p *parser) last() string {
	if len(p.args) == 0 {
		return ""
	}
	return p.args[len(p.args)-1]
}

func (p *parser) group() (bool, error) {
	if p.room--; p.room < 0 {
		return false, &Error{TooMany, "("}
	}
	p.at++
	v, err := p.or()
	switch {
	case err != nil:
		return false, err
	case p.at >= len(p.args):
		return false, &Error{MissingParen, ""}
	case p.args[p.at] != ")":
		return false, &Error{MissingParen, p.args[p.at]}
	}
	p.at++
	p.room++
	return v, nil
}
