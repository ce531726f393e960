package rule

import (
	"errors"
	"net/netip"

	"github.com/paddock-sandbox/paddock"
)

// A Flow is what is connected to.
type Flow struct {
	Host Host
	Port uint16
	UDP  bool
}

// A Request is what is asked in a flow that is looked into.
type Request struct {
	Scheme   string // "http" or "https", by whether TLS was there
	Method   string
	Path     string // as it stood in the request, still percent-encoded: RequestURI without the query
	RawQuery string
	Header   map[string][]string // keys in canonical form
}

// A Verdict is a decision and its reason.
type Verdict struct {
	Allow bool

	// Look is of flows alone: whether something is allowed depends on the
	// request, or something is done with requests. It must be looked into, and
	// Allow then says that some request may pass.
	Look bool

	Rule   int    // index in the policy of the rule that decides; -1: none allows
	Reason string // for people: "rules[2] denies *.example.com", "no rule allows example.com:443"
	Hint   string // how to allow what is denied: "--allow example.com:443", "take rules[2] away"; empty where it is allowed
}

// Rules are a checked policy. They never change, and may be used by many
// goroutines.
type Rules struct {
	policy paddock.NetworkPolicy
}

// New checks and compiles a policy, of which it keeps a copy. Errors are
// Invalid and name the rule or the secret: "rules[3]: …", "secrets[0]: …".
// Mode none allows nothing. Mode host is Invalid: nobody decides there.
func New(p paddock.NetworkPolicy) (*Rules, error) { return nil, errors.ErrUnsupported }

// Flow judges a connection, or datagrams, before anything of it is known but
// where it goes. A deny without request matches wins. With others, and where
// an allow says anything of requests, a secret is bound to the host, or
// something is done with requests, Look is set; never of UDP.
func (r *Rules) Flow(f Flow) Verdict { return Verdict{Rule: -1} }

// Request judges one request in a flow that is looked into. Look is never set.
func (r *Rules) Request(f Flow, q Request) Verdict { return Verdict{Rule: -1} }

// At gives the rule of a Verdict. The zero rule, which allows nothing, stands
// for an index that is not there.
func (r *Rules) At(i int) paddock.NetworkRule { return paddock.NetworkRule{} }

// Lookup tells whether a name may be asked for: some rule allows some port of
// it, and no deny takes all of what is allowed.
func (r *Rules) Lookup(h Host) Verdict { return Verdict{Rule: -1} }

// Lists tells whether a rule that allows names this very address, or a range
// that holds it: only then may an address be dialled that is private, or stands
// for the host. "*" lists none.
func (r *Rules) Lists(a netip.Addr) bool { return false }

// SecretsFor gives the secrets that are bound to a host and port.
func (r *Rules) SecretsFor(h Host, port uint16) []paddock.Secret { return nil }

// Inspected lists the hosts whose TLS may be ended here: those of rules that
// need a look, and of secrets. None is listed twice.
func (r *Rules) Inspected() []Pattern { return nil }
