package agentlogin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// jwt makes a token with claims and a signature that says what it is.
func jwt(claims, signature string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("the real signature of "+signature))
}

// A server is the scripted server of a login: each refresh token is good once.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	turn     int      // of the rotation
	bodies   []string // that were asked for tokens
	lifetime int      // of access tokens, in seconds
	answer   http.HandlerFunc
	before   func() // is called before an answer
}

func (s *server) real(what string, turn int) string {
	if what == "id" {
		return jwt(`{"email":"me@example.com","turn":`+strconv.Itoa(turn)+`}`, fmt.Sprint("id", turn))
	}
	return fmt.Sprintf("sk-real-%s-%d-abcdefghijklmnop", what, turn)
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{lifetime: 3600}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.token))
	t.Cleanup(s.Close)
	return s
}

func (s *server) token(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, string(body))
	if s.before != nil {
		s.before()
	}
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	asked := struct {
		Refresh string `json:"refresh_token"`
	}{}
	if r.Header.Get("Content-Type") == "application/json" {
		_ = json.Unmarshal(body, &asked)
	} else if v, err := url.ParseQuery(string(body)); err == nil {
		asked.Refresh = v.Get("refresh_token")
	}
	if asked.Refresh != s.real("refresh", s.turn) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"used: %s"}`, asked.Refresh)
		return
	}
	s.turn++
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"id_token":%q,"expires_in":%d,"other":%q}`,
		s.real("access", s.turn), s.real("refresh", s.turn), s.real("id", s.turn), s.lifetime, s.real("access", s.turn))
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func (s *server) section() Section {
	return Section{
		Name: "Claude subscription", File: "~/.claude/.credentials.json", Access: "oauth.accessToken", Refresh: "oauth.refreshToken", ID: "oauth.id",
		Expires: Expiry{"oauth.expiresAt", "ms"}, Scopes: "oauth.scopes", Keep: []string{"oauth.plan"},
		Use:       []Use{{Host: "api.test", Paths: []string{"/v1/messages", "/v1/models/*"}}},
		Endpoints: []string{s.URL + "/oauth/token"}, Clients: []string{"the-client"}, Login: "claude, then /login",
	}
}

// write writes the file of the host as its agent does.
func (s *server) write(t *testing.T, home string, turn int, expires time.Duration) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	data := fmt.Sprintf(`{"oauth":{"accessToken":%q,"refreshToken":%q,"id":%q,"expiresAt":%d,"scopes":["a","b"],"plan":"max"},"mcp":{"secret":"of-another-server"}}`,
		s.real("access", turn), s.real("refresh", turn), s.real("id", turn), time.Now().Add(expires).UnixMilli())
	if err := os.WriteFile(filepath.Join(home, ".claude/.credentials.json"), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *server) host(t *testing.T, home string) document {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(home, ".claude/.credentials.json"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := parseDocument(data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A box is one box with the login.
type box struct {
	*Login

	s       *server
	seen    []string // all that it saw
	refresh string   // its placeholder
}

func (s *server) box(t *testing.T, home string) *box { return s.boxOf(t, home, s.section()) }

func (s *server) boxOf(t *testing.T, home string, section Section) *box {
	t.Helper()
	l, err := Prepare(Options{Sections: []Section{section}, Home: home, Lock: filepath.Join(home, "locks"), Client: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b := &box{Login: l, s: s}
	files, err := l.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b.seen = append(b.seen, string(f.Content))
		d, err := parseDocument(f.Content)
		if err != nil {
			t.Fatal(err)
		}
		b.refresh = d.text("oauth.refreshToken")
	}
	return b
}

// post asks the endpoint for tokens.
func (b *box) post(ctx context.Context, contentType, body string) (int, map[string]any) {
	u, _ := url.Parse(b.s.URL)
	port, _ := strconv.Atoi(u.Port())
	r := gatewayclient.LoginRequest{Host: u.Hostname(), Port: uint16(port), Method: "POST", Path: "/oauth/token", UserAgent: "an agent"}
	first := b.Login.Login(ctx, r)
	if !first.Whole || len(first.Tokens) > 0 {
		return 0, nil
	}
	r.Whole, r.ContentType, r.Body = true, contentType, []byte(body)
	a := b.Login.Login(ctx, r)
	b.seen = append(b.seen, string(a.Body)+a.Refused)
	var fields map[string]any
	_ = json.Unmarshal(a.Body, &fields)
	return a.Status, fields
}

func (b *box) renew(ctx context.Context) (int, map[string]any) {
	status, fields := b.post(ctx, "application/json", fmt.Sprintf(`{"grant_type":"refresh_token","refresh_token":%q,"client_id":"the-client","scope":"less"}`, b.refresh))
	if s, ok := fields["refresh_token"].(string); ok {
		b.refresh = s
	}
	return status, fields
}

// sawNothing fails if the box saw a part of a real token.
func (b *box) sawNothing(t *testing.T) {
	t.Helper()
	for _, text := range b.seen {
		for _, part := range []string{"sk-real", base64.RawURLEncoding.EncodeToString([]byte("the real signature")), "of-another-server"} {
			if strings.Contains(text, part) {
				t.Errorf("the box saw %q in %s", part, text)
			}
		}
	}
}

func TestTheBoxSeesAFileOfTheSameShapeWithoutTokens(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, time.Hour)
	b := s.box(t, home)
	files, err := b.Files()
	if err != nil || len(files) != 1 || files[0].Path != ".claude/.credentials.json" || files[0].Mode != 0o600 {
		t.Fatalf("%v, %v", files, err)
	}
	d, _ := parseDocument(files[0].Content)
	if d.text("oauth.plan") != "max" || d.scope("oauth.scopes") != "a b" || d.text("oauth.accessToken") == "" {
		t.Errorf("%s", files[0].Content)
	}
	if _, there := d.value("mcp"); there {
		t.Errorf("what the profile does not name is shown: %s", files[0].Content)
	}
	_, claims, _, ok := splitJWT(d.text("oauth.id"))
	_, real, _, _ := splitJWT(s.real("id", 0))
	if !ok || claims != real {
		t.Error("a JWT has lost its claims")
	}
	b.sawNothing(t)
	if p := b.Private(); !slices.Contains(p, filepath.Join(home, ".claude")) {
		t.Errorf("private: %q", p)
	}
}

func TestAnAccessTokenIsForTheNamedRequestsAlone(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, time.Hour)
	b := s.box(t, home)
	for _, row := range []struct {
		host, path string
		port       uint16
		given      bool
	}{
		{"api.test", "/v1/messages", 443, true},
		{"api.test", "/v1/messages", 8443, false},
		{"other.test", "/v1/messages", 443, false},
		{"api.test", "/api/create_key", 443, false},
		{"api.test", "/v1/../api/create_key", 443, false},
		{"api.test", "/v1/%2e%2e/api/create_key", 443, false},
		{"api.test", "/v1/..%2fapi/create_key", 443, false},
	} {
		a := b.Login.Login(t.Context(), gatewayclient.LoginRequest{Host: row.host, Port: row.port, Method: "POST", Path: row.path})
		if a.Whole || (len(a.Tokens) == 1) != row.given {
			t.Errorf("%v: %v", row, a)
		}
		for _, tok := range a.Tokens {
			if tok.Value != s.real("access", 0) || !slices.Equal(tok.Headers, []string{"Authorization"}) {
				t.Errorf("%v: %v", row, tok)
			}
		}
	}
}

func TestARefreshStaysOutside(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.lifetime = 60 // too short to be given again
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	first := b.refresh
	for turn := 1; turn <= 3; turn++ {
		later(t, home)
		status, fields := b.renew(t.Context())
		if status != 200 || fields["scope"] != "a b" || b.refresh == first {
			t.Fatalf("turn %d: %d %v", turn, status, fields)
		}
		d := s.host(t, home)
		if d.text("oauth.accessToken") != s.real("access", turn) || d.text("oauth.refreshToken") != s.real("refresh", turn) || d.text("oauth.id") != s.real("id", turn) || d.text("mcp.secret") == "" {
			t.Fatalf("turn %d: the host has %s", turn, d.raw)
		}
		a := b.Login.Login(t.Context(), gatewayclient.LoginRequest{Host: "api.test", Port: 443, Method: "POST", Path: "/v1/messages"})
		if len(a.Tokens) != 1 || a.Tokens[0].Value != s.real("access", turn) || !slices.Contains(a.Tokens[0].Placeholders, fields["access_token"].(string)) {
			t.Fatalf("turn %d: %v", turn, a)
		}
	}
	info, err := os.Stat(filepath.Join(home, ".claude/.credentials.json"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if strings.Contains(s.bodies[0], "less") || strings.Contains(s.bodies[0], first) {
		t.Errorf("the server was asked %s", s.bodies[0])
	}
	// An older placeholder stands for the present token, because the old one is used up.
	b.refresh = first
	if status, fields := b.post(t.Context(), "application/x-www-form-urlencoded", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first}, "client_id": {"the-client"}}.Encode()); status != 200 {
		t.Errorf("a form with an older placeholder: %d %v", status, fields)
	}
	b.sawNothing(t)
}

func TestTwoBoxesRefreshAtTheSameTime(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	boxes := []*box{s.box(t, home), s.box(t, home), s.box(t, home)}
	var wg sync.WaitGroup
	for _, b := range boxes {
		wg.Go(func() {
			if status, fields := b.renew(context.Background()); status != 200 {
				t.Errorf("%d %v", status, fields)
			}
		})
	}
	wg.Wait()
	if n := s.asked(); n != 1 {
		t.Errorf("the server was asked %d times for one login", n)
	}
	if boxes[0].refresh == boxes[1].refresh {
		t.Error("two boxes have the same placeholder")
	}
	for _, b := range boxes {
		b.sawNothing(t)
	}
	// The placeholder of another box is none here.
	boxes[0].refresh = boxes[1].refresh
	if status, fields := boxes[0].renew(t.Context()); status != 400 {
		t.Errorf("%d %v", status, fields)
	}
}

func TestTheAgentOutsideRefreshesMeanwhile(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		s, home := newServer(t), t.TempDir()
		s.write(t, home, 0, -time.Minute)
		b := s.box(t, home)
		s.write(t, home, 7, time.Hour)
		if status, fields := b.renew(t.Context()); status != 200 || s.asked() != 0 {
			t.Errorf("%d %v, asked %d times", status, fields, s.asked())
		}
		b.sawNothing(t)
	})
	t.Run("during", func(t *testing.T) {
		s, home := newServer(t), t.TempDir()
		s.write(t, home, 0, -time.Minute)
		b := s.box(t, home)
		s.before = func() { s.write(t, home, 7, time.Hour) }
		if status, fields := b.renew(t.Context()); status != 200 {
			t.Errorf("%d %v", status, fields)
		}
		if got := s.host(t, home).text("oauth.accessToken"); got != s.real("access", 7) {
			t.Errorf("the file of the agent outside was overwritten with %s", got)
		}
		b.sawNothing(t)
	})
	t.Run("first", func(t *testing.T) {
		s, home := newServer(t), t.TempDir()
		s.write(t, home, 0, -time.Minute)
		b := s.box(t, home)
		s.before = func() { s.turn = 7; s.write(t, home, 7, time.Hour) } // the server refuses the old one
		if status, fields := b.renew(t.Context()); status != 200 {
			t.Errorf("%d %v", status, fields)
		}
		b.sawNothing(t)
	})
}

func TestAServerThatAnswersWrongly(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"garbage":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sk-real") },
		"empty":    func(http.ResponseWriter, *http.Request) {},
		"no token": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"access_token":"a b c d sk-real"}`) },
		"lifetime": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"access_token":"sk-real-abcdefgh","expires_in":-1e300}`)
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := fmt.Fprint(w, strings.Repeat(" sk-real", 4096)); err != nil {
					return
				}
			}
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			fmt.Fprint(w, `{"error":"SK-REAL sk-real","error_description":"sk-real"}`)
		},
		"broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s, home := newServer(t), t.TempDir()
			s.write(t, home, 0, -time.Minute)
			b := s.box(t, home)
			s.answer = answer
			status, fields := b.renew(t.Context())
			if status != 502 && status != 500 || fields["error"] == nil || fields["access_token"] != nil {
				t.Errorf("%d %v", status, fields)
			}
			if s.asked() != 1 || s.host(t, home).text("oauth.refreshToken") != s.real("refresh", 0) {
				t.Errorf("asked %d times; the host has %s", s.asked(), s.host(t, home).raw)
			}
			b.sawNothing(t)
		})
	}
}

func TestOtherRequestsForTokensNeverReachTheServer(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	for name, row := range map[string][2]string{
		"a login":        {"application/json", `{"grant_type":"authorization_code","code":"of-an-attacker","client_id":"the-client"}`},
		"a device":       {"application/x-www-form-urlencoded", "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=x"},
		"an exchange":    {"application/json", `{"grant_type":"urn:ietf:params:oauth:grant-type:token-exchange"}`},
		"a token":        {"application/json", `{"grant_type":"refresh_token","refresh_token":"the token of an attacker","client_id":"the-client"}`},
		"a client":       {"application/json", fmt.Sprintf(`{"grant_type":"refresh_token","refresh_token":%q,"client_id":"another"}`, b.refresh)},
		"no client":      {"application/json", fmt.Sprintf(`{"grant_type":"refresh_token","refresh_token":%q}`, b.refresh)},
		"a field twice":  {"application/x-www-form-urlencoded", "grant_type=refresh_token&grant_type=authorization_code"},
		"no type":        {"", "{}"},
		"an other type":  {"text/plain", "{}"},
		"a broken body":  {"application/json", "{"},
		"nothing at all": {"application/json", ""},
	} {
		if status, fields := b.post(t.Context(), row[0], row[1]); status != 400 || fields["error"] == "" {
			t.Errorf("%s: %d %v", name, status, fields)
		}
	}
	if s.asked() != 0 {
		t.Errorf("the server was asked: %q", s.bodies)
	}
}

func TestOtherSpellingsOfTheEndpointAreRefused(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, time.Hour)
	section := s.section()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	section.Use = append(section.Use, Use{Host: u.Host, Paths: []string{"/info"}})
	l, err := Prepare(Options{Sections: []Section{section}, Home: home, Lock: filepath.Join(home, "locks"), Client: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Files(); err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(u.Port())
	for _, row := range []struct{ method, path, query string }{
		{"POST", "/oauth/token", "x=1"}, {"POST", "/oauth//token", ""}, {"POST", "/oauth/token/", ""}, {"POST", "/x/../oauth/token", ""},
		{"POST", "/oauth/%74oken", ""}, {"POST", "/oauth%2ftoken", ""}, {"POST", "/oauth/token;x", ""}, {"PUT", "/oauth/token", ""}, {"GET", "/oauth/token", "grant_type=x"},
		{"POST", "/oauth/./token", ""}, {"POST", "/OAUTH/TOKEN", ""},
	} {
		a := l.Login(t.Context(), gatewayclient.LoginRequest{Host: u.Hostname(), Port: uint16(port), Method: row.method, Path: row.path, Query: row.query})
		if a.Refused == "" || a.Whole || len(a.Tokens) > 0 {
			t.Errorf("%v: %v", row, a)
		}
	}
	for _, r := range l.Rules() {
		if r.Host == u.Hostname() && (len(r.Paths) != 1 || r.Scheme != "https") {
			t.Errorf("the host of the endpoint is allowed by %+v", r)
		}
	}
	if a := l.Login(t.Context(), gatewayclient.LoginRequest{Host: u.Hostname(), Port: uint16(port), Method: "GET", Path: "/info"}); len(a.Tokens) != 1 {
		t.Errorf("another path: %v", a)
	}
}

func TestTokensThatCouldNotBeStoredAreStoredLater(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	name := filepath.Join(home, ".claude/.credentials.json")
	s.before = func() { // somebody puts a link in the place of the file
		if err := os.Rename(name, name+".moved"); err != nil {
			t.Error(err)
		}
		if err := os.Symlink(name+".moved", name); err != nil {
			t.Error(err)
		}
	}
	if status, _ := b.renew(t.Context()); status != 502 {
		t.Fatalf("%d with a link", status)
	}
	if err := os.Rename(name+".moved", name); err != nil {
		t.Fatal(err)
	}
	if status, fields := b.renew(t.Context()); status != 200 || s.asked() != 1 {
		t.Fatalf("%d %v, asked %d times", status, fields, s.asked())
	}
	if s.host(t, home).text("oauth.refreshToken") != s.real("refresh", 1) {
		t.Error("the new tokens are lost")
	}
	b.sawNothing(t)
}

func TestAFileThatIsBeingWrittenIsWaitedFor(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	name := filepath.Join(home, ".claude/.credentials.json")
	work := gatewayclient.LoginRequest{Host: "api.test", Port: 443, Method: "POST", Path: "/v1/messages"}
	if err := os.WriteFile(name, []byte(`{"oauth":{"acc`), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := b.Login.Login(t.Context(), work); len(a.Tokens) != 1 || a.Tokens[0].Value != s.real("access", 0) {
		t.Errorf("half a file: %v", a)
	}
	if status, _ := b.renew(t.Context()); status != 502 || s.asked() != 0 {
		t.Errorf("half a file: %d, asked %d times", status, s.asked())
	}
	if err := os.WriteFile(name, []byte(`{"mcp":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := b.Login.Login(t.Context(), work); len(a.Tokens) != 0 {
		t.Errorf("after a logout: %v", a)
	}
	if status, fields := b.renew(t.Context()); status != 400 || fields["error"] != "invalid_grant" {
		t.Errorf("after a logout: %d %v", status, fields)
	}
	s.write(t, home, 0, -time.Minute)
	if status, fields := b.renew(t.Context()); status != 200 {
		t.Errorf("%d %v", status, fields)
	}
	b.sawNothing(t)
}

func TestABoxThatGoesAwayDoesNotLoseTheLogin(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	ctx, cancel := context.WithCancel(t.Context())
	s.before = cancel
	b.renew(ctx)
	if s.host(t, home).text("oauth.refreshToken") != s.real("refresh", 1) {
		t.Error("the old refresh token is used up, and the new one is lost")
	}
}

func TestABoxCannotMakeTheServerAskedAllTheTime(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	for range 5 {
		if status, fields := b.renew(t.Context()); status != 200 {
			t.Fatalf("%d %v", status, fields)
		}
	}
	if s.asked() != 1 {
		t.Errorf("asked %d times", s.asked())
	}
}

func TestWithoutALoginOutsideItIsSaid(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	b := s.box(t, home)
	files, err := b.Files()
	if err != nil || len(files) != 0 || !strings.Contains(strings.Join(b.Words(), ""), "claude, then /login") {
		t.Errorf("%v %v %v", files, err, b.Words())
	}
	status, fields := b.post(t.Context(), "application/json", `{"grant_type":"authorization_code","code":"x"}`)
	if why, _ := fields["error_description"].(string); status != 400 || !strings.Contains(why, "claude, then /login") {
		t.Errorf("%d %v", status, fields)
	}
}

func TestFilesThatAreNotTrusted(t *testing.T) {
	s := newServer(t)
	for name, make := range map[string]func(home, file string) error{
		"a link":    func(home, file string) error { return os.Symlink(filepath.Join(home, "x"), file) },
		"a pipe":    func(_, file string) error { return os.Mkdir(file, 0o700) },
		"no object": func(_, file string) error { return os.WriteFile(file, []byte("[1]"), 0o600) },
		"long": func(_, file string) error {
			return os.WriteFile(file, []byte(`{"a":"`+strings.Repeat("x", documentMax)+`"}`), 0o600)
		},
	} {
		home := t.TempDir()
		dir := filepath.Join(home, ".claude")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(home, filepath.Join(dir, ".credentials.json")); err != nil {
			t.Fatal(err)
		}
		l, err := Prepare(Options{Sections: []Section{s.section()}, Home: home, Lock: filepath.Join(home, "locks")})
		if paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	home := t.TempDir()
	s.write(t, home, 0, time.Hour)
	_, err := Prepare(Options{Sections: []Section{s.section()}, Home: home, Lock: filepath.Join(home, "locks"), Shared: []string{home + "/.claude"}})
	if paddock.KindOf(err) != paddock.Invalid || !strings.Contains(err.Error(), "do not share") {
		t.Errorf("shared: %v", err)
	}
}

func TestSectionsAreChecked(t *testing.T) {
	s := newServer(t)
	for name, change := range map[string]func(*Section){
		"a file outside":   func(c *Section) { c.File = "/etc/passwd" },
		"a file above":     func(c *Section) { c.File = "~/../x/y" },
		"a kept token":     func(c *Section) { c.Keep = []string{"oauth"} },
		"scopes":           func(c *Section) { c.Scopes = c.Refresh },
		"http":             func(c *Section) { c.Endpoints = []string{"http://x.test/token"} },
		"a query":          func(c *Section) { c.Endpoints = []string{"https://x.test/token?x=1"} },
		"any path":         func(c *Section) { c.Endpoints = []string{"https://x.test/*"} },
		"no paths":         func(c *Section) { c.Use[0].Paths = nil },
		"any host":         func(c *Section) { c.Use[0].Host = "*" },
		"all paths":        func(c *Section) { c.Use[0].Paths = []string{"/v1/**"} },
		"a whole root":     func(c *Section) { c.Use[0].Paths = []string{"/*"} },
		"any client":       func(c *Section) { c.Clients = nil },
		"a plain secret":   func(c *Section) { c.Secrets = []string{"public"} },
		"no endpoint":      func(c *Section) { c.Endpoints = nil },
		"an unknown unit":  func(c *Section) { c.Expires.Unit = "days" },
		"nothing to type":  func(c *Section) { c.Login = "" },
		"an escaping name": func(c *Section) { c.Name = "\x1b[2J" },
	} {
		section := s.section()
		change(&section)
		if err := section.Check(); paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.section().Check(); err != nil {
		t.Error(err)
	}
}
