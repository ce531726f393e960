package decide

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A pathPattern is one entry of a rule's Paths. "*" matches characters within one segment,
// and "**" matches any. The pattern must match the whole path. An allow is case-sensitive.
// A deny is not, because some servers ignore case. The pattern is written decoded and
// clean.
//
// A path arrives encoded, and servers interpret it differently. A server may decode "%2F"
// to a slash, decode twice, take a backslash for a slash, follow "..", merge slashes, or
// cut off ";parameters" or everything after an encoded "?". So a path has one view for each
// interpretation. A deny applies if any view matches, with or without a slash at the end.
// An allow applies only if every view matches. Some paths have no views, because servers
// would not agree on them: a path with control characters (including NUL), with invalid
// UTF-8 (including over-long slashes), with an invalid "%", encoded more than three times,
// longer than 16 KiB, or without a slash at the start. Such a path meets every deny with
// Paths, and no allow with Paths.
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

// deepest is how many times a path may be encoded.
const deepest = 3

// pathViews returns the views of an encoded path, or none. The interpretation of RFC 3986
// is among them.
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

// decodings returns a path decoded once, twice and so on, and decoded except for its
// slashes. It reports false if the path has no views.
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

// decode removes one level of percent-encoding, except for the characters of keep. It
// reports false for an invalid "%", which it leaves in place.
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

// cleaned resolves "." and "..", and merges slashes. It keeps a slash at the end.
func cleaned(s string) string {
	c := path.Clean("/" + s)
	if c != "/" && (strings.HasSuffix(s, "/") || strings.HasSuffix(s, "/.") || strings.HasSuffix(s, "/..")) {
		c += "/"
	}
	return c
}

// withoutParameters removes everything after ";" in each segment.
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

// matchPaths reports whether views match the patterns: any view for a deny, and every view
// for an allow. Different views may match different patterns.
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
