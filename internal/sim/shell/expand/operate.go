package expand

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

const refAttr = variable.NameRef

// operate does to a value what an expansion says.
func (x *Expander) operate(p *Param, v parameter) (parameter, error) {
	switch p.op {
	case length:
		return x.length(p, v), nil
	case slice:
		return x.slice(p, v)
	case transform:
		return x.transform(p, v)
	}
	var do func(string) (string, error)
	var with replacementText
	var err error
	switch p.op {
	case cutPrefix, cutSuffix:
		do, err = x.cutter(p)
	case replace:
		do, with, err = x.replacer(p)
		defer func() { x.done(with) }()
	case upper, lower, toggle:
		do, err = x.caser(p)
	}
	if err != nil || do == nil {
		return v, err
	}
	return x.each(v, do, p.op != cutPrefix && p.op != cutSuffix)
}

// each does something to a value, or to every element of a list. Results that are fresh, and no parts of the elements, are
// counted.
func (x *Expander) each(v parameter, do func(string) (string, error), fresh bool) (parameter, error) {
	if !v.isList {
		var err error
		v.text, err = do(v.text)
		return v, err
	}
	paid := 16 * len(v.list) // until whoever gets the list counts it
	x.task.Grow(paid)
	defer func() { x.task.Shrink(paid) }()
	list := make([]string, len(v.list))
	for i, s := range v.list {
		x.task.Step(1)
		var err error
		if list[i], err = do(s); err != nil {
			return v, err
		}
		if fresh {
			x.task.Grow(len(list[i]))
			paid += len(list[i])
		}
	}
	v.list = list
	return v, nil
}

func (x *Expander) length(p *Param, v parameter) parameter {
	n := 0
	switch {
	case v.isList:
		n = len(v.list)
	default:
		n = x.charCount(v.text)
	}
	return parameter{set: true, text: itoa(int64(n))}
}

func (x *Expander) cutter(p *Param) (func(string) (string, error), error) {
	text, err := x.Pattern(p.word)
	if err != nil || text == "" {
		return nil, err
	}
	c := x.Compiled(text, false)
	m := meter{x.task}
	find := c.ShortestPrefix
	switch {
	case p.op == cutPrefix && p.all:
		find = c.LongestPrefix
	case p.op == cutSuffix && p.all:
		find = c.LongestSuffix
	case p.op == cutSuffix:
		find = c.ShortestSuffix
	}
	return func(s string) (string, error) {
		n, ok, err := find(s, m)
		switch {
		case err != nil || !ok:
			return s, err
		case p.op == cutPrefix:
			return s[n:], nil
		}
		return s[:len(s)-n], nil
	}, nil
}

// replacer makes ${x/pattern/word}.
func (x *Expander) replacer(p *Param) (func(string) (string, error), replacementText, error) {
	text, err := x.Pattern(p.word)
	if err != nil {
		return nil, replacementText{}, err
	}
	// What is quoted in the replacement, an & too, is itself.
	with, err := x.replacement(p.with)
	if err != nil {
		return nil, with, err
	}
	if text == "" {
		if p.anchor == 0 {
			return nil, with, nil
		}
		return func(s string) (string, error) {
			if p.anchor == '#' {
				return x.replaced("", with, "", s), nil
			}
			return x.replaced(s, with, "", ""), nil
		}, with, nil
	}
	c := x.Compiled(text, true)
	m := meter{x.task}
	return func(s string) (string, error) {
		switch p.anchor {
		case '#':
			n, ok, err := c.LongestPrefix(s, m)
			if err != nil || !ok {
				return s, err
			}
			return x.replaced("", with, s[:n], s[n:]), nil
		case '%':
			n, ok, err := c.LongestSuffix(s, m)
			if err != nil || !ok {
				return s, err
			}
			return x.replaced(s[:len(s)-n], with, s[len(s)-n:], ""), nil
		}
		return x.substitute(c, s, with, p.all)
	}, with, nil
}

func (x *Expander) substitute(c *pattern.Pattern, s string, with replacementText, all bool) (string, error) {
	m := meter{x.task}
	from, done, found := 0, 0, false
	b := kernel.NewText(x.task)
	defer b.Free()
	for first := true; first || all && from < len(s); first = false {
		start, end, ok, err := c.Find(s, from, m)
		if err != nil {
			return s, err
		}
		if !ok {
			break
		}
		b.WriteString(s[done:start])
		with.appendTo(b, s[start:end])
		x.task.Step(1)
		found, done = true, end
		if from = end; start == end {
			n := x.charLen(s[end:])
			b.WriteString(s[end : end+n])
			from, done = end+n, end+n
			if n == 0 {
				break
			}
		}
	}
	if !found {
		return s, nil
	}
	b.WriteString(s[done:])
	return b.Text(), nil
}

// replacementText is text in which some places stand for what matched.
type replacementText struct {
	pieces []string // the match stands between each two; from kernel.Room
}

// done ends the use of a replacement.
func (x *Expander) done(r replacementText) {
	x.task.Shrink(kernel.Cost(r.pieces))
}

func (r replacementText) appendTo(b *kernel.Builder, match string) {
	for i, s := range r.pieces {
		if i > 0 {
			b.WriteString(match)
		}
		b.WriteString(s)
	}
}

// replaced is what replaces a match between two texts, with them.
func (x *Expander) replaced(before string, with replacementText, match, after string) string {
	b := kernel.NewText(x.task)
	b.WriteString(before)
	with.appendTo(b, match)
	b.WriteString(after)
	return b.Text()
}

func (x *Expander) replacement(w *Word) (replacementText, error) {
	b := x.builder(replacing)
	defer b.done()
	if err := x.emitAll(b, w.parts); err != nil {
		return replacementText{}, err
	}
	s := string(b.buf)
	limit := x.task.K.Limits.String
	var r replacementText
	if x.flags.NoPatsub || !strings.ContainsAny(s, `&\`) {
		r.pieces = append(kernel.Room(x.task, "string", limit, r.pieces, 1), s)
		return r, nil
	}
	piece := kernel.NewText(x.task)
	defer piece.Free()
	quoted := b.quoted
	for i := 0; i < len(s); i++ {
		for len(quoted) > 0 && i >= quoted[0].to {
			quoted = quoted[1:]
		}
		switch c := s[i]; {
		case len(quoted) > 0 && i >= quoted[0].from:
			piece.Byte(c)
		case c == '\\' && i+1 < len(s) && (s[i+1] == '&' || s[i+1] == '\\'):
			i++
			piece.Byte(s[i])
		case c == '&':
			r.pieces = append(kernel.Room(x.task, "string", limit, r.pieces, 1), piece.Text())
		default:
			piece.Byte(c)
		}
	}
	r.pieces = append(kernel.Room(x.task, "string", limit, r.pieces, 1), piece.Text())
	return r, nil
}

// caser makes ${x^pattern} and its like.
func (x *Expander) caser(p *Param) (func(string) (string, error), error) {
	text := ""
	if p.word != nil && p.word.source != nil {
		var err error
		if text, err = x.Pattern(p.word); err != nil {
			return nil, err
		}
	}
	var c *pattern.Pattern
	if text != "" && text != "?" {
		c = x.Compiled(text, false)
	}
	m := meter{x.task}
	return func(s string) (string, error) {
		b := kernel.NewText(x.task)
		defer b.Free()
		for i := 0; i < len(s); {
			n := x.charLen(s[i:])
			ok := true
			if c != nil {
				var err error
				if ok, err = c.Match(s[i:i+n], m); err != nil {
					return s, err
				}
			}
			if ok {
				b.WriteString(changeCase(s[i:i+n], p.op))
			} else {
				b.WriteString(s[i : i+n])
			}
			i += n
			if !p.all {
				b.WriteString(s[i:])
				break
			}
		}
		return b.Text(), nil
	}, nil
}

func changeCase(c string, op operation) string {
	r, n := utf8.DecodeRuneInString(c)
	if r == utf8.RuneError && n <= 1 {
		return c
	}
	switch op {
	case upper:
		r = unicode.ToUpper(r)
	case lower:
		r = unicode.ToLower(r)
	default:
		if unicode.IsUpper(r) {
			r = unicode.ToLower(r)
		} else {
			r = unicode.ToUpper(r)
		}
	}
	return string(r)
}

// slice makes ${x:from:length}.
func (x *Expander) slice(p *Param, v parameter) (parameter, error) {
	if !v.set && !v.isList {
		return v, nil
	}
	from, err := x.bound(p, p.from)
	if err != nil {
		return v, err
	}
	if v.isList && p.special == 0 && len(v.list) == 1 {
		if a, _ := x.vars.Var(p.name); a != nil && !a.Is(variable.Arrays) {
			v = parameter{set: true, text: v.list[0]}
		}
	}
	if !v.isList {
		return x.substring(p, v, from)
	}
	count := int64(-1)
	if p.len != nil {
		if count, err = x.bound(p, p.len); err != nil {
			return v, err
		}
		if count < 0 {
			return v, &Error{Kind: Bad, Text: p.len.Text() + ": substring expression < 0"}
		}
	}
	list := v.list
	start := from
	switch {
	case p.special != 0:
		if from < 0 {
			start = from + int64(len(list)) + 1
		}
		if start == 0 {
			list = append([]string{x.env.Name()}, list...)
		} else {
			start--
		}
	default:
		a, _ := x.vars.Var(p.name)
		switch {
		case a == nil:
		case a.Array() != nil:
			if from < 0 {
				start += a.Array().End()
			}
			if _, dense := a.Array().Dense(); !dense && start >= 0 {
				n := int64(0)
				for i := range a.Array().All() {
					if i >= start {
						break
					}
					n++
				}
				start = n
			}
		case a.Assoc() != nil:
			switch {
			case from < 0:
				start += int64(len(list)) + 1
			}
			if start > 0 {
				start--
			}
		case from < 0:
			start += int64(len(list))
		}
	}
	if start < 0 || start > int64(len(list)) {
		v.list = nil
		return v, nil
	}
	list = list[start:]
	if count >= 0 && count < int64(len(list)) {
		list = list[:count]
	}
	v.list = list
	return v, nil
}

// bound computes a side of a slice; its errors name the parameter.
func (x *Expander) bound(p *Param, a *Arith) (int64, error) {
	if a == nil {
		return 0, nil
	}
	n, err := x.Eval(a)
	if e, ok := err.(*Error); ok && e.Kind == Arithmetic {
		return 0, &Error{Kind: Arithmetic, Text: x.display(p) + ": " + e.Text}
	}
	return n, err
}

func (x *Expander) substring(p *Param, v parameter, from int64) (parameter, error) {
	s := v.text
	x.task.Step(1 + len(s)>>3)
	n := int64(x.charCount(s))
	if from < 0 {
		from += n
	}
	if from < 0 || from > n {
		v.text = ""
		return v, nil
	}
	end := n
	if p.len != nil {
		count, err := x.bound(p, p.len)
		if err != nil {
			return v, err
		}
		switch {
		case count < 0:
			if end = n + count; end < from {
				return v, &Error{Kind: Bad, Text: p.len.Text() + ": substring expression < 0"}
			}
		case count < n-from:
			end = from + count
		}
	}
	if n == int64(len(s)) {
		v.text = s[from:end]
		return v, nil
	}
	// There are characters of many bytes.
	a := skipChars(s, from)
	v.text = s[a : a+skipChars(s[a:], end-from)]
	return v, nil
}

// skipChars gives the length of the first n characters.
func skipChars(s string, n int64) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		i += charLen(s[i:])
	}
	return i
}
