//go:build linux

package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// allowedWays is N01: what is allowed must work.
func allowedWays() []probe {
	page := func(b *protocol.Brief, host string) protocol.Try { return must(anyWay(b, host), host) }
	secure := func(b *protocol.Brief, to, name string, open func() (net.Conn, error)) protocol.Try {
		c, err := open()
		if err != nil {
			return must(status(err), to)
		}
		defer c.Close()
		return must(overTLS(b, c, &tls.Config{ServerName: name, InsecureSkipVerify: true}, web(name, "/ok")), to)
	}
	return []probe{
		{"name", func(b *protocol.Brief) protocol.Try {
			return must(direct(b, "tcp", protocol.Allowed+":80", web(protocol.Allowed, "/")), "a connection")
		}},
		{"proxy", func(b *protocol.Brief) protocol.Try {
			return must(get(b, "http://"+protocol.Allowed+"/", protocol.Allowed), "the proxy")
		}},
		{"CONNECT", func(b *protocol.Brief) protocol.Try {
			return must(connect(b, protocol.Allowed+":80", web(protocol.Allowed, "/")), "CONNECT")
		}},
		{"SOCKS", func(b *protocol.Brief) protocol.Try {
			return must(socks(b, protocol.Allowed, 80, web(protocol.Allowed, "/")), "SOCKS")
		}},
		{"below a wildcard", func(b *protocol.Brief) protocol.Try { return page(b, protocol.InWild) }},
		{"another protocol", func(b *protocol.Brief) protocol.Try {
			return must(direct(b, "tcp", protocol.Allowed+":22", []byte("SSH-2.0-x\r\n")), "SSH")
		}},
		{"TLS", func(b *protocol.Brief) protocol.Try {
			return secure(b, "TLS", protocol.Allowed, func() (net.Conn, error) { return net.DialTimeout("tcp", protocol.Allowed+":443", waiting(b)) })
		}},
		{"TLS, looked into", func(b *protocol.Brief) protocol.Try {
			return secure(b, "inspected TLS", protocol.Inspect, func() (net.Conn, error) { return net.DialTimeout("tcp", protocol.Inspect+":443", waiting(b)) })
		}},
		{"TLS in CONNECT", func(b *protocol.Brief) protocol.Try {
			return secure(b, "TLS in CONNECT", protocol.Allowed, func() (net.Conn, error) { return tunnel(b, protocol.Allowed+":443") })
		}},
		{"TLS in SOCKS, looked into", func(b *protocol.Brief) protocol.Try {
			return secure(b, "inspected TLS in SOCKS", protocol.Inspect, func() (net.Conn, error) { return socksConn(b, 1, 3, []byte(protocol.Inspect), 443) })
		}},
		{"datagrams", func(b *protocol.Brief) protocol.Try {
			return must(datagram(b, protocol.Datagrams+":"+strconv.Itoa(protocol.EchoPort), []byte("x")), "UDP")
		}},
	}
}

// stranger is N02.
func stranger() []probe {
	return []probe{
		{"every way", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, protocol.Stranger, protocol.NotInWild, "nowhere.test")
		}},
		{"TLS", func(b *protocol.Brief) protocol.Try {
			c, err := tunnel(b, protocol.Stranger+":443")
			if err != nil {
				return status(err)
			}
			defer c.Close()
			return overTLS(b, c, &tls.Config{ServerName: protocol.Stranger, InsecureSkipVerify: true}, web(protocol.Stranger, "/"))
		}},
		{"at the address of what is allowed", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Allowed, protocol.InWild, protocol.Inspect}, func(h string) protocol.Try {
				return direct(b, "tcp", h+":80", web(protocol.Stranger, "/ok"))
			})
		}},
		{"named in a header", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"X-Forwarded-Host: %s", "Forwarded: host=%s", "X-Host: %s", "Proxy-Connection: %s", "Host : %s"}, func(h string) protocol.Try {
				t := viaProxy(b, "GET http://"+protocol.Stranger+"/ HTTP/1.1\r\nHost: "+protocol.Stranger+"\r\n"+fmt.Sprintf(h, protocol.Allowed)+"\r\nConnection: close\r\n\r\n")
				return t
			})
		}},
		{"after being allowed to ask", func(b *protocol.Brief) protocol.Try {
			if t := direct(b, "tcp", protocol.Allowed+":80", web(protocol.Allowed, "/")); t.Outcome != protocol.Reached {
				return t
			}
			return anyWays(b, protocol.Stranger)
		}},
	}
}

// aroundProxy is N03: a program that does not know of proxies.
func aroundProxy() []probe {
	host := []string{"127.0.0.1", protocol.HostAddr, "::1", protocol.HostAddr6}
	outside := []string{protocol.InternetAddr, protocol.Resolver, "11.0.0.1", "11.0.0.67", "1.2.3.4", "10.0.0.1", "192.168.1.1", "172.17.0.1", "100.64.0.1", protocol.Internet6, "2a00:2::2", "fe80::1%lo", "255.255.255.255"}
	dial := func(b *protocol.Brief, hosts []string, ports ...string) protocol.Try {
		var list []string
		for _, h := range hosts {
			for _, p := range ports {
				list = append(list, net.JoinHostPort(h, p))
			}
		}
		return atOnce(list, func(to string) protocol.Try { return direct(b, "tcp", to, web("x", "/")) })
	}
	return []probe{
		{"loopback and addresses of the host", func(b *protocol.Brief) protocol.Try { return dial(b, host, "80", "22", "443", "8080") }},
		{"addresses of the internet", func(b *protocol.Brief) protocol.Try { return dial(b, outside, "80", "22", "443") }},
		{"data with the first packet", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"11.0.0.67", protocol.HostAddr, "198.18.77.77"}, func(a string) protocol.Try { return fastOpen(b, a) })
		}},
		{"bound to another address", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"127.0.0.1", protocol.HostAddr, "0.0.0.0", "198.18.0.2"}, func(from string) protocol.Try {
				d := net.Dialer{Timeout: waiting(b), LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Control: func(_, _ string, c syscall.RawConn) error {
					return c.Control(func(fd uintptr) {
						_ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1)
						_ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
					})
				}}
				c, err := d.Dial("tcp4", "11.0.0.67:80")
				if err != nil {
					return told(err)
				}
				defer c.Close()
				return say(c, waiting(b), web("x", "/"))
			})
		}},
		{"bound to a device", func(b *protocol.Brief) protocol.Try {
			list, err := net.Interfaces()
			if err != nil {
				return refused(err)
			}
			names := []string{"lo", "eth0", "wan"}
			for _, i := range list {
				names = append(names, i.Name)
			}
			slices.Sort(names)
			return atOnce(slices.Compact(names), func(name string) protocol.Try {
				d := net.Dialer{Timeout: waiting(b), Control: func(_, _ string, c syscall.RawConn) error {
					var e error
					return worstError(c.Control(func(fd uintptr) { e = unix.BindToDevice(int(fd), name) }), &e)
				}}
				c, err := d.Dial("tcp4", "11.0.0.67:80")
				if err != nil {
					return told(err)
				}
				defer c.Close()
				return say(c, waiting(b), web("x", "/"))
			})
		}},
		{"the gateway's other ports", func(b *protocol.Brief) protocol.Try {
			return dial(b, []string{protocol.GatewayAddr, protocol.Gateway6}, "22", "80", "443", "8080", "1", "6060", "65535")
		}},
		{"no proxy at all for it", func(b *protocol.Brief) protocol.Try { return dial(b, []string{protocol.Stranger, "localhost"}, "80") }},
	}
}

func worstError(err error, other *error) error {
	if err != nil {
		return err
	}
	return *other
}

// fastOpen sends data in the first packet of a connection.
func fastOpen(b *protocol.Brief, addr string) protocol.Try {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(waiting(b).Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	to := &unix.SockaddrInet4{Port: 80, Addr: [4]byte(net.ParseIP(addr).To4())}
	if err := unix.Sendto(fd, web("x", "/exfil"), unix.MSG_FASTOPEN, to); err != nil {
		return refused(err)
	}
	buf := make([]byte, 256)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return refused(err)
	}
	if n == 0 {
		return refused(unix.ECONNRESET)
	}
	return reached("it answered %q", buf[:n])
}

// literals is N04.
func literals() []probe {
	try := func(list ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try { return anyWays(b, list...) }
	}
	return []probe{
		{"dotted", try("127.0.0.1", "127.1.2.3", protocol.HostAddr, "11.0.0.67", "11.0.0.1", "198.18.0.2")},
		{"one number", try("2130706433", "0x7f000001", "017700000001", "184549443", "0xb000043")},
		{"short", try("127.1", "127.0.1", "11.67", "0x7f.1")},
		{"octal and hexadecimal parts", try("0177.0.0.1", "0x7f.0x0.0x0.0x1", "127.0.0.01", "00000177.0.0.1", "0X7F.0.0.1", "013.0.0.67")},
		{"overflowing", try("127.0.0.256", "4294967297", "127.0.0.1.", "383.0.0.1", "127.0.0.1.1")},
		{"zero", try("0", "0.0.0.0", "0x0", "000.000", "[::]")},
		{"version six", try("[::1]", "["+protocol.HostAddr6+"]", "[2a00:2::43]", "[0:0:0:0:0:0:0:1]", "[::0001]", "[fe80::1%25lo]", "[::1%25lo]", "[fd7a:6f74::2]")},
		{"mapped", try("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[::ffff:0:127.0.0.1]", "[::ffff:11.0.0.67]")},
		{"with marks", try("127.0.0.1%00", "127.0.0.1 ", " 127.0.0.1", "127.0.0.1%20", "①②⑦.⓪.⓪.①", "127。0。0。1", "127.0.0.1\t", "%31%32%37.0.0.1", "1٢7.0.0.1")},
		{"names of it", try("localhost", "localhost.", "LOCALHOST", "x.localhost", "localhost.localdomain", "ip6-localhost", "127.0.0.1.nip.test", "localhost.test")},
		{"by kind of SOCKS", socksLiterals},
	}
}

// otherPorts is N05.
func otherPorts() []probe {
	ways := func(host string, port int) func(*protocol.Brief) protocol.Try {
		p := strconv.Itoa(port)
		return func(b *protocol.Brief) protocol.Try {
			return worst(direct(b, "tcp", host+":"+p, web(host, "/")), get(b, "http://"+host+":"+p+"/", host+":"+p), connect(b, host+":"+p, web(host, "/")), socks(b, host, port, web(host, "/")))
		}
	}
	ps := []probe{
		{"25", ways(protocol.Allowed, 25)}, {"8080", ways(protocol.Allowed, 8080)}, {"53", ways(protocol.Allowed, 53)}, {"853", ways(protocol.Allowed, 853)},
		{"22 of another rule", ways(protocol.InWild, 22)}, {"22 of one that is looked into", ways(protocol.Inspect, 22)},
		{"spellings", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"0", "65616", "-80", "080808080", "8080x", "8080 ", "+8080", "0x1f90", "8080,80", "80:8080", "http", "8080%00", "\u0668\u0660\u0668\u0660"}, func(p string) protocol.Try {
				t := connect(b, protocol.Allowed+":"+p, web(protocol.Allowed, "/"))
				u := get(b, "http://"+protocol.Allowed+":"+p+"/", protocol.Allowed)
				return worst(t, u)
			})
		}},
		{"datagrams of another", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Datagrams + ":53", protocol.Datagrams + ":123", protocol.Allowed + ":443", protocol.Allowed + ":4444", protocol.Inspect + ":443"}, func(to string) protocol.Try {
				return datagram(b, to, []byte("exfil"))
			})
		}},
		{"connections of what datagrams may", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{":443", ":80", ":4444"}, func(p string) protocol.Try { return direct(b, "tcp", protocol.Datagrams+p, web("x", "/")) })
		}},
	}
	return ps
}

// metadata is N06, with rules that allow every name and address.
func metadata() []probe {
	inner := func(f func(b *protocol.Brief) protocol.Try) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			t := f(b)
			if t.Outcome == protocol.Reached && !contains(t, protocol.HostBanner) && !b.Unconfined {
				return inside("only a public address of that name was reached")
			}
			return t
		}
	}
	return []probe{
		{"addresses", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, "169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "169.254.170.2", "192.0.0.192", "169.254.1.1", "[fe80::a9fe:a9fe]")
		}},
		{"other spellings", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "169.254.169.254.", "[::169.254.169.254]")
		}},
		{"names", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, "meta.test", "META.test.", "meta6.test", "local.test", "link6.test")
		}},
		{"the host", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, "127.0.0.1", "[::1]", protocol.HostAddr, "["+protocol.HostAddr6+"]", "0.0.0.0", "own.test", "loop.test")
		}},
		{"its name", inner(func(b *protocol.Brief) protocol.Try { return anyWays(b, "localhost", "localhost.", "x.localhost") })},
		{"its loopback, by the name that a rule may open", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, "host.docker.internal", "HOST.docker.internal.")
		}},
		{"its networks", func(b *protocol.Brief) protocol.Try {
			return anyWays(b, "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "[fd12::1]", "private.test", "lan.test")
		}},
		{"datagrams", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"169.254.169.254:80", "169.254.169.253:53", "127.0.0.1:4444", protocol.HostAddr + ":4444"}, func(to string) protocol.Try { return datagram(b, to, []byte("exfil")) })
		}},
	}
}

// turnedNames is N07.
func turnedNames() []probe {
	var ps []probe
	var names []string
	for name := range protocol.Turned() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ps = append(ps, probe{protocol.Turned()[name], func(b *protocol.Brief) protocol.Try { return anyWay(b, name) }})
	}
	return ps
}

// rebinding is N08. An answer from the public address is correct.
func rebinding() []probe {
	inner := func(t protocol.Try) protocol.Try {
		if t.Outcome == protocol.Reached && !contains(t, protocol.HostBanner) {
			return inside("only the public address was reached")
		}
		return t
	}
	again := func(how func(b *protocol.Brief) protocol.Try) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			var tries []protocol.Try
			for range 5 {
				tries = append(tries, inner(how(b)))
			}
			return worst(tries...)
		}
	}
	page := web(protocol.Rebind, "/")
	ps := []probe{
		{"connect again", again(func(b *protocol.Brief) protocol.Try { return direct(b, "tcp", protocol.Rebind+":80", page) })},
		{"proxy again", again(func(b *protocol.Brief) protocol.Try { return get(b, "http://"+protocol.Rebind+"/", protocol.Rebind) })},
		{"CONNECT again", again(func(b *protocol.Brief) protocol.Try { return connect(b, protocol.Rebind+":80", page) })},
		{"SOCKS again", again(func(b *protocol.Brief) protocol.Try { return socks(b, protocol.Rebind, 80, page) })},
		{"an address that is kept", func(b *protocol.Brief) protocol.Try {
			addrs, err := net.LookupHost(protocol.Rebind)
			if err != nil {
				return told(err)
			}
			return again(func(b *protocol.Brief) protocol.Try {
				return atOnce(addrs, func(a string) protocol.Try { return inner(direct(b, "tcp", net.JoinHostPort(a, "80"), page)) })
			})(b)
		}},
	}
	for name := range protocol.Mixed() {
		ps = append(ps, probe{"one of several: " + name, again(func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"80", "443", "8080"}, func(p string) protocol.Try { return inner(direct(b, "tcp", name+":"+p, web(name, "/"))) })
		})})
	}
	slices.SortFunc(ps, func(a, b probe) int { return cmp.Or(len(a.name)-len(b.name), strings.Compare(a.name, b.name)) })
	return ps
}
