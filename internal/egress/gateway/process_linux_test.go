package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/egresstest"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

func TestMain(m *testing.M) {
	if gateway.Main() || ownerProcess() {
		os.Exit(0) // this process was a part of a test
	}
	os.Exit(m.Run())
}

// An audience records what it is told.
type audience struct {
	mu     sync.Mutex
	events []gatewayclient.Event
	ended  chan error
	told   chan struct{} // has an element if there is something new
}

func newAudience() *audience {
	return &audience{ended: make(chan error, 1), told: make(chan struct{}, 1)}
}

func (a *audience) owner() gatewayclient.Callbacks {
	return gatewayclient.Callbacks{
		Event: func(e gatewayclient.Event) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.events = append(a.events, e)
			select {
			case a.told <- struct{}{}:
			default:
			}
		},
		Ended: func(err error) { a.ended <- err },
	}
}

// waitFor waits for an event.
func (a *audience) waitFor(t *testing.T, is func(gatewayclient.Event) bool) gatewayclient.Event {
	t.Helper()
	late := time.After(egresstest.Patience)
	for {
		a.mu.Lock()
		i := slices.IndexFunc(a.events, is)
		if i >= 0 {
			defer a.mu.Unlock()
			return a.events[i]
		}
		a.mu.Unlock()
		select {
		case <-a.told:
		case <-late:
			t.Fatalf("it was never told; what was: %v", a.events)
		}
	}
}

func program(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func start(t *testing.T, c gatewayclient.Config, o gatewayclient.Callbacks) *gatewayclient.Process {
	t.Helper()
	g, err := gatewayclient.StartProcess(t.Context(), program(t), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func ready(t *testing.T, g *gatewayclient.Process) gatewayclient.Ready {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), egresstest.Patience)
	defer cancel()
	r, err := g.Ready(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// echoServer starts an echo server on loopback.
func echoServer(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// named returns a policy in which a name resolves to a server on loopback.
func named(at netip.AddrPort) gatewayclient.Config {
	return gatewayclient.Config{
		Sandbox: "box", Hosts: map[string][]netip.Addr{"echo.test": {at.Addr()}},
		Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
			{Host: "echo.test", Ports: []uint16{at.Port()}}, {Host: at.Addr().String(), Ports: []uint16{at.Port()}},
		}},
	}
}

func TestAGuestReachesWhatIsAllowedAndNothingElse(t *testing.T) {
	at := echoServer(t)
	a := newAudience()
	g := start(t, named(at), a.owner())
	guest, end := egresstest.New(t)
	if err := g.Link(end); err != nil {
		t.Fatal(err)
	}
	end.Close()
	c, err := guest.Dial(t.Context(), "echo.test", at.Port())
	if err != nil {
		t.Fatal(err)
	}
	talk(t, c, "hello")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c); err != nil || len(rest) != 0 {
		t.Fatalf("after the end came %q, %v", rest, err)
	}
	c.Close()
	e := a.waitFor(t, func(e gatewayclient.Event) bool { return e.Kind == "tcp" })
	if e.Host != "echo.test" || e.Verdict != "allow" || e.Sent != 6 || e.Received != 6 || e.Address != at.String() || e.Sandbox != "box" {
		t.Fatalf("what was told: %+v", e)
	}
	if _, err := guest.Dial(t.Context(), "other.test", 443); err == nil {
		t.Fatal("a name that no rule allows has an address")
	}
	a.waitFor(t, func(e gatewayclient.Event) bool {
		return e.Kind == "dns" && e.Host == "other.test" && e.Verdict == "deny"
	})
	if _, err := guest.DialAddr(t.Context(), netip.MustParseAddrPort("203.0.113.5:443")); err == nil {
		t.Fatal("an address that no rule allows can be reached")
	}
	a.waitFor(t, func(e gatewayclient.Event) bool {
		return e.Host == "203.0.113.5" && e.Verdict == "deny" && e.Hint != ""
	})
	r := ready(t, g)
	for _, f := range r.Findings {
		t.Logf("%+v", f)
	}
	names, err := g.Names(t.Context())
	if err != nil || !slices.Equal(names, []string{"echo.test"}) {
		t.Fatalf("names: %q, %v", names, err)
	}
}

func TestWhoHasAChannelMayDialByTheRules(t *testing.T) {
	at := echoServer(t)
	a := newAudience()
	g := start(t, named(at), a.owner())
	f, err := g.Channel()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gatewayclient.NewDialer(f)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, dial := range map[string]func(context.Context, string, uint16) (net.Conn, error){"owner": g.Dial, "channel": d.Dial} {
		c, err := dial(t.Context(), "echo.test", at.Port())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		talk(t, c, "hello")
		c.Close()
		_, err = dial(t.Context(), "other.test", 443)
		if !errors.Is(err, paddock.Denied) || !strings.Contains(err.Error(), "other.test") {
			t.Fatalf("%s: what is not allowed: %v", name, err)
		}
		_, err = dial(t.Context(), "a b", 443)
		if !errors.Is(err, paddock.Invalid) {
			t.Fatalf("%s: what is no host: %v", name, err)
		}
	}
}

// A refused client has the answer before the event is reported. A call for the names, such
// as a status, then reports the event first.
func TestWhatWasDecidedIsToldBeforeTheNames(t *testing.T) {
	a := newAudience()
	g := start(t, named(echoServer(t)), a.owner())
	f, err := g.Channel()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gatewayclient.NewDialer(f)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ready(t, g)
	for i := range 200 {
		host := fmt.Sprintf("n%d.test", i)
		if _, err := d.Dial(t.Context(), host, 443); !errors.Is(err, paddock.Denied) {
			t.Fatal(err)
		}
		if _, err := g.Names(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		told := slices.ContainsFunc(a.events, func(e gatewayclient.Event) bool { return e.Host == host })
		a.mu.Unlock()
		if !told {
			t.Fatalf("the refusal of %s was not told", host)
		}
	}
}

func TestAGatewayThatIsKilledIsToldAndNothingIsCarried(t *testing.T) {
	at := echoServer(t)
	a := newAudience()
	g := start(t, named(at), a.owner())
	c, err := g.Dial(t.Context(), "echo.test", at.Port())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	talk(t, c, "hello")
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-a.ended:
		if !errors.Is(err, paddock.Unavailable) || !strings.Contains(err.Error(), "signal 9") {
			t.Fatalf("its end: %v", err)
		}
	case <-time.After(egresstest.Patience):
		t.Fatal("its end was not told")
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("the connection goes on")
	}
	<-g.Done()
	if _, err := g.Dial(t.Context(), "echo.test", at.Port()); !errors.Is(err, paddock.Unavailable) {
		t.Fatalf("a dial afterwards: %v", err)
	}
}

func TestWhatAGatewayCarriedIsKnownWhenItWasKilled(t *testing.T) {
	at := echoServer(t)
	g := start(t, named(at), newAudience().owner())
	if got := g.Traffic(); got != (paddock.Traffic{}) {
		t.Errorf("before anything was carried: %+v", got)
	}
	c, err := g.Dial(t.Context(), "echo.test", at.Port())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	talk(t, c, "hello")
	if got := g.Traffic(); got != (paddock.Traffic{In: 6, Out: 6}) {
		t.Errorf("after six bytes each way: %+v", got)
	}
	talk(t, c, strings.Repeat("x", 100_000-1))
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-g.Done()
	if got := g.Traffic(); got != (paddock.Traffic{In: 100_006, Out: 100_006}) {
		t.Errorf("when it was killed: %+v", got)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if got := g.Traffic(); got.In != 100_006 {
		t.Errorf("when it was closed: %+v", got)
	}
}

func TestALongPathIsToldAndWhatFollowsIt(t *testing.T) {
	host, err := decide.ParsePattern("a.example")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.New([]decide.Pattern{host}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ca.Key()
	if err != nil {
		t.Fatal(err)
	}
	c := gatewayclient.Config{Sandbox: "box", Authority: slices.Concat(ca.PEM(), key), Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
		{Host: "a.example", Ports: []uint16{80}, Paths: []string{"/x"}},
	}}}
	a := newAudience()
	g := start(t, c, a.owner())
	ready(t, g)
	// As JSON it is six times as long.
	for _, path := range []string{"/" + strings.Repeat("<", 100<<10), "/after"} {
		conn, err := g.Dial(t.Context(), "a.example", 80)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		a.waitFor(t, func(e gatewayclient.Event) bool { return e.Kind == "http" && strings.HasPrefix(path, e.Path) })
	}
}

func TestAConfigThatCannotBeFollowedIsSaid(t *testing.T) {
	g := start(t, gatewayclient.Config{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "a b"}}}}, gatewayclient.Callbacks{})
	ctx, cancel := context.WithTimeout(t.Context(), egresstest.Patience)
	defer cancel()
	if _, err := g.Ready(ctx); !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "rules[0]") {
		t.Fatalf("ready: %v", err)
	}
}

// ownerVariable makes this program the owner of a gateway, which it starts before it waits
// to be killed.
const ownerVariable = "PADDOCK_TEST_GATE_OWNER"

func ownerProcess() bool {
	if os.Getenv(ownerVariable) == "" {
		return false
	}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		fmt.Println(err)
		return true
	}
	g, err := gatewayclient.StartProcess(context.Background(), exe, gatewayclient.Config{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList}}, gatewayclient.Callbacks{})
	if err == nil {
		_, err = g.Ready(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return true
	}
	fmt.Println(g.PID())
	select {}
}

func TestAGatewayEndsWithItsOwner(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"owner"}, &os.ProcAttr{Env: []string{ownerVariable + "=1"}, Files: []*os.File{nil, w, os.Stderr}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	_, err = fmt.Fscan(r, &pid)
	_ = p.Kill()
	_, _ = p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	// When it has ended, it is no longer a writer of the pipe.
	late := time.Now().Add(egresstest.Patience)
	for tick := time.NewTicker(5 * time.Millisecond); time.Now().Before(late); <-tick.C {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(data), ") Z ") {
			return // the new owner has not looked yet
		}
	}
	t.Fatal("the gateway goes on without its owner")
}
