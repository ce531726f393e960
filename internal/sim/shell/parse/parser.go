package parse

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Options are how a script is read. Functions are asked again for each word,
// since commands change them between lines.
type Options struct {
	Alias   func(name string) (string, bool) // nil is no aliases
	ExtGlob func() bool
	Posix   func() bool
	Depth   int         // how deep syntax may nest: 0 is 500
	Line    int         // number of the first line: 0 is 1
	Step    func(n int) // counts work; nil is nobody
	Grow    func(n int) // counts bytes that trees take; nil is nobody
	Warn    func(line int, format string, args ...any)
}

// A SyntaxError is a script that cannot be read on.
type SyntaxError struct {
	Line   int
	Msg    string
	Source string // the line it is in, or empty at the end of the script
	EOF    bool   // more input would have helped
	Ends   bool   // a script ends before it, as if nothing were there
	Array  bool   // in the elements of an array: status 1, and the script goes on with the next line
}

func (e *SyntaxError) Error() string { return e.Msg }

// A TooDeep error is a script that nests deeper than is allowed.
type TooDeep struct{ Limit int }

func (e *TooDeep) Error() string { return fmt.Sprintf("syntax nests deeper than %d", e.Limit) }

// A Parser reads a script, one line of commands after another.
type Parser struct {
	opt   Options
	src   []byte
	pos   int
	atEOF bool
	more  func() ([]byte, error)

	lineNo, linePos int // lineNo is that of src[linePos]

	tok  token
	have bool // tok is the next token

	noAssign bool // words are not looked at as assignments
	declares bool // words are arguments of declare or its like
	eval     bool // parentheses after "=" are text: arguments of eval
	heredocs []*heredoc
	regions  []region
	blank    int // from the end of src: where a word is an alias again; -1 is nowhere
	depth    int
	stop     int // an absolute end, or -1
	inSubst  int
	err      error // of more

	size, told int  // bytes of the line of commands that is read, and what of them Grow knows
	defines    bool // it defines a function, which stays
}

type kind uint8

const (
	tEOF kind = iota
	tNewline
	tOp
	tWord
	tIO // what stands before a redirection
)

type token struct {
	kind       kind
	op         string
	start, end int
	word       Word
	assign     *Assign
	plain      string // the text of a word without quotes or expansions
}

// A region is the text that an alias was replaced by, in distances from the
// end of src.
type region struct {
	name       string
	start, end int
}

// New makes a parser of a script that is all there.
func New(src []byte, o Options) *Parser {
	return NewReader(func() ([]byte, error) {
		if len(src) == 0 {
			return nil, io.EOF
		}
		n := bytes.IndexByte(src, '\n') + 1
		if n == 0 {
			n = len(src)
		}
		line := src[:n]
		src = src[n:]
		return line, nil
	}, o)
}

// NewReader makes a parser that asks for one line after another, and for no
// line more than it needs. io.EOF is the end.
func NewReader(line func() ([]byte, error), o Options) *Parser {
	p := newParser(o)
	p.more = line
	return p
}

func newParser(o Options) *Parser {
	if o.Depth == 0 {
		o.Depth = 500
	}
	if o.Line == 0 {
		o.Line = 1
	}
	return &Parser{opt: o, lineNo: o.Line, blank: -1, stop: -1}
}

// fill gets more input; false is the end.
func (p *Parser) fill() bool {
	if p.atEOF || p.stop >= 0 {
		return false
	}
	b, err := p.more()
	if err != nil {
		p.atEOF = true
		if err != io.EOF {
			p.err = err
		}
	}
	if len(b) == 0 {
		return !p.atEOF && p.fill()
	}
	if bytes.IndexByte(b, 0) >= 0 {
		// What bash does: they are not there.
		b = bytes.ReplaceAll(b, []byte{0}, nil)
	}
	p.src = append(p.src, b...)
	for i := range p.regions {
		p.regions[i].start += len(b)
		p.regions[i].end += len(b)
	}
	if p.blank >= 0 {
		p.blank += len(b)
	}
	return true
}

// at gives the byte at an offset from the position; 0 is the end, or a NUL.
func (p *Parser) at(i int) byte {
	for p.pos+i >= p.limit() {
		if !p.fill() {
			return 0
		}
	}
	return p.src[p.pos+i]
}

// end reports whether there is nothing left.
func (p *Parser) end() bool {
	for p.pos >= p.limit() {
		if !p.fill() {
			return true
		}
	}
	return false
}

func (p *Parser) limit() int {
	if p.stop >= 0 {
		return p.stop
	}
	return len(p.src)
}

func (p *Parser) lineAt(pos int) int {
	switch {
	case pos > p.linePos:
		p.lineNo += bytes.Count(p.src[p.linePos:pos], []byte{'\n'})
	case pos < p.linePos:
		p.lineNo -= bytes.Count(p.src[pos:p.linePos], []byte{'\n'})
	}
	p.linePos = pos
	return p.lineNo
}

// grow counts what a part of a tree takes.
func (p *Parser) grow(n int) {
	if p.size += n; p.size-p.told > 16<<10 {
		p.tell()
	}
}

func (p *Parser) tell() {
	if p.opt.Grow != nil && p.size > p.told {
		p.opt.Grow(p.size - p.told)
	}
	p.told = p.size
}

// Size returns how many bytes Grow was told of for what Next gave last, and
// whether all of them can be given back when it has been run: not if it
// defines functions.
func (p *Parser) Size() (n int, all bool) { return p.told, !p.defines }

// Ended reports whether there is nothing but blanks left.
func (p *Parser) Ended() bool {
	p.have = false
	for !p.end() {
		switch p.src[p.pos] {
		case ' ', '\t', '\n':
			p.pos++
		default:
			return false
		}
	}
	return true
}

// Line returns the number of the line up to which the script has been read.
func (p *Parser) Line() int { return p.lineAt(p.pos) }

func (p *Parser) posAt(pos int) syntax.Pos {
	return syntax.NewPos(uint(pos), uint(p.lineAt(pos)), 1)
}

type bail struct{ err error }

func (p *Parser) fail(pos int, eof bool, format string, args ...any) {
	e := &SyntaxError{Line: p.lineAt(min(pos, len(p.src))), Msg: fmt.Sprintf(format, args...), EOF: eof}
	if !eof {
		from := bytes.LastIndexByte(p.src[:min(pos, len(p.src))], '\n') + 1
		to := len(p.src)
		if i := bytes.IndexByte(p.src[from:], '\n'); i >= 0 {
			to = from + i
		}
		e.Source = string(p.src[from:to])
	}
	panic(bail{e})
}

// unexpected complains about the next token.
func (p *Parser) unexpected() {
	t := p.peek()
	switch t.kind {
	case tEOF:
		if p.inSubst > 0 {
			p.fail(t.start, true, "unexpected EOF while looking for matching `)'")
		}
		p.fail(t.start, true, "syntax error: unexpected end of file")
	case tNewline:
		p.fail(t.start, false, "syntax error near unexpected token `newline'")
	default:
		p.fail(t.start, false, "syntax error near unexpected token `%s'", p.src[t.start:t.end])
	}
}

func (p *Parser) unclosed(pos int, what string) {
	p.fail(pos, true, "unexpected EOF while looking for matching `%s'", what)
}

// enter counts one level of nesting; leave undoes it.
func (p *Parser) enter() {
	if p.depth++; p.depth > p.opt.Depth {
		panic(bail{&TooDeep{p.opt.Depth}})
	}
}

func (p *Parser) leave() { p.depth-- }

// guard turns what fail panics with into an error.
func (p *Parser) guard(err *error) {
	switch r := recover().(type) {
	case nil:
	case bail:
		*err = r.err
	default:
		panic(r)
	}
}

// Next reads the next line of commands, however many lines it takes: nil is
// an empty one. io.EOF is the end of the script.
func (p *Parser) Next() (l *List, err error) {
	defer p.guard(&err)
	p.drop()
	p.size, p.told, p.defines = 0, 0, false
	defer p.tell()
	p.noAssign, p.eval, p.declares = false, false, false
	switch t := p.peek(); t.kind {
	case tEOF:
		if p.err != nil {
			return nil, p.err
		}
		return nil, io.EOF
	case tNewline:
		p.skip()
		return nil, nil
	}
	l = &List{}
	for {
		sep := p.item(l)
		switch t := p.peek(); {
		case t.kind == tNewline:
			p.skip()
			return l, nil
		case t.kind == tEOF:
			p.finish()
			return l, nil
		case !sep:
			p.unexpected()
		}
	}
}

// Resume goes on with the line after an error that leaves the script going;
// false is that there is nothing to go on with.
func (p *Parser) Resume(err error) bool {
	e, ok := err.(*SyntaxError)
	if !ok || !e.Array || e.EOF {
		return false
	}
	p.have, p.heredocs, p.regions, p.blank, p.depth, p.inSubst, p.stop = false, nil, nil, -1, 0, 0, -1
	for !p.end() {
		p.pos++
		if p.src[p.pos-1] == '\n' {
			return true
		}
	}
	return false
}

// drop forgets what was read.
func (p *Parser) drop() {
	p.have = false
	p.depth, p.inSubst, p.stop = 0, 0, -1
	if p.pos < 1 {
		return
	}
	p.lineAt(p.pos)
	p.src = append(p.src[:0], p.src[p.pos:]...)
	p.pos, p.linePos = 0, 0
}

// finish reads what here-documents are still owed at the end.
func (p *Parser) finish() {
	if len(p.heredocs) > 0 {
		p.readHeredocs()
	}
}

// skip takes the next token.
func (p *Parser) skip() { p.have = false }

// peek looks at the next token.
func (p *Parser) peek() *token {
	if !p.have {
		p.scan()
		p.have = true
	}
	return &p.tok
}

// isOp reports whether the next token is an operator.
func (p *Parser) isOp(op string) bool {
	t := p.peek()
	return t.kind == tOp && t.op == op
}

// isWord reports whether the next token is a word without quotes.
func (p *Parser) isWord(w string) bool {
	t := p.peek()
	return t.kind == tWord && t.plain == w
}

func (p *Parser) newlines() {
	for p.peek().kind == tNewline {
		p.skip()
	}
}

// blanks skips spaces, joined lines and a comment.
func (p *Parser) blanks() {
	for {
		switch c := p.at(0); {
		case c == ' ', c == '\t':
			p.pos++
		case c == '\\' && p.at(1) == '\n':
			p.pos += 2
		case c == '#':
			for !p.end() && p.src[p.pos] != '\n' {
				p.pos++
			}
			return
		default:
			return
		}
	}
}

func meta(c byte) bool {
	switch c {
	case ' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')':
		return true
	}
	return false
}

// The operators, longest first for each first byte.
func operator(c, d, e byte) string {
	switch c {
	case '&':
		switch {
		case d == '&':
			return "&&"
		case d == '>' && e == '>':
			return "&>>"
		case d == '>':
			return "&>"
		}
		return "&"
	case '|':
		switch d {
		case '|':
			return "||"
		case '&':
			return "|&"
		}
		return "|"
	case ';':
		switch {
		case d == ';' && e == '&':
			return ";;&"
		case d == ';':
			return ";;"
		case d == '&':
			return ";&"
		}
		return ";"
	case '<':
		switch {
		case d == '<' && e == '<':
			return "<<<"
		case d == '<' && e == '-':
			return "<<-"
		case d == '<':
			return "<<"
		case d == '&':
			return "<&"
		case d == '>':
			return "<>"
		}
		return "<"
	case '>':
		switch d {
		case '>':
			return ">>"
		case '&':
			return ">&"
		case '|':
			return ">|"
		}
		return ">"
	case '(':
		return "("
	case ')':
		return ")"
	}
	return ""
}

// joinAt takes out the ends of joined lines that stand i bytes on.
func (p *Parser) joinAt(i int) {
	for p.at(i) == '\\' && p.at(i+1) == '\n' {
		at := p.pos + i
		p.lineAt(at + 2)
		p.src = append(p.src[:at], p.src[at+2:]...)
		p.linePos -= 2
		if p.stop >= 0 {
			p.stop -= 2
		}
	}
}

func redirOp(op string) bool {
	return strings.ContainsAny(op, "<>")
}

// scan reads a token.
func (p *Parser) scan() {
	p.blanks()
	p.tok = token{start: p.pos}
	t := &p.tok
	if p.end() {
		t.kind, t.end = tEOF, p.pos
		return
	}
	c := p.src[p.pos]
	if c == '\n' {
		p.pos++
		t.kind, t.end = tNewline, p.pos
		if len(p.heredocs) > 0 {
			p.readHeredocs()
		}
		return
	}
	if meta(c) && !((c == '<' || c == '>') && p.at(1) == '(') {
		p.joinAt(1)
		d, e := p.at(1), byte(0)
		if d != '\n' { // else what follows would be the next line's, and not needed
			p.joinAt(2)
			e = p.at(2)
		}
		op := operator(c, d, e)
		p.pos += len(op)
		t.kind, t.op, t.end = tOp, op, p.pos
		return
	}
	if p.ioWord(t) {
		return
	}
	p.scanWord(t)
}

// ioWord reads a number or {name} right before a redirection.
func (p *Parser) ioWord(t *token) bool {
	i := 0
	switch c := p.at(0); {
	case c >= '0' && c <= '9':
		for c := p.at(i); c >= '0' && c <= '9'; c = p.at(i) {
			i++
		}
	case c == '{':
		i = 1
		if !nameStart(p.at(1)) {
			return false
		}
		for nameByte(p.at(i)) {
			i++
		}
		if p.at(i) == '[' {
			for c := p.at(i); c != 0 && c != ']' && !meta(c); c = p.at(i) {
				i++
			}
			if p.at(i) != ']' {
				return false
			}
			i++
		}
		if p.at(i) != '}' {
			return false
		}
		i++
	default:
		return false
	}
	if c := p.at(i); c != '<' && c != '>' {
		return false
	}
	if p.joinAt(i + 1); p.at(i+1) == '(' {
		return false // a process substitution, and a part of the word
	}
	t.kind, t.op = tIO, string(p.src[p.pos:p.pos+i])
	p.pos += i
	t.end = p.pos
	return true
}

func nameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func nameByte(c byte) bool { return nameStart(c) || c >= '0' && c <= '9' }

// Name reports whether s can name a variable.
func Name(s string) bool {
	if s == "" || !nameStart(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

// splice puts text in place of src[start:end] and reads on from its start.
func (p *Parser) splice(start, end int, text string) {
	p.lineAt(start)
	if p.opt.Step != nil {
		p.opt.Step(64 + len(p.src) + len(text))
	}
	tail := p.src[end:]
	b := make([]byte, 0, len(p.src)+len(text))
	b = append(b, p.src[:start]...)
	b = append(b, text...)
	p.src = append(b, tail...)
	p.pos, p.have = start, false
}

// alias replaces the next token if it is an alias, and tells so.
func (p *Parser) alias() bool {
	if p.opt.Alias == nil {
		return false
	}
	t := p.peek()
	if t.kind != tWord || t.plain == "" {
		return false
	}
	value, ok := p.opt.Alias(t.plain)
	if !ok {
		return false
	}
	from := len(p.src) - t.start
	live := p.regions[:0]
	for _, r := range p.regions {
		if from > r.end {
			live = append(live, r)
		}
	}
	p.regions = live
	for _, r := range p.regions {
		if r.name == t.plain && from <= r.start {
			return false
		}
	}
	if len(p.regions) > p.opt.Depth {
		panic(bail{&TooDeep{p.opt.Depth}})
	}
	name, tail := t.plain, len(p.src)-t.end
	p.splice(t.start, t.end, value)
	p.regions = append(p.regions, region{name, tail + len(value), tail})
	if n := len(value); n > 0 && (value[n-1] == ' ' || value[n-1] == '\t') {
		p.blank = tail
	}
	return true
}

// nextAlias is alias for the word after an alias that ends in a blank.
func (p *Parser) nextAlias() bool {
	if p.blank < 0 {
		return false
	}
	t := p.peek()
	from := len(p.src) - t.start
	if from > p.blank {
		return false
	}
	p.blank = -1
	return p.alias()
}
