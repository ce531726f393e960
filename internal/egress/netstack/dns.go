package netstack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// A DNSExchange is a query and its answer, for the log.
type DNSExchange struct {
	Host    decide.Host // the zero Host if the name is not a host
	Name    string      // as written, quoted if it holds characters that no name has
	Type    string      // "A", "AAAA", "PTR", …, "TYPE1234"
	Verdict decide.Verdict
	Code    string // of the answer: "NOERROR", "REFUSED", "FORMERR", …; empty without an answer
}

// A DNSServer answers the DNS queries of one sandbox.
type DNSServer struct {
	Table *NameTable
	// Lookup judges a query for a name; see decide.Rules.Lookup.
	Lookup func(decide.Host) decide.Verdict
}

// Bounds of queries and answers.
const (
	dnsSmall       = 512     // bytes of an answer by datagram, by default
	dnsLargest     = 1232    // fits any network without fragmentation
	dnsAdditionals = 4       // records besides the question
	dnsStreamQuery = 4 << 10 // bytes of a query by stream
	dnsPerStream   = 1000    // queries of one stream
)

// Answer returns the answer to a query, both in wire format. An answer by datagram is no longer than the query allows,
// with a default of 512 bytes: the reason in it is cut, and all else always fits. The answer is nil if the query is not
// a query. Answer never blocks.
func (s *DNSServer) Answer(query []byte, datagram bool) ([]byte, DNSExchange) {
	q, ok := readQuery(query)
	if !ok {
		return nil, DNSExchange{Verdict: decide.Verdict{Rule: -1, Reason: "not a query"}}
	}
	r := dnsReply{query: q, asked: DNSExchange{Verdict: decide.Verdict{Rule: -1}}}
	if q.hasName {
		r.asked.Name, r.asked.Type = written(q.question.Name), typeName(q.question.Type)
	}
	s.decide(&r)
	limit := 65535
	if datagram {
		limit = min(max(int(q.size), dnsSmall), dnsLargest)
	}
	answer, err := r.pack(limit)
	if err != nil {
		// Not expected, because everything that was read can be written.
		r.asked.Verdict = decide.Verdict{Rule: -1, Reason: err.Error()}
		return nil, r.asked
	}
	return answer, r.asked
}

// decide fills in the reply.
func (s *DNSServer) decide(r *dnsReply) {
	switch q := &r.query; {
	case q.fault != "":
		r.refuse(dnsmessage.RCodeFormatError, q.fault)
	case q.header.OpCode != 0:
		r.refuse(dnsmessage.RCodeNotImplemented, "only queries are answered")
	case q.version != 0:
		r.refuse(badVersion, "this version of EDNS is not known")
	case q.question.Class != dnsmessage.ClassINET:
		r.refuse(dnsmessage.RCodeRefused, "only the class IN is answered")
	case q.question.Type == typeIXFR, q.question.Type == dnsmessage.TypeAXFR:
		r.refuse(dnsmessage.RCodeRefused, "zones are not transferred")
	case q.question.Type == dnsmessage.TypeOPT:
		r.refuse(dnsmessage.RCodeFormatError, "OPT is no type of a name's records")
	case reverse(r, s.Table):
	default:
		s.decideName(r)
	}
}

// decideName answers a query for a name that may be a host.
func (s *DNSServer) decideName(r *dnsReply) {
	text, service := strings.TrimSuffix(r.query.question.Name.String(), "."), false
	for strings.HasPrefix(text, "_") {
		label, rest, more := strings.Cut(text, ".")
		if !more || !serviceLabel(label) {
			break
		}
		text, service = rest, true
	}
	if text == "" {
		r.refuse(dnsmessage.RCodeRefused, "the root is no host")
		return
	}
	h, err := decide.ParseHost(text)
	if _, isAddr := h.Addr(); err == nil && isAddr {
		r.refuse(dnsmessage.RCodeRefused, "an address is no name")
		return
	}
	if err != nil {
		r.refuse(dnsmessage.RCodeFormatError, "not the name of a host")
		return
	}
	r.asked.Host = h
	if local := h.String(); local == "localhost" || strings.HasSuffix(local, ".localhost") {
		r.asked.Verdict = decide.Verdict{Allow: true, Rule: -1, Reason: "it is the sandbox itself"}
		if !service {
			r.v4, r.v6 = loopback4, loopback6
		}
		return
	}
	if r.asked.Verdict = s.Lookup(h); !r.asked.Verdict.Allow {
		// Programs try REFUSED again, and other servers, for seconds. A name that does not exist is final.
		r.code = dnsmessage.RCodeNameError
		return
	}
	if service || (r.query.question.Type != dnsmessage.TypeA && r.query.question.Type != dnsmessage.TypeAAAA) {
		return
	}
	if r.v4, r.v6, err = s.Table.Add(h); err != nil {
		r.refuse(dnsmessage.RCodeServerFailure, err.Error())
	}
}

// serviceLabel reports whether a label is one of a service, such as "_tcp".
func serviceLabel(label string) bool {
	for i := range len(label) {
		switch c := label[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return len(label) > 1
}

// written returns a name for display.
func written(n dnsmessage.Name) string {
	s := n.String()
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			return strconv.QuoteToASCII(s)
		}
	}
	return s
}

// ServeStream answers queries over a connection (with a length of two bytes before each). It returns when the
// connection ends, sends something that is not a query, or has sent a thousand queries. It calls record, which may be
// nil, for each query. The caller sets deadlines.
func (s *DNSServer) ServeStream(c io.ReadWriter, record func(DNSExchange)) error {
	query := make([]byte, dnsStreamQuery)
	for range dnsPerStream {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		n := int(binary.BigEndian.Uint16(length[:]))
		if n > len(query) {
			return fmt.Errorf("a query of %d bytes: %w", n, paddock.Invalid)
		}
		if _, err := io.ReadFull(c, query[:n]); err != nil {
			return err
		}
		answer, asked := s.Answer(query[:n], false)
		if record != nil {
			record(asked)
		}
		if answer == nil {
			return fmt.Errorf("not a query: %w", paddock.Invalid)
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(answer)))
		if _, err := c.Write(append(framed, answer...)); err != nil {
			return err
		}
	}
	return fmt.Errorf("a connection asks at most %d times: %w", dnsPerStream, paddock.Exhausted)
}
