package encode

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// check reads checksums from a file and looks whether they are right.
func (s *summer) check(list string) bool {
	r, err := command.OpenReader(s.t, list)
	if err != nil {
		command.FailFile(s.t, list, err)
		return false
	}
	defer r.Close()
	shown := list
	if list == "-" {
		shown = "standard input"
	}
	var c checking
	for number := 1; ; number++ {
		line, _, ok := r.Line('\n')
		if !ok {
			break
		}
		if len(line) > 0 && line[0] == '#' {
			continue
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			continue
		}
		d, sum, name, ok := s.parse(string(line))
		if !ok || list == "-" && name == "-" {
			c.wrong++
			if s.warn {
				s.t.Errorf("%s: %d: improperly formatted %s checksum line", command.QuoteFile(shown), number, s.kind())
			}
			continue
		}
		c.right++
		s.verify(&c, d, sum, name)
	}
	if r.Err() != nil {
		s.t.Errorf("%s: read error", command.QuoteFile(shown))
		return false
	}
	return s.report(&c, shown)
}

// checking counts what was found.
type checking struct{ right, wrong, unread, mismatched, matched int }

func (s *summer) kind() string {
	if s.any {
		return "CRC"
	}
	tag, _, _ := strings.Cut(s.d.tag, "-")
	return tag
}

func (s *summer) verify(c *checking, d *digest, sum, name string) {
	r, err := command.OpenReader(s.t, name)
	if err != nil {
		if s.ignoreMissing && reason(err) == "No such file or directory" {
			return
		}
		command.FailFile(s.t, name, err)
		c.unread++
		s.verdict(name, "FAILED open or read")
		return
	}
	defer r.Close()
	h := d.new()
	if !feed(h, r) {
		command.FailFile(s.t, name, r.Err())
		c.unread++
		s.verdict(name, "FAILED open or read")
		return
	}
	if strings.EqualFold(hex.EncodeToString(h.Sum(nil)), sum) {
		c.matched++
		if !s.quiet {
			s.verdict(name, "OK")
		}
		return
	}
	c.mismatched++
	s.verdict(name, "FAILED")
}

func (s *summer) verdict(name, word string) {
	if s.silent {
		return
	}
	if strings.IndexByte(name, '\n') >= 0 {
		s.w.Byte('\\')
		name = escapeName(name)
	}
	s.w.String(name + ": " + word + "\n")
}

func (s *summer) report(c *checking, list string) bool {
	if c.right == 0 {
		s.t.Errorf("%s: no properly formatted checksum lines found", command.QuoteFile(list))
		return false
	}
	tell := func(n int, one, many string) {
		if n == 1 {
			s.t.Errorf("WARNING: 1 "+one, []any{}...)
		} else if n > 1 {
			s.t.Errorf("WARNING: %d "+many, n)
		}
	}
	if !s.silent {
		tell(c.wrong, "line is improperly formatted", "lines are improperly formatted")
		tell(c.unread, "listed file could not be read", "listed files could not be read")
		tell(c.mismatched, "computed checksum did NOT match", "computed checksums did NOT match")
		if s.ignoreMissing && c.matched == 0 {
			s.t.Errorf("%s: no file was verified", command.QuoteFile(list))
		}
	}
	return c.mismatched == 0 && c.unread == 0 && (!s.strict || c.wrong == 0) && (!s.ignoreMissing || c.matched > 0)
}

// parse reads a line of checksums: "SUM  NAME", "SUM *NAME", "KIND (NAME) =
// SUM", or the reversed form of BSD, "SUM NAME".
func (s *summer) parse(line string) (d *digest, sum, name string, ok bool) {
	line = strings.TrimLeft(line, " \t")
	escaped := strings.HasPrefix(line, `\`)
	if escaped {
		line = line[1:]
	}
	d = s.d
	if d2, rest, tagged := s.tagged(line); tagged {
		if d2 == nil {
			return nil, "", "", false
		}
		open := strings.IndexByte(rest, '(')
		end := strings.LastIndexByte(rest, ')')
		if open < 0 || end < open {
			return nil, "", "", false
		}
		name = rest[open+1 : end]
		rest = strings.TrimLeft(rest[end+1:], " \t")
		if !strings.HasPrefix(rest, "=") {
			return nil, "", "", false
		}
		sum = strings.TrimLeft(rest[1:], " \t")
		if !isHex(sum) || len(sum) != d2.bits/4 {
			return nil, "", "", false
		}
		d = d2
	} else {
		if s.any || d.new == nil {
			return nil, "", "", false
		}
		n := 0
		for n < len(line) && isHexDigit(line[n]) {
			n++
		}
		if d.name == "blake2b" {
			if n == 0 || n%2 != 0 || n > 128 {
				return nil, "", "", false
			}
			d = blake(n * 4)
		}
		if n != d.bits/4 || n == len(line) || line[n] != ' ' && line[n] != '\t' {
			return nil, "", "", false
		}
		sum = line[:n]
		name = line[n+1:]
		if name == "" {
			return nil, "", "", false
		}
		if len(name) == 1 || name[0] != ' ' && name[0] != '*' {
			if s.form == standard {
				return nil, "", "", false
			}
			s.form = reversed
		} else if s.form != reversed {
			s.form = standard
			name = name[1:]
		}
	}
	if escaped {
		if name, ok = unescapeName(name); !ok {
			return nil, "", "", false
		}
	}
	return d, sum, name, name != ""
}

// tagged recognizes a line that begins with the name of a kind. The kind is
// nil if it is not the one that is checked.
func (s *summer) tagged(line string) (d *digest, rest string, ok bool) {
	for _, name := range []string{"md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sm3", "blake2b"} {
		k := digestOf(name)
		rest, ok := strings.CutPrefix(line, k.tag)
		if !ok {
			continue
		}
		if !s.any && s.d.name != name {
			return nil, "", true
		}
		if name == "blake2b" && strings.HasPrefix(rest, "-") {
			digits := rest[1:]
			n := 0
			for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
				n++
			}
			bits, err := strconv.Atoi(digits[:n])
			if err != nil || bits == 0 || bits%8 != 0 || bits > 512 {
				return nil, "", true
			}
			k, rest = blake(bits), digits[n:]
		}
		trimmed := strings.TrimPrefix(rest, " ")
		if !strings.HasPrefix(trimmed, "(") {
			continue
		}
		return k, trimmed, true
	}
	return nil, "", false
}

func unescapeName(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", false
		}
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case '\\':
			b.WriteByte('\\')
		default:
			return "", false
		}
	}
	return b.String(), true
}

func isHexDigit(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isHex(s string) bool {
	for i := range len(s) {
		if !isHexDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
