package endtoend

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agentlogin"
)

// An agent with a login: it works, refreshes its tokens, works with the new ones, tries what it must not, prints all that
// it was told, and keeps running with everything in memory.
const loggedIn = `import http.client, json, os, ssl, sys
port, told, login = int(sys.argv[1]), b"", json.load(open("/trial/credentials.json"))["oauth"]
def ask(host, path, header, body=None):
	global told
	c = http.client.HTTPSConnection(host, port, context=ssl.create_default_context())
	c.request("POST", path, body, header)
	r = c.getresponse()
	answer = r.read()
	told += str(r.status).encode() + b" " + str(r.getheaders()).encode() + b"\n" + answer + b"\n"
	return r.status, answer
def renew(grant="refresh_token"):
	return ask("login.test", "/oauth/token", {"Content-Type": "application/json"}, json.dumps({"grant_type": grant, "refresh_token": login["refresh"], "client_id": "c"}))
ask("model.test", "/v1/work", {"Authorization": "Bearer " + login["access"]})
ask("model.test", "/v1/elsewhere", {"X-Other": login["access"], "Authorization": "Bearer " + login["refresh"]})
ask("model.test", "/create_key", {"Authorization": "Bearer " + login["access"]})
ask("elsewhere.model.test", "/v1/exfiltrate", {"Authorization": "Bearer " + login["access"]})
for turn in range(3):
	status, answer = renew()
	if status != 200: sys.exit("refresh: %d %s" % (status, answer))
	new = json.loads(answer)
	login["access"], login["refresh"] = new["access_token"], new["refresh_token"]
	ask("model.test", "/v1/again", {"Authorization": "Bearer " + login["access"]})
status, answer = renew("authorization_code")
if status != 400: sys.exit("login inside: %d %s" % (status, answer))
status, answer = ask("login.test", "/oauth//token", {"Content-Type": "application/json"}, "{}")
if status != 403: sys.exit("beside the endpoint: %d %s" % (status, answer))
sys.stdout.buffer.write(told)
print("canary", os.environ["TRIAL_CANARY"], "done", flush=True)
sys.stdin.read()
`

// TestALoginIsUsedAndRefreshedAndItsTokensCannotBeFoundInTheBox is the promise about a subscription: an agent works with
// it and renews it, and no token is in the box, nor a refresh token in the gateway.
func TestALoginIsUsedAndRefreshedAndItsTokensCannotBeFoundInTheBox(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can read the memory of a box")
	}
	for _, name := range everywhere {
		t.Run(string(name), func(t *testing.T) {
			w := newWorld(t, "model.test", "elsewhere.model.test", "login.test")
			w.put(t, "agent.py", []byte(loggedIn))
			w.subscription(t, tierOf(t, name))
		})
	}
}

// A rotation is a server whose refresh tokens are good once, and whose access tokens expire soon.
type rotation struct {
	secret string

	mu   sync.Mutex
	turn int // guarded by mu
}

func (r *rotation) token(what string, turn int) string {
	return fmt.Sprintf("sk-%s-%s-%d", what, r.secret, turn)
}

func (r *rotation) serve(w http.ResponseWriter, q *http.Request) {
	var asked struct {
		Refresh string `json:"refresh_token"`
	}
	_ = json.NewDecoder(q.Body).Decode(&asked)
	r.mu.Lock()
	defer r.mu.Unlock()
	if asked.Refresh != r.token("refresh", r.turn) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, asked.Refresh)
		return
	}
	r.turn++
	w.Header().Set("X-Token", r.token("refresh", r.turn))
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"expires_in":60}`, r.token("access", r.turn), r.token("refresh", r.turn))
}

// login makes a host with a login, and the login of its boxes.
func (w *world) withLogin(t *testing.T, r *rotation) *agentlogin.Login {
	t.Helper()
	home := t.TempDir()
	data := fmt.Sprintf(`{"oauth":{"access":%q,"refresh":%q}}`, r.token("access", 0), r.token("refresh", 0))
	if err := os.Mkdir(filepath.Join(home, ".agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".agent/credentials.json"), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.CA)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(w.home(), port))
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	at := strconv.Itoa(int(w.HTTPS))
	l, err := agentlogin.Prepare(agentlogin.Options{Home: home, Lock: filepath.Join(home, "locks"), Client: client, Sections: []agentlogin.Section{{
		Name: "subscription", File: "~/.agent/credentials.json", Access: "oauth.access", Refresh: "oauth.refresh", Login: "agent login",
		Use:       []agentlogin.Use{{Host: "model.test:" + at, Paths: []string{"/v1/work", "/v1/elsewhere", "/v1/again"}}},
		Endpoints: []string{"https://login.test:" + at + "/oauth/token"}, Clients: []string{"c"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w.login = l
	return l
}

func (w *world) subscription(t *testing.T, tr tier) {
	t.Helper()
	r := &rotation{secret: rand.Text()}
	w.mux.HandleFunc("POST login.test/oauth/token", r.serve)
	l := w.withLogin(t, r)
	files, err := l.Files()
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, "credentials.json", files[0].Content)
	canary := "sk-canary-" + rand.Text()
	rules := append(l.Rules(), paddock.NetworkRule{Host: "elsewhere.model.test", Ports: []uint16{w.HTTPS}, Inspect: true}, paddock.NetworkRule{Host: w.home()})
	b := w.box(t, tr, paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: rules}, func(s *paddock.Spec) { s.Env["TRIAL_CANARY"] = canary })
	told := new(waiter)
	p, err := b.Start(t.Context(), paddock.Cmd{Args: []string{"/usr/bin/python3", inside + "/agent.py", strconv.Itoa(int(w.HTTPS))}, Input: true, Output: paddock.Output{Stdout: told, Stderr: told}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	defer p.Input().Close()
	ended, stop := context.WithCancel(t.Context())
	defer stop()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		_, _ = p.Wait(ended)
		stop() // an agent that ends early has said why
	})
	if !told.until(ended, "done\n") {
		t.Fatalf("the agent said %q\n\t%s", told.text(), b.events)
	}
	defer stop()

	bearer := func(path string, want ...string) {
		t.Helper()
		var got []string
		for _, s := range w.came(path) {
			got = append(got, s.Header.Get("Authorization"))
		}
		if strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%s got %q, not %q", path, got, want)
		}
	}
	bearer("/v1/work", "Bearer "+r.token("access", 0))
	once := "Bearer " + r.token("access", 1) // attempts are paced
	bearer("/v1/again", once, once, once)
	for _, path := range []string{"/v1/elsewhere", "/create_key", "/v1/exfiltrate"} {
		came := w.came(path)
		if len(came) != 1 || strings.Contains(fmt.Sprint(came[0].Header), r.secret) {
			t.Errorf("%s got %v", path, came)
		}
	}
	b.must(t, `mkdir -p "$HOME/kept" && env >"$HOME/kept/environment" && cp /trial/credentials.json "$HOME/kept"`)
	s := searched{t: t, b: b, hidden: r.secret, canary: canary, name: "subscription"}
	s.text("what the agent was told", told.text(), true)
	s.text("the environment of the box's processes", b.must(t, `cat /proc/[0-9]*/environ | tr '\0' '\n'; env`), true)
	s.archive()
	s.state()
	s.told()
	s.memory()
	for pid := range children(t) {
		if b.mine[pid] || !isGateway(pid) {
			continue
		}
		for _, p := range pages(t, pid) {
			if has(p, "sk-refresh-"+r.secret) {
				t.Error("the gateway holds a refresh token")
				break
			}
		}
	}
}
