package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/inspect"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// Options configure a Gateway. The zero Options allow nothing.
type Options struct {
	Sandbox string
	Policy  paddock.NetworkPolicy
	Names   []string // that have addresses already, in order
	Seed    []byte   // of the placeholders; random if empty

	// Authority signs the certificates for inspected TLS. Without it, rules that need inspection of TLS cannot be
	// followed.
	Authority *authority.CA
	// Roots verify the destinations' certificates. Nil uses the system's.
	Roots *x509.CertPool

	// Event receives every decision, one after another. It must not block.
	Event func(gatewayclient.Event)
	// Ask decides where no rule does; nil denies. ctx ends when the answer is no longer needed.
	Ask func(ctx context.Context, q gatewayclient.Question) gatewayclient.Answer

	// Judge decides about what is allowed; nil asks nobody.
	Judge func(ctx context.Context, q gatewayclient.Question) gatewayclient.Judgement

	// Login answers about requests to LoginHosts (host:port): nil, or an empty answer, leaves them as they are. It may be nil.
	Login      func(ctx context.Context, r gatewayclient.LoginRequest) *gatewayclient.LoginAnswer
	LoginHosts []string

	// Traffic counts the bytes between the sandbox and the world. It may be nil.
	Traffic Traffic

	Dialer netstack.Dialer

	// MaxConns bounds the connections, requests and flows of datagrams at once. The default is 4096.
	MaxConns int
}

// A Gateway joins the parts of one sandbox's network. It is safe for concurrent use.
type Gateway struct {
	o       Options
	seed    []byte
	table   *netstack.NameTable
	dns     netstack.DNSServer
	proxy   *inspect.Proxy
	buffers buffers
	teller  *teller
	asker   *asker
	judge   *judge
	live    live
	reached live // connections that carry requests
	now     atomic.Pointer[state]
	ctx     context.Context // ends with the gateway
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	dials   chan struct{} // holds an element for each dial in progress
	pace    *rate.Limiter // of dials
	lookup  bucket        // limits DNS queries
	logins  chan struct{} // holds an element for each question about a login

	updating sync.Mutex
	policy   paddock.NetworkPolicy // guarded by updating
	always   []paddock.NetworkRule // guarded by updating; allowed permanently by a person

	mu     sync.Mutex
	link   *netstack.Link // guarded by mu
	closed bool           // guarded by mu
}

// Bounds of one gateway.
const (
	connsMax = 4096
	dialsMax = 256 // in progress at once
	// Every connection that ended keeps a port of the host's for a minute, and a place in its table of
	// connections for two. There are 28,232 ports for one destination.
	dialRate   = 100  // dials per second; more wait
	dialRoom   = 1000 // burst of dials
	lookupRate = 500  // DNS queries per second; more are not answered
	lookupRoom = 2000 // burst of DNS queries
	alwaysMax  = 1000 // permanent permissions by a person
)

// New makes a Gateway. A policy that it cannot follow is Invalid or Unsupported, and the error names the rule.
func New(o Options) (*Gateway, error) {
	table, err := netstack.NewNameTable(o.Names)
	if err != nil {
		return nil, fmt.Errorf("restore names: %w", err)
	}
	g := &Gateway{o: o, seed: o.Seed, table: table, policy: o.Policy, dials: make(chan struct{}, dialsMax), logins: make(chan struct{}, loginsMax), pace: rate.NewLimiter(dialRate, dialRoom), lookup: bucket{rate: lookupRate, room: lookupRoom}}
	if len(g.seed) == 0 {
		g.seed = make([]byte, 32)
		_, _ = rand.Read(g.seed) // never fails
	}
	g.live.most = cmp.Or(o.MaxConns, connsMax)
	g.reached.most = g.live.most
	if g.o.Dialer.Roots == nil {
		g.o.Dialer.Roots = o.Roots
	}
	s, err := g.compile(o.Policy, nil)
	if err != nil {
		return nil, err
	}
	g.now.Store(s)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.teller = newTeller(o.Sandbox, o.Event)
	g.asker, g.judge = newAsker(g), newJudge(g)
	g.dns = netstack.DNSServer{Table: table, Lookup: g.mayLookUp}
	g.proxy = inspect.New(inspect.Options{Backend: backend{g}, Authority: o.Authority, Roots: o.Roots})
	return g, nil
}

// Open serves a link in the background until the link is closed. The gateway owns f. A new link replaces an earlier
// one, which is closed.
func (g *Gateway) Open(f *os.File) error {
	l, err := netstack.Open(f, netstack.Options{Handler: handler{g}, MTU: netstack.MTU, MaxConns: g.live.most, Pings: g.pings})
	if err != nil {
		return err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		_ = l.Close()
		return fmt.Errorf("the gateway is closed: %w", paddock.Unavailable)
	}
	earlier := g.link
	g.link = l
	g.mu.Unlock()
	if earlier != nil {
		return earlier.Close()
	}
	return nil
}

func (g *Gateway) pings(a netip.Addr) bool {
	_, named := g.table.Lookup(a)
	return named || a == netstack.Gateway4() || a == netstack.Gateway6()
}

// Update replaces the rules at once and as a whole, and cuts connections that they do not allow. A policy that needs
// inspection of hosts that the sandbox's certificate authority does not cover is Unsupported and changes nothing. What
// a person allowed for good stays allowed.
func (g *Gateway) Update(p paddock.NetworkPolicy) error {
	g.updating.Lock()
	defer g.updating.Unlock()
	return g.change(p, g.always)
}

// allowAlways adds a permanent permission. The caller does not hold updating.
func (g *Gateway) allowAlways(q gatewayclient.Question) error {
	g.updating.Lock()
	defer g.updating.Unlock()
	if len(g.always) >= alwaysMax {
		return fmt.Errorf("allow %s always: %d hosts are allowed so: %w", q.Host, alwaysMax, paddock.Exhausted)
	}
	return g.change(g.policy, append(slices.Clip(g.always), paddock.NetworkRule{Host: q.Host, Ports: []uint16{q.Port}, UDP: q.UDP}))
}

// change replaces the present state. The caller holds updating.
func (g *Gateway) change(p paddock.NetworkPolicy, always []paddock.NetworkRule) error {
	s, err := g.compile(p, always)
	if err != nil {
		return err
	}
	g.policy, g.always = p, always
	g.now.Store(s)
	g.live.judge(s)
	g.reached.judge(s)
	return nil
}

// Names returns the names that have addresses, in order.
func (g *Gateway) Names() []string { return g.table.Names() }

// Environment returns the placeholders of secrets by the names of their variables.
func (g *Gateway) Environment() map[string]string { return g.now.Load().secrets.Environment() }

// Keep makes Close fast where the sandbox ends as well: see [netstack.Link.Keep].
func (g *Gateway) Keep() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.link == nil {
		return nil
	}
	return g.link.Keep()
}

// Close cuts all connections and waits until they are gone.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	l := g.link
	g.link = nil
	g.mu.Unlock()
	g.cancel()
	g.live.cut()
	g.reached.cut()
	var err error
	if l != nil {
		err = l.Close()
	}
	g.wg.Wait()
	g.teller.close()
	return err
}
