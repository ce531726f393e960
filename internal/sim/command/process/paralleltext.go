package process

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A part is a piece of a command of parallel: text, or something that stands
// in place of arguments.
type part struct {
	text string // of a plain part, and of one that is not replaced
	kind string // ".", "/", "//", "/.", "" as between the braces; "#" and "%"
	at   int    // which argument: 0 is all of them, below 0 from the end
	is   bool   // it is replaced
}

// marks are the replacement strings, by what they stand for.
type marks map[string]string

func usual() marks {
	return marks{"": "{}", ".": "{.}", "/": "{/}", "//": "{//}", "/.": "{/.}", "#": "{#}", "%": "{%}"}
}

// split finds the replacement strings of a text. Columns are known by names
// where there is a header.
func (m marks) split(s string, names []string) []part {
	var parts []part
	plain := 0
	for i := 0; i < len(s); {
		p, n := m.at(s[i:], names)
		if n == 0 {
			i++
			continue
		}
		if i > plain {
			parts = append(parts, part{text: s[plain:i]})
		}
		p.text = s[i : i+n]
		parts = append(parts, p)
		i += n
		plain = i
	}
	if plain < len(s) {
		parts = append(parts, part{text: s[plain:]})
	}
	return parts
}

// at reads a replacement string that begins a text; n is its length, or 0.
func (m marks) at(s string, names []string) (p part, n int) {
	for kind, mark := range m {
		if mark != "" && strings.HasPrefix(s, mark) && len(mark) > n {
			p, n = part{kind: kind, is: true}, len(mark)
		}
	}
	if n > 0 || s[0] != '{' {
		return p, n
	}
	end := strings.IndexByte(s[:min(len(s), 256)], '}')
	if end < 0 {
		return part{}, 0
	}
	body := s[1:end]
	for _, kind := range []string{"/.", "//", "/", ".", ""} {
		number, ok := strings.CutSuffix(body, kind)
		if !ok {
			continue
		}
		if k, err := strconv.Atoi(number); err == nil && k != 0 && number[0] != '+' {
			return part{kind: kind, at: k, is: true}, end + 1
		}
		for i, name := range names {
			if name == number && name != "" {
				return part{kind: kind, at: i + 1, is: true}, end + 1
			}
		}
	}
	return part{}, 0
}

// shape gives what a kind of replacement makes of an argument.
func shape(kind, s string) string {
	slash := strings.LastIndexByte(s, '/')
	base := s[slash+1:]
	switch kind {
	case ".":
		if i := strings.LastIndexByte(base, '.'); i >= 0 && i < len(base)-1 {
			return s[:slash+1+i]
		}
	case "/":
		return base
	case "//":
		switch {
		case slash < 0:
			return "."
		case slash == 0:
			return "/"
		}
		return s[:slash]
	case "/.":
		if i := strings.LastIndexByte(base, '.'); i >= 0 && i < len(base)-1 {
			return base[:i]
		}
		return base
	}
	return s
}

// shielded is an argument as a shell reads it back, in parallel's form.
func shielded(s string) string {
	if s == "" {
		return "''"
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_.+/", c) >= 0:
		default:
			s = "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
			return strings.TrimSuffix(strings.TrimPrefix(s, "''"), "''")
		}
	}
	return s
}

// fill writes a template for some arguments. Where the template is asked for
// a place that has no argument, nothing stands there.
func fill(b *kernel.Builder, parts []part, args []string, seq, slot int, quoted bool) {
	for _, p := range parts {
		switch {
		case !p.is:
			b.WriteString(p.text)
		case p.kind == "#":
			b.WriteString(strconv.Itoa(seq))
		case p.kind == "%":
			b.WriteString(strconv.Itoa(slot))
		default:
			list := args
			if p.at != 0 {
				i := p.at - 1
				if p.at < 0 {
					i = len(args) + p.at
				}
				if i < 0 || i >= len(args) {
					continue
				}
				list = args[i : i+1]
			}
			for i, a := range list {
				if i > 0 {
					b.Byte(' ')
				}
				if a = shape(p.kind, a); quoted {
					a = shielded(a)
				}
				b.WriteString(a)
			}
		}
	}
}

// words cuts a template at its blanks, for what is repeated word by word.
func words(parts []part) [][]part {
	var list [][]part
	var word []part
	flush := func() {
		if len(word) > 0 {
			list = append(list, word)
		}
		word = nil
	}
	for _, p := range parts {
		if p.is {
			word = append(word, p)
			continue
		}
		for s := p.text; s != ""; {
			i := strings.IndexAny(s, " \t\n")
			if i < 0 {
				word = append(word, part{text: s})
				break
			}
			if i > 0 {
				word = append(word, part{text: s[:i]})
			}
			flush()
			list = append(list, []part{{text: s[i : i+1]}})
			s = s[i+1:]
		}
	}
	flush()
	return list
}

// has reports whether a template has a place for arguments.
func has(parts []part) bool {
	for _, p := range parts {
		if p.is && p.kind != "#" && p.kind != "%" {
			return true
		}
	}
	return false
}
