// Package secret puts secrets into outgoing requests and takes them out of the answers. The sandbox knows placeholders
// only. No error of this package holds a value.
package secret

import (
	"bytes"
	"encoding/base64"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/secret/placeholder"
)

// A Store holds the secrets of a sandbox with their placeholders. It is immutable.
type Store struct {
	all   []entry
	slots chan struct{} // limits held bodies
}

type entry struct {
	paddock.Secret
	placeholder string
	headers     []string // in which alone it may stand; nil is all
}

func (e entry) has(p paddock.SecretPlace) bool { return placeholder.Placed(e.Secret, p) }

// New makes a Store with the placeholders, and the errors, of [placeholder.New].
func New(seed []byte, secrets []paddock.Secret) (*Store, error) {
	list, err := placeholder.New(seed, secrets)
	if err != nil {
		return nil, err
	}
	s := &Store{slots: make(chan struct{}, hashers)}
	for i, secret := range secrets {
		s.all = append(s.all, entry{Secret: secret, placeholder: list[i]})
	}
	return s, nil
}

// Environment returns the placeholder of each secret by its name.
func (s *Store) Environment() map[string]string {
	env := make(map[string]string, len(s.all))
	for _, e := range s.all {
		env[e.Name] = e.placeholder
	}
	return env
}

// Bound returns the Set of the stored secrets that have the names of the given ones, or nil if there are none.
func (s *Store) Bound(secrets []paddock.Secret) *Set {
	set := &Set{slots: s.slots}
	for _, e := range s.all {
		if slices.ContainsFunc(secrets, func(b paddock.Secret) bool { return b.Name == e.Name }) {
			set.entries = append(set.entries, e)
			set.scrub = append(set.scrub, scrubs(e.Name, e.Value, e.placeholder)...)
		}
	}
	if len(set.entries) == 0 {
		return nil
	}
	set.finish()
	return set
}

// finish sets what follows from scrub.
func (s *Set) finish() {
	s.folded = nil
	for _, p := range s.scrub {
		p.from = []byte(lowerASCII(string(p.from)))
		s.folded = append(s.folded, p)
	}
	s.keeps = !slices.ContainsFunc(s.scrub, func(p pair) bool { return len(p.from) != len(p.to) })
}

// A Set is the secrets bound to one destination. A nil Set has none and changes nothing. It is safe for concurrent use.
type Set struct {
	entries []entry
	scrub   []pair
	folded  []pair // of scrub, with texts in lower case
	keeps   bool   // scrubbing keeps lengths
	slots   chan struct{}
}

// Names returns the names of the secrets.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	names := make([]string, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.Name
	}
	return names
}

// at returns the replacements of placeholders at a place in an encoding.
func (s *Set) at(place paddock.SecretPlace, write form, used func(string)) *exchange {
	var pairs []pair
	for _, e := range s.entries {
		if e.has(place) && e.headers == nil {
			pairs = append(pairs, pair{from: []byte(e.placeholder), to: []byte(write(e.Value)), name: e.Name})
		}
	}
	return newExchange(pairs, used, false)
}

func plain(s string) string { return s }

// Head replaces placeholders by values in the header and the query of r, signs r again if it was signed with
// placeholders, and returns the names of the secrets used. It leaves the host, the path and the fields that frame the
// message as they are. A signature that cannot be made again is Unsupported. To sign, Head may read r's body; it puts a
// copy in its place.
func (s *Set) Head(r *http.Request) ([]string, error) {
	if s == nil {
		return nil, nil
	}
	var names []string
	used := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	signed, err := s.signature(r)
	if err != nil {
		return nil, err
	}
	x := s.at(paddock.SecretHeader, plain, used)
	for name, values := range r.Header {
		if framing(name) {
			continue
		}
		here := s.named(name, used)
		for i, value := range values {
			if here != nil {
				value = header(here, value)
			}
			values[i] = header(x, value)
		}
	}
	if r.URL.RawQuery != "" {
		r.URL.RawQuery = string(s.at(paddock.SecretQuery, url.QueryEscape, used).bytesOf([]byte(r.URL.RawQuery)))
	}
	if signed != nil {
		if err := signed.repeat(r); err != nil {
			return nil, err
		}
		used(signed.key.Name)
		used(signed.id.Name)
	}
	slices.Sort(names)
	return names, nil
}

// framing reports whether a field affects the destination or the end of a message.
func framing(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Expect", "Content-Encoding":
		return true
	}
	return false
}

// header changes the value of a field, and the content of Basic authorization.
func header(x *exchange, value string) string {
	scheme, text, ok := strings.Cut(value, " ")
	if ok && strings.EqualFold(scheme, "Basic") {
		if pass, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
			if changed := x.bytesOf(pass); !bytes.Equal(changed, pass) {
				return scheme + " " + base64.StdEncoding.EncodeToString(changed)
			}
			return value
		}
	}
	return string(x.bytesOf([]byte(value)))
}

// Body returns body with placeholders replaced by values, if a secret may stand in bodies and the header h describes a
// body that can be changed. It calls used once for each name. keeps reports that the length stays the same. left says
// why the body is unchanged although a secret may stand there.
func (s *Set) Body(h http.Header, body io.ReadCloser, used func(name string)) (changed io.ReadCloser, keeps bool, left string) {
	if s == nil || !slices.ContainsFunc(s.entries, func(e entry) bool { return e.has(paddock.SecretBody) }) {
		return body, true, ""
	}
	write, ok := writing(h.Get("Content-Type"))
	switch {
	case !ok:
		return body, true, "secrets are put into bodies of text, JSON and forms alone"
	case encodedBody(h):
		return body, true, "secrets are not put into a compressed body"
	case isSigned(h):
		return body, true, "secrets are not put into the body of a signed request"
	}
	x := s.at(paddock.SecretBody, write, used)
	keeps = !slices.ContainsFunc(x.pairs, func(p pair) bool { return len(p.from) != len(p.to) })
	return newStream(body, x), keeps, ""
}

func encodedBody(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Encoding"), func(v string) bool { return !strings.EqualFold(strings.TrimSpace(v), "identity") })
}

// writing returns the encoding of a value in a body of this type. It reports false if the
// type is not text.
func writing(contentType string) (form, bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "" || err == nil && kind == "multipart/form-data":
		return plain, true
	case err != nil:
		return nil, false
	case kind == "application/x-www-form-urlencoded":
		return url.QueryEscape, true
	case kind == "application/json", strings.HasSuffix(kind, "+json"), kind == "application/x-ndjson", kind == "text/json":
		return plainJSON, true
	case kind == "application/xml", strings.HasSuffix(kind, "+xml"), kind == "text/xml", kind == "text/html":
		return xmlEscape, true
	case strings.HasPrefix(kind, "text/"), kind == "application/javascript", kind == "application/graphql", kind == "application/yaml":
		return plain, true
	}
	return nil, false
}

// KeepsLength reports whether scrubbing keeps the length of an answer.
func (s *Set) KeepsLength() bool { return s == nil || s.keeps }

// ScrubHeader replaces values by placeholders in the header or the trailer of an answer, in names too. HTTP does not
// keep the case of names, so values are found in any case.
func (s *Set) ScrubHeader(h http.Header) {
	if s == nil {
		return
	}
	clean := make(http.Header, len(h))
	for name, values := range h {
		for i, value := range values {
			values[i] = s.ScrubText(value)
		}
		if now := s.ScrubText(name); now != name {
			name = http.CanonicalHeaderKey(now)
		}
		clean[name] = append(clean[name], values...) // nil stays nil: a trailer that is only announced
	}
	clear(h)
	maps.Copy(h, clean)
}

// ScrubText replaces values by placeholders in a text, in any case.
func (s *Set) ScrubText(text string) string {
	if s == nil {
		return text
	}
	text = string(newExchange(s.scrub, nil, true).bytesOf([]byte(text)))
	var out strings.Builder
	lower, done := lowerASCII(text), 0
	next := make([]int, len(s.folded)) // position of each from done on; the length if there is none
	for i := range next {
		next[i] = -1
	}
	for {
		best, at := pair{}, len(lower)
		for i, p := range s.folded {
			if next[i] < done {
				next[i] = len(lower)
				if n := strings.Index(lower[done:], string(p.from)); n >= 0 {
					next[i] = done + n
				}
			}
			if n := next[i]; n < at || n < len(lower) && n == at && len(p.from) > len(best.from) {
				best, at = p, n
			}
		}
		out.WriteString(text[done:at])
		if at == len(lower) {
			return out.String()
		}
		out.Write(best.to)
		done = at + len(best.from)
	}
}

// lowerASCII keeps the length of the text, unlike strings.ToLower.
func lowerASCII(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Scrub returns body with values replaced by placeholders. Closing it closes body.
func (s *Set) Scrub(body io.ReadCloser) io.ReadCloser {
	if s == nil {
		return body
	}
	return newStream(body, newExchange(s.scrub, nil, true))
}

// ScrubFrames returns body with values replaced by texts of the same length, for bodies whose parts state their length.
// Closing it closes body.
func (s *Set) ScrubFrames(body io.ReadCloser) io.ReadCloser {
	if s == nil {
		return body
	}
	pairs := slices.Clone(s.scrub)
	for i, p := range pairs {
		to := p.to
		for len(to) < len(p.from) {
			to = slices.Concat(to, p.to)
		}
		pairs[i].to = to[:len(p.from)]
	}
	return newStream(body, newExchange(pairs, nil, true))
}
