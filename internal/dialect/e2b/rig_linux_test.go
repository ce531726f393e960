package e2b_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// The rig runs E2B's own clients against `paddock serve`: every script in testdata/js
// and testdata/py, on each tier. A script gets a template of the tier as TEMPLATE, the
// code interpreter's as CODE_TEMPLATE, and the tier as TIER; a first line with "only:
// TIER" keeps it to that one. It prints a line "kept: …" for each promise.

const rigKey = "e2b_00112233445566778899aabbccddeeff00112233"

// A rig is a server of its own, with the clients that `make sdk` installed.
type rig struct {
	url     string
	state   string
	client  *http.Client
	sdk     string // where the clients are
	scripts string // copies, beside the clients
	cmd     *exec.Cmd
	log     *bytes.Buffer
}

// top is the top of the tree.
const top = "../../.."

func newRig(t *testing.T, args ...string) *rig {
	t.Helper()
	r := &rig{log: new(bytes.Buffer)}
	var program string
	program, r.sdk = needs(t)
	r.plant(t)
	r.start(t, program, args...)
	return r
}

// needs gives the program and the clients, and skips where they are not there.
func needs(t *testing.T) (program, sdk string) {
	t.Helper()
	abs, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	program, sdk = abs+"/bin/paddock", abs+"/.tmp/sdk"
	for _, name := range []string{program, sdk + "/js.txt", sdk + "/py.txt"} {
		if _, err := os.Stat(name); err != nil {
			t.Skipf("%v: make build sdk", err)
		}
	}
	return program, sdk
}

// plant copies the scripts to where they find the clients.
func (r *rig) plant(t *testing.T) {
	t.Helper()
	r.scripts = t.TempDir()
	for _, kind := range []string{"js", "py"} {
		if err := os.CopyFS(filepath.Join(r.scripts, kind), os.DirFS("testdata/"+kind)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(r.sdk+"/js/node_modules", r.scripts+"/js/node_modules"); err != nil {
		t.Fatal(err)
	}
}

// start starts the server, which ends with the test.
func (r *rig) start(t *testing.T, program string, args ...string) {
	t.Helper()
	r.state, r.client = t.TempDir(), http.DefaultClient
	if err := os.Chmod(r.state, 0o700); err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), program, append([]string{"serve", "--listen", "127.0.0.1:0", "--key", rigKey, "--state", r.state}, args...)...)
	r.cmd.Stderr = r.log
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop(t) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	r.url = strings.TrimSpace(line)
	if strings.HasPrefix(r.url, "https:") {
		r.trust(t)
	}
}

// trust has requests trust the authority of the server.
func (r *rig) trust(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(r.authority())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		t.Fatal("the authority is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	r.client = &http.Client{Transport: transport}
}

func (r *rig) authority() string { return filepath.Join(r.state, "tls", "ca.pem") }

func (r *rig) stop(t *testing.T) {
	for _, id := range r.ids(t) {
		r.ask(t, http.MethodDelete, "/sandboxes/"+id, nil)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("the server: %v", err)
	}
	if t.Failed() {
		t.Log(r.log.String())
	}
}

// ids are those of all sandboxes that are left.
func (r *rig) ids(t *testing.T) []string {
	code, data := r.ask(t, http.MethodGet, "/v2/sandboxes", nil)
	var list []struct {
		SandboxID string `json:"sandboxID"`
	}
	if err := json.Unmarshal(data, &list); code != http.StatusOK || err != nil {
		t.Errorf("list: %d %s %v", code, data, err)
	}
	var ids []string
	for _, s := range list {
		ids = append(ids, s.SandboxID)
	}
	return ids
}

// ask makes a request of the control plane.
func (r *rig) ask(t *testing.T, method, path string, body any) (int, []byte) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", rigKey)
	res, err := r.client.Do(req)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, answer
}

// has skips where the tier is not to be had here.
func (r *rig) has(t *testing.T, tier string) {
	t.Helper()
	code, data := r.ask(t, http.MethodPost, "/v2/sandboxes", map[string]any{"templateID": "base:" + tier, "timeout": 60})
	if code != http.StatusCreated {
		t.Skipf("no sandbox of the tier %s can be made: %s", tier, data)
	}
	var made struct {
		SandboxID string `json:"sandboxID"`
	}
	if err := json.Unmarshal(data, &made); err != nil {
		t.Fatal(err)
	}
	if code, data := r.ask(t, http.MethodDelete, "/sandboxes/"+made.SandboxID, nil); code != http.StatusNoContent {
		t.Errorf("kill: %d %s", code, data)
	}
}

// scriptTime bounds a script, which waits for nothing but answers.
const scriptTime = 3 * time.Minute

// run runs a script with a client.
func (r *rig) run(t *testing.T, name, tier string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	program := "node"
	if filepath.Ext(name) == ".py" {
		program = "python3"
	}
	cmd := exec.CommandContext(ctx, program, filepath.Base(name))
	cmd.Dir = filepath.Join(r.scripts, filepath.Base(filepath.Dir(name)))
	cmd.WaitDelay = 5 * time.Second
	if len(env) == 0 {
		env = []string{"E2B_API_URL=" + r.url, "E2B_SANDBOX_URL=" + r.url}
	}
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "E2B_API_KEY=" + rigKey,
		"TIER=" + tier, "TEMPLATE=base:" + tier, "CODE_TEMPLATE=code-interpreter-v1:" + tier, "PYTHONDONTWRITEBYTECODE=1", "NO_UPDATE_NOTIFIER=1",
		"PYTHONPATH=" + r.sdk + "/py", "CLI=" + r.sdk + "/js/node_modules/.bin/e2b",
	}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("BROKEN: ")) || !bytes.Contains(out, []byte("kept: ")) {
		t.Errorf("%s on %s: %v\n%s", name, tier, err, out)
	}
}

var only = regexp.MustCompile(`^.*only: ([a-z ]+)\n`)

// some returns a sixth of the scripts of a tier where there is a seed, and else all.
func some(t *testing.T, seed, tier string) []string {
	t.Helper()
	tried, left := sample.Part(seed, tier, scripts(t, tier), 6)
	for _, name := range left {
		t.Log(sample.LeftOut + name)
	}
	return tried
}

// scripts lists those for a tier.
func scripts(t *testing.T, tier string) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"testdata/js/*.mjs", "testdata/py/*.py"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if base := filepath.Base(name); strings.HasPrefix(base, "promise.") || strings.HasPrefix(base, "resolve.") {
				continue
			}
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if m := only.FindSubmatch(data); m == nil || slices.Contains(strings.Fields(string(m[1])), tier) {
				list = append(list, name)
			}
		}
	}
	if len(list) == 0 {
		t.Fatal("there are no scripts")
	}
	return list
}

func TestAClientThatIsToldADomainAloneFindsEverythingByName(t *testing.T) {
	r := newRig(t, "--tls-self", "--domain", "box.localhost")
	r.has(t, "jail")
	_, port, _ := strings.Cut(strings.TrimPrefix(r.url, "https://"), ":")
	for _, name := range scripts(t, "domain") {
		if only.Match(first(t, name)) {
			r.run(t, name, "jail", "E2B_DOMAIN=box.localhost:"+port, "NODE_EXTRA_CA_CERTS="+r.authority())
		}
	}
}

// A tunnel is a proxy that brings every connection to this machine: programs that ask the
// machine's resolver for names find the server by it.
func tunnel(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, err := net.SplitHostPort(r.Host)
		if err != nil || r.Method != http.MethodConnect || !strings.HasSuffix(r.Host, ".localhost:"+port) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		out, err := new(net.Dialer).DialContext(r.Context(), "tcp", "127.0.0.1:"+port)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer out.Close()
		w.WriteHeader(http.StatusOK)
		in, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer in.Close()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = io.Copy(out, buffered) // it ends with either end
			out.Close()
		})
		_, _ = io.Copy(in, out)
		in.Close()
		wg.Wait()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// What works by headers works by name too: each client is told a domain and the authority
// that vouches for the server, and nothing else.
func TestTheClientsOfE2BAreKeptTheirPromisesByName(t *testing.T) {
	r := newRig(t, "--tls-self", "--domain", "box.localhost")
	r.has(t, "jail")
	_, port, _ := strings.Cut(strings.TrimPrefix(r.url, "https://"), ":")
	proxy := tunnel(t)
	turns := make(chan struct{}, 2)
	for _, name := range some(t, sample.Seed("E2B's clients by name"), "jail") {
		t.Run(fmt.Sprintf("%s/%s", filepath.Base(filepath.Dir(name)), filepath.Base(name)), func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			env := []string{"E2B_DOMAIN=box.localhost:" + port, "NODE_EXTRA_CA_CERTS=" + r.authority(), "NODE_OPTIONS=--import=" + filepath.Join(r.scripts, "js", "resolve.mjs")}
			if filepath.Ext(name) == ".py" {
				env = []string{"E2B_DOMAIN=box.localhost:" + port, "SSL_CERT_FILE=" + r.authority(), "HTTPS_PROXY=" + proxy, "https_proxy=" + proxy}
			}
			r.run(t, name, "jail", env...)
		})
	}
}

// first gives a script's first line.
func first(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return append(line, '\n')
}

var pasted = regexp.MustCompile("(?ms)^<!-- test: e2b -->\n```sh\n(.*?)^```$.*?^<!-- output: e2b -->\n```text\n(.*?)^```$")

func TestTheDocumentsProgramForE2BWorks(t *testing.T) {
	_, sdk := needs(t)
	text, err := os.ReadFile(top + "/docs/server/e2b.md")
	if err != nil {
		t.Fatal(err)
	}
	m := pasted.FindSubmatch(text)
	if m == nil {
		t.Fatal("docs/server/e2b.md has no program for E2B")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	script := strings.ReplaceAll(string(m[1]), "7463", port) // which somebody may listen at here
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
	cmd.Dir, cmd.WaitDelay = top, 5*time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONPATH=" + sdk + "/py", "PYTHONDONTWRITEBYTECODE=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, m[2]) {
		t.Errorf("%v: it prints %q, and is to print %q", err, out, m[2])
	}
}

func TestWhatIsReadyIsForE2BsClientsAsWhatIsMadeForThem(t *testing.T) {
	r := newRig(t, "--warm", "e2b:jail=2:6")
	r.has(t, "jail")
	for _, name := range []string{"testdata/js/control.mjs", "testdata/js/pause.mjs", "testdata/js/first.mjs", "testdata/js/interpret.mjs"} {
		r.run(t, name, "jail")
	}
}

func TestTheClientsOfE2BAreKeptTheirPromises(t *testing.T) {
	r := newRig(t)
	for _, tier := range []string{"jail", "gvisor"} {
		t.Run(tier, func(t *testing.T) {
			r.has(t, tier)
			turns := make(chan struct{}, 2) // each is a program of its own, and the machine may be small
			seed := ""
			if tier == "gvisor" {
				seed = sample.Seed("E2B's clients on gvisor")
			}
			for _, name := range some(t, seed, tier) {
				t.Run(fmt.Sprintf("%s/%s", filepath.Base(filepath.Dir(name)), filepath.Base(name)), func(t *testing.T) {
					t.Parallel()
					turns <- struct{}{}
					defer func() { <-turns }()
					r.run(t, name, tier)
				})
			}
		})
	}
}
