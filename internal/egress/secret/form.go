package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// A form is an encoding of a text.
type form func(string) string

// forms returns the encodings of values in answers, except base64.
func forms() []form {
	return []form{
		func(s string) string { return s },
		url.QueryEscape,
		url.PathEscape,
		func(s string) string { return lowerEscapes(url.QueryEscape(s)) },
		func(s string) string { return lowerEscapes(url.PathEscape(s)) },
		jsonEscape,
		plainJSON,
		func(s string) string { return strings.ReplaceAll(plainJSON(s), "/", `\/`) },
		xmlEscape,
	}
}

// lowerEscapes makes percent escapes lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:i+3]))
			i += 2
		}
	}
	return string(b)
}

// jsonEscape encodes s as in a JSON string, including escapes for HTML.
func jsonEscape(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// plainJSON encodes s as in a JSON string with the fewest escapes.
func plainJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

func xmlEscape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(s)
}

// shortestEncoded is the shortest piece of base64 to search for. Shorter ones would match
// by chance.
const shortestEncoded = 8

// scrubs returns the texts to search for in answers, with their replacements.
func scrubs(name, value, placeholder string) []pair {
	var list []pair
	seen := map[string]bool{}
	add := func(from, to string) {
		if from != "" && !seen[from] {
			seen[from] = true
			list = append(list, pair{from: []byte(from), to: []byte(to), name: name})
		}
	}
	for _, write := range forms() {
		add(write(value), placeholder)
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			from := encoded(encoding, value, shift)
			if len(from) < shortestEncoded {
				continue
			}
			// Keep the length, because otherwise the surrounding base64 could not be
			// decoded.
			to := encoded(encoding, placeholder, shift)
			for len(to) < len(from) {
				to += to
			}
			add(from, to[:len(from)])
		}
	}
	return list
}

// encoded returns the base64 characters that depend only on s, if shift bytes precede it
// and anything follows.
func encoded(encoding *base64.Encoding, s string, shift int) string {
	text := encoding.EncodeToString(append(make([]byte, shift), s...))
	first := (shift*8 + 5) / 6
	last := (shift + len(s)) * 8 / 6
	if first >= last {
		return ""
	}
	return text[first:last]
}
