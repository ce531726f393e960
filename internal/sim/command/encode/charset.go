package encode

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// A charset is an encoding of characters: of 8 bits by a map, or of Unicode
// in units of 1 (UTF-8), 2 or 4 bytes.
type charset struct {
	table *charmap.Charmap
	plain bool // 0x80 to 0x9f are control characters
	ascii bool
	unit  int
	big   bool
	mark  bool // begins with a byte order mark
	pairs bool // UTF-16, not UCS-2
}

func charsetOf(name string) *charset {
	key := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c == '-' || c == '_' || c == ' ' || c == ':' || c == '.':
			return -1
		}
		return c
	}, name)
	switch key {
	case "UTF8", "ISO106461/UTF8":
		return &charset{unit: 1}
	case "UTF16", "UNICODE":
		return &charset{unit: 2, mark: true, pairs: true}
	case "UTF16LE", "UNICODELITTLE":
		return &charset{unit: 2, pairs: true}
	case "UTF16BE", "UNICODEBIG":
		return &charset{unit: 2, big: true, pairs: true}
	case "UCS2", "ISO10646UCS2", "UCS2LE":
		return &charset{unit: 2}
	case "UCS2BE":
		return &charset{unit: 2, big: true}
	case "UTF32":
		return &charset{unit: 4, mark: true}
	case "UTF32LE", "UCS4LE", "WCHART", "INTERNAL":
		return &charset{unit: 4}
	case "UTF32BE", "UCS4", "UCS4BE", "ISO10646", "10646", "10646/UCS4", "ISO10646/UCS4":
		return &charset{unit: 4, big: true}
	case "ASCII", "USASCII", "ANSIX341968", "ISO646US", "US", "646", "CP367", "IBM367", "":
		return &charset{ascii: true}
	}
	if t, name := tableOf(key); t != nil {
		return &charset{table: t, plain: strings.HasPrefix(name, "ISO")}
	}
	return nil
}

// tables lists the maps of 8 bits by the names that are shown.
func tables() map[string]*charmap.Charmap {
	return map[string]*charmap.Charmap{
		"ISO-8859-1": charmap.ISO8859_1, "ISO-8859-2": charmap.ISO8859_2, "ISO-8859-3": charmap.ISO8859_3, "ISO-8859-4": charmap.ISO8859_4,
		"ISO-8859-5": charmap.ISO8859_5, "ISO-8859-6": charmap.ISO8859_6, "ISO-8859-7": charmap.ISO8859_7, "ISO-8859-8": charmap.ISO8859_8,
		"ISO-8859-9": charmap.ISO8859_9, "ISO-8859-10": charmap.ISO8859_10, "ISO-8859-13": charmap.ISO8859_13, "ISO-8859-14": charmap.ISO8859_14,
		"ISO-8859-15": charmap.ISO8859_15, "ISO-8859-16": charmap.ISO8859_16,
		"CP1250": charmap.Windows1250, "CP1251": charmap.Windows1251, "CP1252": charmap.Windows1252, "CP1253": charmap.Windows1253,
		"CP1254": charmap.Windows1254, "CP1255": charmap.Windows1255, "CP1256": charmap.Windows1256, "CP1257": charmap.Windows1257,
		"CP1258": charmap.Windows1258, "CP874": charmap.Windows874, "KOI8-R": charmap.KOI8R, "KOI8-U": charmap.KOI8U,
		"CP437": charmap.CodePage437, "CP850": charmap.CodePage850, "CP852": charmap.CodePage852, "CP855": charmap.CodePage855,
		"CP858": charmap.CodePage858, "CP860": charmap.CodePage860, "CP862": charmap.CodePage862, "CP863": charmap.CodePage863,
		"CP865": charmap.CodePage865, "CP866": charmap.CodePage866, "CP037": charmap.CodePage037, "CP1047": charmap.CodePage1047,
		"CP1140": charmap.CodePage1140, "MACINTOSH": charmap.Macintosh,
	}
}

func charsetNames() []string {
	names := []string{"ANSI_X3.4-1968", "ASCII", "UCS-2", "UCS-2BE", "UCS-2LE", "UCS-4", "UCS-4BE", "UCS-4LE", "US-ASCII", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32", "UTF-32BE", "UTF-32LE", "UTF-8"}
	for name := range tables() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func tableOf(key string) (t *charmap.Charmap, name string) {
	name = key
	if n, ok := strings.CutPrefix(key, "LATIN"); ok {
		parts := map[string]string{"1": "1", "2": "2", "3": "3", "4": "4", "5": "9", "6": "10", "7": "13", "8": "14", "9": "15", "10": "16"}
		name = "ISO8859" + parts[n]
	}
	switch key {
	case "L1", "L2", "L3", "L4":
		name = "ISO8859" + key[1:]
	case "CP819", "IBM819":
		name = "ISO88591"
	case "MAC":
		name = "MACINTOSH"
	}
	for _, prefix := range []string{"WINDOWS", "IBM", "MSCP", "MS"} {
		if n, ok := strings.CutPrefix(name, prefix); ok && n != "" && n[0] >= '0' && n[0] <= '9' {
			name = "CP" + n
			break
		}
	}
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "CP" + name
	}
	for shown, t := range tables() {
		if strings.ReplaceAll(shown, "-", "") == name {
			return t, shown
		}
	}
	return nil, ""
}

func (s *charset) word(b []byte, big bool) uint32 {
	var order binary.ByteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	if s.unit == 2 {
		return uint32(order.Uint16(b))
	}
	return order.Uint32(b)
}

// decode takes a character: n is 0 if it is not complete, the character
// negative if there is none.
func (s *charset) decode(b []byte, big bool) (ch rune, n int) {
	switch {
	case s.ascii:
		if b[0] >= 128 {
			return -1, 1
		}
		return rune(b[0]), 1
	case s.table != nil:
		if s.plain && b[0] >= 0x80 && b[0] < 0xa0 {
			return rune(b[0]), 1
		}
		ch = s.table.DecodeByte(b[0])
		if ch == utf8.RuneError {
			return -1, 1
		}
		return ch, 1
	case s.unit == 1:
		ch, n = utf8.DecodeRune(b)
		if ch != utf8.RuneError || n > 1 {
			return ch, n
		}
		if !utf8.FullRune(b) {
			return 0, 0
		}
		return -1, 1
	}
	if len(b) < s.unit {
		return 0, 0
	}
	ch = rune(s.word(b, big))
	if s.unit == 4 {
		if ch < 0 || ch > 0x10ffff || ch >= 0xd800 && ch < 0xe000 {
			return -1, 4
		}
		return ch, 4
	}
	switch {
	case ch < 0xd800 || ch >= 0xe000:
		return ch, 2
	case ch >= 0xdc00 || !s.pairs:
		return -1, 2
	case len(b) < 4:
		return 0, 0
	}
	low := rune(s.word(b[2:], big))
	if low < 0xdc00 || low >= 0xe000 {
		return -1, 2
	}
	return 0x10000 + (ch-0xd800)<<10 + low - 0xdc00, 4
}

// encode appends a character, or gives nil if the set does not have it.
func (s *charset) encode(dst []byte, ch rune) []byte {
	switch {
	case s.ascii:
		if ch >= 128 {
			return nil
		}
		return append(dst, byte(ch))
	case s.table != nil:
		if s.plain && ch >= 0x80 && ch < 0xa0 {
			return append(dst, byte(ch))
		}
		c, ok := s.table.EncodeRune(ch)
		if !ok {
			return nil
		}
		return append(dst, c)
	case s.unit == 1:
		return utf8.AppendRune(dst, ch)
	case s.unit == 4:
		if s.big {
			return binary.BigEndian.AppendUint32(dst, uint32(ch))
		}
		return binary.LittleEndian.AppendUint32(dst, uint32(ch))
	}
	put := func(u uint16) {
		if s.big {
			dst = binary.BigEndian.AppendUint16(dst, u)
		} else {
			dst = binary.LittleEndian.AppendUint16(dst, u)
		}
	}
	if ch >= 0x10000 {
		if !s.pairs {
			return nil
		}
		ch -= 0x10000
		put(uint16(0xd800 + ch>>10))
		put(uint16(0xdc00 + ch&0x3ff))
		return dst
	}
	put(uint16(ch))
	return dst
}

// likenesses gives what can stand for a character, best first.
func likenesses(ch rune) []string {
	var list []string
	if s := likeness(ch); s != "" {
		list = append(list, s)
	}
	bare := strings.Map(func(c rune) rune {
		if c >= 0x300 && c < 0x370 {
			return -1
		}
		return c
	}, norm.NFD.String(string(ch)))
	if bare != string(ch) && bare != "" {
		list = append(list, bare)
	}
	if wide := norm.NFKD.String(string(ch)); wide != string(ch) {
		list = append(list, wide)
	}
	return list
}

func likeness(ch rune) string {
	switch ch {
	case 0xa0, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2008, 0x2009, 0x200a, 0x202f, 0x205f, 0x3000:
		return " "
	case 0xa9:
		return "(C)"
	case 0xab:
		return "<<"
	case 0xad, 0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212:
		return "-"
	case 0xae:
		return "(R)"
	case 0xb5:
		return "u"
	case 0xb8, 0x201a:
		return ","
	case 0xbb:
		return ">>"
	case 0xbc:
		return " 1/4 "
	case 0xbd:
		return " 1/2 "
	case 0xbe:
		return " 3/4 "
	case 0xc6:
		return "AE"
	case 0xd7:
		return "x"
	case 0xdf:
		return "ss"
	case 0xe6:
		return "ae"
	case 0x152:
		return "OE"
	case 0x153:
		return "oe"
	case 0x17f:
		return "s"
	case 0x2018, 0x2019, 0x201b, 0x2032:
		return "'"
	case 0x201c, 0x201d, 0x201f, 0x2033:
		return "\""
	case 0x201e:
		return ",,"
	case 0x2020:
		return "+"
	case 0x2022:
		return "o"
	case 0x2024:
		return "."
	case 0x2025:
		return ".."
	case 0x2026:
		return "..."
	case 0x2039:
		return "<"
	case 0x203a:
		return ">"
	case 0x20ac:
		return "EUR"
	case 0x2122:
		return "TM"
	case 0x2190:
		return "<-"
	case 0x2192:
		return "->"
	case 0x2194:
		return "<->"
	case 0x21d0:
		return "<="
	case 0x21d2:
		return "=>"
	case 0x2215, 0x2044:
		return "/"
	case 0x200b, 0x200c, 0x200d, 0x2060, 0xfeff:
		return ""
	}
	return ""
}
