// Package secret puts secrets into requests on their way out and takes them out of
// the answers. The sandbox knows placeholders only. Nothing here ever puts a value
// into an error.
package secret

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/secret/placeholder"
)

// A Store holds the secrets of a sandbox with their placeholders. It never
// changes.
type Store struct {
	all   []entry
	slots chan struct{} // of bodies that are held
}

type entry struct {
	paddock.Secret
	placeholder string
}

func (e entry) has(p paddock.SecretPlace) bool { return placeholder.Placed(e.Secret, p) }

// New makes a Store of secrets with the placeholders that [placeholder.New] gives, and with its errors.
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

// Environment gives the placeholder of each secret by its name.
func (s *Store) Environment() map[string]string {
	env := make(map[string]string, len(s.all))
	for _, e := range s.all {
		env[e.Name] = e.placeholder
	}
	return env
}

// Bound gives the set of the secrets with the names of these; nil where there is
// none.
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
	set.keeps = !slices.ContainsFunc(set.scrub, func(p pair) bool { return len(p.from) != len(p.to) })
	return set
}

// A Set is the secrets bound to one destination. A nil Set has none and changes
// nothing. It may be used from many goroutines.
type Set struct {
	entries []entry
	scrub   []pair
	keeps   bool // whether scrubbing keeps lengths
	slots   chan struct{}
}

// Names lists them.
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

// at gives the exchange of placeholders at a place, written in a form.
func (s *Set) at(place paddock.SecretPlace, write form, used func(string)) *exchange {
	var pairs []pair
	for _, e := range s.entries {
		if e.has(place) {
			pairs = append(pairs, pair{from: []byte(e.placeholder), to: []byte(write(e.Value)), name: e.Name})
		}
	}
	return newExchange(pairs, used, false)
}

func plain(s string) string { return s }

// Head puts values in the place of placeholders in the header and the query of r, signs
// it again where it was signed with placeholders, and gives the names of those
// used. Host, the path and what frames a message are left as they are. What is
// signed in a way that cannot be repeated is Unsupported, in words. r's body may
// be read for it: its place is taken by a copy.
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
		for i, value := range values {
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

// framing tells of fields that say where a message goes or ends.
func framing(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Expect", "Content-Encoding":
		return true
	}
	return false
}

// header changes the value of a field, and what Basic authorization holds.
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

// Body gives body with values in the place of placeholders, as a header h describes it,
// where a secret has its place in bodies; used is told each name once. keeps
// tells that the length stays the same, left says in words why the body is left as
// it is though a secret has its place there.
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

// writing gives how a value is written in a body of a type; not ok is a type that
// is no text.
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

// KeepsLength tells whether scrubbing leaves the length of an answer as it is.
func (s *Set) KeepsLength() bool { return s == nil || s.keeps }

// ScrubHeader puts placeholders in the place of values in the header or the trailer of
// an answer.
func (s *Set) ScrubHeader(h http.Header) {
	if s == nil {
		return
	}
	x := newExchange(s.scrub, nil, true)
	for name, values := range h {
		for i, value := range values {
			values[i] = string(x.bytesOf([]byte(value)))
		}
		if clean := string(x.bytesOf([]byte(name))); clean != name {
			delete(h, name)
			h[clean] = values
		}
	}
}

// ScrubText does so in a text.
func (s *Set) ScrubText(text string) string {
	if s == nil {
		return text
	}
	return string(newExchange(s.scrub, nil, true).bytesOf([]byte(text)))
}

// Scrub gives body with placeholders in the place of values. Closing it closes body.
func (s *Set) Scrub(body io.ReadCloser) io.ReadCloser {
	if s == nil {
		return body
	}
	return newStream(body, newExchange(s.scrub, nil, true))
}

// ScrubFrames gives body with something of the same length in the place of values,
// for bodies whose parts say how long they are. Closing it closes body.
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
