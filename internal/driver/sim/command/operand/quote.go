// Package operand reads the numbers and writes the names that GNU tools have
// in their arguments and complaints, in GNU's ways.
package operand

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// Quote puts text between quotation marks, as complaints do with what is
// wrong: ‘text’.
func Quote(s string) string {
	var b strings.Builder
	b.WriteString("‘")
	escape(&b, s)
	b.WriteString("’")
	return b.String()
}

func escape(b *strings.Builder, s string) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(b, "\\%03o", s[i])
		case r == '\\':
			b.WriteString("\\\\")
		case r == '’':
			b.WriteString("\\’")
		case r < ' ' && strings.IndexByte("\a\b\f\n\r\t\v", s[i]) >= 0:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[r-7])
		case !unicode.IsPrint(r):
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(b, "\\%03o", c)
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
}

// File writes a file's name as it stands before a colon in a complaint: as it
// is, or quoted for a shell if a shell would not take it as it is.
func File(s string) string {
	if strings.IndexByte(s, ':') < 0 && plain(s) {
		return s
	}
	return Always(s)
}

// Always is File with quotes in any case.
func Always(s string) string {
	single, simple := false, true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'':
			single = true
		case c < ' ' || c >= 0x7f && !printable(s):
			return dollar(s)
		case strings.IndexByte("!\"$&()*;<=>[^`|?\\{}", c) >= 0:
			simple = false
		}
	}
	switch {
	case !single:
		return "'" + s + "'"
	case simple:
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func printable(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			return false
		}
		i += n
	}
	return true
}

// dollar quotes with $” what cannot be shown.
func dollar(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	open := false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		shown := (r != utf8.RuneError || n > 1) && unicode.IsPrint(r)
		switch {
		case shown && open:
			b.WriteString("''")
			open = false
		case !shown && !open:
			b.WriteString("'$'")
			open = true
		}
		switch {
		case shown && r == '\'':
			b.WriteString(`'\''`)
		case shown:
			b.WriteString(s[i : i+n])
		case n == 1 && strings.IndexByte("\a\b\f\n\r\t\v", s[i]) >= 0:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[s[i]-7])
		default:
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, "\\%03o", c)
			}
		}
		i += n
	}
	b.WriteByte('\'')
	return b.String()
}

func plain(s string) bool {
	if s == "" || s == "{" || s == "}" || s[0] == '#' || s[0] == '~' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == 0x7f || strings.IndexByte(" !\"$&'()*;<=>[^`|?\\", c) >= 0 {
			return false
		}
	}
	return printable(s)
}

// Fail complains about a file: "tool: name: reason".
func Fail(t *proc.Task, name string, err error) {
	t.Errorf("%s: %s", File(name), vfs.Message(err))
}
