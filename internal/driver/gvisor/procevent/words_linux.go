package procevent

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// Flags that package syscall does not define.
const (
	openPath      = 0x200000
	openTemporary = 0x400000 // with O_DIRECTORY
)

// flags describes the flags of open(2). It leaves out flags that do not affect access to
// the file, such as O_CLOEXEC.
func flags(f int) string {
	words := []string{[]string{"read", "write", "read-write", "no-access"}[f&syscall.O_ACCMODE]}
	if f&openPath != 0 {
		words[0] = "path"
	}
	if f&openTemporary != 0 && f&syscall.O_DIRECTORY != 0 {
		words = append(words, "temporary")
		f &^= syscall.O_DIRECTORY
	}
	for _, w := range []struct {
		flag int
		word string
	}{
		{syscall.O_CREAT, "create"}, {syscall.O_EXCL, "exclusive"}, {syscall.O_TRUNC, "truncate"},
		{syscall.O_APPEND, "append"}, {syscall.O_DIRECTORY, "directory"}, {syscall.O_NOFOLLOW, "nofollow"},
	} {
		if f&w.flag != 0 {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

// address formats a socket address from the bytes that connect(2) takes.
func address(raw []byte) string {
	if len(raw) < 2 {
		return "nothing"
	}
	family, rest := binary.NativeEndian.Uint16(raw), raw[2:]
	switch {
	case family == syscall.AF_UNSPEC:
		return "unspecified" // it dissolves an association
	case family == syscall.AF_INET && len(rest) >= 6:
		ip := netip.AddrFrom4([4]byte(rest[2:6]))
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(rest)).String()
	case family == syscall.AF_INET6 && len(rest) >= 22:
		ip := netip.AddrFrom16([16]byte(rest[6:22])) // an IPv4-mapped address stays as requested
		if len(rest) >= 26 {
			if scope := binary.NativeEndian.Uint32(rest[22:]); scope != 0 && !ip.Is4In6() {
				ip = ip.WithZone(fmt.Sprint(scope))
			}
		}
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(rest)).String()
	case family == syscall.AF_UNIX:
		return "unix:" + unixName(rest)
	case family == syscall.AF_NETLINK:
		return "netlink"
	}
	return fmt.Sprintf("family %d", family)
}

// unixName returns the path of a socket, or "@" and its abstract name. The kernel reads a
// path up to the first NUL, but all bytes of an abstract name.
func unixName(name []byte) string {
	name = name[:min(len(name), audit.MaxWord)]
	if len(name) > 0 && name[0] == 0 {
		return "@" + string(name[1:])
	}
	path, _, _ := strings.Cut(string(name), "\x00")
	return path
}
