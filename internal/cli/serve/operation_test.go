package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// shortDir is a directory whose sockets have names that are short enough.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ask makes a request on a socket, which is waited for.
func ask(t *testing.T, socket, path string) (int, string) {
	t.Helper()
	web := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
			c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err == nil || time.Now().After(deadline) {
				return c, err
			}
		}
	}}}
	res, err := web.Get("http://x" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestMetricsAreBesideTheAPIAndTellWhatItDoes(t *testing.T) {
	dir := shortDir(t)
	api, side := filepath.Join(dir, "a"), filepath.Join(dir, "m")
	name := filepath.Join(dir, "f")
	clitest.Plant(t, name, "listen: unix:"+api+"\nmetrics: unix:"+side+"\nmax-connections: 40\n", 0o600)
	simulated := cli.Tier{Name: paddock.Sim, About: "a tier", Open: func(cli.Gear) (paddock.Driver, error) { return sim.New(sim.Options{}) }}
	v := invoke(dir, nil, []cli.Tier{simulated}, "serve", "--config", name, "--state", filepath.Join(dir, "state"))
	var wg sync.WaitGroup
	code := -1
	wg.Go(func() { code = v.Run(t.Context()) })
	if status, text := ask(t, side, "/readyz"); status != http.StatusOK {
		t.Errorf("ready: %d %s", status, text)
	}
	if err := ready(t.Context(), "unix:"+side, time.Minute); err != nil {
		t.Error(err)
	}
	d, err := client.New(client.Options{Address: "unix://" + api})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create(t.Context(), paddock.Spec{Tier: paddock.Sim, ID: "secret-name"}); err != nil {
		t.Fatal(err)
	}
	const counted = "\npaddock_http_requests_total{code=\"201\",route=\"POST /v1/sandboxes\",tier=\"sim\"} 1\n"
	status, text := ask(t, side, "/metrics")
	for deadline := time.Now().Add(time.Minute); !strings.Contains(text, counted); { // a request is counted behind its answer
		if time.Now().After(deadline) {
			t.Fatalf("the creation is not counted: %s", text)
		}
		status, text = ask(t, side, "/metrics")
	}
	for _, want := range []string{
		`paddock_sandboxes{state="ready",tier="sim"} 1`,
		`paddock_calls_total{op="create",result="ok",tier="sim"} 1`, `paddock_connections_max 40`, `paddock_held_max_bytes{what="output"} 1.073741824e+09`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("%d: there is no line %q", status, want)
		}
	}
	if strings.Contains(text, "secret-name") {
		t.Error("an ID is in a metric")
	}
	if status, _ := ask(t, api, "/metrics"); status != http.StatusNotFound {
		t.Errorf("the API answers metrics: %d", status)
	}
	if status, _ := ask(t, side, "/v1/sandboxes"); status != http.StatusNotFound {
		t.Errorf("metrics answer the API: %d", status)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	v.Signals <- syscall.SIGTERM
	wg.Wait()
	if code != 0 {
		t.Errorf("exit %d: %s", code, v.Stderr.String())
	}
	if err := ready(t.Context(), "unix:"+side, time.Minute); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("when it has ended: %v", err)
	}
}

func TestMetricsAreNotForEverybody(t *testing.T) {
	for _, row := range []struct {
		f  operateFlags
		ok bool
	}{
		{operateFlags{}, true},
		{operateFlags{metrics: "127.0.0.1:9464"}, true},
		{operateFlags{metrics: "[::1]:0"}, true},
		{operateFlags{metrics: "unix:/run/m"}, true},
		{operateFlags{metrics: ":9464"}, false},
		{operateFlags{metrics: "10.0.0.1:9464"}, false},
		{operateFlags{metrics: "10.0.0.1:9464", metricsOpen: true}, true},
		{operateFlags{metricsOpen: true}, false},
		{operateFlags{metrics: "unix:m"}, false},
		{operateFlags{metrics: "9464"}, false},
	} {
		err := (&serveFlags{listen: "unix:/x", operate: row.f}).check()
		var hint *cli.Hinted
		if (err == nil) != row.ok || err != nil && !errors.As(err, &hint) {
			t.Errorf("%+v: %v", row.f, err)
		}
	}
}

func TestMetricsOnLoopbackAreNotForPagesOfTheWeb(t *testing.T) {
	h := forPrograms(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), &net.TCPAddr{IP: net.IPv6loopback, Port: 9464})
	for host, want := range map[string]int{
		"127.0.0.1:9464": 200, "[::1]:9464": 200, "::1": 200, "[::1]": 200, "localhost:9464": 200, "LOCALHOST": 200, "10.0.0.1": 200,
		"evil.example:9464": 421, "localhost.evil.example": 421, "": 421, "127.0.0.1.evil.example": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d, not %d", host, w.Code, want)
		}
	}
}

func TestCheckTellsWhatAServerWouldRefuseAndChangesNothing(t *testing.T) {
	dir := shortDir(t)
	name := filepath.Join(dir, "f")
	for _, row := range []struct {
		text, message, sampler string
		args                   []string
	}{
		{text: "listen: unix:/x\n"},
		{text: "listen: ':7463'\n", message: "beyond loopback without encryption"},
		{text: "listen: ':7463'\nplain-http: true\n"},
		{text: "tls-cert: none\ntls-key: none\n", message: "--tls-cert: stat none"},
		{text: "idle-pause: 1ms\n", message: "idle pause of 1ms"},
		{text: "warm: [moon=1]\n", message: "--warm moon=1"},
		{text: "audit-bucket: https://s3.example/b\n", message: "--audit-bucket without a directory"},
		{text: "audit: " + dir + "/log\naudit-bucket: here\n", message: "--audit-bucket: it is no address"},
		{text: "listen: unix:/x\n", sampler: "sometimes", message: "OTEL_TRACES_SAMPLER"},
		{text: "tiers: [moon]\n", message: "there is no such tier"},
		{text: "key-file: " + dir + "/none\n", message: "--key-file: open"},
		{text: "listn: x\n", message: `f:1: "listn" is not known`},
		{text: "listen: ':7463'\n", args: []string{"--listen", "127.0.0.1:0"}},
	} {
		clitest.Plant(t, name, row.text, 0o600)
		env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_SAMPLER": row.sampler}
		v := invoke(dir, env, nil, append([]string{"serve", "--check", "--config", name, "--state", filepath.Join(dir, "state")}, row.args...)...)
		code := v.Run(t.Context())
		if row.message == "" && (code != 0 || v.Stdout.String() != "ok\n") || row.message != "" && (code != 125 || !strings.Contains(v.Stderr.String(), row.message)) {
			t.Errorf("%q: %d: %s%s", row.text, code, v.Stdout.String(), v.Stderr.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "state")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a check made the state: %v", err)
	}
}
