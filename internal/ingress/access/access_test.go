package access

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
)

const patience = time.Minute

// A yard is access control before one program, which stands for the port of any sandbox.
// acme has the sandbox box, other has theirs; their keys are the same words.
type yard struct {
	*httptest.Server
	access  *Control
	store   *store.Store
	dials   atomic.Int64
	seen    chan *http.Request
	shift   atomic.Int64 // of the clock
	last    atomic.Pointer[Visit]
	ended   atomic.Bool // the key with which URLs are signed
	asked   atomic.Int64
	callers atomic.Int64          // how often keys were looked up
	fault   atomic.Pointer[error] // of asking for it
}

func newYard(t *testing.T, base string) *yard {
	t.Helper()
	y := &yard{seen: make(chan *http.Request, 1)}
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-y.seen: // nobody asked
		default:
		}
		y.seen <- r
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "inside")
	}))
	t.Cleanup(inside.Close)
	var err error
	if y.store, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "state", "server.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { y.store.Close() })
	for _, name := range []string{"acme", "other"} {
		if err := y.store.AddTenant(t.Context(), store.Tenant{ID: name, Quota: store.Quota{Sandboxes: 10}, Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	y.add(t, "box", "acme", "token-1")
	y.add(t, "theirs", "other", "token-2")
	key, err := y.store.Secret(t.Context(), "ports")
	if err != nil {
		t.Fatal(err)
	}
	y.access, err = New(Options{
		Store: y.store, Key: key, Base: base,
		Now: func() time.Time { return time.Now().Add(time.Duration(y.shift.Load())) },
		Caller: func(r *http.Request) (Caller, error) {
			y.callers.Add(1)
			if len(r.Header) != 1 {
				t.Errorf("a key is looked up by a copy of the whole request: %v", r.Header)
			}
			name, looks := strings.CutPrefix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "look-")
			if name != "acme" && name != "other" {
				return Caller{}, fmt.Errorf("no such key: %w", paddock.Denied)
			}
			return Caller{Tenant: name, Who: "key-" + name, ReadOnly: looks}, nil
		},
		Live: func(_ context.Context, tenant, key string) (bool, error) {
			y.asked.Add(1)
			if err := y.fault.Load(); err != nil {
				return false, *err
			}
			return key == "key-"+tenant && !y.ended.Load(), nil
		},
		Dial: func(ctx context.Context, v Visit, _ paddock.ID, _ int) (net.Conn, error) {
			y.dials.Add(1)
			y.last.Store(&v)
			return (&net.Dialer{}).DialContext(ctx, "tcp", inside.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	y.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !y.access.Take(w, r) {
			_, _ = io.WriteString(w, "API")
		}
	}))
	t.Cleanup(func() { y.access.Close(); y.CloseClientConnections(); y.Close() })
	return y
}

func (y *yard) add(t *testing.T, id paddock.ID, tenant, token string) {
	t.Helper()
	b := store.Sandbox{ID: id, Tenant: tenant, Token: token, Place: "here", Tier: paddock.Sim, Created: time.Now()}
	if err := y.store.AddSandbox(t.Context(), b, func(*store.Total) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := y.store.ReadySandbox(t.Context(), token, id, paddock.Sim); err != nil {
		t.Fatal(err)
	}
}

// ask makes a request to a host, with headers.
func (y *yard) ask(t *testing.T, method, host, path string, header ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, y.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func (y *yard) wants(t *testing.T, want int, method, host, path string, header ...string) (*http.Response, string) {
	t.Helper()
	res, body := y.ask(t, method, host, path, header...)
	if res.StatusCode != want || want == http.StatusOK && body != "inside" {
		t.Errorf("%s %s%s %v: %d %q, not %d", method, host, path, header, res.StatusCode, body, want)
	}
	return res, body
}

// link signs a URL, and gives its path and query.
func (y *yard) link(t *testing.T, port int, ask api.Link) string {
	t.Helper()
	linked, err := y.access.Link(t.Context(), "acme", "key-acme", "box", port, ask)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(linked.URL)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d-box.example.com:7463", port); u.Host != want || u.Scheme != "http" {
		t.Errorf("%s is not at %s", linked.URL, want)
	}
	return u.RequestURI()
}

const (
	domain = "http://example.com:7463"
	host   = "8080-box.example.com"
)

func TestAPortIsPrivateUntilItsOwnerSaysOtherwise(t *testing.T) {
	y := newYard(t, domain)
	y.wants(t, 401, "GET", host, "/")
	for _, c := range []struct {
		want   int
		header []string
	}{
		{200, []string{"Authorization", "Bearer acme"}},
		{200, []string{"Paddock-Key", "acme"}},
		{200, []string{"Paddock-Key", "acme", "Authorization", "Bearer of-the-app"}},
		{401, []string{"Authorization", "Bearer wrong"}},
		{401, []string{"Authorization", "Basic YTpi"}},
		{403, []string{"Paddock-Key", "wrong"}},
		{403, []string{"Authorization", "Bearer look-acme"}},
		{404, []string{"Authorization", "Bearer other"}},
	} {
		y.wants(t, c.want, "GET", host, "/", c.header...)
	}
	if got := y.last.Load(); got.Tenant != "acme" || got.Who != "key-acme" || got.From == "" || got.Request == "" {
		t.Errorf("who came is told as %+v", got)
	}
}

func TestAnothersSandboxIsAnsweredAsOneThatDoesNotExist(t *testing.T) {
	y := newYard(t, domain)
	good, _, _ := strings.Cut(y.link(t, 8080, api.Link{}), "&")
	for _, header := range [][]string{nil, {"Authorization", "Bearer acme"}, {"Paddock-Key", "acme"}, {"Authorization", "Bearer look-acme"}} {
		for _, path := range []string{"/", "/?paddock-token=v2.1.k..x", good} {
			a, there := y.ask(t, "GET", "8080-theirs.example.com", path, header...)
			b, none := y.ask(t, "GET", "8080-nobody.example.com", path, header...)
			if a.StatusCode != b.StatusCode || strings.ReplaceAll(there, "theirs", "X") != strings.ReplaceAll(none, "nobody", "X") || a.StatusCode < 400 {
				t.Errorf("%v %s: %d %q and %d %q", header, path, a.StatusCode, there, b.StatusCode, none)
			}
		}
	}
	if y.dials.Load() != 0 {
		t.Error("a port was reached")
	}
}

// A proxy before this server may go by another of them.
func TestARequestNamesOnePort(t *testing.T) {
	y := newYard(t, domain)
	for _, header := range [][]string{
		{SandboxHeader, "box", PortHeader, "8080", PortHeader, "8080"},
		{SandboxHeader, "box", PortHeader, "8080", PortHeader, "9090"},
		{SandboxHeader, "box", SandboxHeader, "theirs", PortHeader, "8080"},
		{SandboxHeader, "box"},
	} {
		y.wants(t, 400, "GET", "api.test", "/", append(header, KeyHeader, "acme")...)
	}
	if y.dials.Load() != 0 || y.callers.Load() != 0 {
		t.Errorf("a port was reached %d times, a key was looked up %d times", y.dials.Load(), y.callers.Load())
	}
	y.wants(t, 200, "GET", "api.test", "/", SandboxHeader, "box", PortHeader, "8080", KeyHeader, "acme")
}

func TestOneRequestLooksUpFewKeys(t *testing.T) {
	y := newYard(t, domain)
	for _, name := range []string{KeyHeader, "X-Api-Key", "Authorization"} {
		var many []string
		for range 4000 {
			many = append(many, name, "a")
		}
		for _, box := range []string{host, "8080-nobody.example.com"} {
			y.wants(t, 400, "GET", box, "/", append(many, "Paddock-Key", "acme")...)
		}
	}
	if n := y.callers.Load(); n != 0 {
		t.Errorf("%d keys were looked up", n)
	}
	y.wants(t, 200, "GET", host, "/", "Paddock-Key", "acme", "X-Api-Key", "a", "Authorization", "Bearer a", "X-Other", "b")
	if n := y.callers.Load(); n > 3 {
		t.Errorf("%d keys of three were looked up", n)
	}
}

func TestAPublicPortIsForAnyoneUntilItIsClosed(t *testing.T) {
	y := newYard(t, domain)
	ctx := t.Context()
	p, err := y.access.SetPublic(ctx, "acme", "box", 8080, true)
	if want := (api.Port{Port: 8080, Public: true, URL: "http://8080-box.example.com:7463/"}); err != nil || p != want {
		t.Errorf("%+v, %v", p, err)
	}
	y.wants(t, 200, "POST", host, "/x", "Authorization", "Bearer of-the-app")
	if got := (<-y.seen).Header.Get("Authorization"); got != "Bearer of-the-app" {
		t.Errorf("what is the app's own became %q", got)
	}
	y.wants(t, 200, "GET", host, "/", "Authorization", "Bearer other", "Cookie", "a=b")
	if got := (<-y.seen).Header.Get("Authorization"); got != "" {
		t.Errorf("the guest sees the key: %q", got)
	}
	for _, header := range [][]string{{"Authorization", "bearer acme"}, {"Authorization", "acme"}, {"X-API-KEY", "acme"}} {
		y.wants(t, 200, "GET", host, "/", header...)
		if r := <-y.seen; len(r.Header["Authorization"])+len(r.Header["X-Api-Key"]) > 0 {
			t.Errorf("%v: the guest sees the key: %v", header, r.Header)
		}
	}
	y.wants(t, 200, "GET", host, "/", "X-API-KEY", "of-the-app")
	if got := (<-y.seen).Header.Get("X-Api-Key"); got != "of-the-app" {
		t.Errorf("what is the app's own became %q", got)
	}
	y.wants(t, 400, "GET", host, "/", "Authorization", "Bearer of-the-app", "Authorization", "Bearer acme")
	y.wants(t, 400, "GET", host, "/", "X-API-KEY", "of-the-app", "X-API-KEY", "acme")
	y.wants(t, 401, "GET", "8081-box.example.com", "/")
	if _, err := y.access.SetPublic(ctx, "other", "box", 8080, false); paddock.KindOf(err) != paddock.NotFound {
		t.Errorf("another closes it: %v", err)
	}
	y.wants(t, 200, "GET", host, "/")

	ended := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, "GET", y.URL+"/hang", nil)
		req.Host = host
		res, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			res.Body.Close()
			err = fmt.Errorf("%s", res.Status)
		}
		ended <- err
	}()
	for r := <-y.seen; r.URL.Path != "/hang"; r = <-y.seen {
	}
	if p, err := y.access.SetPublic(ctx, "acme", "box", 8080, false); err != nil || p.Public {
		t.Errorf("%+v, %v", p, err)
	}
	select {
	case err := <-ended:
		if !strings.Contains(err.Error(), "502") {
			t.Errorf("what was open ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("what was open goes on")
	}
	y.wants(t, 401, "GET", host, "/")
}

func TestWhatIsSaidOfAPortIsThereForTheNextServer(t *testing.T) {
	y := newYard(t, domain)
	if _, err := y.access.SetPublic(t.Context(), "acme", "box", 8080, true); err != nil {
		t.Fatal(err)
	}
	link := y.link(t, 81, api.Link{})
	key, err := y.store.Secret(t.Context(), "ports")
	if err != nil {
		t.Fatal(err)
	}
	o := y.access.o
	o.Key = key
	y.access.Close()
	if y.access, err = New(o); err != nil {
		t.Fatal(err)
	}
	y.wants(t, 200, "GET", host, "/")
	y.wants(t, 200, "GET", "81-box.example.com", link)
}

func TestASignedURLLetsInUntilItEnds(t *testing.T) {
	y := newYard(t, domain)
	link := y.link(t, 8080, api.Link{})
	res, _ := y.wants(t, 200, "GET", host, link+"&a=1&%zz&b")
	if got := (<-y.seen).RequestURI; got != "/?a=1&%zz&b" {
		t.Errorf("the guest sees %q", got)
	}
	cookie := res.Header.Get("Set-Cookie")
	for _, part := range []string{"paddock-port=v2.", "; Path=/", "; HttpOnly", "; SameSite=Lax", "; Max-Age=36"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("%q has no %q", cookie, part)
		}
	}
	if strings.Contains(cookie, "Domain") {
		t.Errorf("%q is for other hosts", cookie)
	}
	show, _, _ := strings.Cut(cookie, ";")
	y.wants(t, 200, "GET", host, "/page", "Accept", "text/html", "Cookie", "x=y; "+show)
	if got := (<-y.seen).Header.Get("Cookie"); got != "x=y" {
		t.Errorf("the guest sees the cookies %q", got)
	}
	y.shift.Store(int64(time.Hour + 2*time.Second))
	if _, body := y.wants(t, 403, "GET", host, link); !strings.Contains(body, "ended at") {
		t.Errorf("%q", body)
	}
	y.wants(t, 403, "GET", host, "/", "Accept", "text/html", "Cookie", show)
}

func TestASignatureIsForOnePortOfOneIncarnationAlone(t *testing.T) {
	y := newYard(t, domain)
	ctx := t.Context()
	link := y.link(t, 8080, api.Link{})
	y.wants(t, 200, "GET", host, link)
	forged := link[:len(link)-2] + "AA"
	if forged == link {
		forged = link[:len(link)-2] + "BA"
	}
	for _, c := range [][2]string{
		{"8081-box.example.com", link}, {"8080-theirs.example.com", link}, {host, forged}, {host, "/?paddock-token="},
		{host, strings.Replace(link, "v2.", "v2.9", 1)}, {host, strings.Replace(link, "v2.", "v1.", 1)}, {host, strings.Replace(link, ".key-acme.", ".key-other.", 1)}, {host, strings.Replace(link, ".key-acme.", ".", 1)}, {host, link + "="},
	} {
		y.wants(t, 403, "GET", c[0], c[1])
	}
	y.wants(t, 400, "GET", host, link+"&paddock-token=x")
	y.wants(t, 400, "GET", host, link+"&%70addock-token=x")

	if _, err := y.access.SetPublic(ctx, "acme", "box", 8081, false); err != nil { // another port
		t.Fatal(err)
	}
	y.wants(t, 200, "GET", host, link)
	if _, err := y.access.SetPublic(ctx, "acme", "box", 8080, false); err != nil {
		t.Fatal(err)
	}
	y.wants(t, 403, "GET", host, link)
	link = y.link(t, 8080, api.Link{})
	y.wants(t, 200, "GET", host, link)

	if err := y.store.ForgetSandbox(ctx, "token-1"); err != nil {
		t.Fatal(err)
	}
	y.wants(t, 403, "GET", host, link)
	y.add(t, "box", "acme", "token-3") // of the same name
	y.link(t, 8080, api.Link{})
	y.wants(t, 403, "GET", host, link)
}

func TestWhatAKeySignedEndsWithTheKey(t *testing.T) {
	y := newYard(t, domain)
	link := y.link(t, 8080, api.Link{})
	res, _ := y.wants(t, 200, "GET", host, link)
	show, _, _ := strings.Cut(res.Header.Get("Set-Cookie"), ";")
	cookie := []string{"Accept", "text/html", "Cookie", show}
	for range 20 {
		y.wants(t, 200, "GET", host, "/", cookie...)
	}
	before := y.asked.Load()
	if before < 1 {
		t.Error("nobody was asked")
	}

	y.shift.Add(int64(liveTime))
	y.ended.Store(true)
	if _, body := y.wants(t, 403, "GET", host, link); !strings.Contains(body, "ended with the key") {
		t.Errorf("%q", body)
	}
	y.wants(t, 403, "GET", host, "/", cookie...)
	if y.asked.Load() != before+2 {
		t.Errorf("asked %d times, then %d", before, y.asked.Load())
	}

	fault := fmt.Errorf("the database: %w", paddock.Internal)
	y.fault.Store(&fault)
	if _, body := y.wants(t, 502, "GET", host, link); strings.Contains(body, "database") {
		t.Errorf("%q", body)
	}
	for _, key := range []string{"", "a.b", "K", strings.Repeat("k", longestKey+1)} {
		if _, err := y.access.Link(t.Context(), "acme", key, "box", 80, api.Link{}); paddock.KindOf(err) != paddock.Denied {
			t.Errorf("a URL is signed for the key %q: %v", key, err)
		}
	}
}

func TestThatAKeyIsLiveIsKnownForAMomentAndOfSomeAlone(t *testing.T) {
	var l lives
	var asked int
	now := time.Unix(1_900_000_000, 0)
	alive := func(who holder, at time.Time) {
		t.Helper()
		if ok, err := l.alive(t.Context(), who, at, func(context.Context, string, string) (bool, error) { asked++; return true, nil }); !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	}
	for i, at := range []time.Duration{0, liveTime - 1, liveTime, 0} { // the last is a clock that goes back
		alive(holder{"a", "k"}, now.Add(at))
		if want := []int{1, 1, 2, 3}[i]; asked != want {
			t.Errorf("%v: asked %d times, not %d", at, asked, want)
		}
	}
	alive(holder{"b", "k"}, now)
	if asked != 4 {
		t.Error("one tenant's key is another's")
	}
	for i := range 3 * liveMost {
		alive(holder{"a", fmt.Sprint(i)}, now)
	}
	if len(l.seen) > liveMost {
		t.Errorf("%d are kept", len(l.seen))
	}
}

func TestASignatureWithAPathIsForWhatIsBelowIt(t *testing.T) {
	y := newYard(t, domain)
	_, query, _ := strings.Cut(y.link(t, 8080, api.Link{Path: "/a/b"}), "?")
	for path, want := range map[string]int{
		"/a/b": 200, "/a/b/": 200, "/a/b/c": 200, "/a/b/%C3%A9": 200, "/": 403, "/a": 403, "/a/bc": 403, "/a/b/../../x": 403, "/a/b/%2e%2e/%2e%2e/x": 403,
		"/a/b/..%2f..%2fx": 403, "/a/b/..;/..;/x": 403, "/a/b//x": 403, "/a/b/./x": 403, "//a/b": 403, "/a/b/%5c..%5cx": 403, "/a/b/%252e%252e/x": 403, "/A/b": 403,
	} {
		y.wants(t, want, "GET", host, path+"?"+query)
	}
	for _, bad := range []string{"a", "/a/../b", "/a//b", "/a?b", "/%2e", "/a b", "/a\\b", "/" + strings.Repeat("a", 2000), "/é", "/a;b", "/a#"} {
		if _, err := y.access.Link(t.Context(), "acme", "key-acme", "box", 80, api.Link{Path: bad}); paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestALinkIsForTheOwnerAndForATime(t *testing.T) {
	y := newYard(t, domain)
	for _, d := range []time.Duration{-1, time.Millisecond, 7*24*time.Hour + 1} {
		if _, err := y.access.Link(t.Context(), "acme", "key-acme", "box", 80, api.Link{Lifetime: d}); paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%v: %v", d, err)
		}
	}
	for _, id := range []paddock.ID{"theirs", "nobody"} {
		_, err := y.access.Link(t.Context(), "acme", "key-acme", id, 80, api.Link{})
		if paddock.KindOf(err) != paddock.NotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
	bare := newYard(t, "")
	if _, err := bare.access.Link(t.Context(), "acme", "key-acme", "box", 80, api.Link{}); paddock.KindOf(err) != paddock.Unsupported || !strings.Contains(err.Error(), "--domain") {
		t.Errorf("without a domain: %v", err)
	}
	if p, err := bare.access.SetPublic(t.Context(), "acme", "box", 80, true); err != nil || p != (api.Port{Port: 80, Public: true}) {
		t.Errorf("without a domain: %+v, %v", p, err)
	}
}

func TestAPageInABrowserLosesTheParameterBeforeItRuns(t *testing.T) {
	y := newYard(t, "https://example.com")
	linked, err := y.access.Link(t.Context(), "acme", "key-acme", "box", 8080, api.Link{Path: "/a"})
	if err != nil || !strings.HasPrefix(linked.URL, "https://8080-box.example.com/a?") {
		t.Fatalf("%+v %v", linked, err)
	}
	u, _ := url.Parse(linked.URL)
	res, _ := y.wants(t, 303, "GET", host, u.RequestURI()+"&b=%20c", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document")
	cookie := res.Header.Get("Set-Cookie")
	if res.Header.Get("Location") != "/a?b=%20c" || !strings.HasPrefix(cookie, "__Host-paddock-port=") || !strings.Contains(cookie, "; Secure") || res.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%v", res.Header)
	}
	res, _ = y.wants(t, 403, "GET", host, "//evil.example/a?"+u.RawQuery, "Accept", "text/html")
	if res.Header.Get("Location") != "" {
		t.Errorf("%v", res.Header)
	}
	if y.dials.Load() != 0 {
		t.Error("the guest was asked")
	}
	show, _, _ := strings.Cut(cookie, ";")
	y.wants(t, 200, "GET", host, "/a", "Cookie", show, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document")
	if got := (<-y.seen).Header.Get("X-Forwarded-Proto"); got != "https" {
		t.Errorf("X-Forwarded-Proto: %q", got)
	}
}

func TestACookieCountsForThePageOfItsOwnHostAlone(t *testing.T) {
	y := newYard(t, domain)
	res, _ := y.wants(t, 200, "GET", host, y.link(t, 8080, api.Link{}))
	show, _, _ := strings.Cut(res.Header.Get("Set-Cookie"), ";")
	for _, c := range []struct {
		want   int
		method string
		header []string
	}{
		{200, "POST", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}},
		{200, "GET", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}},
		{200, "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{200, "POST", []string{"Origin", "http://" + host}},
		{200, "GET", []string{"Accept", "text/html,*/*;q=0.8"}},
		{200, "GET", []string{"Referer", "http://" + host + "/page"}},
		{401, "GET", nil},
		{401, "GET", []string{"Accept", "image/*"}},
		{401, "GET", []string{"Accept", "text/html", "Referer", "http://81-box.example.com/"}},
		{401, "GET", []string{"Referer", "/page"}},
		{401, "POST", []string{"Accept", "text/html", "Referer", "http://" + host + "/page"}},
		{401, "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}},
		{401, "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		{401, "POST", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{401, "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "websocket"}},
		{401, "POST", []string{"Origin", "http://81-box.example.com"}},
		{401, "GET", []string{"Origin", "null"}},
		{401, "GET", []string{"Connection", "Upgrade", "Upgrade", "websocket"}},
		{401, "POST", nil},
	} {
		y.wants(t, c.want, c.method, host, "/", append([]string{"Cookie", show}, c.header...)...)
	}
	y.wants(t, 401, "GET", host, "/", "Cookie", show+"; "+show)
	y.wants(t, 403, "GET", "81-box.example.com", "/", "Accept", "text/html", "Cookie", show)
}

func TestAHostOfTheDomainIsNeverTheServer(t *testing.T) {
	y := newYard(t, domain)
	for _, name := range []string{"x.example.com", "8080-box.example.com.", "a.8080-box.example.com", "080-box.example.com", "8080-BOX-.example.com"} {
		y.wants(t, 404, "GET", name, "/", "Authorization", "Bearer acme")
	}
	for _, name := range []string{"example.com", "example.com:7463", "127.0.0.1", "localhost", "8080-box.example.org"} {
		if res, body := y.ask(t, "GET", name, "/"); body != "API" {
			t.Errorf("%s: %d %q", name, res.StatusCode, body)
		}
	}
	y.wants(t, 200, "GET", "8080-BOX.Example.COM:99", "/healthz", "Authorization", "Bearer acme")
}

func TestAHeaderNamesAPortForPrograms(t *testing.T) {
	y := newYard(t, "")
	name := []string{"Paddock-Sandbox", "box", "Paddock-Port", "8080"}
	key := append([]string{"Authorization", "Bearer acme"}, name...)
	res, _ := y.wants(t, 200, "GET", "anything", "/x", key...)
	r := <-y.seen
	if r.Header.Get("Paddock-Sandbox") != "" || r.Header.Get("Authorization") != "" || r.Host != "anything" {
		t.Errorf("the guest sees %v", r.Header)
	}
	if !strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%v", res.Header)
	}
	y.wants(t, 401, "GET", "anything", "/", name...)
	y.wants(t, 404, "GET", "anything", "/", "Authorization", "Bearer other", "Paddock-Sandbox", "box", "Paddock-Port", "8080")
	y.wants(t, 403, "GET", "anything", "/", append([]string{"Sec-Fetch-Site", "same-origin"}, key...)...)
	for _, bad := range [][]string{
		{"Paddock-Sandbox", "box"}, {"Paddock-Sandbox", "box", "Paddock-Port", "0"}, {"Paddock-Sandbox", "box", "Paddock-Port", "08"},
		{"Paddock-Sandbox", "BOX", "Paddock-Port", "80"}, {"Paddock-Sandbox", "box", "Paddock-Sandbox", "theirs", "Paddock-Port", "80"}, {"Paddock-Sandbox", ""},
	} {
		y.wants(t, 400, "GET", "anything", "/", append([]string{"Authorization", "Bearer acme"}, bad...)...)
	}
}

func TestAHostWinsOverAHeader(t *testing.T) {
	y := newYard(t, domain)
	y.wants(t, 404, "GET", "8080-theirs.example.com", "/", "Authorization", "Bearer acme", "Paddock-Sandbox", "box", "Paddock-Port", "8080")
}

func TestAHostHasACertificateOnceItsOwnerGaveItOut(t *testing.T) {
	y := newYard(t, domain)
	ctx := t.Context()
	for _, name := range []string{host, "8080-nobody.example.com", "example.org", "x.example.com", ""} {
		if err := y.access.Certifiable(ctx, name); err == nil {
			t.Errorf("%q may have one", name)
		}
	}
	y.link(t, 8080, api.Link{})
	if err := y.access.Certifiable(ctx, host); err != nil {
		t.Error(err)
	}
}

func TestAGateNeedsWhatItJudgesBy(t *testing.T) {
	good := newYard(t, domain).access.o
	for name, change := range map[string]func(*Options){
		"store": func(o *Options) { o.Store = nil }, "key": func(o *Options) { o.Key = o.Key[:16] }, "caller": func(o *Options) { o.Caller = nil },
		"dial": func(o *Options) { o.Dial = nil }, "scheme": func(o *Options) { o.Base = "ftp://example.com" }, "base": func(o *Options) { o.Base = "example.com" },
		"domain": func(o *Options) { o.Base = "http://" }, "port": func(o *Options) { o.Base = "http://example.com:x" },
	} {
		o := good
		change(&o)
		if _, err := New(o); paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What follows on a connection is judged anew.
func TestEachRequestOfAConnectionIsJudged(t *testing.T) {
	y := newYard(t, domain)
	c, err := net.Dial("tcp", strings.TrimPrefix(y.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(c)
	for _, ask := range []struct {
		line string
		want int
	}{{"Authorization: Bearer acme\r\n", 200}, {"", 401}, {"Authorization: Bearer other\r\n", 404}, {"Authorization: Bearer acme\r\n", 200}} {
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n", host, ask.line)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if res.StatusCode != ask.want {
			t.Errorf("%q: %d", ask.line, res.StatusCode)
		}
	}
}

func FuzzSignature(f *testing.F) {
	key := []byte("0123456789abcdef0123456789abcdef")
	now := time.Unix(1_900_000_000, 0)
	good := claim{id: "box", token: "t", epoch: 1, port: 80}
	p := pass{expires: now.Add(time.Hour), key: "k1", path: "/a"}
	f.Add(seal(key, good, p), "box", "t", int64(1), 80)
	f.Add(seal(key, good, pass{expires: now, key: "k1"}), "box", "t", int64(1), 80)
	f.Add("v2.1.k1..", "box", "t", int64(1), 80)
	f.Fuzz(func(t *testing.T, text, id, token string, epoch int64, port int) {
		asked := claim{id: paddock.ID(id), token: token, epoch: epoch, port: port}
		got, err := open(key, asked, text, now)
		if q, _, ok := parse(text); ok {
			again, _, ok := parse(seal(key, asked, q))
			if !ok || again != q {
				t.Fatalf("%q is read as %v, then %v", text, q, again)
			}
		}
		if err == nil && (seal(key, asked, got) != text || !now.Before(got.expires)) {
			t.Fatalf("%q was not signed", text)
		}
		if err == nil && asked != good {
			t.Fatalf("%q is good for %+v", text, asked)
		}
	})
}
