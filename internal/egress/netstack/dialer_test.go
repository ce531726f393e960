package netstack

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// A network is the world of a dialer in a test.
type network struct {
	t     *testing.T
	names map[string][][]netip.Addr // answers to successive queries
	fail  map[netip.Addr]error      // nil waits until the dial is canceled

	mu     sync.Mutex
	asked  []string
	dialed []netip.AddrPort
	open   int
}

func (n *network) dialer() *Dialer {
	return &Dialer{Lookup: n.lookup, Connect: n.connect, Own: func() ([]netip.Addr, error) { return addrs("93.184.216.1"), nil }, Timeout: 5 * time.Second}
}

func (n *network) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, name)
	answers := n.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if len(answers) > 1 {
		n.names[name] = answers[1:]
	}
	return answers[0], nil
}

// A dialled connection reports the address that was dialled.
type dialled struct {
	net.Conn

	to      netip.AddrPort
	network *network
	once    sync.Once
}

func (d *dialled) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(d.to) }

func (d *dialled) Close() error {
	d.once.Do(func() {
		d.network.mu.Lock()
		d.network.open--
		d.network.mu.Unlock()
	})
	return d.Conn.Close()
}

func (n *network) connect(ctx context.Context, _ string, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, to)
	err, failing := n.fail[to.Addr()]
	n.mu.Unlock()
	if failing && err == nil {
		<-ctx.Done()
		err = ctx.Err()
	}
	if failing {
		return nil, err
	}
	n.mu.Lock()
	n.open++
	n.mu.Unlock()
	ours, theirs := net.Pipe()
	n.t.Cleanup(func() { theirs.Close() })
	return &dialled{Conn: ours, to: to, network: n}, nil
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func target(t *testing.T, s string) Target {
	t.Helper()
	h, port, err := decide.ParseDestination(s)
	if err != nil {
		t.Fatal(err)
	}
	return Target{Host: h, Port: port}
}

func TestANameIsLookedUpOnceAndItsCheckedAddressDialled(t *testing.T) {
	n := &network{t: t, names: map[string][][]netip.Addr{"example.com": {addrs("93.184.216.34"), addrs("127.0.0.1")}}}
	d := n.dialer()
	c, err := d.Dial(t.Context(), target(t, "example.com:443"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(n.asked) != 1 || !slices.Equal(n.dialed, []netip.AddrPort{netip.MustParseAddrPort("93.184.216.34:443")}) {
		t.Errorf("asked for %v, dialled %v", n.asked, n.dialed)
	}
	// The name now resolves to this host.
	if c, err := d.Dial(t.Context(), target(t, "example.com:443")); !errors.Is(err, paddock.Denied) {
		t.Errorf("second dial: %v, %v", c, err)
	}
	if len(n.asked) != 2 || len(n.dialed) != 1 {
		t.Errorf("asked for %v, dialled %v", n.asked, n.dialed)
	}
}

func TestNamesOfForbiddenAddressesAreNotDialled(t *testing.T) {
	for _, a := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "0.0.0.0", "93.184.216.1"} {
		n := &network{t: t, names: map[string][][]netip.Addr{"evil.example.com": {addrs(a)}}}
		if c, err := n.dialer().Dial(t.Context(), target(t, "evil.example.com:80")); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v, %v", a, c, err)
		}
		if len(n.dialed) != 0 {
			t.Errorf("dialled %v", n.dialed)
		}
	}
}

func TestForbiddenAddressesAreNotDialled(t *testing.T) {
	for _, s := range []string{"169.254.169.254:80", "100.100.100.200:80", "[fd00:ec2::254]:80", "127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "0.0.0.0:80", "93.184.216.1:22"} {
		n := &network{t: t}
		if c, err := n.dialer().Dial(t.Context(), target(t, s)); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v, %v", s, c, err)
		}
		if len(n.dialed)+len(n.asked) != 0 {
			t.Errorf("%s: asked for %v, dialled %v", s, n.asked, n.dialed)
		}
	}
}

func TestOfAllAddressesThoseThatMayBeAreDialled(t *testing.T) {
	n := &network{t: t, names: map[string][][]netip.Addr{"example.com": {addrs("10.0.0.1", "93.184.216.34", "127.0.0.1", "93.184.216.34")}}}
	c, err := n.dialer().Dial(t.Context(), target(t, "example.com:443"))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if !slices.Equal(n.dialed, []netip.AddrPort{netip.MustParseAddrPort("93.184.216.34:443")}) {
		t.Errorf("dialled %v", n.dialed)
	}
}

func TestWhatIsDeniedIsNotDialledThoughTheNameIsAllowed(t *testing.T) {
	denied := netip.MustParseAddr("93.184.216.1")
	d := Dialer{
		Lookup: func(context.Context, string) ([]netip.Addr, error) { return addrs("93.184.216.1", "93.184.216.2"), nil },
		Own:    func() ([]netip.Addr, error) { return nil, nil },
		Connect: func(_ context.Context, _ string, to netip.AddrPort) (net.Conn, error) {
			return nil, fmt.Errorf("connected to %s", to)
		},
	}
	h, err := decide.ParseHost("a.example")
	if err != nil {
		t.Fatal(err)
	}
	to := Target{Host: h, Port: 443, Denies: func(a netip.Addr) error {
		if a == denied {
			return fmt.Errorf("denied by a rule: %w", paddock.Denied)
		}
		return nil
	}}
	if _, err := d.Dial(t.Context(), to); err == nil || !strings.Contains(err.Error(), "connected to 93.184.216.2:443") || strings.Contains(err.Error(), "216.1:") {
		t.Errorf("%v", err)
	}
	d.Lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{denied}, nil }
	if _, err := d.Dial(t.Context(), to); !errors.Is(err, paddock.Denied) {
		t.Errorf("%v", err)
	}
}

func TestListedAddressesAreDialled(t *testing.T) {
	n := &network{t: t, names: map[string][][]netip.Addr{"db.internal.test": {addrs("10.0.0.7")}}}
	for _, s := range []string{"db.internal.test:5432", "10.0.0.7:5432", "93.184.216.1:22"} {
		to := target(t, s)
		to.Lists = func(a netip.Addr) bool { return slices.Contains(addrs("10.0.0.7", "93.184.216.1"), a) }
		c, err := n.dialer().Dial(t.Context(), to)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		c.Close()
	}
}

func TestWithoutTheHostsOwnAddressesNothingIsDialled(t *testing.T) {
	n := &network{t: t}
	d := n.dialer()
	d.Own = func() ([]netip.Addr, error) { return nil, syscall.EPERM }
	if c, err := d.Dial(t.Context(), target(t, "93.184.216.34:443")); !errors.Is(err, syscall.EPERM) || len(n.dialed) != 0 {
		t.Errorf("%v, %v; dialled %v", c, err, n.dialed)
	}
}

func TestTheNextAddressIsTriedWhenOneFailsOrHangs(t *testing.T) {
	for name, fail := range map[string]error{"fails": syscall.ENETUNREACH, "hangs": nil} {
		n := &network{t: t, names: map[string][][]netip.Addr{"example.com": {addrs("2606:4700::1", "2606:4700::2", "93.184.216.34")}}, fail: map[netip.Addr]error{
			netip.MustParseAddr("2606:4700::1"): fail, netip.MustParseAddr("2606:4700::2"): fail,
		}}
		c, err := n.dialer().Dial(t.Context(), target(t, "example.com:443"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := c.RemoteAddr().String(); got != "93.184.216.34:443" {
			t.Errorf("%s: connected to %s", name, got)
		}
		if len(n.dialed) != 2 {
			t.Errorf("%s: dialled %v: the families take turns", name, n.dialed)
		}
		c.Close()
		if n.open != 0 {
			t.Errorf("%s: %d connections are left open", name, n.open)
		}
	}
}

func TestAFailureSaysWhatTheNetworkSaid(t *testing.T) {
	n := &network{t: t, names: map[string][][]netip.Addr{"example.com": {addrs("93.184.216.34", "2606:4700::1")}}, fail: map[netip.Addr]error{
		netip.MustParseAddr("93.184.216.34"): syscall.ECONNREFUSED, netip.MustParseAddr("2606:4700::1"): syscall.ENETUNREACH,
	}}
	_, err := n.dialer().Dial(t.Context(), target(t, "example.com:443"))
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, paddock.Unavailable) {
		t.Errorf("refused: %v", err)
	}
	if _, err := n.dialer().Dial(t.Context(), target(t, "nowhere.example.com:443")); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("no such name: %v", err)
	}
	n.fail[netip.MustParseAddr("93.184.216.34")] = nil
	n.fail[netip.MustParseAddr("2606:4700::1")] = nil
	d := n.dialer()
	d.Timeout = 20 * time.Millisecond
	if _, err := d.Dial(t.Context(), target(t, "example.com:443")); !errors.Is(err, paddock.Timeout) {
		t.Errorf("hanging: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.dialer().Dial(ctx, target(t, "example.com:443")); !errors.Is(err, paddock.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

func TestAnswersOfManyAddressesAreCut(t *testing.T) {
	n := &network{t: t, names: map[string][][]netip.Addr{"many.example.com": {nil}}, fail: map[netip.Addr]error{}}
	for i := range 200 {
		a := netip.AddrFrom4([4]byte{93, 184, 1, byte(i)})
		n.names["many.example.com"][0] = append(n.names["many.example.com"][0], a)
		n.fail[a] = syscall.ECONNREFUSED
	}
	if _, err := n.dialer().Dial(t.Context(), target(t, "many.example.com:80")); err == nil || len(n.dialed) != most {
		t.Errorf("%v; dialled %d addresses", err, len(n.dialed))
	}
}

func TestAConnectionThatArrivedElsewhereIsClosed(t *testing.T) {
	n := &network{t: t}
	d := n.dialer()
	d.Connect = func(ctx context.Context, network string, _ netip.AddrPort) (net.Conn, error) {
		return n.connect(ctx, network, netip.MustParseAddrPort("127.0.0.1:80"))
	}
	if c, err := d.Dial(t.Context(), target(t, "93.184.216.34:80")); err == nil {
		c.Close()
		t.Error("it was taken")
	}
	if n.open != 0 {
		t.Error("it is still open")
	}
}

func loopback(netip.Addr) bool { return true }

func TestTheRealNetworkIsDialled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := target(t, l.Addr().String())
	if _, err := new(Dialer).Dial(t.Context(), to); !errors.Is(err, paddock.Denied) {
		t.Errorf("not listed: %v", err)
	}
	to.Lists = loopback
	c, err := new(Dialer).Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	l.Close()
	if _, err := new(Dialer).Dial(t.Context(), to); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	to = target(t, p.LocalAddr().String())
	to.UDP, to.Lists = true, loopback
	c, err = new(Dialer).Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if k, _, err := p.ReadFrom(b); err != nil || string(b[:k]) != "hello" {
		t.Errorf("%q, %v", b[:k], err)
	}
}

func TestTheHostsOwnAddressesAreRefused(t *testing.T) {
	ours, err := interfaceAddresses()
	if err != nil || len(ours) == 0 {
		t.Skipf("this host has no addresses: %v", err)
	}
	for _, a := range ours {
		if a.Zone() != "" {
			continue
		}
		if _, err := new(Dialer).check([]netip.Addr{a}, Target{}); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// proxyTarget is a target by name through a proxy.
func proxyTarget(t *testing.T, via string) Target {
	t.Helper()
	to := target(t, "example.com:443")
	var err error
	if to.Via, err = url.Parse(via); err != nil {
		t.Fatal(err)
	}
	return to
}

// connectProxy is an HTTP proxy that returns the request, then echoes.
func connectProxy(status string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = rw.WriteString("HTTP/1.1 " + status + "\r\nContent-Length: 3\r\n\r\n" + r.Method + " " + r.Host + " " + user + ":" + password + "\n")
		_ = rw.Flush()
		_, _ = io.Copy(c, rw)
	})
}

func TestAnHTTPProxyIsGivenTheName(t *testing.T) {
	plain := httptest.NewServer(connectProxy("200 OK"))
	defer plain.Close()
	secure := httptest.NewTLSServer(connectProxy("200 Connection Established"))
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for _, via := range []string{plain.URL, secure.URL} {
		via = strings.Replace(via, "://", "://me:secret%40word@", 1)
		d := &Dialer{Roots: roots, Lookup: func(context.Context, string) ([]netip.Addr, error) {
			t.Error("the name was looked up here")
			return nil, nil
		}}
		c, err := d.Dial(t.Context(), proxyTarget(t, via))
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(c)
		if line, err := r.ReadString('\n'); err != nil || line != "CONNECT example.com:443 me:secret@word\n" {
			t.Errorf("%s: %q, %v", via, line, err)
		}
		if _, err := c.Write([]byte("hello\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := r.ReadString('\n'); err != nil || line != "hello\n" {
			t.Errorf("%s: %q, %v", via, line, err)
		}
		half, ok := c.(interface{ CloseWrite() error })
		if !ok || half.CloseWrite() != nil {
			t.Errorf("%s: %T has no half", via, c)
		}
		c.Close()
	}
}

func TestAProxyThatRefusesIsReported(t *testing.T) {
	for _, status := range []string{"403 Forbidden", "407 Proxy Authentication Required", "301 Moved"} {
		p := httptest.NewServer(connectProxy(status))
		_, err := new(Dialer).Dial(t.Context(), proxyTarget(t, strings.Replace(p.URL, "://", "://me:secretword@", 1)))
		if !errors.Is(err, paddock.Unavailable) || !strings.Contains(err.Error(), status[:3]) || strings.Contains(err.Error(), "secretword") {
			t.Errorf("%s: %v", status, err)
		}
		p.Close()
	}
}

func TestAProxyThatSaysNothingOrTooMuchIsGivenUp(t *testing.T) {
	for name, say := range map[string]string{"nothing": "", "too much": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", headMax), "a long line": strings.Repeat("x", headMax), "other words": "220 ready\r\n\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, say)
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}
		}()
		d := &Dialer{Timeout: 200 * time.Millisecond}
		if c, err := d.Dial(t.Context(), proxyTarget(t, "http://"+l.Addr().String())); err == nil {
			c.Close()
			t.Errorf("%s: it was taken", name)
		}
		l.Close()
	}
}

// socksProxy serves one client, and returns its request.
func socksProxy(t *testing.T) (address string, asked <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	out := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 300)
		read := func(n int) []byte { _, _ = io.ReadFull(c, b[:n]); return b[:n] }
		read(int(read(2)[1]))
		_, _ = c.Write([]byte{5, 2})
		user := string(read(int(read(2)[1])))
		password := string(read(int(read(1)[0])))
		_, _ = c.Write([]byte{1, 0})
		kind := read(4)[3]
		host := string(read(int(read(1)[0])))
		read(2)
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		out <- user + ":" + password + " " + host + " " + string('0'+rune(kind))
		_, _ = io.Copy(c, c)
	}()
	return l.Addr().String(), out
}

func TestASOCKSProxyIsGivenTheName(t *testing.T) {
	address, asked := socksProxy(t)
	c, err := new(Dialer).Dial(t.Context(), proxyTarget(t, "socks5://me:secret@"+address))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := <-asked; got != "me:secret example.com 3" {
		t.Errorf("asked %q", got)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestAProxyIsNoWayToForbiddenAddresses(t *testing.T) {
	for _, s := range []string{"169.254.169.254:80", "127.0.0.1:80", "[::1]:80"} {
		to := target(t, s)
		to.Via = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
		if c, err := new(Dialer).Dial(t.Context(), to); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v, %v", s, c, err)
		}
	}
}

func TestTargetsThatAreNoneAreRefused(t *testing.T) {
	via := &url.URL{Scheme: "ftp", Host: "example.com"}
	for _, row := range []struct {
		to   Target
		want paddock.Kind
	}{
		{Target{Port: 80}, paddock.Invalid},
		{Target{Host: target(t, "example.com").Host}, paddock.Invalid},
		{Target{Host: target(t, "example.com").Host, Port: 80, Via: via}, paddock.Invalid},
		{Target{Host: target(t, "example.com").Host, Port: 80, UDP: true, Via: via}, paddock.Unsupported},
	} {
		if _, err := new(network).dialer().Dial(t.Context(), row.to); !errors.Is(err, row.want) {
			t.Errorf("%v: %v, want %v", row.to, err, row.want)
		}
	}
}

func FuzzReadHead(f *testing.F) {
	for _, s := range []string{"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200\nA: b\n\n", "\r\n\r\n", strings.Repeat("a", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		status, err := readHead(bufio.NewReader(strings.NewReader(s)))
		if err == nil && !strings.HasPrefix(s, status) {
			t.Errorf("%q gives %q", s, status)
		}
	})
}

func TestTheLoopbackOfThisMachineIsDialledByItsNameAlone(t *testing.T) {
	n := &network{t: t, names: map[string][][]netip.Addr{"host.docker.internal": {addrs("93.184.216.34")}}, fail: map[netip.Addr]error{netip.MustParseAddr("127.0.0.1"): syscall.ECONNREFUSED}}
	c, err := n.dialer().Dial(t.Context(), target(t, "host.docker.internal:5432"))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if len(n.asked) > 0 {
		t.Errorf("asked the resolver for %q", n.asked)
	}
	want := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:5432"), netip.MustParseAddrPort("[::1]:5432")}
	if !slices.Equal(n.dialed, want) {
		t.Errorf("dialled %s, want %s", n.dialed, want)
	}

	denied := target(t, "host.docker.internal:5432")
	denied.Denies = func(a netip.Addr) error { return fmt.Errorf("%s: %w", a, paddock.Denied) }
	datagrams := target(t, "host.docker.internal:5432")
	datagrams.UDP = true
	proxied := target(t, "host.docker.internal:5432")
	proxied.Via = &url.URL{Scheme: "http", Host: "proxy.test:3128"}
	for name, bad := range map[string]Target{"denied": denied, "datagrams": datagrams, "a proxy": proxied} {
		n := &network{t: t}
		if c, err := n.dialer().Dial(t.Context(), bad); err == nil || len(n.dialed) > 0 {
			t.Errorf("%s: %v, %v; dialled %s", name, c, err, n.dialed)
		}
	}
}
