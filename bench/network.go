//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

const (
	serverName = "example.com" // which the certificate of httptest is for
	serverAt   = "127.0.0.1"
	seen       = "/bench" // where sandboxes see this program

	manyRequests    = 200
	large           = 1 << 30 // bytes that are downloaded
	downloads       = 3
	manyConnections = 1000
)

// A site is servers on loopback, and what their clients need.
type site struct {
	dir                 string // with this program, and the certificate
	spliced, looked, ip uint16 // ports: of TLS twice, and of HTTP without it
	echo                uint16
	pem                 []byte
	close               func()
}

// measureNetwork measures the way out: what it adds to a request, what it carries,
// and what it takes.
func measureNetwork(ctx context.Context, o options) (_ []row, err error) {
	s, err := openSite()
	if err != nil {
		return nil, err
	}
	defer s.close()
	o.hosts = map[string][]netip.Addr{serverName: {netip.MustParseAddr(serverAt)}}
	o.roots = s.pem
	rows, err := startsWithList(ctx, o)
	if err != nil {
		return rows, err
	}
	own, err := s.measure(ctx, s.onHost)
	if err != nil {
		return rows, fmt.Errorf("on the host: %w", err)
	}
	for _, t := range tiers() {
		more, err := s.throughTier(ctx, o, t, own)
		rows = append(rows, more...)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return rows, nil
}

// openSite starts the servers.
func openSite() (_ *site, err error) {
	s := &site{}
	if s.dir, err = os.MkdirTemp("", "paddock-bench-"); err != nil {
		return nil, err
	}
	handler := http.HandlerFunc(serve)
	spliced, looked, plain := httptest.NewTLSServer(handler), httptest.NewTLSServer(handler), httptest.NewServer(handler)
	l, err := net.Listen("tcp", serverAt+":0")
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() { echo(l, &wg) })
	s.close = func() {
		for _, server := range []*httptest.Server{spliced, looked, plain} {
			server.Close()
		}
		l.Close()
		wg.Wait()
		os.RemoveAll(s.dir)
	}
	for port, a := range map[*uint16]net.Addr{&s.spliced: spliced.Listener.Addr(), &s.looked: looked.Listener.Addr(), &s.ip: plain.Listener.Addr(), &s.echo: l.Addr()} {
		*port = netip.MustParseAddrPort(a.String()).Port()
	}
	s.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: spliced.Certificate().Raw})
	if err := s.furnish(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// furnish puts what sandboxes need into the directory that they see.
func (s *site) furnish() error {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return errors.Join(
		os.Chmod(s.dir, 0o755),
		os.WriteFile(filepath.Join(s.dir, "bench"), data, 0o755),
		os.WriteFile(filepath.Join(s.dir, "roots.pem"), s.pem, 0o644))
}

// serve answers with as many bytes as it is asked for.
func serve(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.ParseInt(r.URL.Query().Get("size"), 10, 64)
	if err != nil {
		_, _ = io.WriteString(w, "hello\n")
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	piece := make([]byte, 256<<10)
	for size > 0 {
		n, err := w.Write(piece[:min(size, int64(len(piece)))])
		if err != nil {
			return
		}
		size -= int64(n)
	}
}

// echo says again what connections say.
func echo(l net.Listener, wg *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		})
	}
}

// A runner runs the client somewhere.
type runner func(ctx context.Context, do, target string, n int) (samples, error)

// onHost runs it beside us.
func (s *site) onHost(ctx context.Context, do, target string, n int) (samples, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.dir, "bench"), target, strconv.Itoa(n))
	cmd.Env = append(os.Environ(), clientVariable+"="+do, rootsVariable+"="+filepath.Join(s.dir, "roots.pem"), atVariable+"="+serverAt)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, errs.String())
	}
	return decode(out)
}

// inBox runs it in a sandbox.
func inBox(sb paddock.Sandbox) runner {
	return func(ctx context.Context, do, target string, n int) (samples, error) {
		var out, errs bytes.Buffer
		p, err := sb.Start(ctx, paddock.Cmd{
			Args:   []string{seen + "/bench", target, strconv.Itoa(n)},
			Env:    map[string]string{clientVariable: do, rootsVariable: seen + "/roots.pem"},
			Output: paddock.Output{Stdout: &out, Stderr: &errs},
		})
		if err != nil {
			return nil, err
		}
		exit, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		if exit.Code != 0 {
			return nil, fmt.Errorf("%s %s ended with %d: %s %s", do, target, exit.Code, exit.Reason, errs.String())
		}
		return decode(out.Bytes())
	}
}

func decode(out []byte) (samples, error) {
	var took samples
	if err := json.Unmarshal(out, &took); err != nil {
		return nil, fmt.Errorf("what the client said: %w", err)
	}
	return took, nil
}

// carried is what clients took, by what they did.
type carried struct {
	request, lookedRequest   samples
	download, lookedDownload samples // TLS
	plainDownload            samples
	connections              samples
}

// measure runs the client for everything.
func (s *site) measure(ctx context.Context, run runner) (c carried, err error) {
	url := func(scheme string, port uint16) string { return fmt.Sprintf("%s://%s:%d/", scheme, serverName, port) }
	for _, m := range []struct {
		to     *samples
		do     string
		target string
		n      int
		times  int
	}{
		{&c.request, "requests", url("https", s.spliced), manyRequests, 1},
		{&c.lookedRequest, "requests", url("https", s.looked), manyRequests, 1},
		{&c.download, "download", url("https", s.spliced), large, downloads},
		{&c.lookedDownload, "download", url("https", s.looked), large, downloads},
		{&c.plainDownload, "download", url("http", s.ip), large, downloads},
		{&c.connections, "connections", fmt.Sprintf("%s:%d", serverName, s.echo), manyConnections, 1},
	} {
		for range m.times {
			took, err := bounded(ctx, run, m.do, m.target, m.n)
			if err != nil {
				return c, err
			}
			*m.to = append(*m.to, took...)
		}
	}
	return c, nil
}

// errandBound is what one errand may take at most.
const errandBound = 2 * time.Minute

func bounded(ctx context.Context, run runner, do, target string, n int) (samples, error) {
	ctx, cancel := context.WithTimeout(ctx, errandBound)
	defer cancel()
	took, err := run(ctx, do, target, n)
	if err != nil {
		return nil, fmt.Errorf("%s of %s, %d: %w", do, target, n, err)
	}
	return took, nil
}

// spec is a sandbox that may reach the site: what is looked into by a rule for its
// port.
func (s *site) spec(t tier) paddock.Spec {
	spec := t.spec()
	spec.Mounts = []paddock.Mount{{Source: s.dir, Target: seen}}
	spec.Policy.Network = paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
		{Host: serverName, Ports: []uint16{s.spliced, s.ip, s.echo}},
		{Host: serverName, Ports: []uint16{s.looked}, Inspect: true},
		{Host: serverAt}, // loopback is reached only where a rule lists it
	}}
	return spec
}

// throughTier measures a tier's way out.
func (s *site) throughTier(ctx context.Context, o options, t tier, host carried) (_ []row, err error) {
	d, err := t.open(o, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	rows, err := s.idleGateways(ctx, d, t)
	if err != nil {
		return rows, err
	}
	sb, err := d.Create(ctx, s.spec(t))
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	box, err := s.measure(ctx, inBox(sb))
	if err != nil {
		return rows, err
	}
	return append(rows, compareCarried(t, box, host)...), nil
}

// compareCarried makes rows of what a sandbox took and the host.
func compareCarried(t tier, box, host carried) []row {
	request := func(what string, own, other samples) row {
		return row{
			what: fmt.Sprintf("%s: an allowed HTTPS request on a connection of its own, %s", t.box, what), p50: ms(own.p50()), p99: ms(own.p99()),
			ratio: fmt.Sprintf("host %s: adds %s", ms(other.p50()), ms(own.p50()-other.p50())), runs: len(own),
		}
	}
	speed := func(what string, own, other samples) row {
		return row{
			what: fmt.Sprintf("%s: 1 GiB, %s", t.box, what), p50: rate(large, own.p50()), p99: rate(large, own.p99()),
			ratio: fmt.Sprintf("loopback %s: %.0f %%", rate(large, other.p50()), 100*float64(other.p50())/float64(own.p50())), runs: len(own),
		}
	}
	return []row{
		request("spliced", box.request, host.request),
		request("looked into", box.lookedRequest, host.lookedRequest),
		speed("HTTPS, spliced", box.download, host.download),
		speed("HTTPS, looked into", box.lookedDownload, host.lookedDownload),
		speed("HTTP without TLS", box.plainDownload, host.plainDownload),
		{
			what: fmt.Sprintf("%s: %d connections at once, opened and one answer on each", t.box, manyConnections), p50: ms(box.connections.p50()),
			ratio: "host " + ms(host.connections.p50()), runs: len(box.connections),
		},
	}
}

// idleGateways measures the gateway of a sandbox that does nothing, alone and among
// several, which share their program's text.
func (s *site) idleGateways(ctx context.Context, d paddock.Driver, t tier) (_ []row, err error) {
	var rows []row
	for i := range several {
		sb, err := d.Create(ctx, s.spec(t))
		if err != nil {
			return rows, err
		}
		defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
		if _, err := command(ctx, sb); err != nil {
			return rows, err
		}
		if i != 0 && i != several-1 {
			continue
		}
		time.Sleep(settled)
		m, n := gateways()
		if n != int64(i)+1 {
			return rows, fmt.Errorf("%d gateways of %d sandboxes", n, i+1)
		}
		what := "memory of an idle gateway of a " + t.box
		if i > 0 {
			what = fmt.Sprintf("memory of each of %d idle gateways of %s", several, t.many)
		}
		rows = append(rows, row{what: fmt.Sprintf("%s (PSS; %s of it private)", what, mib(m.private/n)), p50: mib(m.proportional / n), runs: int(n)})
	}
	return rows, nil
}

// gateways sums up the memory of our gateways, and counts them.
func gateways() (m memory, n int64) {
	others := map[int]bool{}
	for pid := range descendants() {
		if strings.HasPrefix(word(fmt.Sprintf("/proc/%d/cmdline", pid)), gatewayclient.Argv0) {
			n++
		} else {
			others[pid] = true
		}
	}
	return memoryBut(others), n
}

// startsWithList times `paddock run` with one allowed host, beside srt with one
// allowed domain.
func startsWithList(ctx context.Context, o options) ([]row, error) {
	top, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(top)
	var all []contender
	for _, t := range tiers() {
		all = append(all, contender{name: fmt.Sprintf("`paddock run --tier %s --allow %s -- true`", t.name, serverName), args: []string{o.paddock, "run", "--tier", string(t.name), "--allow", serverName, "--", "true"}, every: 2})
	}
	var rows []row
	if o.peers == "" {
		rows = append(rows, row{what: "`srt true` with one allowed domain: not measured, as -peers was not given"})
	} else {
		settings := filepath.Join(top, "srt.json")
		text := `{"network": {"allowedDomains": ["` + serverName + `"], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}`
		if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
			return nil, err
		}
		all = append(all, contender{name: "`srt true` with one allowed domain", args: []string{filepath.Join(o.peers, "node"), filepath.Join(o.peers, "srt.js"), "--settings", settings, "true"}, every: 10})
	}
	for i := range all {
		all[i].uid, all[i].dir = -1, top
		all[i].env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + top, "LANG=C.UTF-8"}
	}
	took, _, err := interleave(ctx, o.rounds, all)
	if err != nil {
		return rows, err
	}
	own := took[all[0].name]
	for _, c := range all {
		s := took[c.name]
		rows = append(rows, row{what: c.name, p50: ms(s.p50()), p99: ms(s.p99()), ratio: fmt.Sprintf("%.2f", float64(s.p50())/float64(own.p50())), runs: len(s)})
	}
	return rows, nil
}
