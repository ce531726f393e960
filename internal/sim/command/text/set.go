package text

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// The kinds of what stands in a string of tr.
const (
	plainByte = iota
	byteRange
	class
	equivalent
	repeat
)

type element struct {
	kind  int
	a, b  byte   // ends of a range; the byte of a repeat
	name  string // of a class
	count uint64 // of a repeat; 0 is as many as it takes
}

// A set is a string of tr.
type set struct{ list []element }

// A char is a byte of a string, and whether a backslash stood before it.
type char struct {
	c       byte
	escaped bool
}

func decode(t *kernel.Task, s string) []char {
	var list []char
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			list = append(list, char{s[i], false})
			continue
		}
		if i+1 == len(s) {
			t.Errorf("warning: an unescaped backslash at end of string is not portable")
			list = append(list, char{'\\', false})
			break
		}
		i++
		c := s[i]
		switch c {
		case 'a':
			c = '\a'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'v':
			c = '\v'
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := 0
			start := i
			for i < len(s) && i < start+3 && s[i] >= '0' && s[i] <= '7' {
				if next := n*8 + int(s[i]-'0'); next > 255 {
					t.Errorf("warning: the ambiguous octal escape \\%s is being\n\tinterpreted as the 2-byte sequence \\0%s, %c", s[start:i+1], s[start:i], s[i])
					break
				}
				n = n*8 + int(s[i]-'0')
				i++
			}
			i--
			c = byte(n)
		}
		list = append(list, char{c, true})
	}
	return list
}

func parseSet(t *kernel.Task, s string) (*set, error) {
	in := decode(t, s)
	x := &set{}
	is := func(i int, c byte) bool { return i < len(in) && in[i].c == c && !in[i].escaped }
	for i := 0; i < len(in); {
		t.Step(1)
		if is(i, '[') {
			used, err := x.construct(in[i:])
			if err != nil {
				return nil, err
			}
			if used > 0 {
				i += used
				continue
			}
		}
		if is(i+1, '-') && i+2 < len(in) {
			if in[i].c > in[i+2].c {
				return nil, fmt.Errorf("range-endpoints of %s are in reverse collating sequence order", "'"+bare(in[i].c)+"-"+bare(in[i+2].c)+"'")
			}
			x.list = append(x.list, element{kind: byteRange, a: in[i].c, b: in[i+2].c})
			i += 3
			continue
		}
		x.list = append(x.list, element{kind: plainByte, a: in[i].c})
		i++
	}
	return x, nil
}

// bare shows a byte as complaints of tr do.
func bare(c byte) string {
	if c >= ' ' && c < 127 {
		return string(rune(c))
	}
	return fmt.Sprintf(`\%03o`, c)
}

// construct reads [:class:], [=c=] or [c*n]; 0 is that it is none.
func (x *set) construct(in []char) (int, error) {
	if len(in) < 3 {
		return 0, nil
	}
	if kind := in[1]; !kind.escaped && (kind.c == ':' || kind.c == '=') {
		for i := 2; i+1 < len(in); i++ {
			if in[i].c != kind.c || in[i].escaped || in[i+1].c != ']' || in[i+1].escaped {
				continue
			}
			name := raw(in[2:i])
			// [=*] and the like can be a repeat all the same.
			if name == "" || kind.c == '=' && len(name) > 1 || kind.c == ':' && !known(name) {
				if n, err := x.repeated(in); n > 0 && err == nil {
					return n, nil
				}
			}
			switch {
			case name == "" && kind.c == ':':
				return 0, errors.New("missing character class name '[::]'")
			case name == "":
				return 0, errors.New("missing equivalence class character '[==]'")
			case kind.c == ':' && !known(name):
				return 0, fmt.Errorf("invalid character class %s", command.Quote(name))
			case kind.c == ':':
				x.list = append(x.list, element{kind: class, name: name})
			case len(name) > 1:
				return 0, fmt.Errorf("%s: equivalence class operand must be a single character", name)
			default:
				x.list = append(x.list, element{kind: equivalent, a: name[0]})
			}
			return i + 2, nil
		}
	}
	return x.repeated(in)
}

func raw(in []char) string {
	var b strings.Builder
	for _, c := range in {
		b.WriteByte(c.c)
	}
	return b.String()
}

// repeated reads [c*n].
func (x *set) repeated(in []char) (int, error) {
	if len(in) < 4 || in[2].c != '*' || in[2].escaped {
		return 0, nil
	}
	end := -1
	for i := 3; i < len(in); i++ {
		if in[i].escaped {
			return 0, nil
		}
		if in[i].c == ']' {
			end = i
			break
		}
	}
	if end < 0 {
		return 0, nil
	}
	digits := raw(in[3:end])
	base := uint64(10)
	if strings.HasPrefix(digits, "0") {
		base = 8
	}
	n := uint64(0)
	for _, c := range []byte(digits) {
		if c < '0' || uint64(c-'0') >= base || n > math.MaxInt64/16 {
			return 0, fmt.Errorf("invalid repeat count %s in [c*n] construct", command.Quote(digits))
		}
		n = n*base + uint64(c-'0')
	}
	x.list = append(x.list, element{kind: repeat, a: in[1].c, count: n})
	return end + 1, nil
}

func known(name string) bool {
	switch name {
	case "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit":
		return true
	}
	return false
}

func inClass(name string, c byte) bool {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	switch name {
	case "alnum":
		return lower || upper || digit
	case "alpha":
		return lower || upper
	case "blank":
		return c == ' ' || c == '\t'
	case "cntrl":
		return c < ' ' || c == 127
	case "digit":
		return digit
	case "graph":
		return c > ' ' && c < 127
	case "lower":
		return lower
	case "print":
		return c >= ' ' && c < 127
	case "punct":
		return c > ' ' && c < 127 && !lower && !upper && !digit
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r'
	case "upper":
		return upper
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return false
}

// expand appends what an element stands for.
func (e *element) expand(b []byte) []byte {
	switch e.kind {
	case plainByte, equivalent:
		return append(b, e.a)
	case byteRange:
		for c := int(e.a); c <= int(e.b); c++ {
			b = append(b, byte(c))
		}
	case class:
		for c := range 256 {
			if inClass(e.name, byte(c)) {
				b = append(b, byte(c))
			}
		}
	case repeat:
		// More than there are bytes can never count.
		for range min(e.count, 256) {
			b = append(b, e.a)
		}
	}
	return b
}

func (x *set) bytes() []byte {
	var b []byte
	for i := range x.list {
		if len(b) > 1<<16 {
			break
		}
		b = x.list[i].expand(b)
	}
	return b
}

func (x *set) classes() bool {
	for _, e := range x.list {
		if e.kind == class {
			return true
		}
	}
	return false
}

// fill gives the one [c*] its count, so that the whole has n bytes.
func (x *set) fill(n int) error {
	open := -1
	for i, e := range x.list {
		if e.kind == repeat && e.count == 0 {
			if open >= 0 {
				return errors.New("only one [c*] repeat construct may appear in string2")
			}
			open = i
		}
	}
	if open < 0 {
		return nil
	}
	if have := len(x.bytes()); have < n {
		x.list[open].count = uint64(n - have)
	} else {
		x.list = append(x.list[:open:open], x.list[open+1:]...)
	}
	return nil
}

// forTranslation looks whether x can be the second string, and fills it up.
func (x *set) forTranslation(one *set, complement, truncate bool, n int) error {
	if err := x.fill(n); err != nil {
		return err
	}
	if complement && !truncate && len(x.bytes()) < n {
		if err := x.extensible(); err != nil {
			return err
		}
	}
	for _, e := range x.list {
		if e.kind == equivalent {
			return errors.New("[=c=] expressions may not appear in string2 when translating")
		}
		if e.kind == class && e.name != "upper" && e.name != "lower" {
			return errors.New("when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'")
		}
	}
	if x.classes() {
		if err := x.aligned(one, complement); err != nil {
			return err
		}
	}
	if len(x.bytes()) == 0 && !truncate && n > 0 {
		return errors.New("when not truncating set1, string2 must be non-empty")
	}
	return nil
}

// aligned sees that each case class stands opposite to one.
func (x *set) aligned(one *set, complement bool) error {
	misaligned := errors.New("misaligned [:upper:] and/or [:lower:] construct")
	if complement {
		return misaligned
	}
	starts := map[int]bool{}
	at := 0
	for i := range one.list {
		e := &one.list[i]
		if e.kind == class && (e.name == "upper" || e.name == "lower") {
			starts[at] = true
		}
		at += len(e.expand(nil))
	}
	at = 0
	for i := range x.list {
		e := &x.list[i]
		if e.kind == class && !starts[at] {
			return misaligned
		}
		at += len(e.expand(nil))
	}
	return nil
}

// extensible sees that the last byte can be repeated.
func (x *set) extensible() error {
	if n := len(x.list); n > 0 && x.list[n-1].kind == class {
		return errors.New("when translating with string1 longer than string2,\nthe latter string must not end with a character class")
	}
	return nil
}
