package protect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fold gives the form in which two names are equal if any file system that a
// workspace may lie on takes them for the same:
//
//   - letters of either case (every folding file system), with the ligatures
//     and the sharp s that Linux's casefold spells out;
//   - code points that HFS+ and Linux's casefold ignore left out;
//   - for NTFS, what follows a colon (a stream) left out, then trailing dots
//     and spaces.
//
// Short names of NTFS are compared by part.match. Bytes that are not UTF-8
// stand for themselves.
func fold(name string) string {
	if plain(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteByte(name[i])
		case ignored(r):
		case r == 'ß' || r == 'ẞ':
			b.WriteString("ss")
		case r >= 0xFB00 && r <= 0xFB06:
			b.WriteString([...]string{"ff", "fi", "fl", "ffi", "ffl", "st", "st"}[r-0xFB00])
		default:
			b.WriteRune(lower(r))
		}
		i += size
	}
	s := b.String()
	if i := strings.IndexByte(s, ':'); i >= 0 {
		s = s[:i]
	}
	return strings.TrimRight(s, ". ")
}

// plain tells whether fold would give name as it is.
func plain(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c >= utf8.RuneSelf || (c >= 'A' && c <= 'Z') || c == ':' {
			return false
		}
	}
	last := name[len(name)-1]
	return last != '.' && last != ' '
}

// lower gives one member of the letters that simple folding takes for the
// same: the small letter of ASCII if there is one, else the least.
func lower(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f < least {
			least = f
		}
	}
	if least >= 'A' && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}

// ignored tells whether a file system may leave r out of a comparison: the
// list of HFS+, and Unicode's default-ignorable code points (Linux's casefold).
func ignored(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5:
		return true
	case r >= 0x180B && r <= 0x180F, r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F:
		return true
	case r == 0x3164, r >= 0xFE00 && r <= 0xFE0F, r == 0xFEFF, r == 0xFFA0, r >= 0xFFF0 && r <= 0xFFF8:
		return true
	case r >= 0x1BCA0 && r <= 0x1BCA3, r >= 0x1D173 && r <= 0x1D17A, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return false
}

func newPart(text string) part {
	if text == "*" {
		return part{any: true}
	}
	p := part{text: fold(text)}
	// A short name is made for what does not fit eight characters, a dot and
	// three: leading dots go, the last dot begins the extension.
	base := strings.TrimLeft(p.text, ".")
	ext := ""
	if i := strings.LastIndexByte(base, '.'); i >= 0 {
		base, ext = base[:i], base[i:]
	}
	if p.text[0] != '.' && len(base) <= 8 && len(ext) <= 4 && !strings.Contains(base, ".") {
		return p
	}
	base = strings.ReplaceAll(base, ".", "")
	p.stem, p.suffix = base[:min(6, len(base))], ext[:min(4, len(ext))]
	return p
}

// match compares with a folded component, also as the short name that NTFS
// may have made for it: "git~1", "gitmod~1" or, after some collisions, two
// characters and four of a hash: "gi7eba~1".
func (p *part) match(comp string) bool {
	if p.any || p.text == comp {
		return true
	}
	tilde := strings.IndexByte(comp, '~')
	if tilde < 0 || p.stem == "" {
		return false
	}
	head, tail := comp[:tilde], comp[tilde+1:]
	digits := 0
	for digits < len(tail) && tail[digits] >= '0' && tail[digits] <= '9' {
		digits++
	}
	if digits == 0 || tail[digits:] != p.suffix {
		return false
	}
	if head == p.stem || (len(head) > 0 && len(head) < len(p.stem) && len(head)+1+digits >= 8 && strings.HasPrefix(p.stem, head)) {
		return true
	}
	return len(head) == 6 && head[:2] == p.stem[:min(2, len(p.stem))] && hex(head[2:])
}

func hex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
