package expand

import (
	"bytes"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
)

// A builder puts together the fields of a word.
type builder struct {
	x       *Expander
	mode    Mode
	split   bool // words are split and names matched
	buf     []byte
	started bool // there is a field, if only an empty one
	after   after
	active  bool   // there may be something unquoted that matches names
	quoted  []span // of buf, where active matters
	out     []string
	size    int // of out
	charged int // bytes of out that the task counts
}

// after is what stands before a place where no field has started.
type after uint8

const (
	nothing    after = iota
	whiteSpace       // a field was ended by white space
	aDelimiter       // ended by another separator
)

// A span is a quoted piece.
type span struct{ from, to int }

func (x *Expander) builder(mode Mode) *builder {
	if n := len(x.free); n > 0 {
		b := x.free[n-1]
		x.free = x.free[:n-1]
		b.mode, b.split = mode, mode == Field
		return b
	}
	return &builder{x: x, mode: mode, split: mode == Field}
}

// done gives a builder back.
func (b *builder) done() {
	if b.charged > 0 {
		b.x.task.Shrink(b.charged)
	}
	if cap(b.buf) > 64<<10 {
		b.buf = nil
	}
	*b = builder{x: b.x, buf: b.buf[:0], quoted: b.quoted[:0]}
	if len(b.x.free) < 8 {
		b.x.free = append(b.x.free, b)
	}
}

// room checks that n more bytes may be.
func (b *builder) room(n int) {
	if n > 256 {
		b.x.task.Step(n >> 8)
	}
	if total := int64(len(b.buf) + n); total > 1<<16 {
		b.x.task.Bound("string", total, b.x.task.K.Limits.String)
	}
}

// literal adds text of the word itself, which is not split.
func (b *builder) literal(p *part) {
	switch {
	case p.quoted:
		b.addQuoted(p.text, p.escaped)
	case b.mode == Pattern || b.mode == Regex:
		b.room(len(p.text))
		b.buf = append(b.buf, p.text...)
	default:
		b.unquoted(p.text)
	}
}

func (b *builder) unquoted(s string) {
	b.started, b.after = true, nothing
	b.room(len(s))
	if b.split && !b.active && magic(s, b.x.flags.ExtGlob) {
		b.active = true
	}
	b.buf = append(b.buf, s...)
}

// addQuoted adds text that means itself, and starts a field even if it is
// empty.
func (b *builder) addQuoted(s string, escaped bool) {
	b.started, b.after = true, nothing
	b.room(len(s))
	switch b.mode {
	case Pattern:
		b.buf = appendPatternQuoted(b.buf, s)
	case Regex:
		b.x.task.Step(1 + len(b.buf)>>6)
		if bracketed(b.buf) {
			b.buf = append(b.buf, s...) // a backslash there is one
		} else {
			b.buf = appendRegexQuoted(b.buf, s)
		}
	default:
		if (b.split || b.mode == replacing) && s != "" {
			if n := len(b.quoted); n > 0 && b.quoted[n-1].to == len(b.buf) {
				b.quoted[n-1].to += len(s)
			} else {
				b.quoted = append(b.quoted, span{len(b.buf), len(b.buf) + len(s)})
			}
		}
		b.buf = append(b.buf, s...)
	}
}

func appendPatternQuoted(b []byte, s string) []byte {
	return append(b, pattern.Quote(s)...)
}

// bracketed reports whether a regular expression ends within brackets.
func bracketed(re []byte) bool {
	if bytes.IndexByte(re, '[') < 0 {
		return false
	}
	for i := 0; i < len(re); i++ {
		switch re[i] {
		case '\\':
			i++
		case '[':
			n := bracketLen(re[i:])
			if n == 0 {
				return true
			}
			i += n - 1
		}
	}
	return false
}

// bracketLen tells how long the bracket expression is that re begins with; 0 is
// that it does not end.
func bracketLen(re []byte) int {
	i := 1
	if i < len(re) && re[i] == '^' {
		i++
	}
	for first := i; i < len(re); i++ {
		switch {
		case re[i] == ']' && i > first:
			return i + 1
		case re[i] == '[' && i+1 < len(re) && strings.IndexByte(":.=", re[i+1]) >= 0:
			end := bytes.Index(re[i+2:], []byte{re[i+1], ']'})
			if end < 0 {
				return 0
			}
			i += 2 + end + 1
		}
	}
	return 0
}

func appendRegexQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		switch s[i] {
		case '.', '[', ']', '*', '^', '$', '+', '?', '(', ')', '{', '}', '|', '\\':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return b
}

// magic reports whether unquoted text may match names.
func magic(s string, ext bool) bool {
	for i := range len(s) {
		switch s[i] {
		case '*', '?', '[':
			return true
		case '(':
			if ext && i > 0 && strings.IndexByte("+@!", s[i-1]) >= 0 {
				return true
			}
		}
	}
	return false
}

// value adds the result of an expansion.
func (b *builder) value(s string, quoted bool) error {
	if quoted {
		b.addQuoted(s, false)
		return nil
	}
	if !b.split {
		b.started = true
		b.room(len(s))
		b.buf = append(b.buf, s...)
		return nil
	}
	return b.splitValue(s)
}

// splitValue adds the unquoted result of an expansion and ends fields at what
// separates them.
func (b *builder) splitValue(s string) error {
	ifs := b.x.loadIFS()
	if ifs.value == "" {
		if s != "" {
			b.unquoted(s)
		}
		return nil
	}
	if ifs.wide {
		return b.splitWide(s, ifs)
	}
	start := 0
	for i := range len(s) {
		class := ifs.class[s[i]]
		if class == 0 {
			continue
		}
		if i > start {
			b.unquoted(s[start:i])
		}
		start = i + 1
		if err := b.separate(class); err != nil {
			return err
		}
	}
	if start < len(s) {
		b.unquoted(s[start:])
	}
	return nil
}

// splitWide is splitValue where some separators are characters of many bytes.
func (b *builder) splitWide(s string, ifs *separators) error {
	start := 0
	for i := 0; i < len(s); {
		n := charLen(s[i:])
		if ifs.class[s[i]] == 0 || !strings.Contains(ifs.value, s[i:i+n]) {
			i += n
			continue
		}
		if i > start {
			b.unquoted(s[start:i])
		}
		if err := b.separate(ifs.class[s[i]]); err != nil {
			return err
		}
		i += n
		start = i
	}
	if start < len(s) {
		b.unquoted(s[start:])
	}
	return nil
}

// separate is one separator in the result of an expansion.
func (b *builder) separate(class uint8) error {
	if class&space != 0 {
		if b.started {
			b.after = whiteSpace
			return b.end()
		}
		return nil
	}
	switch {
	case b.started:
	case b.after == whiteSpace:
		b.after = aDelimiter
		return nil
	default:
		b.started = true
	}
	err := b.end()
	b.after = aDelimiter
	return err
}

// end ends a field, if one has started.
func (b *builder) end() error {
	if !b.started {
		return nil
	}
	b.started = false
	if b.active && !b.x.flags.NoGlob {
		err := b.match()
		b.buf, b.quoted, b.active = b.buf[:0], b.quoted[:0], false
		return err
	}
	b.emit(string(b.buf))
	b.buf, b.quoted, b.active = b.buf[:0], b.quoted[:0], false
	return nil
}

// emit adds a finished field.
func (b *builder) emit(s string) {
	b.out = append(b.out, s)
	b.size += len(s) + 16
	if b.size-b.charged > 1<<16 {
		b.x.task.Step(len(b.out) >> 6)
		b.x.task.Grow(b.size - b.charged)
		b.charged = b.size
	}
}

// match replaces a field by the names that it matches.
func (b *builder) match() error {
	text := string(b.buf)
	pat := b.pattern()
	f := b.x.flags
	if !pathMeta(pat, f.ExtGlob) {
		b.emit(text)
		return nil
	}
	names, err := b.x.glob(pat)
	switch {
	case err != nil:
		return err
	case len(names) > 0:
		b.x.task.Bound("matches", int64(len(names)), b.x.task.K.Limits.Matches)
		for _, name := range names {
			b.emit(name)
		}
	case f.FailGlob:
		return &Error{Kind: NoMatch, Text: "no match: " + text}
	case !f.NullGlob:
		b.emit(text)
	}
	return nil
}

// pathMeta reports whether a pattern of paths holds a wildcard; a bracket does not
// reach over a slash.
func pathMeta(pat string, ext bool) bool {
	if !pattern.HasMeta(pat, ext) {
		return false
	}
	if strings.IndexByte(pat, '[') < 0 || strings.IndexByte(pat, '/') < 0 || ext {
		return true
	}
	for part := range strings.SplitSeq(pat, "/") {
		if pattern.HasMeta(part, ext) {
			return true
		}
	}
	return false
}

// pattern gives the field as a pattern.
func (b *builder) pattern() string {
	if len(b.quoted) == 0 {
		return string(b.buf)
	}
	p := make([]byte, 0, len(b.buf)+8)
	at := 0
	for _, s := range b.quoted {
		p = append(p, b.buf[at:s.from]...)
		p = appendPatternQuoted(p, string(b.buf[s.from:s.to]))
		at = s.to
	}
	return string(append(p, b.buf[at:]...))
}

// list adds the elements of $@ or $*, or of an array.
func (b *builder) list(v []string, star, quoted bool) error {
	switch {
	case !b.split:
		sep := " "
		if ifs := b.x.loadIFS(); star {
			sep = ifs.first
		}
		if len(v) == 1 {
			return b.value(v[0], quoted)
		}
		if len(v) > 0 || quoted {
			return b.value(b.join(v, sep), quoted)
		}
		return nil
	case quoted && star:
		return b.value(b.join(v, b.x.loadIFS().first), true)
	case quoted:
		for i, s := range v {
			if i > 0 {
				b.started = true
				if err := b.end(); err != nil {
					return err
				}
			}
			b.addQuoted(s, false)
		}
		return nil
	}
	ifs := b.x.loadIFS()
	for i, s := range v {
		if i > 0 {
			var err error
			if ifs.first == "" {
				err = b.end()
			} else {
				err = b.separate(ifs.class[ifs.first[0]])
			}
			if err != nil {
				return err
			}
		}
		if err := b.splitValue(s); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) join(v []string, sep string) string {
	n := 0
	for _, s := range v {
		n += len(s) + len(sep)
	}
	b.room(n)
	return strings.Join(v, sep)
}
