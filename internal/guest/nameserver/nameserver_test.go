package nameserver

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func server(first func(Asked)) *Server {
	return New(func() (string, error) { return "Own", nil }, first)
}

func query(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 7, RecursionDesired: true})
	var h dnsmessage.ResourceHeader
	if err := errors.Join(b.StartQuestions(), b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}),
		b.StartAdditionals(), h.SetEDNS0(1232, dnsmessage.RCodeSuccess, false), b.OPTResource(h, dnsmessage.OPTResource{})); err != nil {
		t.Fatal(err)
	}
	data, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEveryNameButTheSandboxsOwnDoesNotExist(t *testing.T) {
	for _, tc := range []struct {
		name    string
		kind    dnsmessage.Type
		code    dnsmessage.RCode
		answer  string
		refused string
	}{
		{"example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", "example.com"},
		{"Example.COM.", dnsmessage.TypeAAAA, dnsmessage.RCodeNameError, "", "example.com"},
		{"_https._tcp.example.com.", dnsmessage.TypeSRV, dnsmessage.RCodeNameError, "", "example.com"},
		{"db.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", "db"},
		{".", dnsmessage.TypeNS, dnsmessage.RCodeNameError, "", ""},
		{"1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, "", ""},
		{"127.1.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", ""},
		{"a b.example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, "", ""},
		{"localhost.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "127.0.0.1", ""},
		{"x.localhost.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, "::1", ""},
		{"own.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "127.0.0.1", ""},
		{"own.", dnsmessage.TypeMX, dnsmessage.RCodeSuccess, "", ""},
	} {
		data, refused := server(nil).answer(query(t, tc.name, tc.kind))
		var m dnsmessage.Message
		if err := m.Unpack(data); err != nil {
			t.Errorf("%s: %v: % x", tc.name, err, data)
			continue
		}
		if !m.Response || m.ID != 7 || !m.RecursionDesired || !m.RecursionAvailable || m.RCode != tc.code || len(m.Questions) != 1 || m.Questions[0].Name.String() != tc.name {
			t.Errorf("%s: %s", tc.name, m.GoString())
		}
		if refused != tc.refused {
			t.Errorf("%s: %q is refused, and not %q", tc.name, refused, tc.refused)
		}
		got := ""
		for _, a := range m.Answers {
			switch r := a.Body.(type) {
			case *dnsmessage.AResource:
				got += "127.0.0.1"[:9*boolInt(r.A == [4]byte{127, 0, 0, 1})]
			case *dnsmessage.AAAAResource:
				got += "::1"[:3*boolInt(r.AAAA == [16]byte{15: 1})]
			}
		}
		if got != tc.answer {
			t.Errorf("%s: the answer is %q, and not %q", tc.name, got, tc.answer)
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestWhatIsNoQueryHasNoName(t *testing.T) {
	good := query(t, "example.com.", dnsmessage.TypeA)
	change := func(at int, b byte) []byte { c := bytes.Clone(good); c[at] = b; return c }
	for what, tc := range map[string]struct {
		query  []byte
		code   byte
		silent bool
	}{
		"nothing":           {nil, 0, true},
		"half a header":     {good[:7], 0, true},
		"an answer":         {change(2, 0x80), 0, true},
		"another operation": {change(2, 0x28), codeNotImplemented, false},
		"two questions":     {change(5, 2), codeFormat, false},
		"no question":       {good[:headerSize], codeFormat, false},
		"half a name":       {good[:headerSize+4], codeFormat, false},
		"a pointer":         {change(headerSize, 0xc0), codeFormat, false},
		"another class":     {change(headerSize+16, 3), codeRefused, false},
	} {
		answer, refused := server(nil).answer(tc.query)
		if refused != "" || (answer == nil) != tc.silent || answer != nil && answer[3]&15 != tc.code {
			t.Errorf("%s: % x, refused %q", what, answer, refused)
		}
	}
}

func TestANameIsListedOnceAndTheListIsBounded(t *testing.T) {
	var first []string
	s := server(func(a Asked) { first = append(first, a.Name) })
	at := time.Unix(1, 0)
	for range 3 {
		s.note("a.example", at)
	}
	if got := s.Asked(); len(got) != 1 || got[0].Count != 3 || !slices.Equal(first, []string{"a.example"}) {
		t.Errorf("%+v, first %q", got, first)
	}
	for i := range 2 * namesMax {
		s.note(strings.Repeat("x", i%60+1)+".example", at.Add(time.Duration(i)))
		s.note("a"+strings.Repeat("y", i/60)+strings.Repeat("x", i%60+1)+".example", at)
	}
	if got := s.Asked(); len(got) != namesMax {
		t.Errorf("%d names", len(got))
	}
}

func TestNamesOfAHostileListAreChecked(t *testing.T) {
	got := Refusals([]Asked{{Name: "a.example"}, {Name: "b.example\n--allow evil"}, {Name: "x --unprotect y"}, {Name: "UPPER.example"}, {Name: ""}, {Name: "$(x).example", Count: 9}})
	if len(got) != 1 || got[0].Target != "a.example" || got[0].Remedy != "--allow a.example" || got[0].Count != 1 {
		t.Errorf("%+v", got)
	}
	if n := len(Refusals(make([]Asked, 10*namesMax))); n != 0 {
		t.Errorf("%d refusals of nothing", n)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "example.com.", dnsmessage.TypeA))
	f.Add(query(f, "own.", dnsmessage.TypeAAAA))
	f.Add([]byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 63})
	f.Fuzz(func(t *testing.T, data []byte) {
		answer, refused := server(nil).answer(data)
		if answer == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || !m.Response || m.ID != uint16(data[0])<<8|uint16(data[1]) || len(answer) > len(data)+28 {
			t.Errorf("% x: % x: %v", data, answer, err)
		}
		if refused != "" && refused != host(refused) {
			t.Errorf("% x: %q", data, refused)
		}
	})
}
