package nameserver

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// Numbers of the DNS (RFC 1035).
const (
	headerSize = 12

	isAnswer    = 0x8000 // flags
	opcode      = 0x7800
	wantRecurse = 0x0100
	canRecurse  = 0x0080

	codeFormat         = 1
	codeNoName         = 3
	codeNotImplemented = 4
	codeRefused        = 5

	typeA    = 1
	typeAAAA = 28
	classIN  = 1
)

// ttl is how long clients may keep an address, in seconds.
const ttl = 60

// answer returns the answer to a query, which is nil if the query is none, and the host that was asked
// for if it does not exist.
func (s *Server) answer(query []byte) (answer []byte, refused string) {
	if len(query) < headerSize {
		return nil, ""
	}
	flags := binary.BigEndian.Uint16(query[2:])
	if flags&isAnswer != 0 {
		return nil, ""
	}
	reply := func(code uint16, question []byte) []byte {
		b := append([]byte(nil), query[:2]...)
		b = binary.BigEndian.AppendUint16(b, isAnswer|flags&(opcode|wantRecurse)|canRecurse|code)
		b = binary.BigEndian.AppendUint16(b, uint16(min(len(question), 1)))
		return append(append(b, 0, 0, 0, 0, 0, 0), question...)
	}
	if flags&opcode != 0 {
		return reply(codeNotImplemented, nil), ""
	}
	name, end := readName(query[headerSize:])
	end += headerSize
	if binary.BigEndian.Uint16(query[4:]) != 1 || end == headerSize || len(query) < end+4 {
		return reply(codeFormat, nil), ""
	}
	question := query[headerSize : end+4]
	kind, class := binary.BigEndian.Uint16(query[end:]), binary.BigEndian.Uint16(query[end+2:])
	if class != classIN {
		return reply(codeRefused, question), ""
	}
	if !s.own(name) {
		return reply(codeNoName, question), host(name)
	}
	b := reply(0, question)
	var address netip.Addr
	switch kind {
	case typeA:
		address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case typeAAAA:
		address = netip.IPv6Loopback()
	default:
		return b, ""
	}
	b[7] = 1                                     // one answer
	b = append(b, 0xc0, headerSize)              // the name of the question
	b = append(b, question[len(question)-4:]...) // its type and class
	b = binary.BigEndian.AppendUint32(b, ttl)
	b = binary.BigEndian.AppendUint16(b, uint16(address.BitLen()/8))
	return append(b, address.AsSlice()...), ""
}

// own reports whether a name is the sandbox's own.
func (s *Server) own(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	own, err := s.hostname()
	return err == nil && own != "" && name == strings.ToLower(own)
}

// readName reads the name at the beginning of b. It returns the name and its encoded length, which is
// 0 if there is none. A name of a question is not compressed.
func readName(b []byte) (string, int) {
	var name strings.Builder
	for at := 0; at < len(b); {
		n := int(b[at])
		at++
		switch {
		case n == 0:
			if name.Len() == 0 {
				return ".", at
			}
			return name.String(), at
		case n > 63, at+n > len(b), at+n > 254:
			return "", 0
		}
		for _, c := range b[at : at+n] {
			switch {
			case c == '.': // the text would be another name
				return "", 0
			case c < ' ', c > '~': // not a character of a host
				c = '?'
			}
			name.WriteByte(c)
		}
		name.WriteByte('.')
		at += n
	}
	return "", 0
}
