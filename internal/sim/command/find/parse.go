package find

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// A parser reads find's expression.
type parser struct {
	f     *finder
	args  []string
	at    int
	room  int    // how many parentheses may still open
	files string // of -files0-from
	bad   bool
	last  string // the predicate before
}

func (p *parser) fail(format string, args ...any) test {
	if !p.bad {
		p.bad = true
		p.f.errorf(format, args...)
	}
	return nil
}

func (p *parser) peek() (string, bool) {
	if p.bad || p.at >= len(p.args) {
		return "", false
	}
	return p.args[p.at], true
}

func (p *parser) parse() (test, bool) {
	check := test(func(*finder, *command.WalkEntry) bool { return true })
	if len(p.args) > 0 {
		check = p.list()
		if a, ok := p.peek(); ok {
			if a == ")" {
				p.fail("you have too many ')'")
			} else {
				p.fail("invalid expression")
			}
		}
	}
	if p.bad {
		return nil, false
	}
	if !p.f.acts {
		inner := check
		out, ok := p.f.open("")
		if !ok {
			return nil, false
		}
		check = func(f *finder, e *command.WalkEntry) bool {
			if inner(f, e) && !f.quit {
				f.line(out, e.Path, '\n')
			}
			return true
		}
	}
	return check, true
}

// list is tests with commas between them: the last one counts.
func (p *parser) list() test {
	x := p.or()
	for {
		a, ok := p.peek()
		if !ok || a != "," {
			return x
		}
		p.at++
		if _, ok := p.peek(); !ok {
			return p.fail("expected an expression after ','")
		}
		l, r := x, p.or()
		x = func(f *finder, e *command.WalkEntry) bool {
			l(f, e)
			if f.quit {
				return false
			}
			return r(f, e)
		}
	}
}

func (p *parser) or() test {
	x := p.and()
	for {
		a, ok := p.peek()
		if !ok || a != "-o" && a != "-or" {
			return x
		}
		p.at++
		if next, ok := p.peek(); !ok || next == ")" {
			return p.fail("expected an expression after '%s'", a)
		}
		l, r := x, p.and()
		x = func(f *finder, e *command.WalkEntry) bool { return l(f, e) || !f.quit && r(f, e) }
	}
}

func (p *parser) and() test {
	x := p.not()
	for {
		a, ok := p.peek()
		if !ok || a == "-o" || a == "-or" || a == "," || a == ")" {
			return x
		}
		if a == "-a" || a == "-and" {
			p.at++
			if next, ok := p.peek(); !ok || next == ")" {
				return p.fail("expected an expression after '%s'", a)
			}
		}
		l, r := x, p.not()
		x = func(f *finder, e *command.WalkEntry) bool { return l(f, e) && !f.quit && r(f, e) }
	}
}

func (p *parser) not() test {
	negate, word := false, ""
	for {
		a, ok := p.peek()
		if !ok || a != "!" && a != "-not" {
			break
		}
		p.at++
		p.f.t.Step(1)
		negate, word = !negate, a
	}
	if a, ok := p.peek(); word != "" && (!ok || a == ")") {
		return p.fail("expected an expression after '%s'", word)
	}
	x := p.primary()
	if !negate {
		return x
	}
	return func(f *finder, e *command.WalkEntry) bool { return !x(f, e) }
}

func (p *parser) primary() test {
	a, ok := p.peek()
	if !ok {
		return p.fail("invalid expression")
	}
	switch a {
	case "(":
		return p.group()
	case ")":
		return p.fail("invalid expression; you have too many ')'")
	case "-a", "-and", "-o", "-or", ",":
		return p.fail("invalid expression; you have used a binary operator '%s' with nothing before it.", a)
	}
	p.at++
	if !strings.HasPrefix(a, "-") || a == "-" {
		p.fail("paths must precede expression: `%s'", a)
		switch p.last {
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname":
			if _, err := p.f.t.View.Lstat(a); err == nil {
				p.f.t.Errorf("possible unquoted pattern after predicate `%s'?", p.last)
			}
		}
		return nil
	}
	p.last = a
	return p.predicate(a)
}

func (p *parser) group() test {
	if p.room--; p.room < 0 {
		return p.fail("invalid expression; too many parentheses")
	}
	p.at++
	a, ok := p.peek()
	if !ok {
		return p.fail("invalid expression; expected to find a ')' but didn't see one. Perhaps you need an extra predicate after '('")
	}
	if a == ")" {
		return p.fail("invalid expression; empty parentheses are not allowed.")
	}
	x := p.list()
	if a, ok = p.peek(); !ok || a != ")" {
		return p.fail("invalid expression; I was expecting to find a ')' somewhere but did not see one.")
	}
	p.at++
	p.room++
	return x
}

// arg takes the argument of a predicate.
func (p *parser) arg(of string) (string, bool) {
	if p.at >= len(p.args) {
		p.fail("missing argument to `%s'", of)
		return "", false
	}
	a := p.args[p.at]
	p.at++
	return a, true
}
