package inspect

import (
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/cryptobyte"

	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// A ClientHello holds the parts of a TLS ClientHello that rules need.
type ClientHello struct {
	Named     bool        // whether it has a server name, which is Host
	Host      decide.Host // of server_name
	Protocols []string    // of ALPN, in its order
	ECH       bool        // whether it may hide another ClientHello, whose name may differ
}

// Numbers of TLS.
const (
	recordAlert     = 21
	recordHandshake = 22
	recordFirst     = 20 // content types of records
	recordLast      = 24
	messageHello    = 1

	extensionName   = 0
	extensionALPN   = 16
	extensionECH    = 0xfe0d
	extensionESNI   = 0xffce // its predecessor
	longestRecord   = 1<<14 + 256
	longestMessage  = 64 << 10
	longestProtocol = 64 // maximum of kept protocols
)

// A helloMessage is the first handshake message in TLS records, as far as it has arrived.
type helloMessage struct {
	at     int    // bytes of the records that were read
	joined []byte // content of the records
	body   []byte // the message without its header, once complete
}

// read continues to read the records, which must start with the same bytes as before.
func (m *helloMessage) read(records []byte) (whole bool, err error) {
	for len(records)-m.at >= 5 {
		r := records[m.at:]
		size := int(binary.BigEndian.Uint16(r[3:]))
		switch {
		case r[0] != recordHandshake || r[1] != 3:
			return false, errors.New("another record came before it was whole")
		case size == 0 || size > longestRecord:
			return false, errors.New("a record that is empty or too long")
		case len(r) < 5+size:
			return false, nil
		}
		m.joined = append(m.joined, r[5:5+size]...)
		m.at += 5 + size
		if len(m.joined) < 4 {
			continue
		}
		length := int(m.joined[1])<<16 | int(binary.BigEndian.Uint16(m.joined[2:]))
		switch {
		case m.joined[0] != messageHello:
			return false, errors.New("another message comes first")
		case length > longestMessage:
			return false, errors.New("longer than 64 KiB")
		case len(m.joined) >= 4+length:
			m.body = m.joined[4 : 4+length]
			return true, nil
		}
	}
	return false, nil
}

var errMalformed = errors.New("it is malformed")

// parseClientHello parses a ClientHello without its header.
func parseClientHello(body []byte) (ClientHello, error) {
	s := cryptobyte.String(body)
	var session, suites, compressions, extensions cryptobyte.String
	if !s.Skip(2+32) || !s.ReadUint8LengthPrefixed(&session) || !s.ReadUint16LengthPrefixed(&suites) || !s.ReadUint8LengthPrefixed(&compressions) {
		return ClientHello{}, errMalformed
	}
	var h ClientHello
	if s.Empty() {
		return h, nil
	}
	if !s.ReadUint16LengthPrefixed(&extensions) || !s.Empty() {
		return ClientHello{}, errMalformed
	}
	seen := map[uint16]bool{}
	for !extensions.Empty() {
		var number uint16
		var data cryptobyte.String
		if !extensions.ReadUint16(&number) || !extensions.ReadUint16LengthPrefixed(&data) || seen[number] {
			return ClientHello{}, errMalformed
		}
		seen[number] = true
		if err := h.extend(number, data); err != nil {
			return ClientHello{}, err
		}
	}
	return h, nil
}

func (h *ClientHello) extend(number uint16, data cryptobyte.String) error {
	switch number {
	case extensionName:
		return h.readName(data)
	case extensionALPN:
		return h.readProtocols(data)
	case extensionECH, extensionESNI:
		h.ECH = true
	}
	return nil
}

func (h *ClientHello) readName(data cryptobyte.String) error {
	var names, name cryptobyte.String
	var kind uint8
	// Accept exactly one name, of the only existing type, because servers interpret several
	// names differently.
	if !data.ReadUint16LengthPrefixed(&names) || !data.Empty() || !names.ReadUint8(&kind) || kind != 0 || !names.ReadUint16LengthPrefixed(&name) || !names.Empty() {
		return errMalformed
	}
	host, err := decide.ParseHost(string(name))
	if err != nil {
		return err
	}
	if _, ok := host.Addr(); ok {
		return errors.New("its server name is an address")
	}
	h.Named, h.Host = true, host
	return nil
}

func (h *ClientHello) readProtocols(data cryptobyte.String) error {
	var list cryptobyte.String
	if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() {
		return errMalformed
	}
	for !list.Empty() {
		var protocol cryptobyte.String
		if !list.ReadUint8LengthPrefixed(&protocol) || protocol.Empty() {
			return errMalformed
		}
		if len(h.Protocols) < longestProtocol {
			h.Protocols = append(h.Protocols, string(protocol))
		}
	}
	return nil
}
