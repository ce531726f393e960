package xan

import (
	"crypto/md5" //nolint:gosec // a function of the real xan, not for security
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// The functions of expressions that take texts.

// textFunction gives the functions that take texts.
func textFunction(name string) (low, high int, f function) {
	texts := func(low, high int, f func(j *job, s []string, a []value) (value, error)) (int, int, function) {
		return low, high, func(j *job, a []value) (value, error) {
			s := make([]string, len(a))
			for i, v := range a {
				var err error
				if s[i], err = toText(v); err != nil {
					return nil, err
				}
				j.t.Step(len(s[i]) >> 5)
			}
			return f(j, s, a)
		}
	}
	switch name {
	case "++":
		return texts(2, 2, func(j *job, s []string, _ []value) (value, error) { return j.bounded(s[0] + s[1]), nil })
	case "lower":
		return texts(1, 1, func(_ *job, s []string, _ []value) (value, error) { return strings.ToLower(s[0]), nil })
	case "upper":
		return texts(1, 1, func(_ *job, s []string, _ []value) (value, error) { return strings.ToUpper(s[0]), nil })
	case "startswith":
		return texts(2, 2, func(_ *job, s []string, _ []value) (value, error) { return strings.HasPrefix(s[0], s[1]), nil })
	case "endswith":
		return texts(2, 2, func(_ *job, s []string, _ []value) (value, error) { return strings.HasSuffix(s[0], s[1]), nil })
	case "trim", "ltrim", "rtrim":
		return texts(1, 2, func(_ *job, s []string, _ []value) (value, error) { return trimmed(name, s), nil })
	case "pad", "lpad", "rpad":
		return texts(2, 3, func(j *job, s []string, a []value) (value, error) { return padded(j, name, s, a[1]) })
	case "replace":
		return texts(3, 3, replaced)
	case "count":
		return texts(2, 2, func(j *job, s []string, a []value) (value, error) {
			if re, ok := a[1].(*regexp.Regexp); ok {
				j.match(s[0], re)
				return int64(len(j.found(s[0], re))), nil
			}
			return int64(strings.Count(s[0], s[1])), nil
		})
	case "match":
		return texts(2, 3, func(j *job, s []string, a []value) (value, error) {
			re, ok := a[1].(*regexp.Regexp)
			if !ok {
				return nil, castError(a[1], "regex")
			}
			group := 0
			if len(a) > 2 {
				var err error
				if group, err = toCount(a[2]); err != nil {
					return nil, err
				}
			}
			j.match(s[0], re)
			if at := re.FindStringSubmatchIndex(s[0]); 2*group < len(at) && at[2*group] >= 0 {
				return s[0][at[2*group]:at[2*group+1]], nil
			}
			return nil, nil
		})
	case "split":
		return texts(2, 3, divided)
	case "join":
		return 2, 2, joined
	case "concat":
		return 2, many, concatenated
	case "repeat":
		return 2, 2, repeated
	case "fmt":
		return 2, many, formatted
	case "to_fixed":
		return 2, 2, func(_ *job, a []value) (value, error) {
			f, err := toFloat(a[0])
			if err != nil {
				return nil, err
			}
			n, err := toCount(a[1])
			return strconv.FormatFloat(f, 'f', min(n, 1000), 64), err
		}
	case "bytesize":
		return 1, 1, func(_ *job, a []value) (value, error) {
			n, err := toCount(a[0])
			return byteSize(n), err
		}
	case "escape_regex":
		return texts(1, 1, func(_ *job, s []string, _ []value) (value, error) { return escapedRegex(s[0]), nil })
	case "regex":
		return texts(1, 1, func(_ *job, s []string, _ []value) (value, error) {
			re, err := compilePattern(s[0])
			return re, err
		})
	case "md5":
		return texts(1, 1, func(_ *job, s []string, _ []value) (value, error) {
			sum := md5.Sum([]byte(s[0])) //nolint:gosec // as above
			return hex.EncodeToString(sum[:]), nil
		})
	case "basename":
		return texts(1, 2, func(_ *job, s []string, _ []value) (value, error) {
			base := path.Base(s[0])
			if len(s) > 1 {
				base = strings.TrimSuffix(base, s[1])
			}
			return base, nil
		})
	case "dirname":
		return texts(1, 1, func(_ *job, s []string, _ []value) (value, error) {
			if !strings.Contains(s[0], "/") {
				return "", nil
			}
			return path.Dir(s[0]), nil
		})
	case "ext":
		return texts(1, 1, func(_ *job, s []string, _ []value) (value, error) {
			if e := path.Ext(s[0]); e != "" && e != path.Base(s[0]) {
				return e[1:], nil
			}
			return nil, nil
		})
	case "pathjoin", "pjoin":
		return texts(2, many, func(j *job, s []string, _ []value) (value, error) {
			out := ""
			for _, part := range s {
				if out == "" || strings.HasPrefix(part, "/") {
					out = part
				} else {
					out = strings.TrimSuffix(out, "/") + "/" + part
				}
			}
			return j.bounded(out), nil
		})
	case "strftime":
		return 2, 2, func(_ *job, a []value) (value, error) {
			m, err := toMoment(a[0])
			if err != nil {
				return nil, err
			}
			s, err := toText(a[1])
			if err != nil {
				return nil, err
			}
			return strftime(m, s)
		}
	}
	return 0, -1, nil
}

func trimmed(name string, s []string) string {
	out := s[0]
	if len(s) == 1 {
		switch name {
		case "ltrim":
			return strings.TrimLeft(out, " \t\r\n\v\f\u0085\u00a0")
		case "rtrim":
			return strings.TrimRight(out, " \t\r\n\v\f\u0085\u00a0")
		}
		return strings.TrimSpace(out)
	}
	if name != "rtrim" {
		out = strings.TrimLeft(out, s[1])
	}
	if name != "ltrim" {
		out = strings.TrimRight(out, s[1])
	}
	return out
}

func padded(j *job, name string, s []string, width value) (value, error) {
	n, err := toCount(width)
	if err != nil {
		return nil, err
	}
	fill := " "
	if len(s) > 2 {
		if fill = s[2]; utf8.RuneCountInString(fill) != 1 {
			return nil, errors.New("the padding is one character")
		}
	}
	if n -= utf8.RuneCountInString(s[0]); n <= 0 {
		return s[0], nil
	}
	j.t.Bound("string", int64(n*len(fill)), j.t.K.Limits.String)
	j.charge(n * len(fill))
	left := map[string]int{"lpad": n, "pad": n / 2}[name]
	return j.bounded(strings.Repeat(fill, left) + s[0] + strings.Repeat(fill, n-left)), nil
}

// found gives all matches of an expression. How many there are is known only afterwards, so it looks for more and more.
func (j *job) found(s string, re *regexp.Regexp) [][]int {
	one := 2 * (24 + 16*(1+re.NumSubexp())) // of a list that grows
	for n := 4096; ; n *= 4 {
		j.charge(one * min(n, len(s)+1))
		if list := re.FindAllStringSubmatchIndex(s, n); len(list) < n {
			return list
		}
		j.t.Step(len(s))
	}
}

func replaced(j *job, s []string, a []value) (value, error) {
	re, ok := a[1].(*regexp.Regexp)
	if !ok {
		return kernel.ReplaceAll(j.t, s[0], s[1], s[2]), nil
	}
	j.match(s[0], re)
	return j.expanded(s[0], re, s[2]), nil
}

// expanded replaces all matches of an expression.
func (j *job) expanded(s string, re *regexp.Regexp, with string) string {
	out := kernel.NewText(j.t)
	defer out.Free()
	at := 0
	for _, f := range j.found(s, re) {
		out.WriteString(s[at:f[0]])
		n := len(with) + strings.Count(with, "$")*(f[1]-f[0]) // no group is longer than the match
		j.t.Bound("string", int64(out.Len()+n), j.t.K.Limits.String)
		j.t.Grow(n)
		_, _ = out.Write(re.ExpandString(nil, with, s, f)) // it does not fail
		j.t.Shrink(n)
		at = f[1]
	}
	out.WriteString(s[at:])
	return j.bounded(out.Text())
}

func divided(j *job, s []string, a []value) (value, error) {
	j.t.Bound("array", int64(len(s[0])), j.t.K.Limits.Array*64)
	n := -1
	if len(a) > 2 {
		c, err := toCount(a[2])
		if err != nil {
			return nil, err
		}
		n = c + 1
	}
	const one = 80 // what a part takes until it is a value
	var parts []string
	if re, ok := a[1].(*regexp.Regexp); ok {
		j.match(s[0], re)
		j.charge(one * (len(j.found(s[0], re)) + 1))
		parts = re.Split(s[0], n)
	} else if j.charge(one * (strings.Count(s[0], s[1]) + 3)); s[1] == "" && n < 0 { // Rust has an empty part at both ends
		parts = append(append([]string{""}, strings.Split(s[0], "")...), "")
	} else {
		parts = strings.SplitN(s[0], s[1], n)
	}
	j.t.Step(len(parts))
	out := make([]value, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out, nil
}

func joined(j *job, a []value) (value, error) {
	list, ok := a[0].([]value)
	if !ok {
		return nil, castError(a[0], "list")
	}
	with, err := toText(a[1])
	if err != nil {
		return nil, err
	}
	j.charge(16 * len(list))
	parts := make([]string, len(list))
	total := 0
	for i, x := range list {
		if parts[i], err = toText(x); err != nil {
			return nil, err
		}
		total += len(parts[i]) + len(with)
	}
	j.t.Bound("string", int64(total), j.t.K.Limits.String)
	j.charge(total)
	return strings.Join(parts, with), nil
}

func repeated(j *job, a []value) (value, error) {
	n, err := toCount(a[1])
	if err != nil {
		return nil, err
	}
	if list, ok := a[0].([]value); ok {
		j.t.Bound("array", int64(n)*int64(len(list)), j.t.K.Limits.Array)
		j.charge(16 * n * len(list))
		return slices.Repeat(list, n), nil
	}
	s, err := toText(a[0])
	if err != nil || s == "" {
		return s, err
	}
	j.t.Bound("string", int64(n)*int64(len(s)), j.t.K.Limits.String)
	j.charge(n * len(s))
	return j.bounded(strings.Repeat(s, n)), nil
}

// formatted puts values in the place of {}, or of {key} with a map.
func formatted(j *job, a []value) (value, error) {
	s, err := toText(a[0])
	if err != nil {
		return nil, err
	}
	args := a[1:]
	o, keyed := args[0].(object)
	if keyed = keyed && len(args) == 1; keyed {
		args = nil
	}
	var out strings.Builder
	for s != "" {
		j.t.Bound("string", int64(out.Len()), j.t.K.Limits.String)
		i := strings.IndexByte(s, '{')
		if i < 0 {
			break
		}
		end := i + 1
		for end < len(s) && (s[end] == '_' || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
			end++
		}
		if end == len(s) || s[end] != '}' {
			out.WriteString(s[:i+1])
			s = s[i+1:]
			continue
		}
		out.WriteString(s[:i])
		v, ok := value(nil), false
		if key := s[i+1 : end]; key != "" && keyed {
			v, ok = o.get(key)
		} else if key == "" && len(args) > 0 {
			v, ok = args[0], true
			args = args[1:]
		}
		text := s[i : end+1]
		if ok {
			if text, err = toText(v); err != nil {
				return nil, err
			}
		}
		out.WriteString(text)
		s = s[end+1:]
	}
	return j.bounded(out.String() + s), nil
}

// byteSize writes a number of bytes for people.
func byteSize(n int) string {
	if n < 1000 {
		return strconv.Itoa(n) + " B"
	}
	f := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB", "PB", "EB"} {
		if f /= 1000; f < 999.95 {
			return strconv.FormatFloat(f, 'f', 1, 64) + " " + unit
		}
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " EB"
}

// escapedRegex escapes the characters that Rust's regular expressions know.
func escapedRegex(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^$#&-~`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// strftime writes a date; one without a time has no hours.
func strftime(m moment, s string) (value, error) {
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'B': "January", 'b': "Jan", 'A': "Monday", 'a': "Mon", 'F': "2006-01-02", 'T': "15:04:05", 'e': "_2", 'j': "002", 'I': "03", 'p': "PM", 'D': "01/02/06", 'R': "15:04"}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		layout, ok := layouts[s[i]]
		switch {
		case ok && m.day && strings.IndexByte("HMSTIpR", s[i]) >= 0:
			return nil, fmt.Errorf("a date has no %%%c", s[i])
		case ok:
			b.WriteString(m.t.Format(layout))
		case s[i] == '%':
			b.WriteByte('%')
		default:
			return nil, fmt.Errorf("%%%c is not known", s[i])
		}
	}
	return b.String(), nil
}

// slug makes a name that is a word: blanks and dashes become underscores,
// accents and all else go.
func slug(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '-' || r == ' ' || r == '\t' || r == '\n':
			b.WriteByte('_')
		case r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteString(plain(r))
		}
	}
	return b.String()
}

// plain gives a Latin letter without its accent.
func plain(r rune) string {
	const from = "àáâãäåçèéêëìíîïñòóôõöøùúûüýÿÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝ"
	const to = "aaaaaaceeeeiiiinoooooouuuuyyAAAAAACEEEEIIIINOOOOOOUUUUY"
	if i := slices.Index([]rune(from), r); i >= 0 {
		return to[i : i+1]
	}
	return map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", 'Æ': "AE", 'Œ': "OE"}[r]
}

func concatenated(j *job, a []value) (value, error) {
	if list, ok := a[0].([]value); ok {
		return append(slices.Clone(list), a[1:]...), nil
	}
	out := ""
	for _, x := range a {
		s, err := toText(x)
		if err != nil {
			return nil, err
		}
		out = j.bounded(out + s)
	}
	return out, nil
}
