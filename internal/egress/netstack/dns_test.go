package netstack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// server allows example.com and all names below it.
func server(asked *[]string) *DNSServer {
	return &DNSServer{Table: &NameTable{}, Lookup: func(h decide.Host) decide.Verdict {
		if asked != nil {
			*asked = append(*asked, h.String())
		}
		if h.String() == "example.com" || strings.HasSuffix(h.String(), ".example.com") || h.String() == "web" {
			return decide.Verdict{Allow: true, Rule: 3, Reason: "rules[3] allows it"}
		}
		return decide.Verdict{Rule: -1, Reason: "no rule allows " + h.String(), Hint: "--allow " + h.String()}
	}}
}

// A question is a DNS query of a test.
type question struct {
	name  string
	kind  dnsmessage.Type
	class dnsmessage.Class
	size  uint16 // of EDNS; 0 means none
	ext   uint32 // version and flags of EDNS
	tweak func(*dnsmessage.Message)
}

func (q question) pack(t testing.TB) []byte {
	t.Helper()
	name, err := dnsmessage.NewName(q.name)
	if err != nil {
		t.Fatal(err)
	}
	if q.class == 0 {
		q.class = dnsmessage.ClassINET
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 0xbeef, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: q.kind, Class: q.class}},
	}
	if q.size > 0 {
		m.Additionals = append(m.Additionals, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Type: dnsmessage.TypeOPT, Class: dnsmessage.Class(q.size), TTL: q.ext},
			Body:   &dnsmessage.OPTResource{},
		})
	}
	if q.tweak != nil {
		q.tweak(&m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask returns the answer as a message.
func (q question) ask(t testing.TB, s *DNSServer) (dnsmessage.Message, DNSExchange) {
	t.Helper()
	b, asked := s.Answer(q.pack(t), true)
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		t.Fatalf("%s: the answer: %v", q.name, err)
	}
	if !m.Response || m.ID != 0xbeef || !m.RecursionAvailable || m.Truncated {
		t.Errorf("%s: the answer's header is %s", q.name, m.GoString())
	}
	return m, asked
}

// reason returns the text of the extended error.
func reason(m dnsmessage.Message) string {
	for _, r := range m.Additionals {
		if o, ok := r.Body.(*dnsmessage.OPTResource); ok {
			for _, opt := range o.Options {
				if opt.Code == optionReason && binary.BigEndian.Uint16(opt.Data) == blocked {
					return string(opt.Data[2:])
				}
			}
		}
	}
	return ""
}

func TestAnAllowedNameHasOneAddressOfEachFamily(t *testing.T) {
	s := server(nil)
	for name, want := range map[dnsmessage.Type]string{dnsmessage.TypeA: "198.18.1.0", dnsmessage.TypeAAAA: "fd7a:6f74::1:0"} {
		m, asked := question{name: "eXaMpLe.CoM.", kind: name}.ask(t, s)
		if len(m.Answers) != 1 || m.RCode != 0 {
			t.Fatalf("%s: %s", name, m.GoString())
		}
		got := netip.Addr{}
		switch b := m.Answers[0].Body.(type) {
		case *dnsmessage.AResource:
			got = netip.AddrFrom4(b.A)
		case *dnsmessage.AAAAResource:
			got = netip.AddrFrom16(b.AAAA)
		}
		if got.String() != want || m.Answers[0].Header.TTL != 60 || m.Answers[0].Header.Name.String() != "eXaMpLe.CoM." || m.Questions[0].Name.String() != "eXaMpLe.CoM." {
			t.Errorf("%s: %s", name, m.GoString())
		}
		if asked.Code != "NOERROR" || !asked.Verdict.Allow || asked.Host.String() != "example.com" || asked.Verdict.Rule != 3 {
			t.Errorf("asked %+v", asked)
		}
		if h, ok := s.Table.Lookup(got); !ok || h.String() != "example.com" {
			t.Errorf("%s stands for %q", got, h)
		}
	}
	if m, _ := (question{name: "web.", kind: dnsmessage.TypeA}).ask(t, s); len(m.Answers) != 1 {
		t.Errorf("a name of one label: %s", m.GoString())
	}
}

func TestOtherRecordsOfAllowedNamesAreEmpty(t *testing.T) {
	s := server(nil)
	for _, kind := range []dnsmessage.Type{65, 64, dnsmessage.TypeTXT, dnsmessage.TypeMX, dnsmessage.TypeCNAME, dnsmessage.TypeNS, dnsmessage.TypeSOA, dnsmessage.TypeSRV, dnsmessage.TypeALL, 4711} {
		m, asked := question{name: "example.com.", kind: kind, size: 1232}.ask(t, s)
		if m.RCode != 0 || len(m.Answers) != 0 || asked.Code != "NOERROR" {
			t.Errorf("%s: %s", kind, m.GoString())
		}
	}
	for _, name := range []string{"_http._tcp.example.com.", "_25._tcp._x.example.com."} {
		for _, kind := range []dnsmessage.Type{dnsmessage.TypeSRV, dnsmessage.TypeA} {
			m, asked := question{name: name, kind: kind}.ask(t, s)
			if m.RCode != 0 || len(m.Answers) != 0 || asked.Host.String() != "example.com" {
				t.Errorf("%s %s: %s", name, kind, m.GoString())
			}
		}
	}
	if n := len(s.Table.Names()); n != 0 {
		t.Errorf("%d names have addresses that nobody was given", n)
	}
}

func TestADeniedNameDoesNotExistAndTheReasonIsTold(t *testing.T) {
	s := server(nil)
	q := question{name: "evil.test.", kind: dnsmessage.TypeA, size: 1232}
	m, asked := q.ask(t, s)
	if m.RCode != dnsmessage.RCodeNameError || len(m.Answers) != 0 || reason(m) != "no rule allows evil.test; to allow it: --allow evil.test" {
		t.Errorf("%s; the reason is %q", m.GoString(), reason(m))
	}
	if asked.Code != "NXDOMAIN" || asked.Verdict.Allow || asked.Host.String() != "evil.test" || asked.Type != "A" {
		t.Errorf("asked %+v", asked)
	}
	q.size = 0
	if m, _ := q.ask(t, s); m.RCode != dnsmessage.RCodeNameError || len(m.Additionals) != 0 {
		t.Errorf("without EDNS: %s", m.GoString())
	}
	if m, _ := (question{name: "_dns.resolver.arpa.", kind: 64}).ask(t, s); m.RCode != dnsmessage.RCodeNameError {
		t.Errorf("a service of a denied name: %s", m.GoString())
	}
	if n := len(s.Table.Names()); n != 0 {
		t.Errorf("%d denied names are in the table", n)
	}
}

func TestMalformedNamesAreAskedForNowhere(t *testing.T) {
	var asked []string
	s := server(&asked)
	for name, code := range map[string]dnsmessage.RCode{
		"x\x00.example.com.": dnsmessage.RCodeFormatError, "a/b.example.com.": dnsmessage.RCodeFormatError, "a b.example.com.": dnsmessage.RCodeFormatError,
		"ü.example.com.": dnsmessage.RCodeFormatError, "a\r\nb.example.com.": dnsmessage.RCodeFormatError, "-a.example.com.": dnsmessage.RCodeFormatError,
		"*.example.com.": dnsmessage.RCodeFormatError, "_x\x00._tcp.example.com.": dnsmessage.RCodeFormatError, "_.example.com.": dnsmessage.RCodeFormatError,
		"a_b.example.com.": dnsmessage.RCodeFormatError, "0x7f.1.": dnsmessage.RCodeFormatError, "127.1.": dnsmessage.RCodeFormatError,
		"1.2.3.4.": dnsmessage.RCodeRefused, ".": dnsmessage.RCodeRefused,
	} {
		m, a := question{name: name, kind: dnsmessage.TypeA, size: 1232}.ask(t, s)
		if m.RCode != code || len(m.Answers) != 0 || a.Verdict.Allow || a.Host.IsValid() {
			t.Errorf("%q: %s", name, m.GoString())
		}
		if strings.ContainsAny(a.Name, "\x00\r\nü") {
			t.Errorf("%q is recorded as it is", a.Name)
		}
	}
	if len(asked) != 0 {
		t.Errorf("asked for %q", asked)
	}
}

func TestLocalhostIsTheBox(t *testing.T) {
	var asked []string
	s := server(&asked)
	for _, name := range []string{"localhost.", "api.LOCALHOST."} {
		m, _ := question{name: name, kind: dnsmessage.TypeA}.ask(t, s)
		if a, ok := m.Answers[0].Body.(*dnsmessage.AResource); !ok || a.A != [4]byte{127, 0, 0, 1} {
			t.Errorf("%s: %s", name, m.GoString())
		}
		m, _ = question{name: name, kind: dnsmessage.TypeAAAA}.ask(t, s)
		if a, ok := m.Answers[0].Body.(*dnsmessage.AAAAResource); !ok || netip.AddrFrom16(a.AAAA) != netip.IPv6Loopback() {
			t.Errorf("%s: %s", name, m.GoString())
		}
	}
	if len(asked)+len(s.Table.Names()) != 0 {
		t.Errorf("asked for %q; %d names", asked, len(s.Table.Names()))
	}
}

func TestAddressesAreNamed(t *testing.T) {
	s := server(nil)
	if _, _, err := s.Table.Add(host(t, "example.com")); err != nil {
		t.Fatal(err)
	}
	six := func(digits string) string {
		var b strings.Builder
		for i := len(digits) - 1; i >= 0; i-- {
			b.WriteString(digits[i:i+1] + ".")
		}
		return b.String() + "ip6.arpa."
	}
	for name, want := range map[string]string{
		"0.1.18.198.in-addr.arpa.": "example.com.", "0.1.18.198.IN-ADDR.arpa.": "example.com.",
		six("fd7a6f74000000000000000000010000"): "example.com.",
		"1.0.18.198.in-addr.arpa.":              GatewayName + ".", six("fd7a6f74000000000000000000000001"): GatewayName + ".",
		"1.0.0.127.in-addr.arpa.":  "localhost.",
		"1.1.18.198.in-addr.arpa.": "", "8.8.8.8.in-addr.arpa.": "", "8.8.8.in-addr.arpa.": "", "in-addr.arpa.": "", "08.8.8.8.in-addr.arpa.": "",
		"x\x00.8.8.8.in-addr.arpa.": "", six("fd7a"): "", six("gd7a6f74000000000000000000010000"): "", six("fd7a6f74000000000000000000010001"): "",
	} {
		m, asked := question{name: name, kind: dnsmessage.TypePTR}.ask(t, s)
		got := ""
		if len(m.Answers) == 1 {
			p, ok := m.Answers[0].Body.(*dnsmessage.PTRResource)
			if !ok {
				t.Errorf("%s: %s", name, m.GoString())
				continue
			}
			got = p.PTR.String()
		}
		if got != want || (want == "") != (m.RCode == dnsmessage.RCodeNameError) || asked.Type != "PTR" {
			t.Errorf("%s is %q, want %q: %s", name, got, want, m.GoString())
		}
	}
	if m, _ := (question{name: "0.1.18.198.in-addr.arpa.", kind: dnsmessage.TypeA}).ask(t, s); len(m.Answers) != 0 || m.RCode != 0 {
		t.Errorf("another type: %s", m.GoString())
	}
}

func TestQueriesThatAreNone(t *testing.T) {
	s := server(nil)
	q := question{name: "example.com.", kind: dnsmessage.TypeA}.pack(t)
	response := bytes.Clone(q)
	response[2] |= 0x80
	for name, b := range map[string][]byte{"nothing": nil, "half a header": q[:7], "an answer": response} {
		if answer, asked := s.Answer(b, true); answer != nil || asked.Code != "" {
			t.Errorf("%s is answered: %x", name, answer)
		}
	}
	loop := append(bytes.Clone(q[:12]), 0xc0, 12, 0, 1, 0, 1)
	two := func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }
	opt := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Type: dnsmessage.TypeOPT, Class: 1232}, Body: &dnsmessage.OPTResource{}}
	record := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("a."), Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{}}
	odd := func(f func(*dnsmessage.Message)) []byte {
		return question{name: "example.com.", kind: dnsmessage.TypeA, tweak: f}.pack(t)
	}
	for name, row := range map[string]struct {
		query []byte
		code  string
	}{
		"no question":     {odd(func(m *dnsmessage.Message) { m.Questions = nil }), "FORMERR"},
		"two questions":   {odd(two), "FORMERR"},
		"a loop of names": {loop, "FORMERR"},
		"half a question": {q[:len(q)-3], "FORMERR"},
		"an answer in it": {odd(func(m *dnsmessage.Message) { m.Answers = []dnsmessage.Resource{record} }), "FORMERR"},
		"an authority":    {odd(func(m *dnsmessage.Message) { m.Authorities = []dnsmessage.Resource{record} }), "FORMERR"},
		"EDNS twice":      {odd(func(m *dnsmessage.Message) { m.Additionals = []dnsmessage.Resource{opt, opt} }), "FORMERR"},
		"many records": {odd(func(m *dnsmessage.Message) {
			m.Additionals = []dnsmessage.Resource{record, record, record, record, record}
		}), "FORMERR"},
		"another operation": {odd(func(m *dnsmessage.Message) { m.OpCode = 5 }), "NOTIMP"},
		"another class":     {question{name: "version.bind.", kind: dnsmessage.TypeTXT, class: dnsmessage.ClassCHAOS}.pack(t), "REFUSED"},
		"a zone":            {question{name: "example.com.", kind: dnsmessage.TypeAXFR}.pack(t), "REFUSED"},
		"OPT as type":       {question{name: "example.com.", kind: dnsmessage.TypeOPT}.pack(t), "FORMERR"},
		"another EDNS":      {question{name: "example.com.", kind: dnsmessage.TypeA, size: 1232, ext: 1 << 16}.pack(t), "BADVERS"},
	} {
		answer, asked := s.Answer(row.query, true)
		if asked.Code != row.code || asked.Verdict.Allow || len(answer) < 12 {
			t.Errorf("%s: %s, %x; want %s", name, asked.Code, answer, row.code)
			continue
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || len(m.Answers) != 0 {
			t.Errorf("%s: %v: %s", name, err, m.GoString())
		}
	}
	if n := len(s.Table.Names()); n != 0 {
		t.Errorf("%d names have addresses", n)
	}
}

func TestAnAnswerFitsIntoWhatTheAskerTakes(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 61)+".", 3) + strings.Repeat("b", 50) + ".example.com."
	s := server(nil)
	s.Lookup = func(decide.Host) decide.Verdict {
		return decide.Verdict{Rule: 1, Reason: strings.Repeat("é", 2000), Hint: "no"}
	}
	for size, most := range map[uint16]int{1: 512, 512: 512, 700: 700, 4096: 1232, 65535: 1232} {
		b, _ := s.Answer(question{name: long, kind: dnsmessage.TypeA, size: size}.pack(t), true)
		var m dnsmessage.Message
		if err := m.Unpack(b); err != nil || len(b) > most || len(b) < most-100 && most <= 700 {
			t.Errorf("EDNS of %d: %d bytes, %v", size, len(b), err)
		}
		if text := reason(m); text == "" || strings.Trim(text, "é") != "" {
			t.Errorf("EDNS of %d: the reason is %q", size, text)
		}
	}
	s = server(nil)
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		for _, size := range []uint16{0, 512} {
			b, asked := s.Answer(question{name: long, kind: kind, size: size}.pack(t), true)
			if len(b) > 512 || asked.Code != "NOERROR" {
				t.Errorf("%s: %d bytes, %s", kind, len(b), asked.Code)
			}
		}
	}
	if _, asked := s.Answer(question{name: long, kind: dnsmessage.TypePTR, size: 512}.pack(t), true); asked.Code != "NOERROR" {
		t.Errorf("asked %+v", asked)
	}
}

func TestAFullTableIsSaid(t *testing.T) {
	s := server(nil)
	s.Table.names = make([]decide.Host, MaxNames)
	m, asked := question{name: "example.com.", kind: dnsmessage.TypeA, size: 1232}.ask(t, s)
	if m.RCode != dnsmessage.RCodeServerFailure || asked.Verdict.Allow || !strings.Contains(reason(m), "65536 names") {
		t.Errorf("%s, %q", m.GoString(), reason(m))
	}
}

// A wire is a connection that records both directions.
type wire struct {
	io.Reader
	bytes.Buffer
}

func (w *wire) Read(b []byte) (int, error) { return w.Reader.Read(b) }

func framed(messages ...[]byte) []byte {
	var b []byte
	for _, m := range messages {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(m))), m...)
	}
	return b
}

func TestAStreamIsAnswered(t *testing.T) {
	q := question{name: "example.com.", kind: dnsmessage.TypeA}.pack(t)
	var record []DNSExchange
	w := &wire{Reader: bytes.NewReader(framed(q, q, q))}
	if err := server(nil).ServeStream(w, func(a DNSExchange) { record = append(record, a) }); err != nil || len(record) != 3 {
		t.Fatalf("%v; %d recorded", err, len(record))
	}
	one, _ := server(nil).Answer(q, false)
	if !bytes.Equal(w.Bytes(), framed(one, one, one)) {
		t.Errorf("answered %x", w.Bytes())
	}
}

func TestAStreamThatIsNoneEnds(t *testing.T) {
	q := question{name: "example.com.", kind: dnsmessage.TypeA}.pack(t)
	for name, row := range map[string]struct {
		say  []byte
		want error
	}{
		"a response":    {framed([]byte{0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0}), paddock.Invalid},
		"nothing":       {framed(nil), paddock.Invalid},
		"too long":      {framed(make([]byte, 5000)), paddock.Invalid},
		"half of one":   {framed(q)[:20], io.ErrUnexpectedEOF},
		"half a length": {framed(q)[:1], io.ErrUnexpectedEOF},
		"too many":      {bytes.Repeat(framed(q), dnsPerStream+5), paddock.Exhausted},
	} {
		w := &wire{Reader: bytes.NewReader(row.say)}
		if err := server(nil).ServeStream(w, nil); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(question{name: "example.com.", kind: dnsmessage.TypeA}.pack(f), true)
	f.Add(question{name: "evil.test.", kind: dnsmessage.TypeAAAA, size: 512}.pack(f), true)
	f.Add(question{name: "0.1.18.198.in-addr.arpa.", kind: dnsmessage.TypePTR, size: 4096}.pack(f), false)
	f.Add(question{name: "_http._tcp.example.com.", kind: dnsmessage.TypeSRV}.pack(f), false)
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1}, true)
	f.Fuzz(func(t *testing.T, query []byte, datagram bool) {
		s := server(nil)
		answer, asked := s.Answer(query, datagram)
		if answer == nil {
			return
		}
		if datagram && len(answer) > dnsLargest {
			t.Errorf("an answer of %d bytes", len(answer))
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || !m.Response || m.ID != binary.BigEndian.Uint16(query) {
			t.Fatalf("the answer %x: %v", answer, err)
		}
		if len(m.Answers) > 0 && (m.RCode != 0 || !asked.Verdict.Allow) {
			t.Errorf("%+v is answered: %s", asked, m.GoString())
		}
		for _, name := range s.Table.Names() {
			if name != "web" && !strings.HasSuffix("."+name, ".example.com") {
				t.Errorf("%q has an address", name)
			}
		}
	})
}
