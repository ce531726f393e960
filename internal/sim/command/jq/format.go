package jq

import (
	"encoding/base32"
	"encoding/base64"
	"math"
	"strings"
	"unicode/utf8"
)

// format is @name.
func (m *machine) format(name string, v value) (value, error) {
	switch name {
	case "text":
		return m.toString(v), nil
	case "json":
		return m.text(v), nil
	case "csv", "tsv":
		return m.row(name, v)
	case "html":
		s := m.toString(v)
		m.about(len(s) + 5*(strings.Count(s, "<")+strings.Count(s, ">")+strings.Count(s, "&")+strings.Count(s, "'")+strings.Count(s, `"`)))
		return m.made2(html(s)), nil
	case "uri":
		return m.uri(m.toString(v)), nil
	case "urid":
		return m.unURI(v)
	case "sh":
		return m.shell(v)
	case "base64":
		return m.made2(base64.StdEncoding.EncodeToString([]byte(m.toString(v)))), nil
	case "base64d":
		return m.decode64(v)
	case "base32":
		return m.made2(base32.StdEncoding.EncodeToString([]byte(m.toString(v)))), nil
	case "base32d":
		s := strings.TrimRight(m.toString(v), "=")
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(s)
		if err != nil {
			return nil, m.wrongType(v, "is not valid base32 data")
		}
		return m.made2(clean(b)), nil
	}
	return nil, failf("%s is not a valid format", name)
}

// about bounds and counts a text of n bytes that is about to be made.
func (m *machine) about(n int) {
	m.t.Bound("string", int64(n), m.t.K.Limits.String)
	m.alloc(n)
}

// taken makes a string of bytes.
func (m *machine) taken(b []byte) string {
	m.t.Step(len(b) >> 4)
	m.about(16 + len(b))
	return string(b)
}

// made2 counts a string that was made.
func (m *machine) made2(s string) string {
	m.t.Bound("string", int64(len(s)), m.t.K.Limits.String)
	m.t.Step(len(s) >> 4)
	m.alloc(16 + len(s))
	return s
}

func html(s string) string {
	if !strings.ContainsAny(s, `<>&'"`) {
		return s
	}
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", "'", "&apos;", `"`, "&quot;").Replace(s)
}

func (m *machine) uri(s string) string {
	const digits = "0123456789ABCDEF"
	b := m.room(nil, len(s))
	for i := range len(s) {
		c := s[i]
		b = m.room(b, 3)
		if isLetter(c) || isDigit(c) || c == '-' || c == '.' || c == '~' {
			b = append(b, c)
		} else {
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return m.taken(b)
}

func (m *machine) unURI(v value) (value, error) {
	s := m.toString(v)
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
			return nil, m.wrongType(v, "is not a valid uri encoding")
		}
		b = append(b, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
		i += 2
	}
	if !utf8.Valid(b) {
		return nil, m.wrongType(v, "is not a valid uri encoding")
	}
	return m.made2(string(b)), nil
}

func unhex(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// decode64 decodes what there is, and is an error where that is nothing.
func (m *machine) decode64(v value) (value, error) {
	s := m.toString(v)
	var b []byte
	bits, n := 0, 0
	whole := 0
	for i := range len(s) {
		c := s[i]
		d := -1
		switch {
		case c >= 'A' && c <= 'Z':
			d = int(c - 'A')
		case c >= 'a' && c <= 'z':
			d = int(c-'a') + 26
		case isDigit(c):
			d = int(c-'0') + 52
		case c == '+':
			d = 62
		case c == '/':
			d = 63
		}
		if c == '=' {
			break
		}
		if d < 0 {
			return nil, m.wrongType(v, "is not valid base64 data")
		}
		whole++
		bits = bits<<6 | d
		if n += 6; n >= 8 {
			n -= 8
			b = append(b, byte(bits>>n))
			bits &= 1<<n - 1
		}
	}
	if whole%4 == 1 {
		return nil, m.wrongType(v, "trailing base64 byte found")
	}
	if len(b) == 0 && strings.Trim(s, "=") != "" {
		return nil, m.wrongType(v, "is not valid base64 data")
	}
	return m.made2(clean(b)), nil
}

func (m *machine) shell(v value) (value, error) {
	list := []value{v}
	if a, ok := v.(*array); ok {
		list = a.own()
	}
	var b []byte
	for i, x := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		switch kind(x) {
		case 4:
			s, _ := x.(string)
			b = append(m.room(b, len(s)+3*strings.Count(s, "'")+2), '\'')
			for s != "" {
				i := strings.IndexByte(s, '\'')
				if i < 0 {
					b = append(b, s...)
					break
				}
				b = append(append(b, s[:i]...), `'\''`...)
				s = s[i+1:]
			}
			b = append(b, '\'')
		case 5, 6:
			return nil, m.wrongType(x, "can not be escaped for shell")
		default:
			b = m.encode(b, x, &style{}, 0)
		}
	}
	return m.taken(b), nil
}

func (m *machine) row(name string, v value) (value, error) {
	a, ok := v.(*array)
	if !ok {
		return nil, m.wrongType(v, "cannot be "+name+"-formatted, only an array can be")
	}
	var b []byte
	for i, x := range a.own() {
		m.t.Step(1)
		b = m.room(b, punctuation)
		if i > 0 {
			if name == "csv" {
				b = append(b, ',')
			} else {
				b = append(b, '\t')
			}
		}
		switch y := x.(type) {
		case nil:
		case bool:
			b = m.encode(b, y, &style{}, 0)
		case float64:
			if !math.IsNaN(y) {
				b = appendFloat(b, y)
			}
		case *literal:
			b = append(m.room(b, len(y.text)), y.text...)
		case string:
			b = m.room(b, 2*len(y)+2) // each byte may become two
			if name == "csv" {
				b = append(b, '"')
				for y != "" {
					i := strings.IndexByte(y, '"')
					if i < 0 {
						b = append(b, y...)
						break
					}
					b = append(append(b, y[:i+1]...), '"')
					y = y[i+1:]
				}
				b = append(b, '"')
				break
			}
			for k := range len(y) {
				switch y[k] {
				case '\t':
					b = append(b, `\t`...)
				case '\n':
					b = append(b, `\n`...)
				case '\r':
					b = append(b, `\r`...)
				case '\\':
					b = append(b, `\\`...)
				default:
					b = append(b, y[k])
				}
			}
		default:
			return nil, m.wrongType(x, "is not valid in a csv row")
		}
	}
	return m.made2(string(b)), nil
}
