package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
)

const (
	// publishedMost bounds the connections to all published ports of a run at a time. Of the others, one for each
	// address waits here, and the rest in the kernel. It stays far below the streams of a connection to the agent, which carries the commands too.
	publishedMost = 512
	// listenWait is how long a connection waits for something to listen inside, and listenPause how long
	// until the next try.
	listenWait  = 30 * time.Second
	listenPause = 100 * time.Millisecond
	// lastWords is how long connections may go on after the end of the command, for what it has sent.
	lastWords = 5 * time.Second
	// freeTries is how many free ports are tried until one is free at both addresses of loopback.
	freeTries = 16
)

// A publication is a value of --publish: where this machine listens, and the port inside.
type publication struct {
	addr  netip.Addr // invalid is both addresses of loopback
	local int        // 0 is a free one
	port  int
}

// at gives the addresses that the publication listens at.
func (p publication) at() []netip.Addr {
	if p.addr.IsValid() {
		return []netip.Addr{p.addr}
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

const publishHint = "write PORT, HOSTPORT:PORT, or ADDRESS:HOSTPORT:PORT with an address of this machine (of IPv6 in brackets), " +
	"with numbers up to 65535; a HOSTPORT of 0 is a free port"

// parsePublication reads PORT, HOSTPORT:PORT or ADDRESS:HOSTPORT:PORT.
func parsePublication(text string) (publication, error) {
	wrong := func(why string) (publication, error) {
		return publication{}, WithHint(fmt.Errorf("--publish %s: %s: %w", text, why, paddock.Invalid), "%s", publishHint)
	}
	rest := strings.TrimSuffix(text, "/tcp")
	if strings.HasSuffix(rest, "/udp") {
		return publication{}, WithHint(fmt.Errorf("--publish %s: datagrams cannot be published: %w", text, paddock.Unsupported), "connections can: --publish %s", strings.TrimSuffix(rest, "/udp"))
	}
	var p publication
	number := func(s string, least int) (int, bool) {
		n, err := strconv.ParseUint(s, 10, 16)
		return int(n), err == nil && int(n) >= least
	}
	i := strings.LastIndexByte(rest, ':')
	var ok bool
	if p.port, ok = number(rest[i+1:], 1); !ok {
		return wrong(fmt.Sprintf("%q is no port of the sandbox", rest[i+1:]))
	}
	if i < 0 {
		p.local = p.port
		return p, nil
	}
	rest = rest[:i]
	i = strings.LastIndexByte(rest, ':')
	if p.local, ok = number(rest[i+1:], 0); !ok && (i < 0 || rest[i+1:] != "") {
		return wrong(fmt.Sprintf("%q is no port of this machine", rest[i+1:]))
	}
	if i < 0 || rest[:i] == "localhost" {
		return p, nil
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(rest[:i], "["), "]"))
	switch {
	case err != nil, addr.Is6() != strings.HasPrefix(rest, "["):
		return wrong(fmt.Sprintf("%q is no address", rest[:i]))
	case addr.IsMulticast():
		return wrong(fmt.Sprintf("nobody can listen at %s", addr))
	}
	p.addr = addr.Unmap()
	return p, nil
}

// A published port is one that this machine listens at.
type published struct {
	publication
	listeners []net.Listener

	// missed counts connections for which nothing listened inside.
	missed atomic.Int64

	// site has requests of HTTP be for localhost; see siteConn.
	site bool
}

// A publishing joins connections to published ports with those of a sandbox. A nil one has none.
type publishing struct {
	ports     []*published
	auto      bool   // what begins to listen inside is published too
	line      string // what ends a line on the screen
	most      chan struct{}
	accepting sync.WaitGroup
	carrying  sync.WaitGroup // is added to by what accepts
	closing   context.Context
	close     context.CancelFunc
}

// registerPublish adds the flag.
func (f *runFlags) registerPublish(fs *pflag.FlagSet) {
	fs.VarP(&f.publish, "publish", "p", "reach a port of the sandbox at this machine's loopback: `PORT`, HOSTPORT:PORT, or ADDRESS:HOSTPORT:PORT; auto is each at which a program begins to listen; none is not even that (repeatable)")
}

// publishes notes in the plan that ports are published, and refuses that where the sandbox has no ports of its own.
func (f *runFlags) publishes(p *plan) error {
	ports, auto, err := splitPublish(f.publish, f.publishing)
	if err != nil {
		return err
	}
	f.ports, f.watches = ports, auto
	asked := len(ports) > 0 || slices.Contains(f.publish, publishAuto)
	if p.spec.Policy.Network.Mode == paddock.NetworkHost {
		if asked {
			return WithHint(fmt.Errorf("--publish: the sandbox has the whole network of this machine, so its ports are this machine's already: %w", paddock.Invalid), "leave --publish out")
		}
		f.watches = false
	}
	p.ports = asked
	return nil
}

// takePorts takes the ports of this machine, all or none.
func (f *runFlags) takePorts() (*publishing, error) {
	if len(f.ports) == 0 && !f.watches {
		return nil, nil
	}
	all := &publishing{most: make(chan struct{}, publishedMost), auto: f.watches, line: "\n"}
	if f.terminal { // whose program has it not add the return
		all.line = "\r\n"
	}
	for _, text := range f.ports {
		p, err := parsePublication(text)
		if err == nil {
			var one *published
			if one, err = p.listen(text); err == nil {
				all.ports = append(all.ports, one)
				continue
			}
		}
		all.refuse()
		return nil, err
	}
	return all, nil
}

// listen takes the port at each address of the publication.
func (p publication) listen(text string) (*published, error) {
	for try := 1; ; try++ {
		one := &published{publication: p}
		err := one.take()
		if err == nil {
			return one, nil
		}
		for _, l := range one.listeners {
			l.Close()
		}
		if p.local == 0 && try < freeTries && errors.Is(err, syscall.EADDRINUSE) {
			continue // a port that is free at one address of loopback may be taken at the other
		}
		err = fmt.Errorf("--publish %s: %w", text, err)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, WithHint(fmt.Errorf("%w: the port of this machine is taken: %w", err, paddock.Conflict), "for another port of this machine: --publish HOSTPORT:%d; 0:%d takes a free one", p.port, p.port)
		case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
			return nil, WithHint(fmt.Errorf("%w: %w", err, paddock.Denied), "ports below 1024 are for root: --publish HOSTPORT:%d with a higher one", p.port)
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return nil, WithHint(fmt.Errorf("%w: %w", err, paddock.Invalid), "the address must be one of this machine")
		}
		return nil, fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
}

func (p *published) take() error {
	local := p.local
	for i, addr := range p.at() {
		network := "tcp6"
		if addr.Is4() {
			network = "tcp4"
		}
		l, err := net.Listen(network, netip.AddrPortFrom(addr, uint16(local)).String())
		switch {
		case err != nil && i > 0 && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)):
			continue // this machine has no IPv6
		case err != nil:
			return err
		}
		p.listeners = append(p.listeners, l)
		if at, ok := l.Addr().(*net.TCPAddr); ok {
			local = at.Port
		}
	}
	return nil
}

// words says what is published where.
func (p *published) words() string {
	where := make([]string, len(p.listeners))
	for i, l := range p.listeners {
		where[i] = l.Addr().String()
	}
	text := fmt.Sprintf("port %d of the sandbox is published at %s", p.port, strings.Join(where, " and "))
	if p.addr.IsValid() && !p.addr.IsLoopback() {
		text += ", which other machines may reach"
	}
	return text
}

// refuse lets go of the ports, after which nobody can connect to them.
func (all *publishing) refuse() {
	if all == nil {
		return
	}
	for _, p := range all.ports {
		p.refuse()
	}
}

// serve says what is published, and joins connections until end.
func (all *publishing) serve(a *App, sb paddock.Sandbox, tier paddock.Tier) {
	if all == nil {
		return
	}
	all.closing, all.close = context.WithCancel(context.Background()) // bounded by the life of the command: see end
	for _, p := range all.ports {
		fmt.Fprintf(a.Stderr, "paddock: %s\n", p.words())
		for _, l := range p.listeners {
			all.accepting.Go(func() { all.accept(l, p, sb) })
		}
	}
	if all.auto && tier != paddock.Sim { // nothing listens there
		w := &portWatch{all: all, app: a, sandbox: sb, line: all.line, asked: map[int]bool{}, at: map[int]*foundPort{}, before: map[int]int{},
			listen: func(p publication) (*published, error) { return p.listen(strconv.Itoa(p.port)) }}
		for _, p := range all.ports {
			w.asked[p.port] = true
		}
		all.accepting.Go(func() { w.watch(all.closing) })
	}
}

// accept joins the connections of one listener until it is closed.
func (all *publishing) accept(l net.Listener, p *published, sb paddock.Sandbox) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || all.closing.Err() != nil {
				return
			}
			pause(all.closing, listenPause) // this process or the machine is out of descriptors
			continue
		}
		select {
		case all.most <- struct{}{}:
		case <-all.closing.Done():
			conn.Close()
			return
		}
		all.carrying.Go(func() {
			defer func() { <-all.most }()
			all.carry(conn, p, sb)
		})
	}
}

// carry joins one connection with the port inside. Where nothing listens there yet, it waits.
func (all *publishing) carry(conn net.Conn, p *published, sb paddock.Sandbox) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(all.closing))
	defer cancel()
	defer context.AfterFunc(all.closing, func() { time.AfterFunc(lastWords, cancel) })()
	raw := conn
	if p.site {
		var ok bool
		if conn, ok = ofSite(all.closing, conn); !ok {
			return
		}
	}
	there, err := all.dial(ctx, p, sb)
	if err != nil {
		if errors.Is(err, paddock.NotFound) {
			p.missed.Add(1)
		}
		if tcp, ok := raw.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // its end is a reset and no empty answer
		}
		conn.Close()
		return
	}
	joinPort(ctx, conn, there)
}

// dial connects to the port inside, and waits for something to listen there while the command runs. A try that is
// under way when the command ends goes on: the command may have answered the connection already.
func (all *publishing) dial(ctx context.Context, p *published, sb paddock.Sandbox) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listenWait)
	defer cancel()
	var none error
	for {
		there, err := sb.Dial(ctx, p.port)
		switch {
		case err == nil:
			return there, nil
		case errors.Is(err, paddock.NotFound):
			none = err
		case ctx.Err() != nil && none != nil:
			return nil, none
		default:
			return nil, err
		}
		if ctx.Err() != nil || !pause(all.closing, listenPause) {
			return nil, none
		}
	}
}

// pause waits, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// end stops listening, lets what the command has sent arrive, and waits for every connection to end. It says where
// nothing listened.
func (all *publishing) end(a *App) {
	if all == nil {
		return
	}
	all.refuse()
	all.close()
	all.accepting.Wait()
	all.carrying.Wait()
	for _, p := range all.ports {
		if n := p.missed.Load(); n > 0 {
			fmt.Fprintf(a.Stderr, "paddock: %d of the connections to port %d of the sandbox found nothing that listens there\n", n, p.port)
		}
	}
}
