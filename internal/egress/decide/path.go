package decide

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A pathPattern is one entry of a rule's Paths: text in which "*" stands for
// characters of one part, and "**" for any, and that is matched with the whole
// path: in an allow with regard to case, in a deny without, as some servers take
// one for the other. It is written decoded and clean.
//
// A path arrives encoded, and what a server makes of it is not known: whether
// it decodes "%2F" to a slash, decodes twice, takes a backslash for a slash,
// follows "..", joins slashes, or cuts off ";parameters" or what follows an
// encoded "?". So a path has as many views as those readings give, and a deny
// is met if any view matches, with or without a slash at its end; an allow only
// if every view does. A path that no two servers would agree on has no views:
// one with control characters (NUL too), with bytes that are not UTF-8 (as
// over-long forms of a slash), with a "%" that encodes nothing, encoded more
// than three times, longer than 16 KiB, or not beginning with a slash. It meets
// every deny that has Paths, and no allow that has.
type pathPattern struct {
	text string
	re   *regexp.Regexp
}

func parsePath(s string, deny bool) (pathPattern, error) {
	switch {
	case !strings.HasPrefix(s, "/"):
		return pathPattern{}, errors.New(`a path begins with "/"`)
	case len(s) > maxText:
		return pathPattern{}, errors.New("it is too long")
	case !utf8.ValidString(s) || strings.ContainsFunc(s, isControl):
		return pathPattern{}, errors.New("it holds control characters, or is not UTF-8")
	case strings.Contains(s, "%"):
		return pathPattern{}, errors.New(`it is encoded; write it decoded, without "%"`)
	case strings.ContainsAny(s, `\?#;`):
		return pathPattern{}, errors.New(`it holds one of \ ? # ; (for those write "*"; the query has a key of its own)`)
	case strings.Contains(s, "***"):
		return pathPattern{}, errors.New(`"*" is for one part of the path, "**" for any; there is no "***"`)
	}
	if clean := cleaned(s); clean != s {
		return pathPattern{}, errors.New("it is not clean; " + clip(clean) + " was meant")
	}
	var expr strings.Builder
	if deny {
		expr.WriteString(`(?i)`)
	}
	expr.WriteString(`\A`)
	for i, wild := range strings.Split(s, "**") {
		if i > 0 {
			expr.WriteString(`(?s:.*)`)
		}
		for j, part := range strings.Split(wild, "*") {
			if j > 0 {
				expr.WriteString(`[^/]*`)
			}
			expr.WriteString(regexp.QuoteMeta(part))
		}
	}
	expr.WriteString(`\z`)
	re, err := regexp.Compile(expr.String())
	if err != nil {
		return pathPattern{}, errors.New("it is too long")
	}
	return pathPattern{s, re}, nil
}

func isControl(c rune) bool { return c < ' ' || (c >= 0x7f && c < 0xa0) }

// deepest is how often a path may be encoded.
const deepest = 3

// pathViews gives what servers could make of an encoded path; none at all means
// that nobody can say. The path is among them as RFC 3986 reads it.
func pathViews(raw string) []string {
	if !strings.HasPrefix(raw, "/") || len(raw) > maxPath {
		return nil
	}
	if !strings.ContainsAny(raw, `%\;`) && !strings.Contains(raw, "//") && !strings.Contains(raw, "/.") {
		if !utf8.ValidString(raw) || strings.ContainsFunc(raw, isControl) || strings.ContainsAny(raw, "?#") {
			return nil
		}
		return []string{raw}
	}
	levels, ok := decodings(raw)
	if !ok {
		return nil
	}
	var views []string
	add := func(v string) {
		for _, v := range []string{v, cleaned(v)} {
			if !slices.Contains(views, v) {
				views = append(views, v)
			}
		}
	}
	for _, level := range levels {
		if !utf8.ValidString(level) || strings.ContainsFunc(level, isControl) {
			return nil
		}
		for _, v := range []string{level, strings.ReplaceAll(level, `\`, "/")} {
			add(v)
			add(withoutParameters(v))
			if i := strings.IndexAny(v, "?#"); i >= 0 {
				add(v[:i])
				add(withoutParameters(v[:i]))
			}
		}
	}
	return views
}

// decodings gives a path decoded once, twice and so on until nothing is left
// to decode, and decoded but for its slashes. It is false if it cannot tell.
func decodings(raw string) ([]string, bool) {
	first, ok := decode(raw, "")
	if !ok {
		return nil, false
	}
	kept, _ := decode(raw, `/\`)
	levels := []string{kept, first}
	for last := first; ; {
		next, _ := decode(last, "")
		if next == last {
			return levels, true
		}
		if len(levels) > deepest {
			return nil, false
		}
		levels = append(levels, next)
		last = next
	}
}

// decode takes one level of percent-encoding away, but of the characters of
// keep. It is false if a "%" encodes nothing, which then stays.
func decode(s, keep string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	whole := true
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
			whole = false
			b = append(b, s[i])
			continue
		}
		c := unhex(s[i+1])<<4 | unhex(s[i+2])
		if strings.IndexByte(keep, c) >= 0 {
			b = append(b, s[i:i+3]...)
		} else {
			b = append(b, c)
		}
		i += 2
	}
	return string(b), whole
}

func isHex(c byte) bool {
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// cleaned resolves "." and "..", and joins slashes; one at the end stays.
func cleaned(s string) string {
	c := path.Clean("/" + s)
	if c != "/" && (strings.HasSuffix(s, "/") || strings.HasSuffix(s, "/.") || strings.HasSuffix(s, "/..")) {
		c += "/"
	}
	return c
}

// withoutParameters leaves out what follows a ";" in each part.
func withoutParameters(s string) string {
	if !strings.Contains(s, ";") {
		return s
	}
	parts := strings.Split(s, "/")
	for i, p := range parts {
		parts[i], _, _ = strings.Cut(p, ";")
	}
	return strings.Join(parts, "/")
}

// matchPaths tells whether views meet one of the patterns: any view for a deny,
// all of them for an allow, each by whichever pattern.
func matchPaths(patterns []pathPattern, views []string, deny bool) bool {
	if len(views) == 0 {
		return deny
	}
	one := func(v string) bool {
		return slices.ContainsFunc(patterns, func(p pathPattern) bool { return p.re.MatchString(v) })
	}
	for _, v := range views {
		met := one(v)
		if deny && !met {
			if bare, ok := strings.CutSuffix(v, "/"); ok && bare != "" {
				met = one(bare)
			} else if !ok {
				met = one(v + "/")
			}
		}
		if met == deny {
			return deny
		}
	}
	return !deny
}
