package netstack

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Numbers that the library does not define.
const (
	typeIXFR   = dnsmessage.Type(251)
	badVersion = dnsmessage.RCode(16)

	optionReason = 15 // extended errors, RFC 8914
	blocked      = 15
)

const (
	ttl       = 60  // seconds; the address of a name never changes, but the rules may
	reasonMax = 600 // bytes of a reason
)

// A dnsQuery is a parsed query.
type dnsQuery struct {
	header   dnsmessage.Header
	hasName  bool
	question dnsmessage.Question
	fault    string // why it cannot be answered; empty if it can

	edns    bool
	size    uint16 // maximum size of the answer
	version uint8  // EDNS version
	dnssec  bool   // DNSSEC records are requested
}

// readQuery parses a query. It reports false if it cannot be answered at all.
func readQuery(b []byte) (q dnsQuery, ok bool) {
	var p dnsmessage.Parser
	var err error
	if q.header, err = p.Start(b); err != nil || q.header.Response {
		return q, false
	}
	if q.question, err = p.Question(); err != nil {
		q.fault = "no question that can be read"
		return q, true
	}
	q.hasName = true
	if _, err = p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		q.fault = "more than one question"
		return q, true
	}
	if err := p.SkipAllQuestions(); err != nil {
		q.fault = "no question that can be read"
		return q, true
	}
	if _, err = p.AnswerHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		q.fault = "a query with answers"
		return q, true
	}
	if _, err = p.AuthorityHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		q.fault = "a query with authorities"
		return q, true
	}
	q.fault = q.readAdditionals(&p)
	return q, true
}

func (q *dnsQuery) readAdditionals(p *dnsmessage.Parser) (fault string) {
	for range dnsAdditionals {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return ""
		}
		if err != nil || p.SkipAdditional() != nil {
			return "a record that cannot be read"
		}
		if h.Type != dnsmessage.TypeOPT {
			continue
		}
		if q.edns || h.Name.String() != "." {
			return "EDNS is said once, and of the root"
		}
		q.edns, q.size, q.version, q.dnssec = true, uint16(h.Class), uint8(h.TTL>>16), h.DNSSECAllowed()
	}
	if _, err := p.AdditionalHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return "too many records"
	}
	return ""
}

// A dnsReply is the answer to a query.
type dnsReply struct {
	query dnsQuery
	asked DNSExchange
	code  dnsmessage.RCode

	v4, v6 netip.Addr       // of the name; zero if there is none
	name   *dnsmessage.Name // of the queried address
}

func (r *dnsReply) refuse(code dnsmessage.RCode, reason string) {
	r.code = code
	r.asked.Verdict.Allow, r.asked.Verdict.Reason = false, reason
}

// reason returns the text for the client.
func (r *dnsReply) reason() string {
	v := r.asked.Verdict
	switch {
	case r.code == dnsmessage.RCodeSuccess || v.Allow || v.Reason == "", r.code == dnsmessage.RCodeNameError && v.Hint == "":
		return ""
	case v.Hint == "":
		return v.Reason
	}
	return v.Reason + "; to allow it: " + v.Hint
}

// pack encodes the message in at most limit bytes.
func (r *dnsReply) pack(limit int) ([]byte, error) {
	r.asked.Code = codeName(r.code)
	bare, err := r.packWith("")
	text := r.reason()
	if err != nil || text == "" || !r.query.edns {
		return bare, err
	}
	room := min(limit-len(bare)-6, reasonMax) // code and length of the option, and the error number
	if room <= 0 {
		return bare, nil
	}
	return r.packWith(strings.ToValidUTF8(text[:min(room, len(text))], ""))
}

func (r *dnsReply) packWith(reason string) ([]byte, error) {
	h := r.query.header
	b := dnsmessage.NewBuilder(make([]byte, 0, dnsSmall), dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired,
		RecursionAvailable: true, CheckingDisabled: h.CheckingDisabled, RCode: r.code & 15,
	})
	b.EnableCompression()
	var errs []error
	if r.query.hasName {
		errs = append(errs, b.StartQuestions(), b.Question(r.query.question), b.StartAnswers(), r.answer(&b))
	}
	if r.query.edns {
		errs = append(errs, b.StartAdditionals(), r.option(&b, reason))
	}
	out, err := b.Finish()
	return out, errors.Join(append(errs, err)...)
}

// answer adds the answer record.
func (r *dnsReply) answer(b *dnsmessage.Builder) error {
	h := dnsmessage.ResourceHeader{Name: r.query.question.Name, Class: dnsmessage.ClassINET, TTL: ttl}
	switch {
	case r.code != dnsmessage.RCodeSuccess:
	case r.query.question.Type == dnsmessage.TypeA && r.v4.IsValid():
		return b.AResource(h, dnsmessage.AResource{A: r.v4.As4()})
	case r.query.question.Type == dnsmessage.TypeAAAA && r.v6.IsValid():
		return b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: r.v6.As16()})
	case r.query.question.Type == dnsmessage.TypePTR && r.name != nil:
		return b.PTRResource(h, dnsmessage.PTRResource{PTR: *r.name})
	}
	return nil
}

// option adds the EDNS record.
func (r *dnsReply) option(b *dnsmessage.Builder, reason string) error {
	var h dnsmessage.ResourceHeader
	if err := h.SetEDNS0(dnsLargest, r.code, r.query.dnssec); err != nil {
		return err
	}
	var o dnsmessage.OPTResource
	if reason != "" {
		o.Options = []dnsmessage.Option{{Code: optionReason, Data: append(binary.BigEndian.AppendUint16(nil, blocked), reason...)}}
	}
	return b.OPTResource(h, o)
}

func typeName(t dnsmessage.Type) string {
	switch t {
	case 64:
		return "SVCB"
	case 65:
		return "HTTPS"
	case typeIXFR:
		return "IXFR"
	}
	if name, ok := strings.CutPrefix(t.String(), "Type"); ok {
		return name
	}
	return "TYPE" + strconv.Itoa(int(t))
}

func codeName(c dnsmessage.RCode) string {
	switch c {
	case dnsmessage.RCodeSuccess:
		return "NOERROR"
	case dnsmessage.RCodeFormatError:
		return "FORMERR"
	case dnsmessage.RCodeServerFailure:
		return "SERVFAIL"
	case dnsmessage.RCodeNameError:
		return "NXDOMAIN"
	case dnsmessage.RCodeNotImplemented:
		return "NOTIMP"
	case dnsmessage.RCodeRefused:
		return "REFUSED"
	case badVersion:
		return "BADVERS"
	}
	return "RCODE" + strconv.Itoa(int(c))
}
