package ripgrep

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// What rg's own engine does not have. -P does.
var (
	errLook      = errors.New("look-around, including look-ahead and look-behind, is not supported")
	errReference = errors.New("backreferences are not supported")
)

// compile makes the expression.
func compile(t *kernel.Task, o *options) (*regex.Regexp, error) {
	opt := regex.Options{
		Flavour: regex.Perl, IgnoreCase: o.letters == 'i' || o.letters == 'S' && !capital(o), Lines: !o.multiline, NULSep: o.nul, Multiline: o.multiline,
		WholeLine: o.line && !o.multiline, Word: o.word, NoSub: o.replace == nil, Meter: meter{t},
	}
	if o.fixed {
		opt.Flavour = regex.Literal
	}
	patterns := make([]string, 0, len(o.patterns))
	for _, p := range o.patterns {
		if !o.fixed {
			text, err := translate(p, o)
			if err != nil {
				return nil, fmt.Errorf("regex parse error:\n    %s\nerror: %w", p, err)
			}
			p = text
		}
		patterns = append(patterns, p)
	}
	re, err := regex.CompileAny(patterns, opt)
	if err != nil {
		return nil, fmt.Errorf("regex parse error:\n    %s\nerror: %w", strings.Join(o.patterns, "|"), err)
	}
	return re, nil
}

// capital says whether a pattern has a capital letter that stands for itself.
func capital(o *options) bool {
	for _, p := range o.patterns {
		for i := 0; i < len(p); {
			if p[i] == '\\' && !o.fixed {
				i += 2
				if i-1 < len(p) && (p[i-1] == 'p' || p[i-1] == 'P') && i < len(p) {
					if p[i] == '{' {
						i += max(strings.IndexByte(p[i:], '}'), 0)
					}
					i++
				}
				continue
			}
			r, n := utf8.DecodeRuneInString(p[i:])
			if unicode.IsUpper(r) {
				return true
			}
			i += n
		}
	}
	return false
}

// letters are those of Rust's \w, where ours are ASCII.
const wordClass = `\w\p{L}\p{M}\p{Nd}\p{Nl}`

// translate writes a pattern of Rust's syntax as one of Perl's.
func translate(p string, o *options) (string, error) {
	var b strings.Builder
	if o.multiline && o.dotAll {
		b.WriteString("(?s)")
	}
	if o.multiline && o.line {
		b.WriteString("^(?:")
	}
	class := 0
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\' && i+1 < len(p):
			i++
			n, err := escape(&b, p[i:], o, class > 0)
			if err != nil {
				return "", err
			}
			i += n
			continue
		case class > 0:
			if c == ']' && !first(p, i) {
				class = 0
			} else if c == '[' && i+1 < len(p) && p[i+1] == ':' {
				if j := strings.Index(p[i:], ":]"); j > 0 {
					b.WriteString(p[i : i+j+2])
					i += j + 1
					continue
				}
			}
		case c == '[':
			class = 1
		case c == '$' && o.crlf:
			b.WriteString(`\r?$`)
			continue
		case c == '(' && !o.perl && strings.HasPrefix(p[i:], "(?"):
			rest := p[i+2:]
			switch {
			case strings.HasPrefix(rest, "="), strings.HasPrefix(rest, "!"), strings.HasPrefix(rest, "<="), strings.HasPrefix(rest, "<!"), strings.HasPrefix(rest, ">"):
				return "", errLook
			case rest != "" && strings.IndexByte("imsxuUR-", rest[0]) >= 0:
				if j := strings.IndexAny(rest, ":)"); j >= 0 {
					flags := strings.NewReplacer("u", "", "R", "").Replace(rest[:j])
					b.WriteString("(?" + strings.TrimSuffix(flags, "-"))
					i += 1 + j
					continue
				}
			}
		}
		if c == '\n' && !o.multiline {
			return "", errNewline
		}
		b.WriteByte(c)
	}
	if o.multiline && o.line {
		b.WriteString(")$")
	}
	return b.String(), nil
}

// first says whether a ] stands first in its bracket, where it is a member.
func first(p string, i int) bool {
	return i > 0 && p[i-1] == '[' || i > 1 && p[i-1] == '^' && p[i-2] == '['
}

var errNewline = errors.New(`the literal "\n" is not allowed in a regex`)

// escape writes what a backslash and s stand for, and tells how much of s it
// took besides the first byte.
func escape(b *strings.Builder, s string, o *options, class bool) (int, error) {
	switch c := s[0]; {
	case c == 'n' && !o.multiline && !o.nul:
		return 0, errNewline
	case c >= '1' && c <= '9' && !o.perl && !class:
		return 0, errReference
	case c == 'w' && !o.ascii && !o.perl:
		if class {
			b.WriteString(wordClass)
		} else {
			b.WriteString("[" + wordClass + "]")
		}
		return 0, nil
	case c == 'W' && !o.ascii && !o.perl && !class:
		b.WriteString("[^" + wordClass + "]")
		return 0, nil
	case c == 'd' && !o.ascii && !o.perl:
		b.WriteString(`\p{Nd}`)
		return 0, nil
	case (c == 'u' || c == 'U' || c == 'x') && strings.HasPrefix(s[1:], "{"):
		b.WriteString(`\x{`)
		return 1, nil
	case c == 'u' && len(s) > 4:
		b.WriteString(`\x{` + s[1:5] + `}`)
		return 4, nil
	case c == 'U' && len(s) > 8:
		b.WriteString(`\x{` + s[1:9] + `}`)
		return 8, nil
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 0, nil
}
