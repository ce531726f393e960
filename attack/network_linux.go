package attack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/internet"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A way has the specifics of a network row. These rows run in a network of their own: a
// host with one link, and an internet behind it.
type way struct {
	policy func(p *paddock.NetworkPolicy) // changes the policy
	reach  func(p protocol.Packet) bool   // further packets that are allowed
	told   func(what string) bool         // what the row allows: a queried name, or "HOST path" of a request
}

// usual returns the policy of the network rows.
func usual(secret string) paddock.NetworkPolicy {
	web := []uint16{80, 443}
	p := paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
		{Host: protocol.NotInWild, Deny: true, Ports: []uint16{22, 25, 53, 80, 443, 853, 8080}},
		{Host: protocol.Allowed, Ports: []uint16{22, 80, 443}},
		{Host: protocol.Second, Ports: []uint16{22, 80, 443}},
		{Host: "*." + protocol.Wild, Ports: web},
		{Host: protocol.Inspect, Ports: web, Methods: []string{"GET", "POST"}, Paths: []string{"/ok", "/ok/**"}},
		{Host: protocol.InspectB, Ports: web, Methods: []string{"GET", "POST"}, Paths: []string{"/ok", "/ok/**"}},
		{Host: protocol.Secret, Ports: web, Inspect: true},
		{Host: protocol.Limited, Ports: web, Limits: &paddock.NetworkLimits{Bytes: protocol.LimitedBytes}},
		{Host: protocol.Datagrams, UDP: true, Ports: []uint16{protocol.EchoPort}},
		{Host: protocol.Rebind, Ports: web},
	}, Secrets: []paddock.Secret{{Name: protocol.SecretEnv, Value: secret, Hosts: []string{protocol.Secret}}}}
	for name := range protocol.Turned() {
		p.Rules = append(p.Rules, paddock.NetworkRule{Host: name, Ports: web})
	}
	for name := range protocol.Mixed() {
		p.Rules = append(p.Rules, paddock.NetworkRule{Host: name, Ports: web})
	}
	slices.SortStableFunc(p.Rules[10:], func(a, b paddock.NetworkRule) int { return strings.Compare(a.Host, b.Host) })
	return p
}

// online adds the secret and the witness of a network row.
func (w *world) online() error {
	w.secret, w.brief.Alive = w.token("the secret of the network policy"), protocol.Allowed
	witness, err := witnessAt(os.Getenv(envNetwork))
	if err != nil {
		return err
	}
	w.witness = witness
	_, err = witness.take() // discard what was seen before this row
	return err
}

// connect adds the network to a spec. A tier without networks is not an answer.
func (x *trial) connect(s *paddock.Spec) {
	s.Policy.Network = usual(x.w.secret)
	if x.c.way.policy != nil {
		x.c.way.policy(&s.Policy.Network)
	}
	s.AllowMissing = slices.DeleteFunc(s.AllowMissing, func(c paddock.Control) bool { return c == paddock.ControlNetwork || c == paddock.ControlNetNS })
	// Limits for a thousand connections.
	s.Limits.CPUs, s.Limits.Files, s.Limits.PIDs = 0, 4096, 400
}

// traffic judges what went out. Without a network there is nothing to judge.
func (x *trial) traffic() ([]string, error) {
	seen, err := x.w.witness.take()
	if err != nil {
		return nil, err
	}
	for _, t := range x.before {
		seen.Packets, seen.Asked, seen.Streams = append(seen.Packets, t.Packets...), append(seen.Asked, t.Asked...), append(seen.Streams, t.Streams...)
		seen.Missed += t.Missed
	}
	return x.w.traffic(seen, x.c)
}

// A witness asks the internet what it saw.
type witness struct {
	conn net.Conn
	in   *bufio.Reader
}

// witnessAt connects to the internet whose files are in dir.
func witnessAt(dir string) (*witness, error) {
	c, err := net.Dial("unix", filepath.Join(dir, internet.Socket))
	if err != nil {
		return nil, err
	}
	return &witness{c, bufio.NewReader(c)}, nil
}

// take returns what was seen since the last call.
func (w *witness) take() (protocol.Traffic, error) {
	var t protocol.Traffic
	if err := w.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return t, err
	}
	if _, err := fmt.Fprintln(w.conn); err != nil {
		return t, fmt.Errorf("ask the internet: %w", err)
	}
	line, err := w.in.ReadBytes('\n')
	if err != nil {
		return t, fmt.Errorf("ask the internet: %w", err)
	}
	return t, json.Unmarshal(line, &t)
}

// traffic returns the forbidden part of the traffic. It returns an error if nothing arrived
// at all.
func (w *world) traffic(t protocol.Traffic, c Case) (found []string, err error) {
	note := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, p := range t.Packets {
		resolving := p.To.Addr().String() == protocol.Resolver && p.To.Port() == 53 && (p.Proto == "udp" || p.Proto == "tcp")
		if !resolving && !protocol.MayReach(p.To, p.Proto) && (c.way.reach == nil || !c.way.reach(p)) {
			note("a packet (%s) went to %s", p.Proto, p.To)
		}
	}
	for _, name := range t.Asked {
		if !w.mayAsk(name, c) {
			note("the host was asked for %q", name)
		}
	}
	var limited int64
	alive := false
	for _, s := range t.Streams {
		alive = alive || slices.ContainsFunc(s.Requests, func(r string) bool { return strings.HasSuffix(r, " "+w.brief.Alive+" /alive") })
		if s.To.Addr().Unmap().String() == protocol.Addresses(protocol.Limited, 0)[0].String() {
			limited += s.Total
		}
		w.stream(s, c, note)
	}
	// Bytes in transit when a limit is reached may still arrive.
	if limited > 2*protocol.LimitedBytes {
		note("%d bytes came where %d may", limited, protocol.LimitedBytes)
	}
	if t.Missed > 0 {
		err = fmt.Errorf("%d packets came too fast to be seen", t.Missed)
	}
	if !alive {
		err = errors.Join(err, errors.New("nothing came through the way that is allowed, so that nothing else did proves nothing"))
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

// mayAsk reports whether the host may be queried for a name: the policy allows it, and it
// is only a name.
func (w *world) mayAsk(name string, c Case) bool {
	lower := strings.ToLower(strings.TrimSuffix(name, "."))
	if c.way.told != nil && c.way.told(lower) {
		return true
	}
	if strings.ContainsFunc(lower, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-.", r) }) {
		return false
	}
	for _, token := range []string{"exfil", strings.ToLower(w.brief.Phase)} {
		if token != "" && strings.Contains(lower, token) {
			return false
		}
	}
	if strings.HasSuffix(lower, "."+protocol.Wild) {
		return lower != protocol.NotInWild
	}
	p := usual("x")
	return slices.ContainsFunc(p.Rules, func(r paddock.NetworkRule) bool { return r.Host == lower })
}

// namesAt returns the names of an address that may be reached. The sandbox has a synthetic
// address for each, too.
func namesAt(to netip.AddrPort) func(name string) bool {
	a := to.Addr().Unmap()
	return func(name string) bool {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		own, err := netip.ParseAddr(strings.Trim(name, "[]"))
		if err == nil && (netip.MustParsePrefix("198.18.0.0/15").Contains(own) || netip.MustParsePrefix("fd7a:6f74::/64").Contains(own)) {
			return true
		}
		for times := range 2 {
			if slices.Contains(protocol.Addresses(name, times), a) {
				return true
			}
		}
		return false
	}
}

// stream judges one stream.
func (w *world) stream(s protocol.Stream, c Case, note func(string, ...any)) {
	if s.Host {
		note("a server of the host at %s heard %q", s.To, s.Raw[:min(len(s.Raw), 100)])
		return
	}
	is := namesAt(s.To)
	if s.TLS && !is(s.SNI) {
		note("%s was asked for a certificate of %q", s.To, s.SNI)
	}
	looked := is(protocol.Inspect)
	for _, r := range s.Requests {
		f := append(strings.Fields(r), "", "", "")
		method, host, path := f[0], f[1], f[2]
		if len(strings.Fields(r)) < 3 {
			host, path = "", f[1]
		}
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		switch {
		case c.way.told != nil && c.way.told(host+" "+path):
		case host != "" && !is(host), s.TLS && looked && host != s.SNI:
			note("%s (%s) was asked for %q", s.To, s.SNI, r)
		case strings.Contains(path, "smuggled"), strings.Contains(path, "exfil"):
			note("%s was asked for %q", s.To, r)
		case looked && (path != "/ok" && !strings.HasPrefix(path, "/ok/") && !strings.HasPrefix(path, "/ok?") || strings.Contains(path, "..") || method != "GET" && method != "POST"):
			note("%s was asked for %q", s.To, r)
		}
	}
	w.secrets(s, note)
}

// secrets finds secrets where they must not be.
func (w *world) secrets(s protocol.Stream, note func(string, ...any)) {
	token := []byte(w.secret)
	if w.secret == "" || !bytes.Contains(s.Raw, token) {
		return
	}
	if !s.TLS || s.SNI != protocol.Secret || s.To.Port() != 443 {
		note("the secret came to %s (%s)", s.To, s.SNI)
		return
	}
	head, body, _ := bytes.Cut(s.Raw, []byte("\r\n\r\n"))
	if bytes.Contains(body, token) && s.Proto != "h2" {
		note("the secret came in a body")
	}
	for line := range bytes.Lines(head) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		first, _, _ := bytes.Cut(line, []byte("?"))
		if bytes.Contains(name, token) && !bytes.Contains(line, []byte("?")) || bytes.HasPrefix(bytes.ToLower(line), []byte("host:")) && bytes.Contains(line, token) || bytes.Contains(first, token) && !bytes.Contains(line, []byte(": ")) {
			note("the secret came at a wrong place: %q", line)
		}
	}
}

// everything is N06: a rule that allows every name and address.
func everything(p *paddock.NetworkPolicy) {
	p.Rules = []paddock.NetworkRule{{Host: "*", Ports: []uint16{22, 80, 443}}, {Host: "*", UDP: true, Ports: []uint16{53, 80, 443, protocol.EchoPort}}}
	p.Secrets = nil
}

// public reports whether a packet goes to an address that `*` permits.
func public(p protocol.Packet) bool {
	a := p.To.Addr().Unmap()
	for _, dark := range []string{"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3", "100.100.100.200/32", "::/16", "64:ff9b::/96", "2002::/16", "fc00::/7", "fe80::/10", "ff00::/8", protocol.HostAddr + "/32", protocol.HostAddr6 + "/128"} {
		if netip.MustParsePrefix(dark).Contains(a) {
			return false
		}
	}
	return p.Proto == "tcp" || p.Proto == "udp"
}

// belowWildcard is what N10 allows.
func belowWildcard(what string) bool {
	name, _, _ := strings.Cut(what, " ")
	good := !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-.", r) })
	return good && strings.HasSuffix(name, "."+protocol.Wild)
}

// fronted is what N12 allows: another host inside uninspected TLS.
func fronted(what string) bool { return what == protocol.Stranger+" /told" }
