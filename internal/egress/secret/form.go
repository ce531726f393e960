package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// A form is how a text is written in some place.
type form func(string) string

// forms are how values are written in what comes back. Base64 is apart.
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

// lowerEscapes writes percent escapes in small letters.
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

// jsonEscape writes s as it stands between quotes in JSON, with what HTML would
// take for its own escaped.
func jsonEscape(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// plainJSON does so, and escapes nothing that JSON lets stand.
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

// shortestEncoded is the shortest piece of base64 that is looked for: shorter
// ones would be found by chance.
const shortestEncoded = 8

// scrubs gives what is looked for in answers, and what comes in its place.
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
			// The length stays, or what stands around it could not be read.
			to := encoded(encoding, placeholder, shift)
			for len(to) < len(from) {
				to += to
			}
			add(from, to[:len(from)])
		}
	}
	return list
}

// encoded gives the characters of base64 that s alone decides where shift bytes
// stand before it and anything behind it.
func encoded(encoding *base64.Encoding, s string, shift int) string {
	text := encoding.EncodeToString(append(make([]byte, shift), s...))
	first := (shift*8 + 5) / 6
	last := (shift + len(s)) * 8 / 6
	if first >= last {
		return ""
	}
	return text[first:last]
}
