package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Mode says where a word stands.
type Mode uint8

// The modes.
const (
	Field    Mode = iota // an argument, an item of a for loop, an element of an array
	Assigned             // the value of an assignment: no braces, tildes after colons too
	Single               // the word of case, of a here-string, a side of [[ ]]
	Pattern              // a pattern of case and of [[ = ]]
	Regex                // the right side of [[ =~ ]]
	Document             // the body of a here-document

	replacing // the replacement of ${x/pattern/replacement}
)

// A Word is a word that has been looked at. It does not change.
type Word struct {
	mode    Mode
	parts   []part
	literal bool // it is lit
	lit     string
	braces  []brace // a brace expansion, with the parts in it
	source  *syntax.Word
}

// kind is what a part of a word is.
type kind uint8

const (
	text  kind = iota
	group      // unquoted text of an extended pattern
	param
	command
	process
	arithmetic
	tilde
)

// A part is a piece of a word, quoted or not.
type part struct {
	kind    kind
	quoted  bool
	escaped bool // quoted by a backslash; of a tilde, in what only looks like an assignment
	weak    bool // it starts no field where it is empty
	text    string
	param   *Param
	command *syntax.CmdSubst
	process *syntax.ProcSubst
	arith   *Arith
}

// Compile looks at a word.
func Compile(w *syntax.Word, mode Mode) *Word {
	c := &Word{mode: mode, source: w}
	if w == nil {
		c.literal = true
		return c
	}
	k := compiler{regex: mode == Regex}
	if mode == Document {
		k.here = true
		k.quotedParts(w.Parts)
	} else {
		k.unquotedParts(w.Parts)
	}
	c.finish(k.parts)
	return c
}

// Literal returns the text of a word that is always the same and one field.
func (w *Word) Literal() (string, bool) { return w.lit, w.literal }

func (w *Word) finish(parts []part) {
	if w.mode == Field {
		// Braces come before tildes.
		if b, ok := braces(merge(parts)); ok {
			w.braces = b
			w.parts = merge(tildes(parts, false, true))
			return
		}
	}
	switch w.mode {
	case Field, Single, Pattern, Regex:
		parts = tildes(parts, false, w.mode == Field)
	case Assigned:
		parts = tildes(parts, true, false)
	case Document:
	}
	w.parts = merge(parts)
	w.constant()
}

// constant finds words that are always the same.
func (w *Word) constant() {
	if w.mode == Pattern || w.mode == Regex {
		return
	}
	for i := range w.parts {
		p := &w.parts[i]
		if p.kind != text || w.mode == Field && !p.quoted && strings.ContainsAny(p.text, "*?[(") {
			return
		}
	}
	if w.mode == Field && len(w.parts) == 0 {
		return
	}
	var b strings.Builder
	for i := range w.parts {
		b.WriteString(w.parts[i].text)
	}
	w.literal, w.lit = true, b.String()
}

// merge joins neighbours that are alike.
func merge(parts []part) []part {
	out := parts[:0:0]
	for _, p := range parts {
		if n := len(out); n > 0 && p.kind == text {
			if last := &out[n-1]; last.kind == text && last.quoted == p.quoted && last.escaped == p.escaped {
				last.text += p.text
				continue
			}
		}
		if p.kind == text && p.text == "" && !p.quoted {
			continue
		}
		out = append(out, p)
	}
	return out
}

// A compiler collects the parts of a word.
type compiler struct {
	parts []part
	here  bool // in a here-document
	inner bool // in the word of an expansion that is quoted
	again bool // in double quotes in such a word
	regex bool
	depth int
	parse func(s string) *syntax.Word // of text that is known only now
}

// maxSyntax bounds how deep words within words are compiled; the parser's own
// bound is below it.
const maxSyntax = 2000

func (k *compiler) add(p part) { k.parts = append(k.parts, p) }

func (k *compiler) unquotedParts(parts []syntax.WordPart) {
	if k.depth++; k.depth > maxSyntax {
		return
	}
	defer func() { k.depth-- }()
	for _, wp := range parts {
		switch wp := wp.(type) {
		case *syntax.Lit:
			k.unquotedText(wp.Value)
		case *syntax.SglQuoted:
			value := wp.Value
			if wp.Dollar {
				value = Unescape(value)
			}
			k.add(part{text: value, quoted: true})
		case *syntax.DblQuoted:
			k.doubleQuoted(wp)
		default:
			k.expansion(wp, false)
		}
	}
}

func (k *compiler) doubleQuoted(d *syntax.DblQuoted) {
	if len(d.Parts) == 0 {
		k.add(part{quoted: true})
		return
	}
	here, inner := k.here, k.inner
	k.here, k.inner = false, false
	from := len(k.parts)
	again := k.again
	k.again = inner // quotes within quotes: a backslash quotes anything
	k.quotedParts(d.Parts)
	k.here, k.inner, k.again = here, inner, again
	weaken(k.parts[from:])
}

// weaken says of what stands in the same quotes as $@ that it makes no field
// if it is empty.
func weaken(parts []part) {
	all := false
	for i := range parts {
		if p := parts[i].param; p != nil && (p.special == '@' || p.sub != nil && p.sub.all == '@') && p.op != length {
			all = true
		}
	}
	if !all {
		return
	}
	for i := range parts {
		if p := parts[i].param; p != nil {
			p.weak = true
		}
		parts[i].weak = true
	}
}

// unquotedText takes backslashes apart.
func (k *compiler) unquotedText(s string) {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			k.add(part{text: s})
			return
		}
		if i > 0 {
			k.add(part{text: s[:i]})
		}
		n := charLen(s[i+1:])
		if s[i+1] != '\n' {
			k.add(part{text: s[i+1 : i+1+n], quoted: true, escaped: true})
		}
		s = s[i+1+n:]
		if s == "" {
			return
		}
	}
}

func (k *compiler) quotedParts(parts []syntax.WordPart) {
	if k.depth++; k.depth > maxSyntax {
		return
	}
	defer func() { k.depth-- }()
	for _, wp := range parts {
		switch wp := wp.(type) {
		case *syntax.Lit:
			k.quotedText(wp.Value)
		case *syntax.SglQuoted:
			if wp.Dollar {
				k.add(part{text: Unescape(wp.Value), quoted: true})
			} else {
				k.add(part{text: "'" + wp.Value + "'", quoted: true})
			}
		case *syntax.DblQuoted:
			if k.here {
				// Quotes in an expansion of a here-document go.
				k.quotedParts(wp.Parts)
				continue
			}
			k.doubleQuoted(wp)
		default:
			k.expansion(wp, true)
		}
	}
}

// quotedText takes apart the backslashes that double quotes leave meaning.
func (k *compiler) quotedText(s string) {
	if strings.IndexByte(s, '\\') < 0 {
		k.add(part{text: s, quoted: true})
		return
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch c := s[i+1]; {
			case c == '\n':
				i++
				continue
			case k.again, c == '$', c == '`', c == '\\', c == '"' && (!k.here || k.inner), c == '}' && k.inner:
				i++
			}
		}
		b = append(b, s[i])
	}
	k.add(part{text: string(b), quoted: true})
}

func (k *compiler) expansion(wp syntax.WordPart, quoted bool) {
	switch wp := wp.(type) {
	case *syntax.ParamExp:
		k.add(part{kind: param, quoted: quoted, param: k.param(wp, quoted)})
	case *syntax.CmdSubst:
		k.add(part{kind: command, quoted: quoted, command: wp})
	case *syntax.ProcSubst:
		k.add(part{kind: process, quoted: quoted, process: wp})
	case *syntax.ArithmExp:
		k.add(part{kind: arithmetic, quoted: quoted, arith: k.arith(wp.X)})
	}
}

// sub compiles the word within an expansion.
func (k *compiler) sub(w *syntax.Word, quoted bool, mode Mode) *Word {
	c := &Word{mode: mode, source: w}
	if w == nil {
		return c
	}
	s := compiler{here: k.here, depth: k.depth, inner: quoted}
	if quoted && mode != Pattern {
		s.quotedParts(w.Parts)
		c.parts = merge(s.parts)
		return c
	}
	s.here, s.inner = false, false
	s.unquotedParts(w.Parts)
	if mode == Single {
		s.parts = tildes(s.parts, false, false)
	}
	c.parts = merge(s.parts)
	return c
}
