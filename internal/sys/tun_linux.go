package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// modeNone is IN6_ADDR_GEN_MODE_NONE.
const modeNone = 1

// TUNPath is the device by which a process gets the packets of a network interface.
const TUNPath = "/dev/net/tun"

// OpenTUN opens the TUN device for the network namespace in which this process is now.
func OpenTUN() (*os.File, error) {
	fd, err := unix.Open(TUNPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: TUNPath, Err: err}
	}
	return os.NewFile(uintptr(fd), TUNPath), nil
}

// OpenTUNOf opens the TUN device for the network namespace of another process.
func OpenTUNOf(pid int) (tun *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread is in that namespace then, and ends
		var ns *os.File
		if ns, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
			return
		}
		defer ns.Close()
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("enter the network namespace: %w", err)
			return
		}
		tun, err = OpenTUN()
	}()
	<-done
	return tun, err
}

// KeepTUN keeps the interface of a TUN device until its network namespace ends, even after its
// descriptors are closed. This saves time: closing the last descriptor would wait until the kernel
// has removed the interface, but nobody waits for the end of a namespace.
func KeepTUN(tun *os.File) error {
	fd, err := Descriptor(tun)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
		return fmt.Errorf("keep the interface: %w", err)
	}
	return nil
}

// A Link describes the only interface of a network namespace besides loopback.
type Link struct {
	Name      string
	MTU       int
	Addresses []netip.Addr // each the only one of its network; IPv6 is left out where the kernel has none
}

// Make makes the interface of tun: with its addresses, up, and with a default route for each
// address family. Each read of tun returns one packet that the interface sends, without a header
// before it.
func (l Link) Make(tun *os.File) error {
	ifr, err := unix.NewIfreq(l.Name)
	if err != nil {
		return fmt.Errorf("interface %q: %w", l.Name, err)
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	fd, err := Descriptor(tun)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return fmt.Errorf("make interface %s: %w", l.Name, err)
	}
	r, err := newRouter(l.Name)
	if err != nil {
		return err
	}
	defer unix.Close(r.socket)
	return l.set(r)
}

// lacksIPv6 tells whether an error says that a kernel has no IPv6, or has it
// switched off.
func lacksIPv6(err error) bool {
	for _, e := range []syscall.Errno{unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EACCES} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// A router asks the kernel for one interface's changes, by rtnetlink.
type router struct {
	socket int
	index  int32
	number uint32 // of the last request
}

func newRouter(name string) (*router, error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		var any int
		if any, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
			err = unix.IoctlIfreq(any, unix.SIOCGIFINDEX, ifr)
			unix.Close(any)
		}
	}
	if err != nil {
		unix.Close(s)
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	return &router{socket: s, index: int32(ifr.Uint32())}, nil
}

// up brings the interface up. It makes no address by itself, and so says nothing
// of its own on the link.
func (r *router) up(mtu int) error {
	none := attribute(unix.IFLA_AF_SPEC, attribute(unix.AF_INET6, attribute(unix.IFLA_INET6_ADDR_GEN_MODE, []byte{modeNone})))
	if err := r.ask(unix.RTM_NEWLINK, 0, r.info(0), none); err != nil && !lacksIPv6(err) {
		return fmt.Errorf("link: %w", err)
	}
	size := attribute(unix.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, uint32(mtu)))
	if err := r.ask(unix.RTM_NEWLINK, 0, r.info(unix.IFF_UP), size); err != nil {
		return fmt.Errorf("link up: %w", err)
	}
	return nil
}

// info is struct ifinfomsg with flags that are to be set.
func (r *router) info(flags uint32) []byte {
	m := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(m[4:], uint32(r.index))
	binary.NativeEndian.PutUint32(m[8:], flags)
	binary.NativeEndian.PutUint32(m[12:], flags)
	return m
}

// address adds an address that is the only one of its network.
func (r *router) address(a netip.Addr) error {
	m := make([]byte, unix.SizeofIfAddrmsg)
	m[0], m[1] = family(a), byte(a.BitLen())
	m[2] = unix.IFA_F_PERMANENT
	if a.Is6() {
		m[2] |= unix.IFA_F_NODAD // there is nobody else who could have it
	}
	binary.NativeEndian.PutUint32(m[4:], uint32(r.index))
	bytes := a.AsSlice()
	err := r.ask(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m, append(attribute(unix.IFA_LOCAL, bytes), attribute(unix.IFA_ADDRESS, bytes)...))
	if err != nil {
		return fmt.Errorf("address %s: %w", a, err)
	}
	return nil
}

// nextHop6 stands in a route for whoever carries the packets of the interface.
var nextHop6 = netip.MustParseAddr("fe80::1")

// route makes the interface the default route of the address's family.
func (r *router) route(a netip.Addr) error {
	m := make([]byte, unix.SizeofRtMsg)
	m[0], m[4], m[5], m[6], m[7] = family(a), unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_LINK, unix.RTN_UNICAST
	attributes := attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(r.index)))
	if a.Is6() {
		// With a next hop that nobody has, the kernel keeps this neighbour and not one for each address
		// that is sent to. It keeps 1,024 for the whole machine.
		m[6] = unix.RT_SCOPE_UNIVERSE
		binary.NativeEndian.PutUint32(m[8:], unix.RTNH_F_ONLINK)
		attributes = append(attributes, attribute(unix.RTA_GATEWAY, nextHop6.AsSlice())...)
	}
	if err := r.ask(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m, attributes); err != nil {
		return fmt.Errorf("default route: %w", err)
	}
	return nil
}

// unroute removes the kernel's own route for multicast of IPv6, which has no next hop. Then it takes the default route.
func (r *router) unroute() error {
	m := make([]byte, unix.SizeofRtMsg)
	m[0], m[1], m[4], m[6], m[7] = unix.AF_INET6, 8, unix.RT_TABLE_LOCAL, unix.RT_SCOPE_UNIVERSE, unix.RTN_MULTICAST
	attributes := attribute(unix.RTA_DST, netip.MustParseAddr("ff00::").AsSlice())
	attributes = append(attributes, attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(r.index)))...)
	if err := r.ask(unix.RTM_DELROUTE, 0, m, attributes); err != nil {
		return fmt.Errorf("route for multicast: %w", err)
	}
	return nil
}

func family(a netip.Addr) byte {
	if a.Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// attribute is one of a message, with what fills it up.
func attribute(kind uint16, value []byte) []byte {
	a := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(value)))
	a = binary.NativeEndian.AppendUint16(a, kind)
	a = append(a, value...)
	for len(a)%unix.RTA_ALIGNTO != 0 {
		a = append(a, 0)
	}
	return a
}

// ask sends one request, and waits for what the kernel says of it.
func (r *router) ask(kind, flags uint16, head, attributes []byte) error {
	r.number++
	n := unix.SizeofNlMsghdr + len(head) + len(attributes)
	m := binary.NativeEndian.AppendUint32(make([]byte, 0, n), uint32(n))
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = binary.NativeEndian.AppendUint16(m, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	m = binary.NativeEndian.AppendUint32(m, r.number)
	m = binary.NativeEndian.AppendUint32(m, 0)
	m = append(append(m, head...), attributes...)
	if err := again(func() error { return unix.Sendto(r.socket, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) }); err != nil {
		return err
	}
	buf := make([]byte, 8<<10)
	for {
		var got int
		if err := again(func() (err error) { got, _, err = unix.Recvfrom(r.socket, buf, 0); return err }); err != nil {
			return err
		}
		if got < unix.SizeofNlMsghdr+4 {
			return unix.EBADMSG
		}
		h := (*unix.NlMsghdr)(unsafe.Pointer(&buf[0]))
		if h.Seq != r.number || h.Type != unix.NLMSG_ERROR {
			continue
		}
		if errno := -int32(binary.NativeEndian.Uint32(buf[unix.SizeofNlMsghdr:])); errno != 0 {
			return syscall.Errno(errno)
		}
		return nil
	}
}
