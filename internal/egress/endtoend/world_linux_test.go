package endtoend

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
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// worldVariable names the file with the addresses of the servers of another process.
const worldVariable = "PADDOCK_TRIAL_WORLD"

// A world is everything that can be reached: servers on loopback under many names.
type world struct {
	Names    []string
	CA       []byte // PEM, of the servers' authority
	Programs string // directory, readable by all
	Network  string // prefix of its addresses

	HTTPS, Other, HTTP, Echo, UDP, SSH uint16 // ports; Other serves HTTPS too
	Proxy                              uint16 // port of an upstream proxy

	file string // the file with this struct
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	mux  *http.ServeMux

	login gatewayclient.Login // of its boxes; may be nil

	mu       sync.Mutex
	requests []seen                      // guarded by mu
	leaves   map[string]*tls.Certificate // guarded by mu
	tunnels  []string                    // guarded by mu: requests to the upstream proxy
}

// elsewhere is a name whose address is in no rule of these tests; all other names are at
// home.
const elsewhere = "elsewhere.test"

// The world's addresses.
func (w *world) home() string      { return w.Network + "1" }
func (w *world) unlisted() string  { return w.Network + "2" }
func (w *world) inRange() string   { return w.Network + "65" }
func (w *world) forbidden() string { return w.Network + "66" }

// addressed reports whether a box can reach its addresses.
func (w *world) addressed() bool { return w.Network == docs }

// hosts returns the addresses of the world's names.
func (w *world) hosts() map[string][]netip.Addr {
	out := map[string][]netip.Addr{elsewhere: {netip.MustParseAddr(w.unlisted())}}
	for _, n := range w.Names {
		out[n] = []netip.Addr{netip.MustParseAddr(w.home())}
	}
	return out
}

// A seen is a request that arrived at a server.
type seen struct {
	TLS    bool        `json:"tls"`
	Proto  string      `json:"proto"`
	Method string      `json:"method"`
	Host   string      `json:"host"`
	Path   string      `json:"path"`
	Query  string      `json:"query"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"` // its beginning
	Length int64       `json:"length"`
}

// marker is the header that only servers of the world send.
const marker = "Trial"

// newWorld starts the servers, or connects to those of the parent process.
func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	if file := os.Getenv(worldVariable); file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w := new(world)
		if err := json.Unmarshal(data, w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := &world{Network: "127.0.0.", Names: names, mux: http.NewServeMux(), leaves: map[string]*tls.Certificate{}}
	if os.Getenv(apartVariable) != "" {
		w.Network = docs
	}
	w.authority(t)
	dir, err := os.MkdirTemp("", "ptw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.Programs = dir
	copyFile(t, "/proc/self/exe", filepath.Join(dir, "trial"))
	w.put(t, "ca.pem", w.CA)

	w.mux.HandleFunc("/", w.answer)
	config := &tls.Config{GetCertificate: w.leaf, NextProtos: []string{"h2", "http/1.1"}}
	w.HTTPS = w.serve(t, config)
	w.Other = w.serve(t, config)
	w.HTTP = w.serve(t, nil)
	w.Echo = w.echo(t)
	w.UDP = w.datagrams(t)
	w.Proxy = w.tunnel(t)
	w.furnish(t)

	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, "world.json", data)
	w.file = filepath.Join(dir, "world.json")
	return w
}

// put writes a file that boxes see below [inside].
func (w *world) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.Programs, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// authority makes the servers' certificate authority.
func (w *world) authority(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the world's authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if w.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	w.key = key
	w.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// leaf makes a certificate for any requested name.
func (w *world) leaf(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := hello.ServerName
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.leaves[name]; c != nil {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(w.leaves) + 2)), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if name == "" {
		tmpl.IPAddresses = []net.IP{net.ParseIP(w.home())}
	} else {
		tmpl.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, w.cert, key.Public(), w.key)
	if err != nil {
		return nil, err
	}
	w.leaves[name] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return w.leaves[name], nil
}

// listen opens a port on the home address.
func (w *world) listen(t *testing.T) (net.Listener, uint16) {
	t.Helper()
	l, err := net.Listen("tcp", w.home()+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, portOf(t, l.Addr().String())
}

func portOf(t *testing.T, address string) uint16 {
	t.Helper()
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port()
}

// serve starts a web server, with TLS if config is not nil.
func (w *world) serve(t *testing.T, config *tls.Config) uint16 {
	t.Helper()
	l, port := w.listen(t)
	s := &http.Server{Handler: w.mux, TLSConfig: config, ReadHeaderTimeout: patience, ErrorLog: nil}
	var wg sync.WaitGroup
	wg.Go(func() {
		if config == nil {
			_ = s.Serve(l)
		} else {
			_ = s.ServeTLS(l, "", "")
		}
	})
	t.Cleanup(func() { s.Close(); wg.Wait() })
	return port
}

// answer returns what arrived to the client, and records it.
func (w *world) answer(out http.ResponseWriter, r *http.Request) {
	const most = 1 << 16
	var head bytes.Buffer
	n, _ := io.CopyN(&head, r.Body, most)
	rest, _ := io.Copy(io.Discard, r.Body)
	s := seen{r.TLS != nil, r.Proto, r.Method, r.Host, r.URL.Path, r.URL.RawQuery, r.Header, head.String(), n + rest}
	w.mu.Lock()
	w.requests = append(w.requests, s)
	w.mu.Unlock()
	out.Header().Set(marker, "server")
	out.Header().Set("Content-Type", "application/json")
	if size, err := strconv.ParseInt(r.URL.Query().Get("size"), 10, 64); err == nil {
		out.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.CopyN(out, zeros{}, size)
		return
	}
	_ = json.NewEncoder(out).Encode(s) //nolint:errchkjson // a client that is gone needs no answer
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// came returns the requests for a path.
func (w *world) came(path string) []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []seen
	for _, s := range w.requests {
		if s.Path == path {
			out = append(out, s)
		}
	}
	return out
}

// greeting is the first message of the echo server.
const greeting = "trial at your service\n"

// connections serves a listener with f until the test ends.
func connections(t *testing.T, l net.Listener, f func(net.Conn)) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{} // guarded by mu
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer func() {
					c.Close()
					mu.Lock()
					delete(open, c)
					mu.Unlock()
				}()
				f(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
}

// echo starts a server that sends a greeting and then echoes.
func (w *world) echo(t *testing.T) uint16 {
	t.Helper()
	l, port := w.listen(t)
	greet := func(c net.Conn) {
		if _, err := io.WriteString(c, greeting); err == nil {
			_, _ = io.Copy(c, c)
		}
	}
	connections(t, l, greet)
	for _, a := range []string{w.inRange(), w.forbidden(), w.unlisted()} { // the last two must not be reached
		other, err := net.Listen("tcp", net.JoinHostPort(a, strconv.Itoa(int(port))))
		if err != nil {
			t.Fatal(err)
		}
		connections(t, other, greet)
	}
	return port
}

// datagrams starts an echo server for datagrams.
func (w *world) datagrams(t *testing.T) uint16 {
	t.Helper()
	c, err := net.ListenPacket("udp", w.home()+":0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(append([]byte("trial "), buf[:n]...), from)
		}
	})
	t.Cleanup(func() { c.Close(); wg.Wait() })
	return portOf(t, c.LocalAddr().String())
}

// tunnel starts an upstream proxy, which supports CONNECT and connects everything to home.
func (w *world) tunnel(t *testing.T) uint16 {
	t.Helper()
	l, port := w.listen(t)
	connections(t, l, func(c net.Conn) { w.connect(c) })
	return port
}

func (w *world) connect(c net.Conn) {
	in := newHead(c)
	r, err := http.ReadRequest(in)
	if err != nil || r.Method != http.MethodConnect {
		_, _ = io.WriteString(c, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
		return
	}
	w.mu.Lock()
	w.tunnels = append(w.tunnels, r.Host)
	w.mu.Unlock()
	_, port, _ := net.SplitHostPort(r.Host)
	out, err := net.Dial("tcp", net.JoinHostPort(w.home(), port))
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	defer out.Close()
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(out, in)
		_ = out.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(c, out)
	c.Close()
	wg.Wait()
}

// asked returns the hosts to which the upstream proxy connected.
func (w *world) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.tunnels...)
}

// url returns the URL of a path at a name.
func (w *world) url(name, path string) string {
	return "https://" + net.JoinHostPort(name, strconv.Itoa(int(w.HTTPS))) + path
}
