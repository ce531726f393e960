package agenttest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Host is the name under which a box reaches a model of this machine.
const Host = "host.docker.internal"

// bodyMax bounds a request. Agents send some 100 kB.
const bodyMax = 16 << 20

// A Request is one that a model got.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	Turn         int // which turn was its answer, or -1 where the request asked for none
}

// A Model is a server that answers as a script says.
type Model struct {
	turns  []Turn
	tasks  []task
	server *httptest.Server
	ca     string

	mu       sync.Mutex
	requests []Request
	waiting  chan struct{} // closed when a turn first waits
}

// NewModel starts a model whose turns are these; after the last it says that there is nothing more to do. It ends
// with the test.
func NewModel(tb testing.TB, turns ...Turn) *Model {
	tb.Helper()
	m := &Model{turns: turns, waiting: make(chan struct{})}
	cert, ca := authority(tb)
	m.server = httptest.NewUnstartedServer(m)
	m.server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	m.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // agents give up connections at any time
	m.server.StartTLS()
	tb.Cleanup(m.server.Close)
	dir := tb.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // a gateway of another user reads the file
		tb.Fatal(err)
	}
	m.ca = filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(m.ca, ca, 0o644); err != nil {
		tb.Fatal(err)
	}
	return m
}

// A task is a script of its own.
type task struct {
	word  string
	turns []Turn
}

// When gives requests that hold a word turns of their own, so that one model serves several tasks beside each other. It
// is called before anybody asks.
func (m *Model) When(word string, turns ...Turn) { m.tasks = append(m.tasks, task{word, turns}) }

// script returns the turns for a request.
func (m *Model) script(body []byte) []Turn {
	for _, t := range m.tasks {
		if bytes.Contains(body, []byte(t.word)) {
			return t.turns
		}
	}
	return m.turns
}

// Authority returns the file of the certificate that callers have to trust.
func (m *Model) Authority() string { return m.ca }

// Port returns the port of loopback at which the model listens.
func (m *Model) Port() string {
	_, port, _ := net.SplitHostPort(m.server.Listener.Addr().String())
	return port
}

// URL returns where the model is for a box.
func (m *Model) URL() string { return "https://" + net.JoinHostPort(Host, m.Port()) }

// Requests returns what the model was asked.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Reached tells which turns were taken, each once, in the order of the first time.
func (m *Model) Reached() []int {
	var list []int
	for _, r := range m.Requests() {
		if r.Turn >= 0 && !slices.Contains(list, r.Turn) {
			list = append(list, r.Turn)
		}
	}
	return list
}

// Waiting is closed when the model has come to a turn that waits.
func (m *Model) Waiting() <-chan struct{} { return m.waiting }

// An answer writes what a model says in the words of one vendor.
type answer interface {
	// parse reads a request's body: which tools it offers, and how many answers of the model it holds.
	parse(body []byte) (asked, error)
	// write answers with the turn's text, or with the call if there is one.
	write(w io.Writer, a asked, text string, c *call) error
}

// asked is what matters of a request.
type asked struct {
	offered offer
	free    map[string]bool // those whose input is free text
	answers int
	stream  bool
	model   string
}

// vendors maps the end of a path to who speaks so.
func vendors(path string) answer {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return anthropic{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return gemini{stream: true}
	case strings.HasSuffix(path, ":generateContent"):
		return gemini{}
	}
	return nil
}

// ServeHTTP answers one request.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	got := Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body, Turn: -1}
	v := vendors(r.URL.Path)
	if v == nil || r.Method != http.MethodPost {
		m.record(got)
		m.other(w, r)
		return
	}
	a, err := v.parse(body)
	if err != nil {
		m.record(got)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, c := "A title", (*call)(nil) // what has no tools asks for a title, or the like
	var turn Turn
	if len(a.offered) > 0 {
		got.Turn = a.answers
		turn = Say("There is nothing more to do.")
		if turns := m.script(body); a.answers < len(turns) {
			turn = turns[a.answers]
		}
		if text, c = turn.text, callFor(turn, a.offered); c == nil && turn.verb != say {
			text = fmt.Sprintf("the script has no tool for turn %d", a.answers)
		}
	}
	m.record(got)
	if turn.verb == wait {
		m.stay(r)
		return
	}
	var b bytes.Buffer
	if err := v.write(&b, a, text, c); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	kind := "application/json"
	if a.stream {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(b.Bytes()) // whoever asked may have gone
}

// stay answers nothing until whoever asked has gone.
func (m *Model) stay(r *http.Request) {
	m.mu.Lock()
	select {
	case <-m.waiting:
	default:
		close(m.waiting)
	}
	m.mu.Unlock()
	<-r.Context().Done()
}

func (m *Model) record(r Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
}

// other answers what agents ask beside turns: whether the server is there, how long a text is, which models it has.
func (m *Model) other(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodHead && r.URL.Path == "/":
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		fmt.Fprint(w, `{"input_tokens":100}`)
	case strings.HasSuffix(r.URL.Path, ":countTokens"):
		fmt.Fprint(w, `{"totalTokens":100}`)
	default:
		http.Error(w, `{"error":{"type":"not_found_error","message":"no such thing"}}`, http.StatusNotFound)
	}
}

// event writes one event of a stream.
func event(w io.Writer, name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("an event: %w", err)
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if _, err := fmt.Fprintf(w, "%sdata: %s\n\n", name, text); err != nil {
		return fmt.Errorf("an event: %w", err)
	}
	return nil
}

// encode returns arguments as the text that vendors send them as.
func encode(v map[string]any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the scripts hold nothing but texts
	}
	return string(text)
}

// id returns a name for an answer that no other of the session has.
func id(prefix string, a asked) string { return prefix + "script" + strconv.Itoa(a.answers) }

// authority makes an authority and a certificate of it for a loopback server.
func authority(tb testing.TB) (tls.Certificate, []byte) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Paddock's tests of agents"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: Host}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{Host, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	must(err)
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	must(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
}
