package netstack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/paddock-sandbox/paddock"
)

func TestAConnectionToAnyAddressArrivesWithItsAddresses(t *testing.T) {
	for _, to := range []netip.AddrPort{web4, web6, netip.MustParseAddrPort("93.184.216.34:443"), netip.MustParseAddrPort("[2606:2800::1]:443")} {
		seen := make(chan [2]netip.AddrPort, 1)
		_, g := open(t, Options{Handler: handler{tcp: func(a *Attempt) {
			seen <- [2]netip.AddrPort{a.From, a.To}
			c, err := a.Accept(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			echo(c)
		}}})
		c := g.mustDial(t, to)
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); err != nil || string(b) != "hello" {
			t.Errorf("%s: got %q, %v", to, b, err)
		}
		a := <-seen
		if a[1] != to || (a[0].Addr() != box4 && a[0].Addr() != box6) {
			t.Errorf("%s: the attempt is from %s to %s", to, a[0], a[1])
		}
	}
}

func TestWhatIsRefusedIsRefusedAtOnce(t *testing.T) {
	for name, h := range map[string]handler{
		"by word":              {tcp: func(a *Attempt) { a.Refuse(); a.Refuse() }},
		"by saying nothing":    {},
		"and then not allowed": {tcp: func(a *Attempt) { a.Refuse(); refuseAgain(t, a) }},
	} {
		l, g := open(t, Options{Handler: h})
		c, err := g.dial(t.Context(), web4)
		if err == nil {
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", name, err)
		}
		eventually(t, "its place is free again", func() bool { return l.conns.Load() == 0 })
	}
}

func refuseAgain(t *testing.T, a *Attempt) {
	if _, err := a.Accept(context.Background()); !errors.Is(err, paddock.Conflict) {
		t.Errorf("accept after refuse: %v", err)
	}
}

func TestAConnectionIsNotAnsweredBeforeItIsAccepted(t *testing.T) {
	decide := make(chan struct{})
	_, g := open(t, Options{Handler: handler{tcp: func(a *Attempt) {
		<-decide
		a.Refuse()
	}}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if c, err := g.dial(ctx, web4); err == nil {
		c.Close()
		t.Error("it was answered")
	}
	close(decide)
}

func TestAHalfClosedConnectionGoesOn(t *testing.T) {
	done := make(chan struct{})
	_, g := open(t, Options{Handler: accepted(t, func(c Conn) {
		defer close(done)
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
		if b, err := io.ReadAll(c); err != nil || string(b) != "after the end" {
			t.Errorf("the link read %q, %v", b, err)
		}
	})})
	c := g.mustDial(t, web4)
	if b, err := io.ReadAll(c); err != nil || len(b) != 0 {
		t.Fatalf("read %q, %v", b, err)
	}
	if _, err := c.Write([]byte("after the end")); err != nil {
		t.Fatal(err)
	}
	c.CloseWrite()
	<-done
}

func TestAResetIsSeenAsOne(t *testing.T) {
	_, g := open(t, Options{Handler: accepted(t, func(c Conn) { c.Reset() })})
	c := g.mustDial(t, web4)
	if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("read: %v", err)
	}
}

func TestAThousandConnectionsAtOnce(t *testing.T) {
	l, g := open(t, Options{Handler: accepted(t, echo)})
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			c, err := g.dial(t.Context(), netip.AddrPortFrom(web4.Addr(), uint16(1+i%4)))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			want := bytes.Repeat([]byte{byte(i)}, 3000)
			if _, err := c.Write(want); err != nil {
				t.Error(err)
			}
			c.CloseWrite()
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
				t.Errorf("connection %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	all.Wait()
	eventually(t, "all places are free again", func() bool { return l.conns.Load() == 0 })
}

func TestMoreConnectionsThanAllowedAreRefused(t *testing.T) {
	const most = 10
	done := make(chan struct{})
	finish := sync.OnceFunc(func() { close(done) })
	defer finish()
	l, g := open(t, Options{MaxConns: most, Handler: accepted(t, func(c Conn) { <-done })})
	var conns []*gonet.TCPConn
	for range most {
		conns = append(conns, g.mustDial(t, web4))
	}
	if c, err := g.dial(t.Context(), web4); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("one more: %v, %v", c, err)
	}
	finish()
	for _, c := range conns {
		c.Close()
	}
	eventually(t, "all places are free again", func() bool { return l.conns.Load() == 0 })
	if _, err := io.ReadAll(g.mustDial(t, web4)); err != nil {
		t.Error(err)
	}
}

// If the box has received everything but does not close its side, the connection stops
// counting after a while.
func TestAClosedConnectionThatTheBoxKeepsOpenIsCounted(t *testing.T) {
	l, g := open(t, Options{MaxConns: 1, Handler: accepted(t, func(Conn) {})})
	c := g.mustDial(t, web4)
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
	if n := l.conns.Load(); n != 1 {
		t.Errorf("%d places are taken, want 1 until both sides are done", n)
	}
	eventually(t, "our side has closed it", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.buried) == 1
	})
	if !l.sweepOnce(time.Now()) {
		t.Error("the sweeper forgot a connection that goes on")
	}
	if l.sweepOnce(time.Now().Add(2 * linger)) {
		t.Error("the sweeper keeps a connection beyond its time")
	}
	if n := l.conns.Load(); n != 0 {
		t.Errorf("%d places are taken after the time for it", n)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		eventually(t, "the box is told", func() bool { _, err := c.Write([]byte("x")); return err != nil })
	}
}

func TestASlowReaderHoldsTheSenderUp(t *testing.T) {
	sent := new(atomic.Int64)
	l, g := open(t, Options{Handler: accepted(t, func(c Conn) {
		piece := make([]byte, 64<<10)
		for range 1024 {
			n, err := c.Write(piece)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})})
	c := g.mustDial(t, web4)
	held := func() bool {
		before := sent.Load()
		time.Sleep(200 * time.Millisecond)
		return before > 0 && sent.Load() == before
	}
	eventually(t, "the sender is held up", held)
	if n := sent.Load(); n > 8<<20 {
		t.Errorf("%d bytes were taken for a reader that reads none", n)
	}
	if n, err := io.Copy(io.Discard, c); err != nil || n != 64<<20 {
		t.Errorf("read %d bytes, %v", n, err)
	}
	c.Close()
	eventually(t, "its place is free again", func() bool { return l.conns.Load() == 0 })
}

func TestRoomIsBoundedHoweverManyConnectionsThereAre(t *testing.T) {
	total := int64(0)
	for n := int64(1); n <= 4096; n++ {
		total += room(n)
	}
	if room(1) != window || room(0) != window || room(1<<40) != narrow || total > 300<<20 {
		t.Errorf("room(1) %d, room of many %d, together %d MB", room(1), room(1<<40), total>>20)
	}
}

func TestWhatIsSentArrivesWhole(t *testing.T) {
	const size = 64 << 20
	sum := make(chan [32]byte, 1)
	_, g := open(t, Options{Handler: accepted(t, func(c Conn) {
		h := sha256.New()
		_, _ = io.Copy(h, c)
		sum <- [32]byte(h.Sum(nil))
	})})
	c := g.mustDial(t, web6)
	h := sha256.New()
	piece := make([]byte, 100_003)
	for sent := 0; sent < size; sent += len(piece) {
		piece[0] = byte(sent)
		h.Write(piece)
		if _, err := c.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	c.CloseWrite()
	if got := <-sum; got != [32]byte(h.Sum(nil)) {
		t.Error("other bytes arrived")
	}
}

func TestDeadlinesEndWaits(t *testing.T) {
	through := make(chan error, 2)
	_, g := open(t, Options{
		Handler: handler{
			tcp: accepted(t, func(c Conn) {
				c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				_, err := c.Read(make([]byte, 1))
				through <- err
			}).tcp,
			udp: func(d *Datagrams) {
				c, err := d.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				_, _ = c.Read(make([]byte, 10))
				c.SetDeadline(time.Now().Add(10 * time.Millisecond))
				_, err = c.Read(make([]byte, 10))
				through <- err
			},
		},
	})
	g.mustDial(t, web4)
	if err := <-through; !isTimeout(err) {
		t.Errorf("tcp: %v", err)
	}
	_, _ = g.udp(t, web4).Write([]byte("x"))
	if err := <-through; !isTimeout(err) {
		t.Errorf("udp: %v", err)
	}
}

func TestAHandshakeThatIsGivenUpLeavesNothing(t *testing.T) {
	l, g := open(t, Options{Handler: handler{tcp: func(a *Attempt) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if c, err := a.Accept(ctx); !errors.Is(err, paddock.Canceled) {
			t.Errorf("accept: %v, %v", c, err)
		}
	}}})
	if c, err := g.dial(t.Context(), web4); err == nil {
		c.SetDeadline(time.Now().Add(3 * time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("the box holds a connection of nobody: %v", err)
		}
		c.Close()
	}
	eventually(t, "its place is free again", func() bool { return l.conns.Load() == 0 })
}

func TestDatagramsGoBothWays(t *testing.T) {
	for _, to := range []netip.AddrPort{web4, web6} {
		l, g := open(t, Options{Handler: handler{udp: func(d *Datagrams) {
			c, err := d.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if d.To != to || c.LocalAddr().String() != to.String() {
				t.Errorf("to %s (%s), want %s", d.To, c.LocalAddr(), to)
			}
			b := make([]byte, 70_000)
			for {
				n, err := c.Read(b)
				if err != nil || string(b[:n]) == "end" {
					return
				}
				if _, err := c.Write(bytes.ToUpper(b[:n])); err != nil {
					t.Error(err)
				}
			}
		}}})
		c := g.udp(t, to)
		for _, size := range []int{0, 1, 2000, 60_000} {
			if _, err := c.Write(bytes.Repeat([]byte("a"), size)); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 70_000)
			if n, err := c.Read(b); err != nil || string(b[:n]) != strings.Repeat("A", size) {
				t.Errorf("%s: %d bytes became %d, %v", to, size, n, err)
			}
		}
		_, _ = c.Write([]byte("end"))
		eventually(t, "the flow is forgotten", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.flows) == 0 && l.queued.Load() == 0
		})
	}
}

// Two simultaneous datagrams (A and AAAA of one name) are one flow, and none is lost.
func TestDatagramsThatComeTogetherAreOneFlow(t *testing.T) {
	flows := new(atomic.Int64)
	_, g := open(t, Options{Handler: handler{udp: func(d *Datagrams) {
		flows.Add(1)
		c, err := d.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		echo(c)
	}}})
	for range 50 {
		c := g.udp(t, web4)
		_, _ = c.Write([]byte("A"))
		_, _ = c.Write([]byte("AAAA"))
		b := make([]byte, 10)
		for _, want := range []string{"A", "AAAA"} {
			if n, err := c.Read(b); err != nil || string(b[:n]) != want {
				t.Fatalf("got %q, %v; want %q", b[:n], err, want)
			}
		}
	}
	if n := flows.Load(); n != 50 {
		t.Errorf("%d flows, want 50", n)
	}
}

func TestRefusedDatagramsAreAnswered(t *testing.T) {
	for name, o := range map[string]Options{
		"by the handler": {Handler: handler{udp: func(d *Datagrams) { d.Refuse() }}},
		"by nobody":      {Handler: handler{}},
	} {
		for _, to := range []netip.AddrPort{web4, web6} {
			_, g := open(t, o)
			c := g.udp(t, to)
			if _, err := c.Write([]byte("anyone?")); err != nil {
				t.Fatal(err)
			}
			refused(t, name+": "+to.String(), c)
		}
	}
}

func TestMoreFlowsThanAllowedAreRefused(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	_, g := open(t, Options{MaxFlows: 2, Handler: handler{udp: func(d *Datagrams) {
		c, _ := d.Accept()
		_, _ = c.Write([]byte("here"))
		<-done
	}}})
	for range 2 {
		c := g.udp(t, web4)
		_, _ = c.Write([]byte("x"))
		if _, err := c.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	c := g.udp(t, web4)
	_, _ = c.Write([]byte("x"))
	refused(t, "one more", c)
}

// refused waits until the guest learns that nobody listens. That does not wake a reader, so
// it polls.
func refused(t *testing.T, what string, c *gonet.UDPConn) {
	t.Helper()
	eventually(t, what+" is refused", func() bool {
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := c.Read(make([]byte, 10))
		return err != nil && strings.Contains(err.Error(), "refused")
	})
}

func TestDatagramsThatNobodyReadsTakeBoundedMemory(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	l, g := open(t, Options{Handler: handler{udp: func(*Datagrams) { begin(); <-done }}})
	c := g.udp(t, web4)
	for range 200 {
		if _, err := c.Write(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	<-begun
	eventually(t, "they arrive", func() bool { return l.queued.Load() > oneFlow/2 })
	if n := l.queued.Load(); n > oneFlow {
		t.Errorf("%d bytes wait", n)
	}
}

func TestAQuietFlowEnds(t *testing.T) {
	over := make(chan error, 1)
	_, g := open(t, Options{Handler: handler{udp: func(d *Datagrams) {
		c, _ := d.Accept()
		_, _ = c.Read(make([]byte, 10))
		d.flow.idle.Reset(time.Millisecond)
		_, err := c.Read(make([]byte, 10))
		over <- err
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("a flow that has ended sends")
		}
	}}})
	_, _ = g.udp(t, web4).Write([]byte("x"))
	if err := <-over; err != io.EOF { //nolint:errorlint // readers compare it
		t.Errorf("read: %v", err)
	}
}

func TestPingsAreAnsweredForThoseThatAnswer(t *testing.T) {
	stands := func(a netip.Addr) bool { return a == web4.Addr() || a == web6.Addr() }
	_, g := open(t, Options{Handler: handler{}, Pings: stands})
	for to, want := range map[netip.AddrPort]bool{
		web4: true, web6: true,
		netip.MustParseAddrPort("198.18.1.8:0"): false, netip.MustParseAddrPort("[fd7a:6f74::1:8]:0"): false, netip.MustParseAddrPort("8.8.8.8:0"): false,
	} {
		wait := 10 * time.Second
		if !want {
			wait = 100 * time.Millisecond
		}
		if got := g.ping(t, to.Addr(), wait); got != want {
			t.Errorf("%s answers: %v, want %v", to.Addr(), got, want)
		}
	}
}

// ping reports whether an echo request is returned unchanged.
func (g *guest) ping(t *testing.T, to netip.Addr, wait time.Duration) bool {
	t.Helper()
	var queue waiter.Queue
	message, protocol, network := header.ICMPv4(make([]byte, 8, 64)), icmp.ProtocolNumber4, ipv4.ProtocolNumber
	message.SetType(header.ICMPv4Echo)
	if to.Is6() {
		protocol, network = icmp.ProtocolNumber6, ipv6.ProtocolNumber
		message[0] = byte(header.ICMPv6EchoRequest)
	}
	message = append(message, "how are you?"...)
	if to.Is4() {
		message.SetChecksum(^checksum.Checksum(message, 0))
	}
	ep, err := g.stack.NewEndpoint(protocol, network, &queue)
	must(t, err)
	defer ep.Close()
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents)
	queue.EventRegister(&entry)
	a, _ := full(netip.AddrPortFrom(to, 0))
	must(t, ep.Connect(a))
	_, err = ep.Write(bytes.NewReader(message), tcpip.WriteOptions{})
	must(t, err)
	select {
	case <-ready:
	case <-time.After(wait):
		return false
	}
	var got bytes.Buffer
	_, err = ep.Read(&got, tcpip.ReadOptions{})
	must(t, err)
	return bytes.HasSuffix(got.Bytes(), []byte("how are you?"))
}

func TestTheLinkSaysThatItsOtherEndIsGone(t *testing.T) {
	reading, failed := make(chan struct{}), make(chan error, 1)
	l, g := open(t, Options{Handler: accepted(t, func(c Conn) {
		close(reading)
		_, err := c.Read(make([]byte, 1))
		failed <- err
	})})
	g.mustDial(t, web4)
	<-reading
	select {
	case <-l.Done():
		t.Fatal("it says so while all is well")
	default:
	}
	g.stop()
	<-l.Done()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-failed
}

func TestCloseEndsAllAndLeavesNothing(t *testing.T) {
	before := goroutines()
	reading := make(chan struct{}, 30)
	ended := new(atomic.Int64)
	l, g := open(t, Options{Handler: handler{
		tcp: accepted(t, func(c Conn) {
			reading <- struct{}{}
			_, _ = c.Read(make([]byte, 1))
			ended.Add(1)
		}).tcp,
		udp: func(d *Datagrams) {
			c, _ := d.Accept()
			_, _ = c.Read(make([]byte, 1))
			reading <- struct{}{}
			_, _ = c.Read(make([]byte, 1))
			ended.Add(1)
		},
	}})
	for range 20 {
		g.mustDial(t, web4)
	}
	for range 10 {
		_, _ = g.udp(t, web4).Write([]byte("x"))
	}
	for range 30 {
		<-reading
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if n := ended.Load(); n != 30 {
		t.Errorf("Close returned when %d of 30 handlers had ended", n)
	}
	<-l.Done()
	g.stop()
	eventually(t, "no goroutine is left", func() bool { return goroutines() <= before })
}

func TestCloseDoesNotWaitForAHandshakeThatNobodyEnds(t *testing.T) {
	ours, theirs := pair(t)
	defer theirs.Close()
	accepting := make(chan struct{})
	failed := make(chan error, 1)
	l, err := Open(ours, Options{Handler: handler{tcp: func(a *Attempt) {
		close(accepting)
		_, err := a.Accept(context.Background())
		failed <- err
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Write(syn(box4, web4)); err != nil {
		t.Fatal(err)
	}
	<-accepting
	begun := time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("it was accepted")
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
}

// syn returns a packet that opens a connection.
func syn(from netip.Addr, to netip.AddrPort) []byte {
	b := make([]byte, header.IPv4MinimumSize+header.TCPMinimumSize)
	header.IPv4(b).Encode(&header.IPv4Fields{
		TotalLength: uint16(len(b)), TTL: 64, Protocol: uint8(header.TCPProtocolNumber),
		SrcAddr: tcpip.AddrFromSlice(from.AsSlice()), DstAddr: tcpip.AddrFromSlice(to.Addr().AsSlice()),
	})
	header.IPv4(b).SetChecksum(^header.IPv4(b).CalculateChecksum())
	header.TCP(b[header.IPv4MinimumSize:]).Encode(&header.TCPFields{
		SrcPort: 4000, DstPort: to.Port(), SeqNum: 1, DataOffset: header.TCPMinimumSize, Flags: header.TCPFlagSyn, WindowSize: 65535,
	})
	return b
}

func TestAnImpossibleLinkIsRefused(t *testing.T) {
	ours, theirs := pair(t)
	defer theirs.Close()
	if _, err := Open(ours, Options{MTU: 100, Handler: handler{}}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("an MTU of 100: %v", err)
	}
	if _, err := ours.Stat(); err == nil {
		t.Error("the descriptor is open, though it belonged to the link")
	}
}
