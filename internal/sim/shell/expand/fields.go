package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Fields expands words to fields, which it appends to dst.
func (x *Expander) Fields(dst []string, words ...*Word) ([]string, error) {
	for _, w := range words {
		var err error
		if dst, err = x.fields(dst, w); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (x *Expander) fields(dst []string, w *Word) ([]string, error) {
	if w.literal {
		return append(dst, w.lit), nil
	}
	if w.braces != nil {
		return x.bracedFields(dst, w)
	}
	if len(w.parts) == 1 && w.parts[0].kind == param {
		if s, ok := x.simple(&w.parts[0]); ok {
			return append(dst, s), nil
		}
	}
	b := x.builder(Field)
	b.out = dst
	err := x.emitAll(b, w.parts)
	if err == nil {
		err = b.end()
	}
	dst = b.out
	b.out = nil
	b.done()
	return dst, err
}

func (x *Expander) bracedFields(dst []string, w *Word) ([]string, error) {
	b := x.builder(Field)
	b.out = dst
	var err error
	if x.flags.NoBrace {
		if err = x.emitAll(b, w.parts); err == nil {
			err = b.end()
		}
	} else {
		err = x.braceWords(w.braces, func(parts []part) error {
			if hasTilde(parts) {
				parts = tildes(merge(parts), false, true)
			}
			if err := x.emitAll(b, parts); err != nil {
				return err
			}
			return b.end()
		})
	}
	dst = b.out
	b.out = nil
	b.done()
	return dst, err
}

// simple gives the value of "$name", or of $name where nothing in it would be
// split or match.
func (x *Expander) simple(p *part) (string, bool) {
	q := p.param
	if !q.simple {
		return "", false
	}
	s, ok := x.vars.Get(q.name)
	switch {
	case !ok:
		return "", p.quoted && !x.flags.NoUnset && !x.isRef(q.name)
	case p.quoted:
		return s, true
	case s == "":
		return "", false
	}
	ifs := x.loadIFS()
	for i := range len(s) {
		switch c := s[i]; {
		case ifs.class[c] != 0, c == '*', c == '?', c == '[', c == '(':
			return "", false
		}
	}
	return s, true
}

// emitAll adds the parts of a word.
func (x *Expander) emitAll(b *builder, parts []part) error {
	for i := range parts {
		if err := x.emit(b, &parts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (x *Expander) emit(b *builder, p *part) error {
	switch p.kind {
	case text:
		b.literal(p)
		return nil
	case param:
		return x.emitParam(b, p.param, p.quoted)
	case command:
		s, err := x.env.Substitute(p.command)
		if err != nil || p.weak && s == "" {
			return err
		}
		return b.value(s, p.quoted)
	case process:
		s, err := x.env.Process(p.process)
		if err != nil {
			return err
		}
		b.addQuoted(s, false)
		return nil
	case arithmetic:
		n, err := x.Eval(p.arith)
		if err != nil {
			return err
		}
		return b.value(itoa(n), p.quoted)
	case tilde:
		if p.escaped && x.flags.Posix {
			b.addQuoted(p.text, false)
			return nil
		}
		b.addQuoted(x.tilde(p.text), false)
		return nil
	}
	return nil
}

// String expands a word to one string: without splitting and matching, quotes
// removed.
func (x *Expander) String(w *Word) (string, error) {
	if w.literal {
		return w.lit, nil
	}
	if len(w.parts) == 1 {
		switch p := &w.parts[0]; p.kind {
		case param:
			if q := p.param; q.simple {
				if s, ok := x.vars.Get(q.name); ok {
					return s, nil
				}
			}
		case command:
			return x.env.Substitute(p.command)
		case arithmetic:
			n, err := x.Eval(p.arith)
			return itoa(n), err
		}
	}
	return x.joined(w.parts, Single)
}

// Int expands a word that is "$name" or an arithmetic expansion to a number, if
// it is one; ok is false where String is to be asked.
func (x *Expander) Int(w *Word) (n int64, ok bool) {
	if len(w.parts) != 1 || w.parts[0].kind != param || !w.parts[0].param.simple {
		return 0, false
	}
	return x.vars.Int(w.parts[0].param.name)
}

// Computed returns the expression of a word that is nothing but $(( )).
func (w *Word) Computed() (*Arith, bool) {
	if len(w.parts) != 1 || w.parts[0].kind != arithmetic {
		return nil, false
	}
	return w.parts[0].arith, true
}

func (x *Expander) joined(parts []part, mode Mode) (string, error) {
	b := x.builder(mode)
	err := x.emitAll(b, parts)
	s := string(b.buf)
	b.done()
	return s, err
}

// Pattern expands a word to a pattern for Match; what is quoted matches itself.
// A nil word is the empty pattern.
func (x *Expander) Pattern(w *Word) (string, error) {
	return x.joined(w.parts, Pattern)
}

// Regex expands a word to an extended regular expression; what is quoted
// matches itself.
func (x *Expander) Regex(w *Word) (string, error) {
	return x.joined(w.parts, Regex)
}

// Document expands the body of a here-document.
func (x *Expander) Document(w *Word) (string, error) {
	s, err := x.joined(w.parts, Document)
	x.task.Bound("heredoc", int64(len(s)), x.task.K.Limits.Heredoc)
	return s, err
}

// Text expands a text as if it stood within double quotes: a subscript, a
// prompt, the body of a here-document that is known only now.
func (x *Expander) Text(s string) (string, error) {
	if !strings.ContainsAny(s, "$`\\") {
		return s, nil
	}
	if err := x.enter(); err != nil {
		return "", err
	}
	defer x.leave()
	k := compiler{parse: x.env.Word}
	k.rawQuoted(s)
	return x.joined(k.parts, Single)
}

// Raw expands a text as if it were a word of an assignment: quotes go, and
// nothing is split.
func (x *Expander) Raw(s string) (string, error) {
	if !strings.ContainsAny(s, "$`\\\"'~") {
		return s, nil
	}
	if err := x.enter(); err != nil {
		return "", err
	}
	defer x.leave()
	k := compiler{parse: x.env.Word}
	k.scan(s, false)
	return x.joined(tildes(merge(k.parts), false, false), Single)
}

// wordKey is a word in a place.
type wordKey struct {
	w    *syntax.Word
	mode Mode
}

// maxWords is how many words an expander remembers.
const maxWords = 1024

// Word is [Compile] that remembers: the tree that w is in must not change.
func (x *Expander) Word(w *syntax.Word, mode Mode) *Word {
	key := wordKey{w, mode}
	if c, ok := x.words[key]; ok {
		return c
	}
	c := Compile(w, mode)
	if x.words == nil || len(x.words) >= maxWords {
		x.words = map[wordKey]*Word{}
	}
	x.words[key] = c
	return c
}
