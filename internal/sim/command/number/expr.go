package number

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

var exprSpec = command.Spec{Name: "expr", Synopsis: "EXPRESSION", About: "Print the value of EXPRESSION to standard output.", Exit: 2}

// A value is a number or a string.
type value struct {
	n *big.Int // nil is a string
	s string
}

func (v *value) text() string {
	if v.n != nil {
		return v.n.String()
	}
	return v.s
}

// null tells what counts as false: nothing, and zero.
func (v *value) null() bool {
	if v.n != nil {
		return v.n.Sign() == 0
	}
	if v.s == "" {
		return true
	}
	s := strings.TrimPrefix(v.s, "-")
	return s != "" && strings.Trim(s, "0") == ""
}

// integer tells text that is one.
func integer(s string) bool { return digitsOnly(strings.TrimPrefix(s, "-")) }

// An evaluator reads an expression. If off, what is read is not calculated.
type evaluator struct {
	t     *kernel.Task
	args  []string
	at    int
	depth int
}

// A broken expression ends the evaluation.
type broken struct{ error }

func runExpr(t *kernel.Task) int {
	args := t.Args[1:]
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		_, status, _ := exprSpec.Parse(t)
		return status
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return exprSpec.Usage(t, "missing operand")
	}
	e := &evaluator{t: t, args: args}
	v, err := e.whole()
	if err != nil {
		t.Errorf("%s", err)
		return 2
	}
	command.StdoutStatus(t, 3).String(v.text() + "\n")
	if v.null() {
		return 1
	}
	return 0
}

func (e *evaluator) whole() (v value, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			err = r.error
		default:
			panic(r)
		}
	}()
	v = e.or(true)
	if e.at < len(e.args) {
		e.fail("syntax error: unexpected argument %s", command.Quote(e.args[e.at]))
	}
	return v, nil
}

func (e *evaluator) fail(format string, args ...any) {
	panic(broken{fmt.Errorf(format, args...)})
}

func (e *evaluator) next(word string) bool {
	if e.at < len(e.args) && e.args[e.at] == word {
		e.at++
		return true
	}
	return false
}

// more complains if there is no argument left.
func (e *evaluator) more() {
	if e.at >= len(e.args) {
		e.fail("syntax error: missing argument after %s", command.Quote(e.args[e.at-1]))
	}
}

func (e *evaluator) or(on bool) value {
	l := e.and(on)
	for e.next("|") {
		r := e.and(on && l.null())
		if l.null() {
			l = r
			if l.null() {
				l = value{n: new(big.Int)}
			}
		}
	}
	return l
}

func (e *evaluator) and(on bool) value {
	l := e.comparison(on)
	for e.next("&") {
		r := e.comparison(on && !l.null())
		if l.null() || r.null() {
			l = value{n: new(big.Int)}
		}
	}
	return l
}

func (e *evaluator) comparison(on bool) value {
	l := e.sum(on)
	for {
		op := ""
		for _, w := range []string{"<", "<=", "=", "==", "!=", ">=", ">"} {
			if e.next(w) {
				op = w
				break
			}
		}
		if op == "" {
			return l
		}
		r := e.sum(on)
		if !on {
			continue
		}
		c := 0
		if a, b := l.text(), r.text(); integer(a) && integer(b) {
			c = e.number(&l).Cmp(e.number(&r))
		} else {
			c = strings.Compare(a, b)
		}
		yes := false
		switch op {
		case "<":
			yes = c < 0
		case "<=":
			yes = c <= 0
		case "=", "==":
			yes = c == 0
		case "!=":
			yes = c != 0
		case ">=":
			yes = c >= 0
		case ">":
			yes = c > 0
		}
		l = value{n: new(big.Int)}
		if yes {
			l.n.SetInt64(1)
		}
	}
}

// number makes a number of a value.
func (e *evaluator) number(v *value) *big.Int {
	if v.n != nil {
		return v.n
	}
	if !integer(v.s) {
		e.fail("non-integer argument")
	}
	effort(e.t, len(v.s)/19, len(v.s)/19)
	n, ok := new(big.Int).SetString(v.s, 10)
	if !ok {
		e.fail("non-integer argument")
	}
	v.n = n
	return n
}

// effort counts the work of a multiplication or a conversion of numbers of so
// many machine words.
func effort(t *kernel.Task, a, b int) {
	const most = 1 << 40
	t.Step(1 + int(min(int64(a)*int64(b)>>4, most)))
}

func (e *evaluator) sum(on bool) value {
	l := e.product(on)
	for {
		plus := e.next("+")
		if !plus && !e.next("-") {
			return l
		}
		r := e.product(on)
		if !on {
			continue
		}
		a, b := e.number(&l), e.number(&r)
		if plus {
			l = value{n: new(big.Int).Add(a, b)}
		} else {
			l = value{n: new(big.Int).Sub(a, b)}
		}
	}
}

func (e *evaluator) product(on bool) value {
	l := e.match(on)
	for {
		op := ""
		for _, w := range []string{"*", "/", "%"} {
			if e.next(w) {
				op = w
				break
			}
		}
		if op == "" {
			return l
		}
		r := e.match(on)
		if !on {
			continue
		}
		a, b := e.number(&l), e.number(&r)
		effort(e.t, len(a.Bits()), len(b.Bits()))
		switch {
		case op == "*":
			e.t.Bound("string", int64(len(a.Bits())+len(b.Bits()))*19, e.t.K.Limits.String)
			l = value{n: new(big.Int).Mul(a, b)}
		case b.Sign() == 0:
			e.fail("division by zero")
		case op == "/":
			l = value{n: new(big.Int).Quo(a, b)}
		default:
			l = value{n: new(big.Int).Rem(a, b)}
		}
	}
}

func (e *evaluator) match(on bool) value {
	l := e.function(on)
	for e.next(":") {
		r := e.function(on)
		if on {
			l = e.colon(l.text(), r.text())
		}
	}
	return l
}

// colon matches at the start: the first group, or how many characters.
func (e *evaluator) colon(s, pattern string) value {
	re, err := command.CompileRegex(e.t, pattern, regex.Options{Flavour: regex.Expr, Bytes: e.t.Bytewise()})
	if err != nil {
		panic(broken{err})
	}
	b := []byte(s)
	m, err := re.FindAt(b, 0, nil)
	if err != nil {
		panic(broken{errors.New("error in regular expression matcher")})
	}
	switch {
	case re.Groups() > 0 && (len(m) < 4 || m[2] < 0):
		return value{}
	case re.Groups() > 0:
		return value{s: string(b[m[2]:m[3]])}
	case m == nil:
		return value{n: new(big.Int)}
	}
	return e.length(s[:m[1]])
}

// length counts characters.
func (e *evaluator) length(s string) value {
	n := len(s)
	if !e.t.Bytewise() {
		n = utf8.RuneCountInString(s)
	}
	return value{n: big.NewInt(int64(n))}
}

func (e *evaluator) function(on bool) value {
	e.more()
	switch {
	case e.next("+"):
		e.more()
		e.at++
		return value{s: e.args[e.at-1]}
	case e.next("length"):
		v := e.function(on)
		return e.length(v.text())
	case e.next("match"):
		l := e.function(on)
		r := e.function(on)
		if !on {
			return l
		}
		return e.colon(l.text(), r.text())
	case e.next("index"):
		l := e.function(on)
		r := e.function(on)
		if e.t.Bytewise() {
			for i := range len(l.text()) {
				if strings.IndexByte(r.text(), l.text()[i]) >= 0 {
					return value{n: big.NewInt(int64(i + 1))}
				}
			}
			return value{n: new(big.Int)}
		}
		at := 0
		for i, c := range []rune(l.text()) {
			if strings.ContainsRune(r.text(), c) {
				at = i + 1
				break
			}
		}
		return value{n: big.NewInt(int64(at))}
	case e.next("substr"):
		l := e.function(on)
		from := e.function(on)
		count := e.function(on)
		return substr(l.text(), from.text(), count.text(), e.t.Bytewise())
	}
	return e.primary(on)
}

// substr takes characters by position; what makes no sense gives nothing.
func substr(s, from, count string, bytewise bool) value {
	if !integer(from) || !integer(count) || len(from) > 18 || strings.HasPrefix(count, "-") {
		return value{}
	}
	chars := []rune(s)
	bytewise = bytewise || !utf8.ValidString(s)
	if bytewise {
		chars = make([]rune, 0, len(s))
		for i := range len(s) {
			chars = append(chars, rune(s[i]))
		}
	}
	a, ok := new(big.Int).SetString(from, 10)
	if !ok || a.Sign() <= 0 || a.Cmp(big.NewInt(int64(len(chars)))) > 0 {
		return value{}
	}
	start := int(a.Int64()) - 1
	n := len(chars) - start
	if len(count) <= 18 {
		if b, ok := new(big.Int).SetString(count, 10); ok && b.Cmp(big.NewInt(int64(n))) < 0 {
			n = int(b.Int64())
		}
	}
	if bytewise {
		return value{s: s[start : start+n]}
	}
	return value{s: string(chars[start : start+n])}
}

func (e *evaluator) primary(on bool) value {
	e.t.Step(1)
	e.depth++
	e.t.Bound("nesting", int64(e.depth), e.t.K.Limits.Nesting)
	defer func() { e.depth-- }()
	switch {
	case e.next("("):
		e.more()
		v := e.or(on)
		if e.at >= len(e.args) {
			e.fail("syntax error: expecting ')' after %s", command.Quote(e.args[e.at-1]))
		}
		if !e.next(")") {
			e.fail("syntax error: expecting ')' instead of %s", command.Quote(e.args[e.at]))
		}
		return v
	case e.next(")"):
		e.fail("syntax error: unexpected ')'")
	}
	e.at++
	return value{s: e.args[e.at-1]}
}
