//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// waiting bounds one try. The host sees whatever gets out later. Without a sandbox, single
// techniques do not matter.
func waiting(b *protocol.Brief) time.Duration {
	switch {
	case b.Slow: // a machine that is emulated, where others are, too
		return 10 * time.Second
	case b.Unconfined:
		return 3 * time.Second
	}
	return 1500 * time.Millisecond
}

// alive shows the host that the network works, because a refusal proves nothing where
// nothing gets out. The host checks whether the request arrived.
func alive(b *protocol.Brief) {
	until := time.Now().Add(20 * time.Second)
	for time.Now().Before(until) {
		c, err := net.DialTimeout("tcp", b.Alive+":80", 5*time.Second)
		if err != nil {
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e8}, nil)
			continue
		}
		t := say(c, 5*time.Second, web(b.Alive, "/alive"))
		c.Close()
		if t.Outcome == protocol.Reached {
			return
		}
	}
}

// web returns a plain request.
func web(host, path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
}

// told converts an error to a try.
func told(err error) protocol.Try {
	t := refused(err)
	var name *net.DNSError
	var e syscall.Errno
	var to net.Error
	switch {
	case errors.As(err, &name):
		t.Errno = "no-name"
	case errors.As(err, &e):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		t.Errno = "closed"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &to) && to.Timeout():
		t.Errno = "silent"
	case strings.Contains(err.Error(), "tls:"):
		t.Errno = "alert"
	}
	return t
}

// say writes data and reads until a server has answered or the time is over.
func say(c net.Conn, wait time.Duration, data []byte) protocol.Try {
	_ = c.SetDeadline(time.Now().Add(wait))
	if len(data) > 0 {
		if _, err := c.Write(data); err != nil {
			return told(err)
		}
	}
	heard, err := hear(c)
	switch {
	case bytes.Contains(heard, []byte(protocol.HostBanner)), bytes.Contains(heard, []byte(protocol.ServerBanner)):
		return withLoot(reached("a server answered: %q", short(heard)), string(heard))
	case len(heard) > 0:
		t := protocol.Try{Outcome: protocol.Denied, Errno: "answered", Detail: string(short(heard))}
		if f := bytes.Fields(heard); bytes.HasPrefix(heard, []byte("HTTP/1.")) && len(f) > 1 {
			t.Errno = string(f[1])
		}
		return withLoot(t, string(heard))
	case err == nil:
		err = io.EOF
	}
	return told(err)
}

// hear reads until a banner has arrived or nothing more does.
func hear(c net.Conn) ([]byte, error) {
	var heard []byte
	buf := make([]byte, 16<<10)
	for len(heard) < 256<<10 {
		n, err := c.Read(buf)
		heard = append(heard, buf[:n]...)
		if err != nil {
			return heard, err
		}
		if bytes.Contains(heard, []byte(protocol.HostBanner)) || bytes.Contains(heard, []byte(protocol.ServerBanner)) {
			return heard, nil
		}
		// A complete answer of the gateway itself.
		if head, body, ok := bytes.Cut(heard, []byte("\r\n\r\n")); ok && bytes.HasPrefix(heard, []byte("HTTP/1.")) {
			if n := contentLength(head); n >= 0 && len(body) >= n {
				return heard, nil
			}
		}
	}
	return heard, nil
}

func contentLength(head []byte) int {
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(k, "Content-Length") {
			if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
				return n
			}
		}
	}
	return -1
}

func short(b []byte) []byte { return b[:min(len(b), 200)] }

// direct connects without a proxy and speaks.
func direct(b *protocol.Brief, network, to string, data []byte) protocol.Try {
	c, err := net.DialTimeout(network, to, waiting(b))
	if err != nil {
		return told(err)
	}
	defer c.Close()
	return say(c, waiting(b), data)
}

// atOnce tries every item in parallel and returns the worst result.
func atOnce[T any](items []T, f func(T) protocol.Try) protocol.Try {
	tries := make([]protocol.Try, len(items))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 24)
	for i, item := range items {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			tries[i] = f(item)
			tries[i].Detail = fmt.Sprintf("%q: %s", fmt.Sprint(item), tries[i].Detail)
		})
	}
	wg.Wait()
	w := worst(tries...)
	var loot strings.Builder
	for _, t := range tries {
		if loot.Len() < 64<<10 {
			loot.WriteString(t.Loot + "\n")
		}
	}
	w.Loot = loot.String()
	return w
}

// proxyTo opens a connection to the gateway's proxy.
func proxyTo(b *protocol.Brief, port int) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(protocol.GatewayAddr, strconv.Itoa(port)), waiting(b))
	if err == nil {
		err = c.SetDeadline(time.Now().Add(2 * waiting(b)))
	}
	return c, err
}

// viaProxy sends raw bytes to the HTTP proxy.
func viaProxy(b *protocol.Brief, raw string) protocol.Try {
	c, err := proxyTo(b, protocol.ProxyPort)
	if err != nil {
		return told(err)
	}
	defer c.Close()
	return say(c, waiting(b), []byte(raw))
}

// get asks the proxy for a URI.
func get(b *protocol.Brief, uri, host string) protocol.Try {
	return viaProxy(b, "GET "+uri+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
}

// tunnel asks the proxy to connect to dest.
func tunnel(b *protocol.Brief, dest string, extra ...string) (net.Conn, error) {
	c, err := proxyTo(b, protocol.ProxyPort)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", dest, dest, strings.Join(extra, ""))
	in := bufio.NewReader(c)
	line, err := in.ReadString('\n')
	if err == nil && !strings.Contains(line, " 200") {
		err = statusError(strings.TrimSpace(line))
	}
	for l := line; err == nil && strings.TrimSpace(l) != ""; {
		l, err = in.ReadString('\n')
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &ahead{c, in}, nil
}

// ahead is a connection with bytes read ahead.
type ahead struct {
	net.Conn

	in *bufio.Reader
}

func (a *ahead) Read(p []byte) (int, error) { return a.in.Read(p) }

// A statusError is a refusal by HTTP status.
type statusError string

func (e statusError) Error() string { return string(e) }

// status returns a try for an error that may be an answer.
func status(err error) protocol.Try {
	var s statusError
	t := told(err)
	if errors.As(err, &s) {
		if f := strings.Fields(string(s)); len(f) > 1 {
			t.Errno = f[1]
		}
	}
	return t
}

// connect asks the proxy to connect to dest and speaks there.
func connect(b *protocol.Brief, dest string, data []byte) protocol.Try {
	c, err := tunnel(b, dest)
	if err != nil {
		return status(err)
	}
	defer c.Close()
	return say(c, waiting(b), data)
}

// socksConn sends a request to the SOCKS proxy, with kind and address as given.
func socksConn(b *protocol.Brief, command, kind byte, addr []byte, port int) (net.Conn, error) {
	c, err := proxyTo(b, protocol.SOCKSPort)
	if err != nil {
		return nil, err
	}
	if kind == 3 {
		addr = append([]byte{byte(len(addr))}, addr...)
	}
	req := append([]byte{5, command, 0, kind}, addr...)
	req = append(req, byte(port>>8), byte(port))
	answer := make([]byte, 2)
	_, err = c.Write([]byte{5, 1, 0})
	if err == nil {
		_, err = io.ReadFull(c, answer)
	}
	if err == nil {
		_, err = c.Write(req)
	}
	head := make([]byte, 4)
	if err == nil {
		_, err = io.ReadFull(c, head)
	}
	if err == nil && head[1] != 0 {
		err = statusError(fmt.Sprintf("SOCKS socks-%d", head[1]))
	}
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, map[byte]int{1: 6, 4: 18}[head[3]]))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func socks(b *protocol.Brief, host string, port int, data []byte) protocol.Try {
	c, err := socksConn(b, 1, 3, []byte(host), port)
	if err != nil {
		return status(err)
	}
	defer c.Close()
	return say(c, waiting(b), data)
}

// anyWay asks for a web page of host in every possible way.
func anyWay(b *protocol.Brief, host string) protocol.Try {
	bare := strings.Trim(host, "[]")
	quoted := host
	if strings.Contains(bare, ":") {
		quoted = "[" + bare + "]"
	}
	page := web(quoted, "/")
	ways := map[string]func() protocol.Try{
		"direct":  func() protocol.Try { return direct(b, "tcp", net.JoinHostPort(bare, "80"), page) },
		"proxy":   func() protocol.Try { return get(b, "http://"+quoted+"/", quoted) },
		"CONNECT": func() protocol.Try { return connect(b, quoted+":80", page) },
		"SOCKS":   func() protocol.Try { return socks(b, bare, 80, page) },
	}
	return atOnce([]string{"direct", "proxy", "CONNECT", "SOCKS"}, func(w string) protocol.Try { return ways[w]() })
}

// anyWays is anyWay for each host.
func anyWays(b *protocol.Brief, hosts ...string) protocol.Try {
	return atOnce(hosts, func(h string) protocol.Try { return anyWay(b, h) })
}

// datagram sends a datagram and waits for an answer.
func datagram(b *protocol.Brief, to string, data []byte) protocol.Try {
	c, err := net.Dial("udp", to)
	if err != nil {
		return told(err)
	}
	defer c.Close()
	return say(c, waiting(b)/3, data)
}

// wait returns a context for operations that may block.
func wait(b *protocol.Brief) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), waiting(b))
}

// must reports that something failed that must work.
func must(t protocol.Try, what string) protocol.Try {
	if t.Outcome != protocol.Reached {
		return protocol.Try{Outcome: "broken", Detail: what + " is allowed and does not work: " + t.Detail}
	}
	return t
}
