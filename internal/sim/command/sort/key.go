package sort

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// A kind is how two keys are compared.
type kind uint8

const (
	byText kind = iota
	byNumber
	byFloat
	byHuman
	byMonth
	byVersion
	byHash
)

// An ignored set of bytes is what does not count in a comparison by text.
type ignored uint8

const (
	nothing    ignored = iota
	nonprint           // -i
	dictionary         // -d
)

// ordering is what the letters of an option say.
type ordering struct {
	kind    kind
	ignore  ignored
	fold    bool // -f
	reverse bool
	// leading blanks of the start and of the end do not count
	startBlanks, endBlanks bool

	kinds []byte // the letters that chose kind
}

func (o *ordering) isDefault() bool {
	return o.kind == byText && o.ignore == nothing && !o.fold && !o.startBlanks && !o.endBlanks
}

// letter takes in one of the letters; where it stands says which blanks -b
// means.
func (o *ordering) letter(c byte, start, end bool) bool {
	k := byText
	switch c {
	case 'b':
		o.startBlanks = o.startBlanks || start
		o.endBlanks = o.endBlanks || end
	case 'd':
		o.ignore = dictionary
	case 'f':
		o.fold = true
	case 'g':
		k = byFloat
	case 'h':
		k = byHuman
	case 'i':
		if o.ignore == nothing {
			o.ignore = nonprint
		}
	case 'M':
		k = byMonth
	case 'n':
		k = byNumber
	case 'R':
		k = byHash
	case 'r':
		o.reverse = true
	case 'V':
		k = byVersion
	default:
		return false
	}
	if k != byText {
		o.kind = k
		if bytes.IndexByte(o.kinds, c) < 0 {
			o.kinds = append(o.kinds, c)
		}
	}
	return true
}

// clash tells which letters cannot stand together.
func (o *ordering) clash() string {
	n := len(o.kinds)
	if bytes.IndexByte(o.kinds, 'V') >= 0 && bytes.IndexByte(o.kinds, 'R') >= 0 {
		n--
	}
	if o.ignore != nothing && bytes.IndexByte(o.kinds, 'V') < 0 && bytes.IndexByte(o.kinds, 'R') < 0 {
		n++
	}
	if n <= 1 {
		return ""
	}
	text := ""
	for _, c := range []byte("dfghiMnRV") {
		switch {
		case c == 'd' && o.ignore == dictionary, c == 'i' && o.ignore == nonprint, bytes.IndexByte(o.kinds, c) >= 0:
			text += string(rune(c))
		}
	}
	return "options '-" + text + "' are incompatible"
}

// A key is a part of a line, and how it is compared. Fields and bytes count
// from 0.
type key struct {
	ordering

	whole       bool // begins where the line does
	field, byte int
	open        bool // ends where the line does
	endField    int  // the field that it ends in, or 1 more if endByte is 0
	endByte     int
}

const never = math.MaxInt / 2

// parseKey reads what follows -k.
func parseKey(spec string) (*key, error) {
	bad := func(why string) error {
		return fmt.Errorf("%s: invalid field specification %s", why, command.Quote(spec))
	}
	k := &key{}
	s := spec
	n, ok := count(&s)
	if !ok {
		return nil, fmt.Errorf("%s: invalid count at start of %s", "invalid number at field start", command.Quote(s))
	}
	if n == 0 {
		return nil, bad("field number is zero")
	}
	k.field = n - 1
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		if n, ok = count(&s); !ok {
			return nil, fmt.Errorf("%s: invalid count at start of %s", "invalid number after '.'", command.Quote(s))
		}
		if n == 0 {
			return nil, bad("character offset is zero")
		}
		k.byte = n - 1
	}
	k.whole = k.field == 0 && k.byte == 0
	for s != "" && k.letter(s[0], true, false) {
		s = s[1:]
	}
	if !strings.HasPrefix(s, ",") {
		k.open = true
	} else {
		s = s[1:]
		if n, ok = count(&s); !ok {
			return nil, fmt.Errorf("%s: invalid count at start of %s", "invalid number after ','", command.Quote(s))
		}
		if n == 0 {
			return nil, bad("field number is zero")
		}
		k.endField = n - 1
		if strings.HasPrefix(s, ".") {
			s = s[1:]
			if k.endByte, ok = count(&s); !ok {
				return nil, fmt.Errorf("%s: invalid count at start of %s", "invalid number after '.'", command.Quote(s))
			}
		}
		for s != "" && k.letter(s[0], false, true) {
			s = s[1:]
		}
		if k.endByte == 0 {
			k.endField++
		}
	}
	if s != "" {
		return nil, bad("stray character in field spec")
	}
	return k, nil
}

// count reads a number; one that is too large is as large as can be.
func count(s *string) (int, bool) {
	*s = strings.TrimLeft(*s, " \t\n\v\f\r")
	n, err := command.ParseUint(*s, "")
	if err != nil && !errors.Is(err, command.ErrSuffix) && !errors.Is(err, command.ErrLarge) && !startsWithDigit(*s) {
		return 0, false
	}
	i := 0
	for i < len(*s) && ((*s)[i] >= '0' && (*s)[i] <= '9' || i == 0 && (*s)[i] == '+') {
		i++
	}
	*s = (*s)[i:]
	if n > never {
		n = never
	}
	return int(n), true
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// traditional reads +POS1 and -POS2 of old, which count from 0.
func traditional(plus, minus string) (*key, bool) {
	k := &key{open: true}
	position := func(s string, field, b *int) (string, bool) {
		var ok bool
		if *field, ok = count(&s); !ok {
			return s, false
		}
		if strings.HasPrefix(s, ".") {
			s = s[1:]
			*b, ok = count(&s)
		}
		return s, ok
	}
	rest, ok := position(plus, &k.field, &k.byte)
	if !ok {
		return nil, false
	}
	k.whole = k.field == 0 && k.byte == 0
	for rest != "" && k.letter(rest[0], true, false) {
		rest = rest[1:]
	}
	if rest != "" {
		return nil, false
	}
	if minus != "" {
		k.open = false
		rest, ok = position(minus, &k.endField, &k.endByte)
		if !ok {
			return nil, false
		}
		for rest != "" && k.letter(rest[0], false, true) {
			rest = rest[1:]
		}
	}
	return k, rest == ""
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// begin tells where the key begins in a line. tab is -1 if fields are
// separated by the empty string between a nonblank and a blank.
func (k *key) begin(line []byte, tab int) int {
	i, n := 0, len(line)
	for f := k.field; i < n && f > 0; f-- {
		if tab >= 0 {
			for i < n && line[i] != byte(tab) {
				i++
			}
			if i < n {
				i++
			}
			continue
		}
		for i < n && isBlank(line[i]) {
			i++
		}
		for i < n && !isBlank(line[i]) {
			i++
		}
	}
	if k.startBlanks {
		for i < n && isBlank(line[i]) {
			i++
		}
	}
	return min(n, i+k.byte)
}

// end tells where the key ends in a line.
func (k *key) end(line []byte, tab int) int {
	n := len(line)
	if k.open {
		return n
	}
	i := 0
	for f := k.endField; i < n && f > 0; f-- {
		if tab >= 0 {
			for i < n && line[i] != byte(tab) {
				i++
			}
			if i < n && (f > 1 || k.endByte > 0) {
				i++
			}
			continue
		}
		for i < n && isBlank(line[i]) {
			i++
		}
		for i < n && !isBlank(line[i]) {
			i++
		}
	}
	if k.endByte > 0 {
		if k.endBlanks {
			for i < n && isBlank(line[i]) {
				i++
			}
		}
		i = min(n, i+k.endByte)
	}
	return i
}

// of gives the key of a line.
func (k *key) of(line []byte, tab int) []byte {
	if k.whole && k.open && !k.startBlanks {
		return line
	}
	a, b := k.begin(line, tab), k.end(line, tab)
	return line[a:max(a, b)]
}
