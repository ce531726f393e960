package awk

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A token kind. Single characters that are operators stand for themselves.
type tok int

const (
	tEOF tok = iota + 256
	tNewline
	tNumber
	tString
	tRegex
	tName
	tFuncName // a name with a parenthesis right behind it
	tBuiltin
	tAnd
	tOr
	tAppend // >>
	tLE
	tGE
	tEQ
	tNE
	tNoMatch
	tInc
	tDec
	tPow
	tAssign // the operator is in lexer.op; 0 is plain
	tCoproc // |&
	tTypedRegex

	tBegin
	tEnd
	tBeginfile
	tEndfile
	tFunction
	tIf
	tElse
	tWhile
	tFor
	tDo
	tBreak
	tContinue
	tNext
	tNextfile
	tExit
	tReturn
	tDelete
	tIn
	tGetline
	tPrint
	tPrintf
	tSwitch
	tCase
	tDefault
)

func keyword(s string) tok {
	switch s {
	case "BEGIN":
		return tBegin
	case "END":
		return tEnd
	case "BEGINFILE":
		return tBeginfile
	case "ENDFILE":
		return tEndfile
	case "function", "func":
		return tFunction
	case "if":
		return tIf
	case "else":
		return tElse
	case "while":
		return tWhile
	case "for":
		return tFor
	case "do":
		return tDo
	case "break":
		return tBreak
	case "continue":
		return tContinue
	case "next":
		return tNext
	case "nextfile":
		return tNextfile
	case "exit":
		return tExit
	case "return":
		return tReturn
	case "delete":
		return tDelete
	case "in":
		return tIn
	case "getline":
		return tGetline
	case "print":
		return tPrint
	case "printf":
		return tPrintf
	case "switch":
		return tSwitch
	case "case":
		return tCase
	case "default":
		return tDefault
	}
	return 0
}

// A syntaxError is what is wrong with a program, and where.
type syntaxError struct {
	file string
	line int
	msg  string

	fatal bool // gawk calls it a fatal error, and none of syntax
}

// A lexer reads tokens. Its state is a value: a parser that looks ahead keeps
// a copy and puts it back.
type lexer struct {
	src  string
	file string // "cmd. line", or a name
	at   int
	line int

	kind  tok
	op    byte    // of tAssign
	text  string  // name, string or expression
	num   float64 // of tNumber
	start int     // where the token begins
	prev  tok     // the token before
	begun int     // line of the token
}

func (l *lexer) fail(msg string) {
	panic(&syntaxError{file: l.file, line: l.line, msg: msg})
}

// next reads the next token.
func (l *lexer) next() {
	l.prev = l.kind
	l.skip()
	l.start, l.begun = l.at, l.line
	l.kind = l.read()
}

// skip passes over blanks, comments and continued lines.
func (l *lexer) skip() {
	for l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case c == ' ' || c == '\t' || c == '\r':
			l.at++
		case c == '#':
			for l.at < len(l.src) && l.src[l.at] != '\n' {
				l.at++
			}
		case c == '\\' && strings.HasPrefix(l.src[l.at+1:], "\n"):
			l.at += 2
			l.line++
		case c == '\\' && strings.HasPrefix(l.src[l.at+1:], "\r\n"):
			l.at += 3
			l.line++
		default:
			return
		}
	}
}

func (l *lexer) follows(c byte) bool {
	if l.at < len(l.src) && l.src[l.at] == c {
		l.at++
		return true
	}
	return false
}

func (l *lexer) assign(op byte) tok {
	l.op = op
	return tAssign
}

func (l *lexer) read() tok {
	if l.at >= len(l.src) {
		return tEOF
	}
	c := l.src[l.at]
	switch {
	case c >= '0' && c <= '9', c == '.' && l.at+1 < len(l.src) && isDigit(l.src[l.at+1]):
		return l.number()
	case isNameStart(c):
		return l.name()
	}
	l.at++
	switch c {
	case '\n':
		l.line++
		return tNewline
	case '"':
		return l.str()
	case '&':
		if l.follows('&') {
			return tAnd
		}
	case '|':
		if l.follows('|') {
			return tOr
		}
		if l.follows('&') {
			return tCoproc
		}
		return '|'
	case '>':
		if l.follows('>') {
			return tAppend
		}
		if l.follows('=') {
			return tGE
		}
		return '>'
	case '<':
		if l.follows('=') {
			return tLE
		}
		return '<'
	case '=':
		if l.follows('=') {
			return tEQ
		}
		return l.assign(0)
	case '!':
		if l.follows('=') {
			return tNE
		}
		if l.follows('~') {
			return tNoMatch
		}
		return '!'
	case '+':
		if l.follows('+') {
			return tInc
		}
		return l.maybeAssign('+')
	case '-':
		if l.follows('-') {
			return tDec
		}
		return l.maybeAssign('-')
	case '*':
		if l.follows('*') {
			if l.follows('=') {
				return l.assign('^')
			}
			return tPow
		}
		return l.maybeAssign('*')
	case '^':
		if l.follows('=') {
			return l.assign('^')
		}
		return tPow
	case '/', '%':
		return l.maybeAssign(c)
	case '@':
		if l.follows('/') {
			l.regex()
			return tTypedRegex
		}
		return '@'
	case '~', '$', '(', ')', '[', ']', '{', '}', ',', ';', '?', ':':
		return tok(c)
	}
	l.at--
	_, n := utf8.DecodeRuneInString(l.src[l.at:])
	l.fail("syntax error: unexpected character '" + l.src[l.at:l.at+n] + "'")
	return tEOF
}

func (l *lexer) maybeAssign(c byte) tok {
	if l.follows('=') {
		return l.assign(c)
	}
	return tok(c)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

func isName(c byte) bool { return isNameStart(c) || isDigit(c) }

func (l *lexer) number() tok {
	s := l.src[l.at:]
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') && hexDigit(s[2]) >= 0 {
		n, i := 0.0, 2
		for i < len(s) && hexDigit(s[i]) >= 0 {
			n = n*16 + float64(hexDigit(s[i]))
			i++
		}
		l.num = n
		l.at += i
		return tNumber
	}
	n := decimal(s)
	l.num, _ = strconv.ParseFloat(s[:n], 64) // out of range is infinite, as it should
	l.at += n
	return tNumber
}

func (l *lexer) name() tok {
	i := l.at
	for i < len(l.src) && isName(l.src[i]) {
		i++
	}
	// gawk's names in namespaces are taken as one name.
	for i+2 < len(l.src) && l.src[i] == ':' && l.src[i+1] == ':' && isNameStart(l.src[i+2]) {
		for i += 2; i < len(l.src) && isName(l.src[i]); i++ {
		}
	}
	l.text = strings.TrimPrefix(l.src[l.at:i], "awk::")
	l.at = i
	if l.text == "_" && l.prev != '$' && l.follows('"') {
		return l.str() // a text to be translated
	}
	if k := keyword(l.text); k != 0 {
		return k
	}
	if builtinOf(l.text) != 0 {
		return tBuiltin
	}
	if i < len(l.src) && l.src[i] == '(' {
		return tFuncName
	}
	return tName
}

func (l *lexer) str() tok {
	from := l.at
	for l.at < len(l.src) {
		switch l.src[l.at] {
		case '"':
			l.text = unescape(l.src[from:l.at])
			l.at++
			return tString
		case '\\':
			l.continued()
		case '\n':
			l.fail("unterminated string")
		}
		l.at++
	}
	l.fail("unterminated string")
	return tEOF
}

// continued passes over what stands behind a backslash, which may be the end of
// a line.
func (l *lexer) continued() {
	l.at++
	if strings.HasPrefix(l.src[min(l.at, len(l.src)):], "\r\n") {
		l.at++
	}
	if l.at < len(l.src) && l.src[l.at] == '\n' {
		l.line++
	}
}

// regex reads the rest of an expression whose first slash has been read.
func (l *lexer) regex() {
	from, bracket := l.at, -1
	for ; l.at < len(l.src); l.at++ {
		switch l.src[l.at] {
		case '\n':
			l.fail("unterminated regexp")
		case '\\':
			l.continued()
		case '[':
			switch {
			case bracket < 0:
				bracket = l.at
				if strings.HasPrefix(l.src[l.at+1:], "^") {
					l.at++
				}
				if strings.HasPrefix(l.src[l.at+1:], "]") {
					l.at++
				}
			case l.at+1 < len(l.src) && strings.IndexByte(":.=", l.src[l.at+1]) >= 0:
				end := strings.Index(l.src[l.at+2:], l.src[l.at+1:l.at+2]+"]")
				if end >= 0 && strings.IndexByte(l.src[l.at:l.at+2+end], '\n') < 0 {
					l.at += end + 3
				}
			}
		case ']':
			bracket = -1
		case '/':
			if bracket >= 0 && strings.IndexByte(line(l.src[l.at+1:]), ']') >= 0 && strings.IndexByte(line(l.src[l.at+1:]), '/') >= 0 {
				continue
			}
			l.text = l.src[from:l.at]
			l.at++
			return
		}
	}
	l.fail("unterminated regexp")
}

// line is the first line of s.
func line(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func hexDigit(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// unescape reads the escapes of a string.
func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for {
		b = append(b, s[:i]...)
		c, n := escape(s[i+1:])
		b = append(b, c...)
		s = s[i+1+n:]
		if i = strings.IndexByte(s, '\\'); i < 0 {
			return string(append(b, s...))
		}
	}
}

// escape reads what follows a backslash, and how long that is.
func escape(s string) (string, int) {
	if s == "" {
		return "\\", 0
	}
	switch s[0] {
	case 'a':
		return "\a", 1
	case 'b':
		return "\b", 1
	case 'f':
		return "\f", 1
	case 'n':
		return "\n", 1
	case 'r':
		return "\r", 1
	case 't':
		return "\t", 1
	case 'v':
		return "\v", 1
	case '\n':
		return "", 1
	case '\r':
		if len(s) > 1 && s[1] == '\n' {
			return "", 2
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		v, n := 0, 0
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			v = v*8 + int(s[n]-'0')
			n++
		}
		return string([]byte{byte(v)}), n
	case 'x':
		v, n := 0, 1
		for n < 3 && n < len(s) && hexDigit(s[n]) >= 0 {
			v = v*16 + hexDigit(s[n])
			n++
		}
		if n == 1 {
			return "x", 1
		}
		return string([]byte{byte(v)}), n
	case 'u':
		v, n := 0, 1
		for n < 9 && n < len(s) && hexDigit(s[n]) >= 0 {
			v = v<<4 | hexDigit(s[n])
			n++
		}
		if n == 1 || v > utf8.MaxRune {
			return "u", 1
		}
		return string(rune(v)), n
	}
	_, n := utf8.DecodeRuneInString(s)
	return s[:n], n
}
