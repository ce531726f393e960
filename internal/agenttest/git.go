package agenttest

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi" //nolint:gosec // the fault that is meant was in Go before 1.6.3
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Git is a server of repositories by https, which only one user may read and write. It is git's own server program
// behind one that asks for the password.
type Git struct {
	Top string // the directory of the repositories

	server   *httptest.Server
	ca       []byte
	user     string
	password string

	mu    sync.Mutex
	asked []string // path, and user:password if there was one; guarded by mu
}

// NewGit starts a server with empty repositories of these names. It ends with the test.
func NewGit(tb testing.TB, user, password string, names ...string) *Git {
	tb.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		tb.Skip("there is no git")
	}
	g := &Git{Top: tb.TempDir(), user: user, password: password}
	for _, name := range names {
		dir := filepath.Join(g.Top, name)
		for _, args := range [][]string{{"init", "-q", "--bare", "-b", "main", dir}, {"-C", dir, "config", "http.receivepack", "true"}} {
			if out, err := exec.CommandContext(tb.Context(), program, args...).CombinedOutput(); err != nil {
				tb.Fatalf("git %s: %v: %s", args, err, out)
			}
		}
	}
	cert, ca := authority(tb)
	g.ca = ca
	backend := &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + g.Top, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + user},
		Stderr: io.Discard,
	}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, backend) }))
	g.server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	g.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	g.server.StartTLS()
	tb.Cleanup(g.server.Close)
	return g
}

func (g *Git) serve(w http.ResponseWriter, r *http.Request, backend http.Handler) {
	user, password, given := r.BasicAuth()
	line := r.URL.Path
	if given {
		line += " " + user + ":" + password
	}
	g.mu.Lock()
	g.asked = append(g.asked, line)
	g.mu.Unlock()
	if user != g.user || password != g.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyMax)) // a CGI program needs the length
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	backend.ServeHTTP(w, r)
}

// Authority returns the certificate that callers have to trust, as PEM.
func (g *Git) Authority() []byte { return g.ca }

// Port returns the port of loopback at which the server listens.
func (g *Git) Port() string {
	_, port, _ := net.SplitHostPort(g.server.Listener.Addr().String())
	return port
}

// URL returns where a repository is for a box.
func (g *Git) URL(name string) string {
	return "https://" + net.JoinHostPort(Host, g.Port()) + "/" + name
}

// Asked returns the requests for paths with a beginning: each path, followed by user:password where they were given.
func (g *Git) Asked(beginning string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(g.asked), func(s string) bool { return !strings.HasPrefix(s, beginning) })
}
