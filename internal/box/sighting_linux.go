package box

import (
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// Sightings are what is seen of the steps of a sandbox besides the files that they change: hosts, secrets, and refusals.
// Nobody knows which of several commands was it, so all that run get it. The methods wait for nothing, because the gateway
// calls them.
type sightings struct {
	mu   sync.Mutex
	open []*sighting // guarded by mu
}

// A sighting is what was seen during one step.
type sighting struct {
	earlier int // refusals of the box from before the step
	hosts   []string
	secrets []string
	refused []step.Refusal
}

// maxSighted bounds each list of a sighting.
const maxSighted = 1000

// add adds an entry to a list, once.
func add[T comparable](list *[]T, x T) {
	if len(*list) < maxSighted && !slices.Contains(*list, x) {
		*list = append(*list, x)
	}
}

// begin begins the sighting of a step, before which the box has refused these.
func (s *sightings) begin(refused []paddock.Refusal) *sighting {
	x := &sighting{earlier: len(refused)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, x)
	return x
}

// end ends a sighting, and fills in the outcome of its step.
func (s *sightings) end(x *sighting, refused []paddock.Refusal, out *step.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(o *sighting) bool { return o == x })
	if x.earlier > len(refused) { // it is another box, which was resumed
		x.earlier = 0
	}
	for _, r := range refused[x.earlier:] {
		add(&x.refused, step.Refusal{Path: step.Text(r.Target), Operation: r.What, Why: r.Rule})
	}
	out.Hosts, out.Secrets, out.Refused = x.hosts, x.secrets, x.refused
}

// Record implements audit.Sink.
func (s *sightings) Record(e audit.Event) {
	e = e.Clean()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.open {
		switch {
		case e.Network != nil:
			x.flow(e.Network)
		case e.KeyUse != nil && e.KeyUse.Verdict == "deny":
			add(&x.refused, step.Refusal{Path: step.Text(e.KeyUse.Key), Operation: e.KeyUse.Agent + "-agent " + e.KeyUse.Request, Why: e.KeyUse.Reason})
		}
	}
}

// flow notes a decision about the network.
func (x *sighting) flow(f *audit.Flow) {
	host := f.Host
	if f.Port != 0 {
		host = net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
	}
	for _, name := range f.Secrets {
		add(&x.secrets, name)
	}
	switch {
	case f.Verdict != "allow":
		add(&x.refused, step.Refusal{Path: step.Text(host), Operation: f.Protocol, Why: f.Reason})
	case f.Protocol != "dns" && f.Protocol != "rules": // to look a name up is not to reach it
		add(&x.hosts, host)
	}
}
