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
	recordFirst     = 20 // of all kinds
	recordLast      = 24
	messageHello    = 1

	extensionName   = 0
	extensionALPN   = 16
	extensionECH    = 0xfe0d
	extensionESNI   = 0xffce // its forerunner
	longestRecord   = 1<<14 + 256
	longestMessage  = 64 << 10
	longestProtocol = 64 // protocols that are kept
)

// A helloMessage is the first handshake helloMessage in records of TLS, as far as they
// are there.
type helloMessage struct {
	at     int    // how much of the records was read
	joined []byte // what they held
	body   []byte // the message without its header, when it is whole
}

// read reads on in records, which begin as they did the last time.
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

// parseClientHello reads a ClientHello without its header.
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
	// One name of the one kind that there is: what is more is read in
	// different ways by different servers.
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
