//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

func connectUnix(typ int, name string) protocol.Try {
	if name == "" {
		return absent("the host has no such socket")
	}
	fd, err := unix.Socket(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	if len(name) > 100 && name[0] == '/' {
		if err := unix.Chdir(filepath.Dir(name)); err != nil {
			return refused(err)
		}
		name = filepath.Base(name)
	}
	// The wrong type means that the socket exists.
	return passed(unix.Connect(fd, &unix.SockaddrUnix{Name: name}), unix.EPROTOTYPE)
}

// hostSocket is P03: a socket such as a container engine's.
func hostSocket() []probe {
	at := func(prefix string, name func(*protocol.Brief) string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			if name(b) == "" {
				return absent("the host has no such socket")
			}
			return connectUnix(unix.SOCK_STREAM, prefix+name(b))
		}
	}
	home := func(b *protocol.Brief) string { return b.Canary.Stream }
	work := func(b *protocol.Brief) string { return b.Canary.InWork }
	return []probe{
		{"in the home", at("", home)},
		{"in the home through /proc/self/root", at("/proc/self/root", home)},
		{"in the home through /proc/1/root", at("/proc/1/root", home)},
		{"in the home through a link", func(b *protocol.Brief) protocol.Try {
			l := b.Work + "/sock-link"
			if err := unix.Symlink(b.Canary.Stream, l); err != nil {
				return refused(err)
			}
			return connectUnix(unix.SOCK_STREAM, l)
		}},
		{"in the home as seqpacket", func(b *protocol.Brief) protocol.Try { return connectUnix(unix.SOCK_SEQPACKET, b.Canary.Stream) }},
		{"in the workspace", at("", work)},
		{"in the workspace through a link", func(b *protocol.Brief) protocol.Try {
			if b.Canary.InWork == "" {
				return absent("the host has no such socket")
			}
			l := b.Work + "/sock-link2"
			if err := unix.Symlink(b.Canary.InWork, l); err != nil {
				return refused(err)
			}
			return connectUnix(unix.SOCK_STREAM, l)
		}},
		{"sockets of the system", func(*protocol.Brief) protocol.Try {
			return each([]string{"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/systemd/private", "/run/dbus/system_bus_socket", "/run/systemd/notify"}, func(p string) protocol.Try {
				return connectUnix(unix.SOCK_STREAM, p)
			})
		}},
	}
}

// abstractSocket is P04.
func abstractSocket() []probe {
	return []probe{
		{"stream", func(b *protocol.Brief) protocol.Try { return connectUnix(unix.SOCK_STREAM, "@"+b.Canary.Abstract) }},
		{"datagram", func(b *protocol.Brief) protocol.Try { return connectUnix(unix.SOCK_DGRAM, "@"+b.Canary.Abstract+"-d") }},
		{"list", func(b *protocol.Brief) protocol.Try {
			data, err := os.ReadFile("/proc/net/unix")
			if err != nil {
				return refused(err)
			}
			if bytes.Contains(data, []byte(b.Canary.Abstract)) {
				return reached("the host's abstract sockets are listed")
			}
			return protocol.Try{Outcome: protocol.Denied, Errno: "unseen", Detail: "only sockets of our own are listed"}
		}},
		{"take the name of one", func(b *protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + b.Canary.Abstract + "-free"}); err != nil {
				return refused(err)
			}
			return inside("bound an abstract name")
		}},
	}
}

// datagramSocket is P05: the pair is made without socket(), and then used for another
// address.
func datagramSocket() []probe {
	pair := func(f func(fd int, to unix.Sockaddr) error) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return refused(err)
			}
			return each([]string{b.Canary.Datagram, "@" + b.Canary.Abstract + "-d"}, func(name string) protocol.Try {
				if len(name) > 100 && name[0] == '/' {
					if err := unix.Chdir(filepath.Dir(name)); err != nil {
						return refused(err)
					}
					name = filepath.Base(name)
				}
				if err := f(fds[0], &unix.SockaddrUnix{Name: name}); err != nil {
					return refused(err)
				}
				// A pair may ignore the name.
				if n, _, _, _, err := unix.Recvmsg(fds[1], make([]byte, 64), nil, unix.MSG_DONTWAIT); err == nil && n > 0 {
					return inside("it went to the other end of the pair")
				}
				return reached("reached the host's socket")
			})
		}
	}
	return []probe{
		{"connect", pair(unix.Connect)},
		{"sendto", pair(func(fd int, to unix.Sockaddr) error { return unix.Sendto(fd, []byte("hello"), 0, to) })},
		{"sendmsg with a descriptor", pair(func(fd int, to unix.Sockaddr) error {
			return unix.Sendmsg(fd, []byte("hello"), unix.UnixRights(0), to, 0)
		})},
		{"socket and sendto", func(b *protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return refused(err)
			}
			return done(unix.Sendto(fd, []byte("hello"), 0, &unix.SockaddrUnix{Name: b.Canary.Datagram}), "sent")
		}},
	}
}

// vsock is P06.
func vsock() []probe {
	dial := func(cid uint32) func(*protocol.Brief) protocol.Try {
		return func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			if err := unix.SetNonblock(fd, true); err != nil {
				return refused(err)
			}
			err = unix.Connect(fd, &unix.SockaddrVM{CID: cid, Port: 1})
			return reached("the family is there; connect says %v", err)
		}
	}
	return []probe{
		{"hypervisor", dial(0)},
		{"host", dial(2)},
		{"local", dial(1)},
		{"datagram", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_DGRAM, 0)
			return closeTry(fd, err, "the family is there")
		}},
		{"/dev/vsock", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Open("/dev/vsock", unix.O_RDONLY, 0)
			return closeTry(fd, err, "opened")
		}},
	}
}

// socketFamilies is P07.
func socketFamilies() []probe {
	var ps []probe
	for _, s := range []struct {
		name             string
		family, typ, pro int
	}{
		{"packet raw", unix.AF_PACKET, unix.SOCK_RAW, 0x300},
		{"packet datagram", unix.AF_PACKET, unix.SOCK_DGRAM, 0x300},
		{"raw IPv4", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		{"raw IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
		{"crypto", unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
		{"xdp", unix.AF_XDP, unix.SOCK_RAW, 0},
		{"key", unix.AF_KEY, unix.SOCK_RAW, 2},
		{"bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1},
		{"can", unix.AF_CAN, unix.SOCK_RAW, 1},
		{"tipc", unix.AF_TIPC, unix.SOCK_STREAM, 0},
		{"rds", unix.AF_RDS, unix.SOCK_SEQPACKET, 0},
		{"smc", unix.AF_SMC, unix.SOCK_STREAM, 0},
		{"nfc", unix.AF_NFC, unix.SOCK_RAW, 0},
		{"ppp", unix.AF_PPPOX, unix.SOCK_DGRAM, 0},
		{"kcm", unix.AF_KCM, unix.SOCK_DGRAM, 0},
		{"qipcrtr", unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0},
		{"netlink audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT},
		{"netlink netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
		{"netlink xfrm", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM},
		{"netlink connector", unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_CONNECTOR},
		{"netlink route", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
	} {
		ps = append(ps, probe{s.name, func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(s.family, s.typ|unix.SOCK_CLOEXEC, s.pro)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			if s.family == unix.AF_NETLINK {
				return netlink(fd, s.name)
			}
			return reached("the family is there")
		}})
	}
	return ps
}

// netlink permits reading, which resolvers and tools need, but no change.
func netlink(fd int, name string) protocol.Try {
	if name != "netlink route" {
		return inside("%s is there; it acts on our own network only", name)
	}
	// RTM_NEWLINK that would make a dummy device, which needs CAP_NET_ADMIN.
	msg := []byte{
		48, 0, 0, 0, 16, 0, 5, 6, 1, 0, 0, 0, 0, 0, 0, 0, // header: RTM_NEWLINK, REQUEST|ACK|CREATE|EXCL
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // ifinfomsg
		16, 0, 18, 0, 10, 0, 1, 0, 'd', 'u', 'm', 'm', 'y', 0, 0, 0, // IFLA_LINKINFO{IFLA_INFO_KIND}
	}
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return refused(err)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil || n < 20 {
		return refused(err)
	}
	code := int32(uint32(buf[16]) | uint32(buf[17])<<8 | uint32(buf[18])<<16 | uint32(buf[19])<<24)
	if code == -int32(unix.EPERM) || code == -int32(unix.EACCES) {
		return inside("one may look and not change: %v", syscall.Errno(-code))
	}
	return reached("changed the network: %v", syscall.Errno(-code))
}
