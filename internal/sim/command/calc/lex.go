package calc

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A token of bc: its kind is a keyword, an operator, or one of these.
type token struct {
	kind string
	text string
}

const (
	endOfFile = "end"
	endOfLine = "line"
	isNumber  = "number"
	isName    = "name"
	isString  = "string"
)

// A lexer reads tokens from bytes.
type lexer struct {
	t        *kernel.Task
	name     string
	get      func() (byte, bool)
	back     int // a byte that was put back, or -1
	line     int
	complain func(string)
}

func (l *lexer) next() (byte, bool) {
	if l.back >= 0 {
		c := byte(l.back)
		l.back = -1
		return c, true
	}
	return l.get()
}

func keyword(s string) bool {
	switch s {
	case "define", "break", "quit", "length", "return", "for", "if", "while", "sqrt", "scale", "ibase", "obase", "auto", "else", "read", "random", "halt", "last", "print", "limits", "warranty", "continue", "history", "void":
		return true
	}
	return false
}

func (l *lexer) token() token {
	for {
		c, ok := l.next()
		if !ok {
			return token{kind: endOfFile}
		}
		l.t.Step(1)
		switch {
		case c == '\n':
			l.line++
			return token{kind: endOfLine}
		case c == ' ' || c == '\t' || c == '\r':
		case c == '\\':
			if d, ok := l.next(); ok && d != '\n' {
				l.back = int(d)
				l.complain(fmt.Sprintf("illegal character: %s", "\\\\"))
			} else {
				l.line++
			}
		case c == '#':
			for c, ok = l.next(); ok && c != '\n'; c, ok = l.next() {
			}
			if ok {
				l.back = '\n'
			}
		case c == '"':
			return l.str()
		case c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '.':
			return l.number(c)
		case c >= 'a' && c <= 'z':
			return l.word(c)
		case c == '/':
			if d, ok := l.next(); ok {
				if d == '*' {
					l.comment()
					continue
				}
				l.back = int(d)
			}
			return l.operator(c)
		case strings.IndexByte("+-*%^=<>!&|(){}[];,", c) >= 0:
			return l.operator(c)
		default:
			shown := string(rune(c))
			if c < ' ' {
				shown = "^" + string(rune(c+64))
			} else if c >= 127 {
				shown = fmt.Sprintf("\\%03o", c)
			}
			l.complain("illegal character: " + shown)
		}
	}
}

func (l *lexer) comment() {
	last := byte(0)
	for c, ok := l.next(); ok; c, ok = l.next() {
		l.t.Step(1)
		if c == '\n' {
			l.line++
		}
		if last == '*' && c == '/' {
			return
		}
		last = c
	}
	l.complain("EOF encountered in a comment.")
}

func (l *lexer) str() token {
	var b []byte
	for {
		c, ok := l.next()
		if !ok {
			l.complain(`illegal character: "`)
			return token{kind: endOfFile}
		}
		if c == '"' {
			return token{isString, string(b)}
		}
		if c == '\n' {
			l.line++
		}
		b = append(b, c)
		l.bound(len(b))
	}
}

func (l *lexer) bound(n int) {
	l.t.Step(1)
	if n > 1<<16 {
		l.t.Bound("string", int64(n), l.t.K.Limits.String)
	}
}

func (l *lexer) number(c byte) token {
	var b []byte
	dot := false
	for ok := true; ok; c, ok = l.next() {
		switch {
		case c >= '0' && c <= '9' || c >= 'A' && c <= 'Z':
			b = append(b, c)
			l.bound(len(b))
			continue
		case c == '.' && !dot:
			dot = true
			b = append(b, c)
			continue
		case c == '\\':
			if d, more := l.next(); more && d == '\n' {
				l.line++
				continue
			} else if more {
				l.back = int(d)
			}
			return token{isNumber, string(b)}
		}
		l.back = int(c)
		break
	}
	if string(b) == "." {
		return token{kind: "last"}
	}
	return token{isNumber, string(b)}
}

func (l *lexer) word(c byte) token {
	var b []byte
	for ok := true; ok; c, ok = l.next() {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' {
			b = append(b, c)
			l.bound(len(b))
			continue
		}
		l.back = int(c)
		break
	}
	if s := string(b); keyword(s) {
		return token{kind: s}
	}
	return token{isName, string(b)}
}

func (l *lexer) operator(c byte) token {
	s := string(rune(c))
	d, ok := l.next()
	if !ok {
		return token{kind: s}
	}
	switch two := s + string(rune(d)); two {
	case "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "<=", ">=", "!=", "&&", "||":
		return token{kind: two}
	}
	l.back = int(d)
	if s == "&" || s == "|" {
		l.complain("illegal character: " + s)
		return l.token()
	}
	return token{kind: s}
}
