package drivertest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func networkPromises() []group {
	listed := []paddock.Capability{paddock.CanNetworkList}
	return []group{{can: []paddock.Capability{paddock.CanPrograms}, walls: []paddock.Control{paddock.ControlNetwork}, promises: []promise{
		{"without a network a name is refused at once and finally, and told once with its remedy", networkNone},
		{"without a network the sandbox knows its own name and the loopback addresses", networkOwn},
	}}, {can: append(listed, paddock.CanPrograms), promises: []promise{
		{"a name that no rule allows is refused finally, and a sandbox with a network knows its own name", networkFinal},
		{"what a sandbox sends to many addresses takes none of the host's neighbours", networkNeighbours},
	}}, {can: listed, promises: []promise{
		{"a list without rules reaches nothing, and says so", networkNothing},
		{"a host that a rule allows is reached without a proxy, nothing else is, and what was refused is told with its remedy", networkList},
		{"an address that machines commonly have is the network's, not the sandbox's: a refusal of it is told", networkCommon},
		{"a secret is a placeholder inside, and its value nowhere", networkSecret},
		{"rules that cannot be followed are invalid", networkInvalid},
		{"what crosses the way out is counted, and what is refused is not", networkCounted},
	}}, {can: append(listed, paddock.CanUpdatePolicy), promises: []promise{
		{"new rules about the network hold at once, and cut what they no longer allow", networkUpdate},
		{"the network of a living sandbox is taken away, which cuts what it carried, and given again", networkAway},
		{"the host's network is refused in the living sandbox, with all that comes with it", networkOther},
	}}, {can: append(listed, paddock.CanUpdatePolicy, paddock.CanOutlive), promises: []promise{
		{"the network of a sandbox that outlives its maker is another driver's to change", networkElsewhere},
	}}, {can: append(listed, paddock.CanPause), promises: []promise{
		{"the network goes on after a pause, by the same rules", networkPause},
	}}, {can: append(listed, paddock.CanSnapshotMemory, paddock.CanRootSnapshot), promises: []promise{
		{"a sandbox made from a snapshot of memory has the network of its own spec", networkFork},
	}}}
}

// Names of the suite's own servers, both on loopback.
const (
	hostListed = "listed.drivertest.test"
	hostOther  = "other.drivertest.test"
)

// Hosts returns the addresses of the names that the suite uses, for drivers that resolve
// names.
func Hosts() map[string][]netip.Addr {
	here := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	return map[string][]netip.Addr{hostListed: here, hostOther: here}
}

// greeting is the answer of the suite's server.
const greeting = "drivertest greets"

// greeter starts a server on loopback and returns its port. It gives every client the same
// answer, which HTTP clients understand too.
func greeter(t testing.TB) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			wg.Go(func() { greet(conn) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// greet answers a client. A client that leaves early needs no answer.
func greet(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience)) // the bound of a call is enough for a connection
	if n, err := conn.Read(make([]byte, 4096)); err != nil || n == 0 {
		return
	}
	_, _ = io.WriteString(conn, answer())
}

func answer() string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(greeting), greeting)
}

// listing allows a name of the suite's server. Only a rule that names it makes its loopback
// address reachable.
func listing(port uint16, more ...paddock.NetworkRule) paddock.NetworkPolicy {
	return paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: append([]paddock.NetworkRule{
		{Host: hostListed, Ports: []uint16{port}},
		{Host: "127.0.0.0/8", Ports: []uint16{port}},
	}, more...)}
}

// within makes a sandbox with a network policy.
func (s *suite) within(t testing.TB, p paddock.NetworkPolicy, change ...func(*paddock.Spec)) box {
	t.Helper()
	return s.own(t, append(change, func(spec *paddock.Spec) { spec.Policy.Network = p })...)
}

// request makes a request to the server from a program that does not use a proxy.
func (b box) request(t testing.TB, host string, port uint16) result {
	t.Helper()
	at := net.JoinHostPort(host, strconv.Itoa(int(port)))
	if !b.s.info.Can(paddock.CanPrograms) { // the tier's own programs reach no other names
		return b.sh(t, `curl -sS --max-time 20 "http://$1/"`, at)
	}
	return b.run(t, paddock.Cmd{Args: []string{b.helper(t), "get", at}})
}

func (b box) reaches(t testing.TB, host string, port uint16) {
	t.Helper()
	if r := b.request(t, host, port); r.exit.Code != 0 || !strings.Contains(r.out, greeting) {
		st, err := b.Status(bounded(t))
		t.Fatalf("%s is not reached: %+v; refused: %+v, %v", host, r, st.Refused, err)
	}
}

func (b box) reachesNot(t testing.TB, host string, port uint16) {
	t.Helper()
	if r := b.request(t, host, port); strings.Contains(r.out, greeting) {
		t.Errorf("%s is reached: %+v", host, r)
	} else if strings.Contains(r.err, "i/o timeout") {
		t.Errorf("%s is not refused at once: %+v", host, r)
	}
}

// tellsOf waits until the status reports that a host was refused.
func (b box) tellsOf(t testing.TB, host string) {
	t.Helper()
	var last paddock.Status
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		st, err := b.Status(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range st.Refused {
			if strings.Contains(r.Target, host) {
				if r.What == "" || r.Rule == "" || r.Remedy == "" || r.Count < 1 || r.Time.IsZero() {
					t.Errorf("it is told without words: %+v", r)
				}
				return
			}
		}
		last = st
	}
	t.Errorf("nobody tells that %s was refused: %+v", host, last.Refused)
}

// resolve looks a name up in a program inside, which prints the addresses, or how it failed.
func (b box) resolve(t testing.TB, name string) string {
	t.Helper()
	r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "resolve", name}})
	if r.exit.Code != 0 {
		t.Fatalf("resolve %s: %+v", name, r)
	}
	return strings.TrimSpace(r.out)
}

func networkNone(t *testing.T, s *suite) {
	b := s.own(t)
	for range 2 {
		if got := b.resolve(t, hostListed); got != "no such host" {
			t.Errorf("the answer for %s is %q", hostListed, got)
		}
	}
	// Names that no rule could allow are not told, nor are the addresses by which programs look for their own.
	b.run(t, paddock.Cmd{Args: []string{b.helper(t), "connect", "udp", "192.0.2.1:53"}})
	for _, name := range []string{"-a.drivertest.test", "7.0.0.127.in-addr.arpa"} {
		if got := b.resolve(t, name); got != "no such host" {
			t.Errorf("the answer for %s is %q", name, got)
		}
	}
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Refused) != 1 {
		t.Fatalf("refused: %+v", st.Refused)
	}
	r := st.Refused[0]
	if r.What != "resolve" || r.Target != hostListed || r.Rule == "" || r.Remedy != "--allow "+hostListed || r.Count < 2 || r.Time.IsZero() {
		t.Errorf("refused: %+v", r)
	}
}

func networkOwn(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Hostname = "drivertest-own" })
	b.knowsItself(t, "drivertest-own")
	if st, err := b.Status(bounded(t)); err != nil || len(st.Refused) > 0 {
		t.Errorf("refused: %+v, %v", st.Refused, err)
	}
}

// knowsItself checks that programs find the sandbox's own name and addresses.
func (b box) knowsItself(t testing.TB, hostname string) {
	t.Helper()
	for name, want := range map[string]string{hostname: "127.0.0.1", "localhost": "127.0.0.1", "ip6-localhost": "::1", "x.localhost": "127.0.0.1"} {
		if got := strings.Fields(b.resolve(t, name)); !slices.Contains(got, want) {
			t.Errorf("%s has the addresses %q, and not %s", name, got, want)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		if r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "self", address}}); r.out != "connected\n" {
			t.Errorf("a server at %s: %+v", address, r)
		}
	}
}

func networkFinal(t *testing.T, s *suite) {
	b := s.within(t, paddock.NetworkPolicy{Mode: paddock.NetworkList}, func(spec *paddock.Spec) { spec.Hostname = "drivertest-own" })
	if got := b.resolve(t, hostOther); got != "no such host" {
		t.Errorf("the answer for %s is %q", hostOther, got)
	}
	b.tellsOf(t, hostOther)
	b.knowsItself(t, "drivertest-own")
}

func networkNothing(t *testing.T, s *suite) {
	port := greeter(t)
	b := s.within(t, paddock.NetworkPolicy{Mode: paddock.NetworkList})
	for _, host := range []string{hostListed, "127.0.0.1", "192.0.2.1"} {
		b.reachesNot(t, host, port)
	}
	b.tellsOf(t, hostListed)
}

func networkList(t *testing.T, s *suite) {
	port, other := greeter(t), greeter(t)
	b := s.within(t, listing(port))
	b.reaches(t, hostListed, port)
	b.reachesNot(t, hostOther, port)
	b.reachesNot(t, hostListed, other)
	b.reachesNot(t, "192.0.2.1", port)
	b.tellsOf(t, hostOther)
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range st.Enforced {
		if f.Control == paddock.ControlNetwork && (f.Strength == paddock.Absent || f.How == "") {
			t.Errorf("%+v", f)
		}
	}
}

// networkCommon uses addresses of virtual networks: of QEMU and VirtualBox, of both with other settings,
// of libvirt, Docker, LXC, link-local networks, providers and Tailscale.
func networkCommon(t *testing.T, s *suite) {
	port := greeter(t)
	b := s.within(t, listing(port))
	for _, host := range []string{
		"10.0.2.2", "10.0.2.3", "10.0.2.15", "192.168.56.1", "192.168.122.1", "172.17.0.1", "10.0.3.1", "169.254.1.1", "100.64.0.1", "100.100.100.100",
	} {
		b.reachesNot(t, host, port)
		b.tellsOf(t, host)
	}
}

// networkNeighbours sends to more addresses than the kernel keeps neighbours, which are one number for
// the whole machine.
func networkNeighbours(t *testing.T, s *suite) {
	const many, others = 3000, 128
	before, ok := neighbours(t)
	if !ok {
		t.Skip("this kernel has no IPv6")
	}
	b := s.within(t, listing(greeter(t)))
	r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "spread", strconv.Itoa(many)}})
	if r.exit.Code != 0 || !strings.HasPrefix(r.out, "sent ") || strings.HasPrefix(r.out, "sent 0 ") {
		t.Fatalf("nothing was tried: %+v", r)
	}
	if after, _ := neighbours(t); after > before+others {
		t.Errorf("the host had %d neighbours and has %d", before, after)
	}
}

// neighbours returns how many neighbours of IPv6 the host's kernel keeps, of all network namespaces.
func neighbours(t *testing.T) (n int, ok bool) {
	t.Helper()
	// Of this thread, because another one may be in a network namespace of its own, which has no such file.
	data, err := os.ReadFile("/proc/thread-self/net/stat/ndisc_cache")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(data), "\n")
	if _, err := fmt.Sscanf(rows, "%x", &n); err != nil {
		t.Fatal(err)
	}
	return n, true
}

func networkSecret(t *testing.T, s *suite) {
	const name, value, end = "DRIVERTEST_TOKEN", "tok-7d0c1bf2e4a6459f", "drivertestEnd0"
	p := listing(greeter(t))
	p.Secrets = []paddock.Secret{{Name: name, Value: value, Hosts: []string{hostListed}, End: end}}
	b := s.within(t, p)
	got := b.must(t, `printf %s "$`+name+`"`)
	if got == "" || strings.Contains(got, value) || len(got) < 16 || !strings.HasSuffix(got, end) {
		t.Errorf("the placeholder is %q", got)
	}
	if all := b.must(t, "env"); strings.Contains(all, value) {
		t.Errorf("the value is in the environment: %s", all)
	}
}

func networkInvalid(t *testing.T, s *suite) {
	list := func(r ...paddock.NetworkRule) paddock.NetworkPolicy {
		return paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: r}
	}
	secret := list()
	secret.Secrets = []paddock.Secret{{Name: "TOKEN", Hosts: []string{hostListed}}}
	for what, p := range map[string]paddock.NetworkPolicy{
		"a host that is none":                list(paddock.NetworkRule{Host: "not a host"}),
		"no host":                            list(paddock.NetworkRule{}),
		"a request that is denied datagrams": list(paddock.NetworkRule{Host: hostListed, UDP: true, Methods: []string{"GET"}}),
		"a secret without a value":           secret,
		"rules without a list":               {Rules: []paddock.NetworkRule{{Host: hostListed}}},
	} {
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) { spec.Policy.Network = p }))
		if err == nil {
			s.removeAfter(t, sb)
		}
		wantKind(t, what, err, paddock.Invalid)
	}
}

func networkUpdate(t *testing.T, s *suite) {
	port := greeter(t)
	b := s.within(t, paddock.NetworkPolicy{Mode: paddock.NetworkList})
	b.reachesNot(t, hostListed, port)
	b.update(t, paddock.Update{Policy: &paddock.Policy{Network: listing(port)}})
	b.reaches(t, hostListed, port)
	var out syncBuffer
	var held paddock.Process
	if s.info.Can(paddock.CanPrograms) {
		at := net.JoinHostPort(hostListed, strconv.Itoa(int(port)))
		held = b.start(t, paddock.Cmd{Args: []string{b.helper(t), "hold", at}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
		says(t, &out, "connected")
	}
	b.update(t, paddock.Update{Policy: &paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkList}}})
	b.reachesNot(t, hostListed, port)
	if held != nil {
		says(t, &out, "over")
		wait(t, held)
	}
}

func networkAway(t *testing.T, s *suite) {
	port := greeter(t)
	b := s.within(t, listing(port))
	var out syncBuffer
	var held paddock.Process
	if s.info.Can(paddock.CanPrograms) {
		at := net.JoinHostPort(hostListed, strconv.Itoa(int(port)))
		held = b.start(t, paddock.Cmd{Args: []string{b.helper(t), "hold", at}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
		says(t, &out, "connected")
	}
	b.reaches(t, hostListed, port)
	b.update(t, paddock.Update{Policy: &paddock.Policy{}})
	b.reachesNot(t, hostListed, port)
	if held != nil {
		says(t, &out, "over")
		wait(t, held)
	}
	err := b.Update(bounded(t), paddock.Update{Policy: &paddock.Policy{Network: paddock.NetworkPolicy{Rules: listing(port).Rules}}})
	wantKind(t, "rules without a list", err, paddock.Invalid)
	b.reachesNot(t, hostListed, port)
	b.update(t, paddock.Update{Policy: &paddock.Policy{Network: listing(port)}})
	b.reaches(t, hostListed, port)
}

func networkOther(t *testing.T, s *suite) {
	port := greeter(t)
	b := s.within(t, listing(port))
	err := b.Update(bounded(t), paddock.Update{Policy: &paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkHost}}, Labels: map[string]string{"changed": "yes"}})
	wantKind(t, "the host's network", err, paddock.Unsupported)
	b.reaches(t, hostListed, port)
	if st, err := b.Status(bounded(t)); err != nil || len(st.Labels) > 0 {
		t.Errorf("a part of it was done: %v, %v", st.Labels, err)
	}
}

func networkElsewhere(t *testing.T, s *suite) {
	port := greeter(t)
	b := s.within(t, listing(port))
	sb, err := s.fresh(t).Open(bounded(t), b.ID())
	if err != nil {
		t.Fatal(err)
	}
	there := box{Sandbox: sb, s: s, dir: b.dir}
	there.reaches(t, hostListed, port)
	if mine, theirs := b.crossed(t), there.crossed(t); mine != theirs || mine.In != sent {
		t.Errorf("%+v crossed the way out, or %+v", mine, theirs)
	}
	there.reachesNot(t, hostOther, port)
	there.tellsOf(t, hostOther)
	there.update(t, paddock.Update{Policy: &paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkList}}})
	b.reachesNot(t, hostListed, port)
}

func networkPause(t *testing.T, s *suite) {
	port := greeter(t)
	for _, ephemeral := range []bool{true, false} {
		if !ephemeral && !s.info.Can(paddock.CanOutlive) {
			continue
		}
		b := s.within(t, listing(port), func(spec *paddock.Spec) { spec.Ephemeral = ephemeral })
		b.reaches(t, hostListed, port)
		before := b.crossed(t)
		if err := b.Pause(bounded(t)); err != nil {
			t.Fatal(err)
		}
		if got := b.crossed(t); before.In != sent || got != before {
			t.Errorf("%+v crossed the way out, and %+v when it is paused", before, got)
		}
		if err := b.Resume(bounded(t)); err != nil {
			t.Fatal(err)
		}
		b.reaches(t, hostListed, port)
		b.reachesNot(t, hostOther, port)
		if got := b.crossed(t); got.In != 2*sent || got.Out <= before.Out {
			t.Errorf("%+v crossed the way out before a pause, and %+v after another answer", before, got)
		}
	}
}

// sent is the size of the server's answer in bytes.
var sent = int64(len(answer()))

// crossed returns the traffic of the sandbox so far.
func (b box) crossed(t testing.TB) paddock.Traffic {
	t.Helper()
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if st.Traffic == nil {
		t.Fatal("nobody counts what crosses the way out")
	}
	return *st.Traffic
}

func networkCounted(t *testing.T, s *suite) {
	port, other := greeter(t), greeter(t)
	b := s.within(t, listing(port))
	if got := b.crossed(t); got != (paddock.Traffic{}) {
		t.Errorf("before anything was said: %+v", got)
	}
	b.reachesNot(t, hostListed, other)
	if got := b.crossed(t); got != (paddock.Traffic{}) {
		t.Errorf("after a refusal: %+v", got)
	}
	var last paddock.Traffic
	for n := range int64(3) {
		b.reaches(t, hostListed, port)
		got := b.crossed(t)
		if got.In != (n+1)*sent || got.Out <= last.Out || got.Out > (n+1)*1000 {
			t.Errorf("after %d answers of %d bytes each: %+v, before %+v", n+1, sent, got, last)
		}
		last = got
	}
	if none := s.own(t).crossed(t); none != (paddock.Traffic{}) {
		t.Errorf("without a network: %+v", none)
	}
}

func networkFork(t *testing.T, s *suite) {
	port := greeter(t)
	b := s.within(t, listing(port))
	b.reaches(t, hostListed, port)
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	b.reaches(t, hostListed, port) // the sandbox continues
	fork := s.within(t, listing(port), func(spec *paddock.Spec) { spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id} })
	if got := fork.crossed(t); got != (paddock.Traffic{}) {
		t.Errorf("a fork begins with %+v, which is not its own", got)
	}
	fork.reaches(t, hostListed, port)
	narrow := s.within(t, paddock.NetworkPolicy{Mode: paddock.NetworkList}, func(spec *paddock.Spec) { spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id} })
	narrow.reachesNot(t, hostListed, port)
	none := s.within(t, paddock.NetworkPolicy{}, func(spec *paddock.Spec) { spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id} })
	none.reachesNot(t, hostListed, port)
}
