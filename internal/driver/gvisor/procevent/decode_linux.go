package procevent

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// MaxPacket bounds the size of a packet. Package emitter shortens texts so that no genuine
// packet is larger.
const MaxPacket = 64 << 10

const (
	headerSize = 8
	maxHeader  = 64 // gVisor may extend its header, which starts with its size
	maxPID     = 1 << 22
)

// The types of messages, by gVisor's numbers.
const (
	messageClone   = 2
	messageExec    = 3
	messageExit    = 4
	messageOpen    = 7
	messageConnect = 10
)

var errBroken = errors.New("not a message")

// A Packet is a decoded packet.
type Packet struct {
	Event  audit.Event // without Time, Sandbox and Dropped
	Lost   uint32      // packets lost since the socket was made, modulo 2^32
	Header bool        // Lost was read
}

// Decode decodes a packet. The event is clean and shares no memory with the packet. If only
// the header is valid, Decode sets Header and Lost and returns an error.
func Decode(packet []byte) (Packet, error) {
	if len(packet) < headerSize || len(packet) > MaxPacket {
		return Packet{}, fmt.Errorf("packet of %d bytes", len(packet))
	}
	size := int(binary.LittleEndian.Uint16(packet))
	if size < headerSize || size > maxHeader || size > len(packet) {
		return Packet{}, fmt.Errorf("header of %d bytes", size)
	}
	p := Packet{Lost: binary.LittleEndian.Uint32(packet[4:]), Header: true}
	kind := binary.LittleEndian.Uint16(packet[2:])
	read, ok := readers()[kind]
	if !ok {
		return p, fmt.Errorf("message of type %d", kind)
	}
	if err := read(packet[size:], &p.Event); err != nil {
		return p, fmt.Errorf("message of type %d: %w", kind, err)
	}
	if pid := p.Event.Process.PID; pid < 1 || pid > maxPID {
		return p, fmt.Errorf("message of process %d", pid)
	}
	p.Event = p.Event.Clean()
	return p, nil
}

// readers returns the decoder of each type of message.
func readers() map[uint16]func([]byte, *audit.Event) error {
	return map[uint16]func([]byte, *audit.Event) error{
		messageClone: readClone, messageExec: readExec, messageExit: readExit,
		messageOpen: readOpen, messageConnect: readConnect,
	}
}

// A field is a field of a message. Its type determines which of number and data is set.
type field struct {
	id     protowire.Number
	number uint64
	data   []byte
}

// maxFields bounds the fields of a message, of which a genuine one has audit.MaxCount and a few. Reading tens of
// thousands of small ones would take the host's time at each packet.
const maxFields = 1000

// each calls f with every field of the four used types. It skips fields of other types.
func each(message []byte, f func(field) error) error {
	for count := 0; len(message) > 0; count++ {
		if count == maxFields {
			return errBroken
		}
		id, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errBroken
		}
		message = message[n:]
		fd := field{id: id}
		switch kind {
		case protowire.VarintType:
			fd.number, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			fd.data, n = protowire.ConsumeBytes(message)
		case protowire.Fixed32Type, protowire.Fixed64Type:
			n = protowire.ConsumeFieldValue(id, kind, message)
		default: // groups can nest, and no message has one
			return errBroken
		}
		if n < 0 {
			return errBroken
		}
		message = message[n:]
		if kind != protowire.VarintType && kind != protowire.BytesType {
			continue
		}
		if err := f(fd); err != nil {
			return err
		}
	}
	return nil
}

// pid returns the number of a process, or zero if it is out of range.
func pid(n uint64) int32 {
	if n > maxPID {
		return 0
	}
	return int32(n)
}

// text copies the beginning of a text: as much as an event holds, and one byte more to show
// that the text was longer.
func text(data []byte, limit int) string { return string(data[:min(len(data), limit+1)]) }

// readContext decodes the process of an event and its working directory.
func readContext(message []byte, e *audit.Event) error {
	return each(message, func(f field) error {
		switch f.id {
		case 4:
			e.Process.PID = pid(f.number)
		case 7:
			return each(f.data, func(f field) error {
				if f.id == 2 {
					e.Process.UID = uint32(f.number)
				}
				return nil
			})
		case 8:
			e.Dir = text(f.data, audit.MaxPath)
		case 9:
			e.Process.Name = text(f.data, audit.MaxWord)
		case 10:
			e.Process.Parent = pid(f.number)
		}
		return nil
	})
}
