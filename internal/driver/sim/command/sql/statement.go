package sql

import "strings"

// A scanner reads SQL, a token at a time, as the engine does.
type scanner struct {
	s string
	i int
}

// next gives a token: a word in small letters, what stands in quotes, or a sign.
// Blanks and comments are left out; false is the end. Open quotes and comments
// go to the end, and whole tells that nothing is open.
func (x *scanner) next() (token string, quoted, whole, ok bool) {
	for x.i < len(x.s) {
		ch, rest := x.s[x.i], x.s[x.i:]
		switch {
		case strings.IndexByte(" \t\n\r\f", ch) >= 0:
			x.i++
		case strings.HasPrefix(rest, "--"):
			x.skip(rest, "\n", 2)
		case strings.HasPrefix(rest, "/*"):
			if !x.skip(rest, "*/", 2) {
				return "", false, false, false
			}
		case strings.IndexByte("'\"`[", ch) >= 0:
			end := string(ch)
			if ch == '[' {
				end = "]"
			}
			closed := x.skip(rest, end, 1)
			return strings.ToLower(strings.Trim(x.s[x.i-(len(rest)-len(x.s[x.i:])):x.i], "'\"`[]")), true, closed, true
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

// skip goes past the next end after so many bytes, or to the end of all.
func (x *scanner) skip(rest, end string, after int) bool {
	j := strings.Index(rest[after:], end)
	if j < 0 {
		x.i = len(x.s)
		return false
	}
	x.i += after + j + len(end)
	return true
}

func letter(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// first gives the length of the first statement that a semicolon ends, outside
// of quotes, comments and the bodies of triggers; negative is that none does.
func first(s string) int {
	x := scanner{s: s}
	body := 0
	for {
		token, quoted, whole, ok := x.next()
		switch {
		case !ok || !whole:
			return -1
		case quoted:
		case token == "trigger":
			body = 1
		case token == "end" && body == 1:
			body = 2
		case token == ";" && body != 1:
			return x.i
		}
	}
}

// complete tells whether SQL ends with a statement's end.
func complete(s string) bool {
	for {
		n := first(s)
		if n < 0 {
			return false
		}
		if s = s[n:]; blank(s) {
			return true
		}
	}
}

// blank tells whether there are only blanks and comments.
func blank(s string) bool {
	x := scanner{s: s}
	_, _, whole, ok := x.next()
	return !ok && whole
}

// What becomes of a statement.
type verdict int

const (
	fine    verdict = iota
	ignored         // it asks for what is so already
	refused
)

// guarded judges the pragmas by which a statement would get out of its limits,
// or to the machine: where temporary files are and that there are any, how much
// memory all engines of this process have, how long a database may be.
func guarded(text string) verdict {
	x := scanner{s: text}
	for n := 0; ; n++ {
		token, quoted, _, ok := x.next()
		if !ok {
			return fine
		}
		if quoted || token != "pragma" {
			continue
		}
		name, _, _, _ := x.next()
		if after := x; true {
			if dot, _, _, _ := after.next(); dot == "." {
				name, _, _, _ = after.next()
				x = after
			}
		}
		switch name {
		case "temp_store":
			if rest := text[x.i:]; n == 0 && strings.Count(rest, ";") <= 1 && len(rest) < 64 {
				return ignored
			}
			return refused
		case "temp_store_directory", "data_store_directory", "hard_heap_limit", "soft_heap_limit", "max_page_count", "threads":
			return refused
		}
	}
}
