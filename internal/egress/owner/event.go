package owner

import (
	"net"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Kinds of events: what the guest asked for.
const (
	KindDNS   = "dns"   // the address of a name
	KindTCP   = "tcp"   // a connection
	KindUDP   = "udp"   // datagrams
	KindHTTP  = "http"  // one request
	KindProxy = "proxy" // something of the proxies in the gateway
	KindRules = "rules" // none of these: the way out as a whole
)

// Verdicts of events.
const (
	VerdictAllow = "allow"
	VerdictDeny  = "deny"
)

// An Event is one decision, or what came of it: an allowed connection is told
// when it is over. All text is data, and may be the guest's.
type Event struct {
	Time    time.Time `json:"time"`
	Sandbox string    `json:"sandbox,omitempty"`
	Kind    string    `json:"kind"`
	Host    string    `json:"host,omitempty"`
	Address string    `json:"address,omitempty"` // that was dialled
	Port    uint16    `json:"port,omitempty"`
	Method  string    `json:"method,omitempty"`
	Path    string    `json:"path,omitempty"` // without the query
	Status  int       `json:"status,omitempty"`
	Rule    int       `json:"rule"` // that decided; -1 is none
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason,omitempty"`
	Hint    string    `json:"hint,omitempty"` // how to allow it

	Sent     int64         `json:"sent,omitempty"`     // bytes to the destination
	Received int64         `json:"received,omitempty"` // bytes from it
	Duration time.Duration `json:"duration,omitempty"`
	Secrets  []string      `json:"secrets,omitempty"` // names of those that were put in
	Count    int           `json:"count,omitempty"`   // how often, where it is more than once
}

// Refusal is the event as what the guest tried and may not.
func (e Event) Refusal() paddock.Refusal {
	what := "connect"
	switch e.Kind {
	case KindDNS:
		what = "resolve"
	case KindHTTP:
		what = "request"
	}
	return paddock.Refusal{Time: e.Time, What: what, Target: e.Target(), Rule: e.Reason, Remedy: e.Hint, Count: max(e.Count, 1)}
}

// A Question is asked of a person where no rule decides.
type Question struct {
	Sandbox string `json:"sandbox,omitempty"`
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	UDP     bool   `json:"udp,omitempty"`
}

// An Answer is what the person said. The zero Answer denies.
type Answer string

const (
	AnswerDeny   Answer = ""       // this time
	AnswerOnce   Answer = "once"   // this connection
	AnswerAlways Answer = "always" // and all others to the same host and port
)

// Target is what the event is about, in one word.
func (e Event) Target() string {
	host := e.Host
	if host == "" {
		host = e.Address
	}
	if e.Port != 0 {
		host = net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
	}
	if e.Method != "" {
		return e.Method + " " + host + e.Path
	}
	return host
}
