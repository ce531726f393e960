//go:build linux

package internet

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// careless serves what a gateway serves, without any checks. Attacks on a gateway must
// succeed on it, otherwise they prove nothing.
func (n *internet) careless() error {
	for _, g := range []struct {
		addr  string
		port  int
		serve func(net.Conn)
	}{
		{protocol.GatewayAddr, protocol.ProxyPort, carelessProxy}, {protocol.Gateway6, protocol.ProxyPort, carelessProxy},
		{protocol.GatewayAddr, protocol.SOCKSPort, carelessSOCKS}, {protocol.Gateway6, protocol.SOCKSPort, carelessSOCKS},
	} {
		l, err := net.Listen("tcp", net.JoinHostPort(g.addr, strconv.Itoa(g.port)))
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					g.serve(c)
				}()
			}
		}()
	}
	p, err := net.ListenPacket("udp", net.JoinHostPort(protocol.GatewayAddr, "53"))
	if err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			k, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			up, err := net.Dial("udp", protocol.Resolver+":53")
			if err != nil {
				return
			}
			_, _ = up.Write(buf[:k])
			go func() {
				defer up.Close()
				a := make([]byte, 4096)
				if k, err := up.Read(a); err == nil {
					_, _ = p.WriteTo(a[:k], from)
				}
			}()
		}
	}()
	return nil
}

// loose returns the host of a destination as a C library reads it: up to the first byte
// that ends a string, after percent-decoding.
func loose(host string) string {
	if u, err := url.PathUnescape(host); err == nil {
		host = u
	}
	if i := strings.IndexAny(host, "\x00 \r\n\t/#?\\"); i >= 0 {
		host = host[:i]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	// As inet_aton: one to four numbers of any base.
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return host
	}
	var addr uint64
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 0, 33)
		if err != nil {
			return host
		}
		if i == len(parts)-1 {
			addr |= v & (1<<(8*(4-i)) - 1)
		} else {
			addr |= v & 255 << (8 * (3 - i))
		}
	}
	return net.IPv4(byte(addr>>24), byte(addr>>16), byte(addr>>8), byte(addr)).String()
}

func carelessDial(dest, port string) (net.Conn, error) {
	host, p, err := net.SplitHostPort(dest)
	if err != nil {
		host, p = strings.Trim(dest, "[]"), port
	}
	if i := strings.IndexFunc(p, func(r rune) bool { return r < '0' || r > '9' }); i > 0 {
		p = p[:i]
	}
	return net.Dial("tcp", net.JoinHostPort(loose(host), p))
}

// carelessProxy believes the request line, or the Host header if that names none, and
// forwards the rest unchanged.
func carelessProxy(c net.Conn) {
	in := bufio.NewReader(c)
	first, err := in.ReadString('\n')
	if err != nil {
		return
	}
	method, rest, _ := strings.Cut(strings.TrimRight(first, "\r\n"), " ")
	uri := rest
	if i := strings.LastIndex(rest, " HTTP/"); i >= 0 {
		uri = rest[:i]
	}
	if method == "CONNECT" {
		for line := ""; line != "\r\n" && line != "\n"; {
			if line, err = in.ReadString('\n'); err != nil {
				return
			}
		}
		up, err := carelessDial(uri, "443")
		if err != nil {
			fmt.Fprintf(c, "HTTP/1.1 502 %v\r\n\r\n", err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		both(c, in, up)
		return
	}
	scheme, after, _ := strings.Cut(uri, "://")
	host, path, _ := strings.Cut(after, "/")
	port := map[string]string{"https": "443", "ftp": "25"}[scheme]
	if port == "" {
		port = "80"
	}
	up, err := carelessDial(host, port)
	if err != nil {
		fmt.Fprintf(c, "HTTP/1.1 502 %v\r\n\r\n", err)
		return
	}
	fmt.Fprintf(up, "%s /%s HTTP/1.1\r\n", method, path)
	both(c, in, up)
}

func carelessSOCKS(c net.Conn) {
	in := bufio.NewReader(c)
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return
	}
	if head[0] == 4 {
		rest := make([]byte, 6)
		if _, err := io.ReadFull(in, rest); err != nil {
			return
		}
		_, _ = in.ReadString(0)
		host := net.IP(rest[2:6]).String()
		if rest[2] == 0 && rest[3] == 0 && rest[4] == 0 {
			name, _ := in.ReadString(0)
			host = strings.TrimSuffix(name, "\x00")
		}
		carelessTunnel(c, in, host, int(rest[0])<<8|int(rest[1]), []byte{0, 90, 0, 0, 0, 0, 0, 0})
		return
	}
	if _, err := io.CopyN(io.Discard, in, int64(head[1])); err != nil {
		return
	}
	_, _ = c.Write([]byte{5, 0})
	req := make([]byte, 4)
	if _, err := io.ReadFull(in, req); err != nil {
		return
	}
	size := map[byte]int{1: 4, 4: 16}[req[3]]
	if req[3] == 3 {
		k, _ := in.ReadByte()
		size = int(k)
	}
	addr := make([]byte, size+2)
	if _, err := io.ReadFull(in, addr); err != nil {
		return
	}
	host := string(addr[:size])
	if req[3] != 3 {
		host = net.IP(addr[:size]).String()
	}
	carelessTunnel(c, in, host, int(addr[size])<<8|int(addr[size+1]), []byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
}

func carelessTunnel(c net.Conn, in io.Reader, host string, port int, yes []byte) {
	up, err := carelessDial(net.JoinHostPort(host, strconv.Itoa(port)), "")
	if err != nil {
		return
	}
	_, _ = c.Write(yes)
	both(c, in, up)
}

// both copies between two connections until one ends.
func both(c net.Conn, in io.Reader, up net.Conn) {
	defer up.Close()
	go func() {
		_, _ = io.Copy(up, in)
	}()
	_, _ = io.Copy(c, up)
}
