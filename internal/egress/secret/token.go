package secret

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Token is a secret of one request. Each of its placeholders, of which the last is the newest, stands for the value in
// the named headers and nowhere else. In the answer the newest stands for the value.
type Token struct {
	Name         string
	Value        string
	Placeholders []string
	Headers      []string
}

// String returns the name without the value, so that a log never holds the value.
func (t Token) String() string { return "token " + t.Name }

// GoString returns the same as String.
func (t Token) GoString() string { return t.String() }

// shortestSignature is the length from which the signature of a JWT is looked for by itself.
const shortestSignature = 16

// With returns a Set that has tokens too. A nil Set with no tokens is nil.
func (s *Set) With(tokens []Token) *Set {
	var set Set
	if s != nil {
		set = *s
		set.entries, set.scrub = slices.Clone(s.entries), slices.Clone(s.scrub)
	}
	for _, t := range tokens {
		if t.Value == "" || len(t.Placeholders) == 0 || len(t.Headers) == 0 {
			continue
		}
		for _, p := range t.Placeholders {
			e := entry{Secret: paddock.Secret{Name: t.Name, Value: t.Value, Places: []paddock.SecretPlace{paddock.SecretHeader}}, placeholder: p, headers: t.Headers}
			set.entries = append(set.entries, e)
		}
		newest := t.Placeholders[len(t.Placeholders)-1]
		set.scrub = append(set.scrub, scrubs(t.Name, t.Value, newest)...)
		// The other parts of a JWT are the same in its placeholder.
		if of, with := signatureOf(t.Value), signatureOf(newest); len(of) >= shortestSignature && with != "" {
			set.scrub = append(set.scrub, scrubs(t.Name, of, with)...)
		}
	}
	if len(set.entries) == 0 {
		return nil
	}
	set.finish()
	return &set
}

// signatureOf returns the third part of a text that has three as a JWT does.
func signatureOf(s string) string {
	if strings.Count(s, ".") != 2 {
		return ""
	}
	return s[strings.LastIndexByte(s, '.')+1:]
}

// named returns the replacements of what may stand in one header alone, or nil if there are none.
func (s *Set) named(header string, used func(string)) *exchange {
	var pairs []pair
	for _, e := range s.entries {
		if slices.ContainsFunc(e.headers, func(h string) bool { return strings.EqualFold(h, header) }) {
			pairs = append(pairs, pair{from: []byte(e.placeholder), to: []byte(e.Value), name: e.Name})
		}
	}
	if pairs == nil {
		return nil
	}
	return newExchange(pairs, used, false)
}
