package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const value = `s3cr3t/"<+&value-A0` // every encoding writes it differently

func store(t testing.TB, secrets ...paddock.Secret) *Store {
	t.Helper()
	s, err := New([]byte("seed"), secrets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// one returns a set with one secret at its places, and its placeholder.
func one(t testing.TB, places ...paddock.SecretPlace) (*Set, string) {
	t.Helper()
	secret := paddock.Secret{Name: "KEY", Value: value, Hosts: []string{"a.example"}, Places: places}
	s := store(t, secret)
	return s.Bound([]paddock.Secret{secret}), s.Environment()["KEY"]
}

// readAll reads everything with a clock that stands still while there is more to read. So bytes are
// never held back for longer than patience, however slow the machine is.
func readAll(t *testing.T, r io.Reader) (all []byte, err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { all, err = io.ReadAll(r) })
	return all, err
}

func request(t testing.TB, method, target, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHeaderAndQueryGetTheValue(t *testing.T) {
	set, p := one(t)
	r := request(t, "GET", "https://a.example/"+p+"?q=x"+p+"y&z", p)
	r.Host = p
	r.Header = http.Header{"Authorization": {"Bearer " + p}, "X-Two": {"a", p + p}, "Connection": {p}, "Proxy-Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+p))}, "X-Bad": {"Basic " + p}}
	used, err := set.Head(r)
	if err != nil || !slices.Equal(used, []string{"KEY"}) {
		t.Fatalf("%v, %v", used, err)
	}
	basic, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Header.Get("Proxy-Authorization"), "Basic "))
	switch {
	case err != nil || string(basic) != "user:"+value:
		t.Errorf("Basic authorization holds %q, %v", basic, err)
	case r.Header.Get("Authorization") != "Bearer "+value || r.Header.Values("X-Two")[1] != value+value:
		t.Errorf("the header is %q", r.Header)
	case r.URL.Query().Get("q") != "x"+value+"y":
		t.Errorf("the query is %q", r.URL.RawQuery)
	case r.Host != p || r.URL.Path != "/"+p || r.Header.Get("Connection") != p:
		t.Errorf("it is in places where it has none: %s, %s, %q", r.Host, r.URL.Path, r.Header)
	}
	body, keeps, _ := set.Body(r.Header, r.Body, nil)
	if b, err := io.ReadAll(body); err != nil || string(b) != p || !keeps {
		t.Errorf("the body is %q, %v", b, err)
	}
}

func TestOnlyPlacesOfTheSecretGetTheValue(t *testing.T) {
	for _, place := range []paddock.SecretPlace{paddock.SecretHeader, paddock.SecretQuery, paddock.SecretBody} {
		set, p := one(t, place)
		r := request(t, "POST", "https://a.example/?"+p, p)
		r.Header.Set("X", p)
		if _, err := set.Head(r); err != nil {
			t.Fatal(err)
		}
		body, _, _ := set.Body(r.Header, r.Body, nil)
		b, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := []bool{r.Header.Get("X") == value, r.URL.RawQuery == url.QueryEscape(value), string(b) == value}; !slices.Equal(got, []bool{place == paddock.SecretHeader, place == paddock.SecretQuery, place == paddock.SecretBody}) {
			t.Errorf("%s: it is put into %v", place, got)
		}
	}
}

func TestABodyIsWrittenAsItsTypeWants(t *testing.T) {
	set, p := one(t, paddock.SecretBody)
	for kind, write := range map[string]func(string) string{
		"application/json; charset=utf-8": jsonText, "application/vnd.x+json": jsonText, "application/x-www-form-urlencoded": url.QueryEscape, "text/plain": plain, "": plain, "multipart/form-data; boundary=x": plain, "application/xml": xmlEscape,
	} {
		for _, reader := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
			var used []string
			in := p[:5] + p + "," + p + "x" + p[:7]
			body, keeps, left := set.Body(http.Header{"Content-Type": {kind}}, io.NopCloser(reader(strings.NewReader(in))), func(n string) { used = append(used, n) })
			got, err := readAll(t, body)
			want := p[:5] + write(value) + "," + write(value) + "x" + p[:7]
			if err != nil || string(got) != want || left != "" || keeps != (len(write(value)) == len(p)) || !slices.Equal(used, []string{"KEY"}) {
				t.Errorf("%s: %q, want %q; %v, %q, %v", kind, got, want, err, left, used)
			}
		}
	}
	for _, h := range []http.Header{{"Content-Type": {"application/octet-stream"}}, {"Content-Type": {"application/grpc"}}, {"Content-Type": {"text/plain"}, "Content-Encoding": {"gzip"}}, {"Authorization": {"AWS4-HMAC-SHA256 Credential=x"}}} {
		body, keeps, left := set.Body(h, io.NopCloser(strings.NewReader(p)), nil)
		if b, err := io.ReadAll(body); err != nil || string(b) != p || !keeps || left == "" {
			t.Errorf("%v: %q, %v, %q", h, b, err, left)
		}
	}
}

func jsonText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return ""
	}
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}

func TestAnAnswerThatHoldsTheValueIsScrubbed(t *testing.T) {
	set, p := one(t)
	slashed := strings.ReplaceAll(jsonText(value), "/", `\/`)
	written := []string{value, url.QueryEscape(value), url.PathEscape(value), strings.ToLower(url.QueryEscape(value[:10])) + url.QueryEscape(value[10:]), jsonEscape(value), jsonText(value), slashed, xmlEscape(value)}
	written = slices.Delete(written, 3, 4)
	for _, text := range written {
		for _, reader := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader} {
			in := text[:3] + text + text + "tail" + text[:9]
			got, err := readAll(t, set.Scrub(io.NopCloser(reader(strings.NewReader(in)))))
			if want := text[:3] + p + p + "tail" + text[:9]; err != nil || string(got) != want {
				t.Errorf("%s becomes %q, %v", text, got, err)
			}
		}
		h := http.Header{"X-Echo": {"a" + text}}
		set.ScrubHeader(h)
		if h.Get("X-Echo") != "a"+p || set.ScrubText(text) != p {
			t.Errorf("%s in a header becomes %q", text, h)
		}
	}
}

func TestBase64OfTheValueIsScrubbedWhereverItStands(t *testing.T) {
	set, _ := one(t)
	for before := range 4 {
		for after := range 4 {
			text := strings.Repeat("u", before) + value + strings.Repeat("v", after)
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
				in := encoding.EncodeToString([]byte(text))
				got, err := readAll(t, set.Scrub(io.NopCloser(iotest.OneByteReader(strings.NewReader(in)))))
				if err != nil || len(got) != len(in) {
					t.Fatalf("%s becomes %s, %v", in, got, err)
				}
				plain, err := encoding.DecodeString(string(got))
				if err != nil || bytes.Contains(plain, []byte(value[2:8])) || bytes.Contains(plain, []byte(value[8:14])) {
					t.Errorf("%s becomes %s: %q, %v", in, got, plain, err)
				}
			}
		}
	}
}

func TestNoSecretsChangeNothing(t *testing.T) {
	s := store(t, paddock.Secret{Name: "KEY", Value: value})
	set := s.Bound(nil)
	if set != nil {
		t.Fatal("a set of none is not nil")
	}
	p := s.Environment()["KEY"]
	r := request(t, "GET", "https://a.example/?"+p, p)
	r.Header.Set("X", p)
	if used, err := set.Head(r); used != nil || err != nil || r.Header.Get("X") != p || r.URL.RawQuery != p {
		t.Errorf("%v, %v", used, err)
	}
	if set.ScrubText(value) != value || !set.KeepsLength() || set.Names() != nil {
		t.Error("it changes answers")
	}
}

// A program may wait for an answer whose last byte is the beginning of a secret.
func TestWhatMayBeginASecretIsNotHeldBackForLong(t *testing.T) {
	set, p := one(t)
	from, to := io.Pipe()
	s := set.Scrub(from)
	defer s.Close()
	go func() { _, _ = to.Write([]byte("ready s3")) }()
	b := make([]byte, 8)
	if _, err := io.ReadFull(s, b); err != nil || string(b) != "ready s3" {
		t.Fatalf("%q, %v", b, err)
	}
	// The rest of the secret is still recognised.
	go func() {
		_, _ = to.Write([]byte(value[2:] + "."))
		_ = to.Close()
	}()
	rest, err := io.ReadAll(s)
	if err != nil || string(rest) != p[2:]+"." {
		t.Fatalf("%q, %v", rest, err)
	}
}

func TestWhatIsSurelyTheBeginOfASecretIsHeldBack(t *testing.T) {
	set, _ := one(t)
	from, to := io.Pipe()
	s := set.Scrub(from)
	got := make(chan int, 1)
	go func() {
		b := make([]byte, 100)
		n, _ := s.Read(b)
		got <- n
	}()
	_, _ = to.Write([]byte(value[:12]))
	select {
	case n := <-got:
		t.Errorf("%d bytes of it came out", n)
	case <-time.After(5 * patience):
	}
	_ = s.Close()
	<-got
}

func FuzzReplace(f *testing.F) {
	f.Add([]byte("xabcabcdabx"), []byte("abcd"), []byte("ab"), uint8(1))
	f.Add([]byte("aaaaaaaaab"), []byte("aaab"), []byte("aab"), uint8(3))
	f.Add([]byte("abababac"), []byte("abac"), []byte("b"), uint8(2))
	f.Fuzz(func(t *testing.T, in, first, second []byte, size uint8) {
		if len(first) == 0 || len(second) == 0 || len(first) > 64 || len(second) > 64 {
			return
		}
		pairs := []pair{{from: first, to: []byte("<1>")}, {from: second, to: []byte("<2>")}}
		want := newExchange(pairs, nil, true).bytesOf(in)
		cut := &cutReader{rest: in, size: int(size%16) + 1}
		got, err := readAll(t, newStream(cut, newExchange(pairs, nil, true)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("in pieces of %d it is %q, whole %q", cut.size, got, want)
		}
		if !bytes.Contains(first, []byte("<")) && bytes.Contains(in, first) && !bytes.Contains(want, []byte("<")) {
			t.Fatalf("%q stays in %q", first, in)
		}
	})
}

type cutReader struct {
	rest []byte
	size int
}

func (c *cutReader) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), c.size)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func FuzzHead(f *testing.F) {
	set, p := one(f)
	f.Add("Bearer "+p, "a="+p, "20260101T000000Z")
	f.Add("Basic dTpw", p, "")
	f.Add("AWS4-HMAC-SHA256 Credential="+p+"/20260101/r/s3/aws4_request, SignedHeaders=host, Signature=0", "", "20260101T000000Z")
	f.Fuzz(func(t *testing.T, authorization, query, date string) {
		r := &http.Request{Method: "GET", Host: "a.example", URL: &url.URL{Scheme: "https", Host: "a.example", Path: "/", RawQuery: query}, Header: http.Header{"Authorization": {authorization}, "X-Amz-Date": {date}}}
		if _, err := set.Head(r); err != nil && strings.Contains(err.Error(), value) {
			t.Fatalf("an error tells the value: %v", err)
		}
	})
}

// A server may answer with a value in another case as often as its head has room.
func TestManyValuesInAnotherCaseAreReplacedInLinearTime(t *testing.T) {
	set, p := one(t)
	upper := strings.ToUpper(value)
	const n = 2 << 20
	start := time.Now()
	got := set.ScrubText(strings.Repeat(upper, n/len(upper)))
	if got != strings.Repeat(p, n/len(upper)) {
		t.Error("it is not all replaced")
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
