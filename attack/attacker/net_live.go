//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// someone is N23: a process outside the sandbox. The host tries.
func someone() []probe {
	return []probe{{"the way that is our own", func(b *protocol.Brief) protocol.Try {
		if b.Unconfined {
			return absent("there is no sandbox")
		}
		return inside("it works")
	}}}
}

// another is N24: another sandbox whose rules allow what this one's do not.
func another() []probe {
	page := func(h string) []byte { return web(h, "/") }
	return []probe{
		{"what the other may", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, protocol.Allowed, protocol.InWild, protocol.Inspect, protocol.Secret)
		}},
		{"addresses that stand for its names", func(b *protocol.Brief) protocol.Try {
			var list []string
			for n := range 24 {
				list = append(list, fmt.Sprintf("198.18.1.%d", n), fmt.Sprintf("fd7a:6f74::1:%x", n))
			}
			return atOnce(list, func(a string) protocol.Try {
				t := direct(b, "tcp", net.JoinHostPort(a, "80"), page(protocol.Allowed))
				if t.Outcome == protocol.Reached && contains(t, " "+protocol.Second) {
					return inside("it is our own")
				}
				return t
			})
		}},
		{"its secret", func(b *protocol.Brief) protocol.Try {
			s := os.Getenv(protocol.SecretEnv)
			if b.Phase != "" {
				s = b.Phase // the placeholder of the other sandbox
			}
			t := direct(b, "tcp", b.Alive+":80", []byte(lines("GET / HTTP/1.1", "Host: "+b.Alive, "Authorization: Bearer "+s, "Connection: close")))
			if t.Outcome == protocol.Reached && !b.Unconfined {
				return inside("the host looks what came")
			}
			return t
		}},
		{"the other itself", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"198.18.0.2:80", "198.18.0.3:80", "[fd7a:6f74::2]:80", "198.18.0.1:3129", "198.18.0.15:1", "198.18.0.14:80"}, func(to string) protocol.Try {
				return direct(b, "tcp", to, page("x"))
			})
		}},
		{"with its name and password", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"Proxy-Authorization: Basic YTpi", "Proxy-Authorization: Bearer x", "X-Paddock-Sandbox: a"}, func(h string) protocol.Try {
				return viaProxy(b, lines("GET http://allowed.test/ HTTP/1.1", "Host: allowed.test", h, "Connection: close"))
			})
		}},
	}
}

// A held is a connection that was open before the rules changed.
type held struct {
	what string
	conn net.Conn
}

// changedRules is N25. The host changes the rules meanwhile: it waits for one file and
// makes another.
func changedRules() []probe {
	return []probe{
		{"what is open", func(b *protocol.Brief) protocol.Try {
			list, err := hold(b)
			if err != nil {
				return protocol.Try{Outcome: "broken", Detail: "hold: " + err.Error()}
			}
			var names sync.Map
			if addrs, err := net.LookupHost(protocol.Allowed); err == nil {
				names.Store("addrs", addrs)
			}
			if err := meet(b, "held", "updated"); err != nil {
				return protocol.Try{Outcome: "broken", Detail: err.Error()}
			}
			return atOnce(list, func(h held) protocol.Try {
				defer h.conn.Close()
				t := say(h.conn, waiting(b), []byte("after the change\n"))
				if contains(t, "after the change") {
					return reached("it is still open")
				}
				return told(io.EOF)
			})
		}},
		{"what was allowed", func(b *protocol.Brief) protocol.Try {
			return worst(anyWays(b, protocol.Allowed), direct(b, "tcp", protocol.Allowed+":22", nil))
		}},
		{"what never was", func(b *protocol.Brief) protocol.Try { return anyWays(b, protocol.Stranger, protocol.NotInWild) }},
		{"addresses that stood for names", func(b *protocol.Brief) protocol.Try {
			var list []string
			for n := range 8 {
				list = append(list, fmt.Sprintf("198.18.1.%d:80", n), fmt.Sprintf("198.18.1.%d:22", n))
			}
			return atOnce(list, func(to string) protocol.Try {
				t := direct(b, "tcp", to, web(protocol.Allowed, "/"))
				if contains(t, " "+protocol.Second) {
					return inside("it is still allowed")
				}
				return t
			})
		}},
	}
}

func (h held) String() string { return h.what }

// hold opens one connection of each kind to an echo service.
func hold(b *protocol.Brief) ([]held, error) {
	var list []held
	add := func(what string, c net.Conn, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		t := say(c, 10*time.Second, []byte("before\n"))
		if t.Outcome != protocol.Reached {
			return fmt.Errorf("%s: %s", what, t.Detail)
		}
		list = append(list, held{what, c})
		return nil
	}
	c, err := net.DialTimeout("tcp", protocol.Allowed+":22", 10*time.Second)
	if err := add("direct", c, err); err != nil {
		return nil, err
	}
	c, err = tunnel(b, protocol.Allowed+":22")
	if err := add("CONNECT", c, err); err != nil {
		return nil, err
	}
	c, err = socksConn(b, 1, 3, []byte(protocol.Allowed), 22)
	if err := add("SOCKS", c, err); err != nil {
		return nil, err
	}
	c, err = net.Dial("udp", fmt.Sprint(protocol.Datagrams, ":", protocol.EchoPort))
	if err := add("datagrams", c, err); err != nil {
		return nil, err
	}
	return list, nil
}

// meet tells the host that this side is ready, and waits for it.
func meet(b *protocol.Brief, ours, theirs string) error {
	if err := os.WriteFile(b.Work+"/"+ours, []byte("x"), 0o644); err != nil {
		return err
	}
	for until := time.Now().Add(25 * time.Second); time.Now().Before(until); {
		if _, err := os.Stat(b.Work + "/" + theirs); err == nil {
			return nil
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 2e7}, nil)
	}
	return fmt.Errorf("the host did not make %s", theirs)
}

// Phases of N26.
const killed = "killed"

// overload is N26. Without a gateway nothing gets out. Before that, neither many nor slow
// connections block what is allowed.
func overload() []probe {
	gone := func(f func(b *protocol.Brief) protocol.Try) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			if b.Phase != killed && !b.Unconfined {
				return absent("the gateway lives")
			}
			return f(b)
		}
	}
	lives := func(f func(b *protocol.Brief) (func(), error)) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			if b.Phase == killed || b.Unconfined {
				return absent("there is no gateway")
			}
			stop, err := f(b)
			defer stop()
			if err != nil {
				return protocol.Try{Outcome: "broken", Detail: err.Error()}
			}
			// A refusal is permitted for a moment, but not for long.
			for until := time.Now().Add(15 * time.Second); time.Now().Before(until); {
				if t := direct(b, "tcp", protocol.Second+":80", web(protocol.Second, "/")); t.Outcome == protocol.Reached {
					return inside("what is allowed goes on")
				}
			}
			return protocol.Try{Outcome: "broken", Detail: "what is allowed is no longer"}
		}
	}
	many := func(n int, open func(b *protocol.Brief) (net.Conn, error)) func(b *protocol.Brief) (func(), error) {
		return func(b *protocol.Brief) (func(), error) {
			var mu sync.Mutex
			var conns []net.Conn
			var wg sync.WaitGroup
			slots := make(chan struct{}, 32)
			for range n {
				wg.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					if c, err := open(b); err == nil {
						mu.Lock()
						conns = append(conns, c)
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			return func() {
				for _, c := range conns {
					c.Close()
				}
			}, nil
		}
	}
	half := func(port int, text string) func(b *protocol.Brief) (net.Conn, error) {
		return func(b *protocol.Brief) (net.Conn, error) {
			c, err := proxyTo(b, port)
			if err == nil {
				_, err = io.WriteString(c, text)
			}
			return c, err
		}
	}
	ps := []probe{
		{"killed: every way", gone(func(b *protocol.Brief) protocol.Try {
			return anyWays(b, protocol.Allowed, protocol.Stranger, "127.0.0.1", "11.0.0.1")
		})},
		{"killed: names", gone(func(b *protocol.Brief) protocol.Try {
			return worst(ask(b, "udp", gatewayDNS, question(1, nil, "allowed", "test")), ask(b, "udp", protocol.Resolver+":53", question(1, nil, "exfil", "test")))
		})},
		{"killed: datagrams", gone(func(b *protocol.Brief) protocol.Try {
			return worst(datagram(b, "11.0.0.8:4444", []byte("x")), datagram(b, "198.18.1.0:4444", []byte("x")))
		})},
		{"half requests", lives(many(300, half(protocol.ProxyPort, "GET http://allowed.test/ HTTP/1.1\r\nHost: al")))},
		{"half greetings", lives(many(200, half(protocol.SOCKSPort, "\x05")))},
		{"half hellos", lives(many(200, func(b *protocol.Brief) (net.Conn, error) {
			c, err := net.DialTimeout("tcp", protocol.Inspect+":443", waiting(b))
			if err == nil {
				_, err = io.WriteString(c, "\x16\x03\x01\x02\x00\x01")
			}
			return c, err
		}))},
		{"many tunnels", lives(many(600, func(b *protocol.Brief) (net.Conn, error) { return tunnel(b, protocol.Allowed+":22") }))},
		{"many questions", lives(many(300, func(b *protocol.Brief) (net.Conn, error) {
			c, err := net.Dial("udp", gatewayDNS)
			if err == nil {
				for i := range 20 {
					_, _ = c.Write(question(1, nil, fmt.Sprintf("n%d-%p", i, c), "wild", "test"))
				}
			}
			return c, err
		}))},
		{"a header without end", lives(func(b *protocol.Brief) (func(), error) {
			c, err := half(protocol.ProxyPort, "GET http://allowed.test/ HTTP/1.1\r\n")(b)
			if err != nil {
				return func() {}, err
			}
			_ = c.SetDeadline(time.Now().Add(3 * time.Second))
			line := "X: " + strings.Repeat("y", 1000) + "\r\n"
			var refused error
			for i := 0; i < 20000 && refused == nil; i++ {
				_, refused = io.WriteString(c, line)
			}
			return func() { c.Close() }, nil
		})},
	}
	return ps
}
