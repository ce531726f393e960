package gatewayclient

import (
	"context"
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
	KindProxy = "proxy" // an error in the protocols of the gateway's own proxies
	KindRules = "rules" // the sandbox's network as a whole
)

// Verdicts of events.
const (
	VerdictAllow = "allow"
	VerdictDeny  = "deny"
)

// An Event is one decision, or its result: the gateway sends the event of an allowed connection when the connection
// ends. Every text is data, and may be the guest's.
type Event struct {
	Time    time.Time `json:"time"`
	Sandbox string    `json:"sandbox,omitempty"`
	Kind    string    `json:"kind"`
	Host    string    `json:"host,omitempty"`
	Address string    `json:"address,omitempty"` // the address dialled
	Port    uint16    `json:"port,omitempty"`
	Method  string    `json:"method,omitempty"`
	Path    string    `json:"path,omitempty"` // without the query
	Status  int       `json:"status,omitempty"`
	Rule    int       `json:"rule"` // index of the rule that decided; -1 if none
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason,omitempty"`
	Hint    string    `json:"hint,omitempty"` // how to allow it

	Sent     int64         `json:"sent,omitempty"`     // bytes to the destination
	Received int64         `json:"received,omitempty"` // bytes from it
	Duration time.Duration `json:"duration,omitempty"`
	Secrets  []string      `json:"secrets,omitempty"` // names of the secrets put into the request
	Count    int           `json:"count,omitempty"`   // how many like events this one stands for, if more than one
}

// Refusal returns the event as a refusal for the sandbox's status.
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

// A Question asks a person about a connection that no rule covers, or a judge about one that is allowed.
type Question struct {
	Sandbox string `json:"sandbox,omitempty"`
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	UDP     bool   `json:"udp,omitempty"`

	// Of a question to the judge: a rule allows it, or else a person did; and the name of the secret that is about to be put
	// into a request to the host, or empty for the first connection to it.
	Judge  bool   `json:"judge,omitempty"`
	Rule   bool   `json:"rule,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// A Judge decides about what the rules, or a person, allow. It may deny.
type Judge interface {
	// Judge answers a question. It is called concurrently, and ctx ends when the answer is no longer needed.
	Judge(ctx context.Context, q Question) Judgement
	// Told is called with each event, one after another. It must not block.
	Told(e Event)
}

// A Judgement is the answer of a judge. The zero Judgement denies.
type Judgement struct {
	Allow  bool
	Reason string // of a denial
}

// An Answer is a person's answer to a Question. The zero Answer denies.
type Answer string

const (
	AnswerDeny   Answer = ""       // this time
	AnswerOnce   Answer = "once"   // this connection
	AnswerAlways Answer = "always" // and all others to the same host and port
)

// Target returns the destination of the event, for people: a host, a host with port, or a method and URL.
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
