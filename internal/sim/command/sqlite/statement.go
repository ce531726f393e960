package sqlite

import "strings"

// A scanner reads SQL, a token at a time, as the engine does.
type scanner struct {
	s    string
	i    int
	from int // where the end of what is open is looked for
}

// next gives a token: a word in small letters, what stands in quotes, or a sign.
// Blanks and comments are left out; not ok is the end. Not whole is a quote or
// comment that does not end: it is read again when there is more.
func (x *scanner) next() (token string, quoted, whole, ok bool) {
	for x.i < len(x.s) {
		ch, rest := x.s[x.i], x.s[x.i:]
		switch {
		case strings.IndexByte(" \t\n\r\f", ch) >= 0:
			x.i++
		case strings.HasPrefix(rest, "--"):
			if !x.skip(rest, "\n", 2) {
				x.i = len(x.s)
			}
		case strings.HasPrefix(rest, "/*"):
			if !x.skip(rest, "*/", 2) {
				return "", false, false, false
			}
		case strings.IndexByte("'\"`[", ch) >= 0:
			end := string(ch)
			if ch == '[' {
				end = "]"
			}
			if !x.skip(rest, end, 1) {
				return "", true, false, true
			}
			n := len(rest) - len(x.s[x.i:])
			return strings.ToLower(rest[1 : n-1]), true, true, true
		default:
			n := 1
			for letter(ch) && n < len(rest) && letter(rest[n]) {
				n++
			}
			x.i += n
			return strings.ToLower(rest[:n]), false, true, true
		}
	}
	return "", false, true, false
}

// skip goes past the next end after so many bytes, and tells whether there is
// one.
func (x *scanner) skip(rest, end string, after int) bool {
	begin := max(len(x.s)-len(rest)+after, x.from)
	j := strings.Index(x.s[begin:], end)
	if j < 0 {
		x.from = max(begin, len(x.s)-len(end)+1)
		return false
	}
	x.i, x.from = begin+j+len(end), 0
	return true
}

func letter(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// A cutter finds where statements end: at semicolons outside of quotes, comments
// and the bodies of triggers. It goes on where it was as text is added.
type cutter struct {
	x     scanner
	body  int  // 1 is within a trigger, 2 after its end
	begun bool // there is something of a statement that has not ended
	ended bool // one has
}

// next goes to the next end of a statement in s, which begins with what it was
// given before, and tells whether there is one.
func (c *cutter) next(s string) bool {
	c.x.s = s
	for {
		token, quoted, whole, ok := c.x.next()
		switch {
		case !whole:
			c.begun = true
			return false
		case !ok:
			return false
		case !quoted && token == ";" && c.body != 1:
			c.begun, c.ended, c.body = false, true, 0
			return true
		case !quoted && token == "trigger":
			c.body = 1
		case !quoted && token == "end" && c.body == 1:
			c.body = 2
		}
		c.begun = true
	}
}

// complete reports whether s ends with a statement's end.
func (c *cutter) complete(s string) bool {
	for c.next(s) {
	}
	return c.ended && !c.begun
}
