package jq

import (
	"strings"
	"unicode/utf8"
)

type tok int

const (
	tEOF tok = iota + 256
	tIdent
	tField // .name
	tVar   // $name
	tNumber
	tString // a quote; the parser reads on
	tFormat
	tRec // ..
	tEQ
	tNE
	tLE
	tGE
	tAlt // //
	tSet // an assignment, in text
	tAltPattern
	tBad
)

// A syntaxError is what is wrong with a program, and where.
type syntaxError struct {
	msg  string
	line int
}

type lexer struct {
	yq    bool // the program is yq's
	src   string
	at    int
	line  int
	start int
	kind  tok
	text  string
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) fail(msg string) { panic(&syntaxError{msg, l.line}) }

func (l *lexer) next() {
	l.blanks()
	l.start = l.at
	l.kind = l.read()
}

// blanks passes over white space and comments. A comment goes on in the next
// line behind an odd number of backslashes.
func (l *lexer) blanks() {
	for l.at < len(l.src) {
		switch c := l.src[l.at]; c {
		case '\n':
			l.line++
			l.at++
		case ' ', '\t', '\r':
			l.at++
		case '#':
			for l.at < len(l.src) {
				end := strings.IndexByte(l.src[l.at:], '\n')
				if end < 0 {
					l.at = len(l.src)
					break
				}
				text := strings.TrimSuffix(l.src[l.at:l.at+end], "\r")
				l.at += end
				n := len(text) - len(strings.TrimRight(text, `\`))
				if n%2 == 0 {
					break
				}
				l.line++
				l.at++
			}
		default:
			return
		}
	}
}

// ident reads a name, with the names of modules before it.
func (l *lexer) ident() string {
	from := l.at
	for {
		for l.at < len(l.src) && (isLetter(l.src[l.at]) || isDigit(l.src[l.at])) {
			l.at++
		}
		if strings.HasPrefix(l.src[l.at:], "::") && l.at+2 < len(l.src) && isLetter(l.src[l.at+2]) {
			l.at += 2
			continue
		}
		return l.src[from:l.at]
	}
}

// simple reads a name of one part.
func (l *lexer) simple() string {
	from := l.at
	for l.at < len(l.src) && (isLetter(l.src[l.at]) || isDigit(l.src[l.at])) {
		l.at++
	}
	return l.src[from:l.at]
}

func (l *lexer) read() tok {
	if l.at >= len(l.src) {
		return tEOF
	}
	c := l.src[l.at]
	peek := byte(0)
	if l.at+1 < len(l.src) {
		peek = l.src[l.at+1]
	}
	switch {
	case isLetter(c):
		l.text = l.ident()
		return tIdent
	case isDigit(c) || c == '.' && isDigit(peek) && !l.yq:
		return l.number()
	case c == '.' && peek == '.':
		l.at += 2
		l.text = ""
		if l.yq && l.at < len(l.src) && l.src[l.at] == '.' {
			l.at++
			l.text = "keys"
		}
		return tRec
	case l.yq && c == '.' && isPlain(peek):
		l.at++
		l.text = l.plain()
		return tField
	case l.yq && c == '*':
		return l.multiply()
	case c == '.' && isLetter(peek):
		l.at++
		l.text = l.simple()
		return tField
	case c == '$' && isLetter(peek):
		l.at++
		l.text = l.ident()
		return tVar
	case c == '@' && (isLetter(peek) || isDigit(peek)):
		l.at++
		l.text = l.simple()
		return tFormat
	case c == '"':
		l.at++
		return tString
	}
	for _, s := range [...]string{"?//=", "?//", "//=", "|=", "+=", "-=", "*=", "/=", "%=", "==", "!=", "<=", ">=", "//"} {
		if !strings.HasPrefix(l.src[l.at:], s) {
			continue
		}
		switch s {
		case "?//=":
			continue
		case "?//":
			if strings.HasPrefix(l.src[l.at:], "?//=") {
				continue
			}
			l.at += 3
			return tAltPattern
		}
		l.at += len(s)
		switch s {
		case "==":
			return tEQ
		case "!=":
			return tNE
		case "<=":
			return tLE
		case ">=":
			return tGE
		case "//":
			return tAlt
		}
		l.text = s
		return tSet
	}
	l.at++
	switch c {
	case '=':
		l.text = "="
		return tSet
	case '.', '[', ']', '(', ')', '{', '}', '|', ',', ':', ';', '+', '-', '*', '/', '%', '<', '>', '?', '$':
		return tok(c)
	}
	l.at--
	_, n := utf8.DecodeRuneInString(l.src[l.at:])
	l.text = l.src[l.at : l.at+n]
	l.at += n
	return tBad
}

func (l *lexer) number() tok {
	from := l.at
	for l.at < len(l.src) && (isDigit(l.src[l.at]) || l.src[l.at] == '.') {
		l.at++
	}
	if l.at < len(l.src) && (l.src[l.at] == 'e' || l.src[l.at] == 'E') {
		i := l.at + 1
		if i < len(l.src) && (l.src[i] == '+' || l.src[i] == '-') {
			i++
		}
		if i < len(l.src) && isDigit(l.src[i]) {
			for i < len(l.src) && isDigit(l.src[i]) {
				i++
			}
			l.at = i
		}
	}
	l.text = l.src[from:l.at]
	if !wellFormed(l.text) {
		return tBad
	}
	return tNumber
}

func keyword(s string) bool {
	switch s {
	case "def", "if", "then", "elif", "else", "end", "as", "reduce", "foreach", "try", "catch", "label",
		"import", "include", "and", "or", "__loc__":
		return true
	}
	return false
}
