// Package gitconfigcheck judges what a sandbox wants to write into the configuration of a git repository of the host. It lets
// through keys that cannot run a program, point git elsewhere or change whom the user trusts, and refuses all else by
// name.
//
// The parser accepts less than git does. In what it accepts, each line stands alone, so that git and other programs that
// read the file find the same keys: there are no continued lines, no control characters, no keys behind a section's
// header, and no headers in the old style with a dot. What it does not understand is refused.
//
// It is pure, uses the standard library only and is small, because it is also linked into the program that runs inside
// the sandbox.
package gitconfigcheck

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxSize is the size in bytes up to which a configuration is judged.
const MaxSize = 1 << 20

// An Entry is one line of a configuration that sets a key.
type Entry struct {
	Section string // in small letters
	Sub     string // as written, without the quotes; HasSub tells an empty one from none
	HasSub  bool
	Key     string // in small letters
	Value   string
	NoValue bool // the line has no "=", which git takes for true
}

// Name returns the full name of the key, as git prints it.
func (e Entry) Name() string {
	if e.HasSub {
		return e.Section + "." + e.Sub + "." + e.Key
	}
	return e.Section + "." + e.Key
}

// Parse reads a configuration. The error names the line.
func Parse(content []byte) ([]Entry, error) {
	if len(content) > MaxSize {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxSize)
	}
	if !utf8.Valid(content) || bytes.HasPrefix(content, []byte("\ufeff")) {
		return nil, fmt.Errorf("it is not plain UTF-8")
	}
	var (
		entries []Entry
		at      Entry
		inside  bool
		number  int
	)
	for line := range strings.SplitSeq(string(content), "\n") {
		number++
		fail := func(why string) error { return fmt.Errorf("line %d %s", number, why) }
		if strings.ContainsFunc(line, control) {
			return nil, fail("has a control character")
		}
		if strings.HasSuffix(line, `\`) {
			return nil, fail("is continued")
		}
		line = strings.Trim(line, " \t")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			var ok bool
			if at, ok = header(line); !ok {
				return nil, fail("is not a header that is understood")
			}
			inside = true
		case !inside:
			return nil, fail("is in no section")
		default:
			e := at
			if why := e.set(line); why != "" {
				return nil, fail(why)
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// control reports characters that parsers treat in different ways.
func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 }

// header reads "[section]" or `[section "sub"]`, with nothing behind it.
func header(line string) (e Entry, ok bool) {
	n := 1
	for n < len(line) && (letter(line[n]) || digit(line[n]) || line[n] == '-') {
		n++
	}
	e.Section = strings.ToLower(line[1:n])
	if e.Section == "" {
		return e, false
	}
	rest := line[n:]
	if rest == "]" {
		return e, true
	}
	quoted := strings.TrimLeft(rest, " \t")
	if len(quoted) == len(rest) || !strings.HasPrefix(quoted, `"`) {
		return e, false
	}
	e.HasSub = true
	var sub strings.Builder
	for i := 1; i < len(quoted); i++ {
		switch c := quoted[i]; c {
		case '"':
			e.Sub = sub.String()
			return e, quoted[i+1:] == "]"
		case '\\':
			i++
			if i == len(quoted) || quoted[i] != '"' && quoted[i] != '\\' {
				return e, false
			}
			sub.WriteByte(quoted[i])
		default:
			sub.WriteByte(c)
		}
	}
	return e, false
}

// set reads "key = value", or a key alone. It returns what is wrong.
func (e *Entry) set(line string) string {
	n := 0
	for n < len(line) && (letter(line[n]) || n > 0 && (digit(line[n]) || line[n] == '-')) {
		n++
	}
	if n == 0 {
		return "does not begin with a key"
	}
	e.Key = strings.ToLower(line[:n])
	rest := strings.TrimLeft(line[n:], " \t")
	if rest == "" {
		e.NoValue = true
		return ""
	}
	if rest[0] != '=' {
		return "has something other than a value behind its key"
	}
	value, ok := unquote(strings.TrimLeft(rest[1:], " \t"))
	if !ok {
		return "has a value that is not understood"
	}
	e.Value = value
	return ""
}

// unquote reads a value up to the end of the line or a comment. It refuses a tab inside a value and an empty pair of
// quotes beside something else, because versions of git disagree about the white space there.
func unquote(text string) (string, bool) {
	var b strings.Builder
	quoted, blank := false, 0 // blank counts the unquoted white space at the end
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case !quoted && (c == '#' || c == ';'):
			return b.String()[:b.Len()-blank], true
		case !quoted && (c == ' ' || c == '\t'):
			if rest := strings.TrimLeft(text[i:], " \t"); c == '\t' && rest != "" && rest[0] != '#' && rest[0] != ';' {
				return "", false
			}
			b.WriteByte(c)
			blank++
			continue
		case c == '"':
			if !quoted && strings.HasPrefix(text[i+1:], `"`) {
				rest := strings.TrimLeft(text[i+2:], " \t")
				return "", b.Len() == 0 && (rest == "" || rest[0] == '#' || rest[0] == ';')
			}
			quoted = !quoted
			continue
		case c == '\\':
			i++
			if i == len(text) {
				return "", false
			}
			switch text[i] {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case '\\', '"':
				c = text[i]
			default: // \b is for a backspace
				return "", false
			}
		}
		b.WriteByte(c)
		blank = 0
	}
	return b.String()[:b.Len()-blank], !quoted
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }
