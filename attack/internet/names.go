//go:build linux

package internet

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// names serves DNS on port 53 of every address.
func (n *internet) names() error {
	p, err := packets(protocol.Resolver + ":53")
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
			if a := n.answer(buf[:k]); a != nil {
				_, _ = p.WriteTo(a, from)
			}
		}
	}()
	// At other addresses a listener checks that nothing arrives.
	if err := n.receive(":53", false); err != nil {
		return err
	}
	l, err := net.Listen("tcp", ":53")
	if err != nil {
		return err
	}
	go n.accept(l, func(s *stream) {
		for {
			var size [2]byte
			if _, err := io.ReadFull(s, size[:]); err != nil {
				return
			}
			q := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(s, q); err != nil {
				return
			}
			a := n.answer(q)
			_, _ = s.Write(binary.BigEndian.AppendUint16(nil, uint16(len(a))))
			_, _ = s.Write(a)
		}
	}, false)
	return nil
}

// answer answers a query for addresses, and notes its name as received.
func (n *internet) answer(q []byte) []byte {
	if len(q) < 17 {
		return nil
	}
	var labels []string
	at := 12
	for at < len(q) && q[at] != 0 {
		k := int(q[at])
		if at+1+k > len(q) {
			return nil
		}
		labels = append(labels, string(q[at+1:at+1+k]))
		at += 1 + k
	}
	if at+5 > len(q) {
		return nil
	}
	name, kind := strings.Join(labels, "."), binary.BigEndian.Uint16(q[at+1:])
	if strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' }) {
		name = fmt.Sprintf("%q", name)
	}
	n.mu.Lock()
	n.asked = append(n.asked, name)
	key := fmt.Sprint(strings.ToLower(name), kind)
	times := n.times[key]
	n.times[key]++
	n.mu.Unlock()
	a := append([]byte(nil), q[:at+5]...)
	a[2], a[3] = 0x81, 0x80
	count := uint16(0)
	for _, addr := range protocol.Addresses(name, times) {
		// ::ffff:… is an answer of the other type, with the same meaning.
		if addr.Is4() != (kind == 1) || kind != 1 && kind != 28 {
			continue
		}
		count++
		a = append(a, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0)
		data := addr.AsSlice()
		a = append(binary.BigEndian.AppendUint16(a, uint16(len(data))), data...)
	}
	binary.BigEndian.PutUint16(a[4:], 1)
	binary.BigEndian.PutUint16(a[6:], count)
	binary.BigEndian.PutUint32(a[8:], 0)
	return a
}
