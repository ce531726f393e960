// Package authority is the certificate authority of one sandbox: it makes the
// certificates with which TLS is ended where the rules want a look into it. Only
// that sandbox trusts it, and it can vouch for nothing but the hosts it was made
// for.
package authority

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/rule"
)

// A CA makes certificates. It may be used from many goroutines.
type CA struct {
}

// New makes an authority for hosts that one of the patterns means, valid from a
// day before now, as clocks differ, for thirty days. With "*" among the patterns it
// is for all hosts; without any pattern for none.
func New(patterns []rule.Pattern, now time.Time) (*CA, error) {
	return nil, fmt.Errorf("make an authority: %w", paddock.Unsupported)
}

// Parse reads what PEM and Key gave.
func Parse(cert, key []byte) (*CA, error) {
	return nil, fmt.Errorf("read an authority: %w", paddock.Unsupported)
}

// PEM gives the certificate for trust stores.
func (c *CA) PEM() []byte { return nil }

// Key gives the private key in PEM. It must not reach the sandbox.
func (c *CA) Key() ([]byte, error) { return nil, fmt.Errorf("give a key: %w", paddock.Unsupported) }

// Covers tells whether certificates can be made for every host that p means.
func (c *CA) Covers(p rule.Pattern) bool { return false }

// Leaf gives a certificate for h, which the authority covers; else it is Denied.
func (c *CA) Leaf(h rule.Host) (*tls.Certificate, error) {
	return nil, fmt.Errorf("make a certificate: %w", paddock.Unsupported)
}
