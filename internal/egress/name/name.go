// Package name gives each name that a box asks for an address that stands for
// it, and answers the box's DNS from that alone: no answer ever waits for, or
// leads to, a lookup on the host.
package name

import (
	"io"
	"net/netip"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/rule"
)

// Max is how many names a table holds.
const Max = 65536

// A Table numbers names, and so gives each an IPv4 and an IPv6 address that
// stand for it in one box. A name keeps its number. It is safe for concurrent use.
type Table struct{}

// NewTable makes a table of names in their order, as Names gave them; at most
// Max, each once, and none an address: else it is Invalid.
func NewTable(names []string) (*Table, error) { return nil, paddock.Unsupported }

// Add gives the addresses of a name, with a number of its own where it has none
// yet. A full table is Exhausted, an address as host Invalid.
func (t *Table) Add(h rule.Host) (v4, v6 netip.Addr, err error) { return v4, v6, paddock.Unsupported }

// Lookup gives the name that an address stands for.
func (t *Table) Lookup(a netip.Addr) (rule.Host, bool) { return rule.Host{}, false }

// Names gives all names in the order of their numbers.
func (t *Table) Names() []string { return nil }

// Synthetic tells whether an address is one that can stand for names, whether or
// not it does. There is nothing else to be found at such an address.
func Synthetic(a netip.Addr) bool { return false }

// An Asked says what was asked for and what was answered, for the record.
type Asked struct {
	Host    rule.Host // the zero host where the name is not one
	Name    string    // as it was written, quoted where it holds anything else than a name's characters
	Type    string    // "A", "AAAA", "PTR", …
	Verdict rule.Verdict
	Code    string // of the answer: "NOERROR", "REFUSED", "FORMERR", …; empty where there is no answer
}

// A Server answers queries of one box.
type Server struct {
	Table *Table
	// Lookup says whether a name may be asked for; see rule.Rules.Lookup.
	Lookup func(rule.Host) rule.Verdict
}

// Answer answers a query, as bytes to bytes. An answer by datagram is cut to what
// the query says it takes, 512 bytes where it says nothing. It is nil where
// there can be none: the query is no query. It never blocks.
func (s *Server) Answer(query []byte, datagram bool) ([]byte, Asked) { return nil, Asked{} }

// ServeStream answers queries that come over a connection (two bytes of length
// before each), until it ends or says what is none. record is told of each. The
// caller sets deadlines.
func (s *Server) ServeStream(c io.ReadWriter, record func(Asked)) error { return paddock.Unsupported }
