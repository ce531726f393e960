// Package secret puts secrets into requests on their way out and takes them out of
// the answers. The sandbox knows placeholders only.
package secret

import (
	"fmt"
	"io"
	"net/http"

	"github.com/paddock-sandbox/paddock"
)

// A Store holds the secrets of a sandbox with their placeholders. It never
// changes.
type Store struct {
}

// New makes the placeholders of secrets. They follow from seed, names and values, so
// that they stay the same over a pause or an update with the same seed.
func New(seed []byte, secrets []paddock.Secret) (*Store, error) {
	return nil, fmt.Errorf("make placeholders: %w", paddock.Unsupported)
}

// Environment gives the placeholder of each secret by its name.
func (s *Store) Environment() map[string]string { return nil }

// Bound gives the set of the secrets that have one of these names; nil where none has.
func (s *Store) Bound(secrets []paddock.Secret) *Set { return nil }

// A Set is the secrets bound to one destination. A nil Set has none and changes
// nothing. It may be used from many goroutines.
type Set struct {
}

// Names lists them.
func (s *Set) Names() []string { return nil }

// Header puts values in the place of placeholders in h, and gives the names of those
// used. Host and what frames a message are left as they are.
func (s *Set) Header(h http.Header) []string { return nil }

// Query does so in the query of a URL.
func (s *Set) Query(raw string) (string, []string) { return raw, nil }

// HasBody tells whether any of them has a place in bodies.
func (s *Set) HasBody() bool { return false }

// Body gives r with values in the place of placeholders. used is told each name once.
func (s *Set) Body(r io.Reader, used func(name string)) io.Reader { return r }

// Sign signs r again where it was signed with AWS SigV4 by placeholders, and gives
// the names used; nil where it was not.
func (s *Set) Sign(r *http.Request) ([]string, error) { return nil, nil }

// ScrubHeader puts placeholders in the place of values in the header of an answer.
func (s *Set) ScrubHeader(h http.Header) {}

// Scrub gives r with placeholders in the place of values.
func (s *Set) Scrub(r io.Reader) io.Reader { return r }
