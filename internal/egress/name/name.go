// Package name gives each name that a box asks for an address that stands for
// it, and answers the box's DNS from that alone: no answer ever waits for, or
// leads to, a lookup on the host.
//
// Names that rules allow have an address of each family; all other types of
// records of them are empty, and so are the services that stand below them
// ("_http._tcp.example.com"), so that nothing points past the name. What is not
// allowed is refused, with the reason where the asker can read one (RFC 8914).
// Names of one label are names as all others. "localhost" and what stands below
// it is the box itself, whatever the rules say.
package name

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/rule"
)

// An Asked says what was asked for and what was answered, for the record.
type Asked struct {
	Host    rule.Host // the zero host where the name is not one
	Name    string    // as it was written, quoted where it holds anything else than a name's characters
	Type    string    // "A", "AAAA", "PTR", …, "TYPE1234"
	Verdict rule.Verdict
	Code    string // of the answer: "NOERROR", "REFUSED", "FORMERR", …; empty where there is no answer
}

// A Server answers queries of one box.
type Server struct {
	Table *Table
	// Lookup says whether a name may be asked for; see rule.Rules.Lookup.
	Lookup func(rule.Host) rule.Verdict
}

// What a query may have.
const (
	small       = 512     // bytes of an answer by datagram, where no other size is said
	largest     = 1232    // that goes through any network whole
	additionals = 4       // records besides the question
	streamed    = 4 << 10 // bytes of a query by stream
	perStream   = 1000    // queries of one
)

// Answer answers a query, as bytes to bytes. An answer by datagram is no longer
// than what the query says it takes, 512 bytes where it says nothing: the reason
// in it is cut, and all else always fits. It is nil where there can be none: the
// query is no query. It never blocks.
func (s *Server) Answer(query []byte, datagram bool) ([]byte, Asked) {
	q, ok := read(query)
	if !ok {
		return nil, Asked{Verdict: rule.Verdict{Rule: -1, Reason: "not a query"}}
	}
	r := reply{query: q, asked: Asked{Verdict: rule.Verdict{Rule: -1}}}
	if q.hasName {
		r.asked.Name, r.asked.Type = written(q.question.Name), typeName(q.question.Type)
	}
	s.decide(&r)
	limit := 65535
	if datagram {
		limit = min(max(int(q.size), small), largest)
	}
	answer, err := r.pack(limit)
	if err != nil {
		// What was read can be written, so this is not expected.
		r.asked.Verdict = rule.Verdict{Rule: -1, Reason: err.Error()}
		return nil, r.asked
	}
	return answer, r.asked
}

// decide fills the reply in.
func (s *Server) decide(r *reply) {
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

// decideName is about a name that may stand for a host.
func (s *Server) decideName(r *reply) {
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
	h, err := rule.ParseHost(text)
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
		r.asked.Verdict = rule.Verdict{Allow: true, Rule: -1, Reason: "it is the sandbox itself"}
		if !service {
			r.v4, r.v6 = loopback4, loopback6
		}
		return
	}
	if r.asked.Verdict = s.Lookup(h); !r.asked.Verdict.Allow {
		r.code = dnsmessage.RCodeRefused
		return
	}
	if service || (r.query.question.Type != dnsmessage.TypeA && r.query.question.Type != dnsmessage.TypeAAAA) {
		return
	}
	if r.v4, r.v6, err = s.Table.Add(h); err != nil {
		r.refuse(dnsmessage.RCodeServerFailure, err.Error())
	}
}

// serviceLabel tells whether a label is as those of services are: "_tcp".
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

// written is a name for people.
func written(n dnsmessage.Name) string {
	s := n.String()
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			return strconv.QuoteToASCII(s)
		}
	}
	return s
}

// ServeStream answers queries that come over a connection (two bytes of length
// before each), until it ends, says what is no query, or has asked a thousand.
// record is told of each; nil is nobody. The caller sets deadlines.
func (s *Server) ServeStream(c io.ReadWriter, record func(Asked)) error {
	query := make([]byte, streamed)
	for range perStream {
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
	return fmt.Errorf("a connection asks at most %d times: %w", perStream, paddock.Exhausted)
}
