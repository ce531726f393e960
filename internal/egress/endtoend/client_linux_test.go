package endtoend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// A client is a program that people use, with a script that succeeds and prints something
// if it reached its server.
type client struct {
	name   string
	script string // $1 is the base URL of the client's server, $2 its port of ssh
	prints string

	tiers  []paddock.Tier // where it runs; empty means only jail, because the network of other tiers is the same
	splice bool           // only without inspection
	light  bool           // also on an emulated machine, where large programs take minutes to start
}

// runs reports whether a client is tried on a tier.
func (c client) runs(on paddock.Tier) bool {
	switch {
	case on == paddock.MicroVM:
		return c.light || slices.Contains(c.tiers, paddock.GVisor) && microvm.Emulated() == ""
	case len(c.tiers) == 0:
		return on == paddock.Jail
	}
	return slices.Contains(c.tiers, on)
}

// everywhere is for clients that are tried with both kinds of box.
var everywhere = []paddock.Tier{paddock.Jail, paddock.GVisor}

// clients use a server called client.test.
func clients() []client {
	const request = `"method":"GET"`
	return []client{
		{name: "curl", light: true, script: `curl -sSf "$1/curl"`, prints: request, tiers: everywhere},
		{name: "curl, by HTTP/1.1", script: `curl -sSf --http1.1 "$1/curl"`, prints: `"proto":"HTTP/1.1"`},
		{name: "curl, once", script: `curl -sSf --http1.1 -H "Connection: close" "$1/curl" | grep -o '^{"tls.*}'`, prints: request},
		{name: "curl, over the HTTP proxy", light: true, script: `curl -sSf -x http://198.18.0.1:3128 "$1/curl"`, prints: request, tiers: everywhere},
		{name: "curl, by ALL_PROXY", script: `ALL_PROXY=socks5h://198.18.0.1:1080 curl -sSf "$1/curl"`, prints: request},
		{name: "curl, by SOCKS5 with an address that it has looked up", script: `curl -sSf --socks5 198.18.0.1:1080 "$1/curl"`, prints: request},
		{name: "wget", light: true, script: `wget -qO- "$1/wget"`, prints: request},
		{name: "Python", light: true, script: `/usr/bin/python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1] + "/python").read().decode())' "$1"`, prints: request, tiers: everywhere},
		{name: "Python, by HTTPS_PROXY", script: `HTTPS_PROXY=http://198.18.0.1:3128 /usr/bin/python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1] + "/python").read().decode())' "$1"`, prints: request},
		{name: "Node.js", script: `node -e 'fetch(process.argv[1] + "/node").then(r => r.text()).then(console.log)' "$1"`, prints: request},
		{name: "a Go program", script: `PADDOCK_TRIAL_PROBE=get /trial/trial "$1/go"`, prints: `"proto":"HTTP/2.0"`, tiers: everywhere},
		{name: "a program that ignores proxy variables", script: `HTTPS_PROXY=http://127.0.0.1:9 PADDOCK_TRIAL_PROBE='get directly' /trial/trial "$1/go"`, prints: request},
		{name: "Java", script: `java -Xshare:auto -cp /trial Fetch "$1/java"`, prints: request},
		{name: "WebSocket", script: `PADDOCK_TRIAL_PROBE=websocket /trial/trial "$1/socket"`, prints: "heard all"},
		{name: "gRPC", script: `PADDOCK_TRIAL_PROBE=grpc /trial/trial "$1"`, prints: "trailer all", tiers: everywhere},
		{name: "git over https", light: true, script: `cd "$(mktemp -d)" && git clone -q "$1/git/repo.git" && cd repo && git log --format=%s && git -c user.name=t -c user.email=t@t.test commit -q --allow-empty -m second && git push -q origin HEAD:refs/heads/"$RANDOM"`, prints: "the first commit"},
		{name: "git over ssh", script: `cd "$(mktemp -d)" && cp /trial/id . && chmod 600 id &&
			GIT_SSH_COMMAND="ssh -i $PWD/id -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR" git clone -q "ssh://git@client.test:$2/repo.git" && git -C repo log --format=%s`, prints: "the first commit", splice: true},
		{name: "pip", script: `cd "$(mktemp -d)" && "$(python3 -c 'import sys; print(sys.executable)')" -m pip install -q --no-input --disable-pip-version-check --no-cache-dir --retries 0 --target . --index-url "$1/simple" trialpkg && python3 -c 'import trialpkg'`, prints: "the package runs"},
		{name: "npm", script: `cd "$(mktemp -d)" && npm install --silent --no-audit --no-fund --fetch-retries=0 --registry "$1" trialpkg && node -e 'require("trialpkg")'`, prints: "the package runs"},
		{name: "apt", script: aptScript, prints: "not really a package"},
	}
}

// aptScript uses a repository as a user may: with its own directories.
const aptScript = `d=$(mktemp -d) && cd "$d" && mkdir -p state/lists/partial cache/archives/partial && touch status &&
	echo "deb [trusted=yes] $1/debs ./" >sources.list &&
	set -- -qq -o APT::Sandbox::User=root -o Dir::State="$d/state" -o Dir::State::status="$d/status" -o Dir::Cache="$d/cache" \
		-o Dir::Etc::sourcelist="$d/sources.list" -o Dir::Etc::sourceparts=- -o Acquire::Retries=0 -o Acquire::Languages=none \
		${TRIAL_CA:+-o Acquire::https::CAInfo="$TRIAL_CA"} &&
	apt-get "$@" update && apt-get "$@" download trialpkg && cat trialpkg_*.deb`

// fetchJava uses Java's HTTP client.
const fetchJava = `import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
public class Fetch {
	public static void main(String[] args) throws Exception {
		HttpResponse<String> r = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(args[0])).build(), HttpResponse.BodyHandlers.ofString());
		System.out.println(r.body());
	}
}
`

// java compiles a program for boxes, and makes a trust store of the world's authority for
// boxes without inspection.
func (w *world) java(t *testing.T) {
	t.Helper()
	w.put(t, "Fetch.java", []byte(fetchJava))
	for _, args := range [][]string{
		{"javac", "-d", w.Programs, filepath.Join(w.Programs, "Fetch.java")},
		{"keytool", "-importcert", "-noprompt", "-alias", "world", "-file", filepath.Join(w.Programs, "ca.pem"), "-keystore", filepath.Join(w.Programs, "world.p12"), "-storetype", "PKCS12", "-storepass", "changeit"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	if err := os.Chmod(filepath.Join(w.Programs, "world.p12"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// worldTrust makes programs trust the servers' own certificates, which is needed where TLS
// is not inspected. Otherwise the box's own trust must suffice.
func worldTrust(env map[string]string) {
	for _, name := range []string{"CURL_CA_BUNDLE", "SSL_CERT_FILE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "TRIAL_CA"} {
		env[name] = inside + "/ca.pem"
	}
	env["JAVA_TOOL_OPTIONS"] = "-Djavax.net.ssl.trustStore=" + inside + "/world.p12 -Djavax.net.ssl.trustStorePassword=changeit"
	env["WGETRC"] = inside + "/wgetrc"
}

// TestRealClientsReachWhatIsAllowed runs the clients in boxes where connections are
// spliced, and in boxes where each request is inspected. In the latter the servers see what
// the rule adds.
func TestRealClientsReachWhatIsAllowed(t *testing.T) {
	w := newWorld(t, "client.test", "other.test")
	w.java(t)
	w.put(t, "wgetrc", []byte("ca_certificate = "+inside+"/ca.pem\n"))
	for _, look := range []bool{false, true} {
		kind := "spliced"
		if look {
			kind = "looked into"
		}
		for _, name := range append(slices.Clone(everywhere), paddock.MicroVM) {
			t.Run(fmt.Sprintf("%s, %s", name, kind), func(t *testing.T) {
				if name == paddock.MicroVM {
					microvmtest.Need(t)
				}
				w.try(t, tierOf(t, name), look)
			})
		}
	}
}

// try runs a tier's clients in a box.
func (w *world) try(t *testing.T, tr tier, look bool) {
	t.Helper()
	web := paddock.NetworkRule{Host: "client.test", Ports: []uint16{w.HTTPS}}
	if look {
		web.SetHeaders = map[string]string{"X-Looked": "yes"}
	}
	rules := []paddock.NetworkRule{web, {Host: w.home()}} // so that the servers' address may be dialled
	if !look {
		rules = append(rules, paddock.NetworkRule{Host: "client.test", Ports: []uint16{w.SSH}})
	}
	b := w.box(t, tr, paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: rules}, func(s *paddock.Spec) {
		if !look {
			worldTrust(s.Env)
		}
	})
	tried := clients()
	tried = slices.DeleteFunc(tried, func(c client) bool { return !c.runs(tr.name) || c.splice && look })
	names := make([]string, len(tried))
	for i, c := range tried {
		names[i] = c.name
	}
	_, left := sample.Part(sample.Seed("real clients"), t.Name(), names, 3)
	for _, c := range tried {
		if slices.Contains(left, c.name) {
			t.Log(sample.LeftOut + c.name)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			before := len(w.all())
			out := b.must(t, c.script, w.url("client.test", ""), fmt.Sprint(w.SSH))
			if !strings.Contains(out, c.prints) {
				t.Errorf("it printed %q, want something with %q", clip(out), c.prints)
			}
			for _, s := range w.all()[before:] {
				if have := s.Header.Get("X-Looked"); (have == "yes") != look {
					t.Errorf("looked into is %v, and the server saw %+v", look, s)
				}
			}
		})
	}
	t.Run("and nothing else", func(t *testing.T) {
		before := len(w.all())
		for _, script := range []string{
			`curl -sSfk --max-time 20 "https://other.test:$1/"`,
			`curl -sSfk --max-time 20 --resolve "other.test:$1:198.18.1.0" "https://other.test:$1/"`,
			`curl -sSfk --max-time 20 -x http://198.18.0.1:3128 "https://other.test:$1/"`,
			`curl -sSfk --max-time 20 -x socks5h://198.18.0.1:1080 "https://other.test:$1/"`,
			`curl -sSfk --max-time 20 -H "Host: other.test" -x http://198.18.0.1:3128 "http://$2:$1/"`,
			`curl -sSfk --max-time 20 "https://$2:$1/"`,
			`curl -sSfk --max-time 20 "https://192.0.2.1/"`,
		} {
			if r := b.sh(t, script, fmt.Sprint(w.HTTPS), w.home()); r.exit.Code == 0 || r.exit.Code == 28 {
				t.Errorf("%s: %v\n\t%s", script, r, b.events)
			}
		}
		if after := w.all(); len(after) != before {
			t.Errorf("a server saw %+v", after[before:])
		}
	})
}

// all returns every request that a server saw.
func (w *world) all() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// TestManyConnectionsAtOnceAreAllCarried opens all connections before it uses any.
func TestManyConnectionsAtOnceAreAllCarried(t *testing.T) {
	w := newWorld(t, "many.test")
	for _, name := range everywhere {
		t.Run(string(name), func(t *testing.T) {
			b := w.box(t, tierOf(t, name), paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
				{Host: "many.test", Ports: []uint16{w.Echo}}, {Host: w.home()},
			}})
			// In the test's network namespace a jail has 1,024 sockets, and each name to look up takes one for a while.
			out := b.must(t, `ulimit -n 4096 2>/dev/null; PADDOCK_TRIAL_PROBE=many /trial/trial "many.test:$1" 500`, fmt.Sprint(w.Echo))
			if !strings.HasPrefix(out, "all answered") {
				t.Errorf("it said %q", out)
			}
		})
	}
}
