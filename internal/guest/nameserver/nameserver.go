// Package nameserver answers the DNS queries of a sandbox that has no network: every name but the
// sandbox's own does not exist. So programs fail at once and do not try again. It lists the names
// that were asked for.
package nameserver

import (
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Address is the name server's address in the sandbox, and Port its port.
const (
	Address = "127.0.0.53"
	Port    = "53"
)

// Bounds of the list. A guest decides which names it asks for.
const (
	namesMax = 200
	nameMax  = 253 // bytes of a name
)

// A Server answers queries.
type Server struct {
	hostname func() (string, error)
	first    func(Asked)

	mu    sync.Mutex
	asked []Asked // guarded by mu; oldest first
}

// Asked is a name that was asked for.
type Asked struct {
	Name  string    `json:"name"`
	Count int       `json:"count"`
	Time  time.Time `json:"time"` // the last time
}

// New returns a server of a sandbox with this host name. It calls first, which may be nil, when a
// name is asked for the first time.
func New(hostname func() (string, error), first func(Asked)) *Server {
	return &Server{hostname: hostname, first: first}
}

// Listen opens the server's socket. It needs the right to use a port below 1024.
func Listen() (net.PacketConn, error) {
	return net.ListenPacket("udp4", net.JoinHostPort(Address, Port))
}

// Serve answers queries on c until c is closed.
func (s *Server) Serve(c net.PacketConn) error {
	query := make([]byte, 1<<10) // what is longer is cut, and then refused
	for {
		n, from, err := c.ReadFrom(query)
		if err != nil {
			return err
		}
		answer, name := s.answer(query[:n])
		if name != "" {
			s.note(name, time.Now())
		}
		if answer != nil {
			_, _ = c.WriteTo(answer, from) // a client that is gone needs no answer
		}
	}
}

// note adds a name to the list. Of too many the oldest are forgotten.
func (s *Server) note(name string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.asked, func(a Asked) bool { return a.Name == name }); i >= 0 {
		s.asked[i].Count++
		s.asked[i].Time = at
		return
	}
	if len(s.asked) == namesMax {
		s.asked = slices.Delete(s.asked, 0, 1)
	}
	a := Asked{Name: name, Count: 1, Time: at}
	s.asked = append(s.asked, a)
	if s.first != nil {
		s.first(a)
	}
}

// Asked returns the names that were asked for, oldest first.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// remedy returns the rule that allows a name. The loopback of the host is allowed by port.
func remedy(name string) string {
	if name == paddock.LoopbackHost {
		return "--allow " + name + ":PORT"
	}
	return "--allow " + name
}

// Refusals returns the refusals of a list of names, which may be hostile: a name that a rule could
// not allow is left out.
func Refusals(asked []Asked) []paddock.Refusal {
	list := make([]paddock.Refusal, 0, min(len(asked), namesMax))
	for _, a := range asked[:min(len(asked), namesMax)] {
		if a.Name != "" && a.Name == host(a.Name) {
			list = append(list, paddock.Refusal{Time: a.Time, What: "resolve", Target: a.Name, Rule: NoNetwork, Remedy: remedy(a.Name), Count: max(a.Count, 1)})
		}
	}
	return list
}

// NoNetwork is the rule of a refusal in a sandbox without a network.
const NoNetwork = "this sandbox has no network"

// host returns a name in the form in which a rule allows it, in lower case. It is empty if no rule
// could: for an address, an address's reverse name, or a name with characters that no host has.
func host(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	for strings.HasPrefix(name, "_") { // a service of a host, such as _https._tcp
		_, rest, _ := strings.Cut(name, ".")
		name = rest
	}
	if name == "" || len(name) > nameMax || strings.HasSuffix(name, ".arpa") {
		return ""
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return ""
		}
	}
	// Many libraries take a name whose last label is a number for an address.
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return ""
	}
	return name
}
