package procevent

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// MaxPacket bounds a packet. The sentry's side cuts its texts such that no honest
// one is as long.
const MaxPacket = 64 << 10

const (
	headerSize = 8
	maxHeader  = 64 // gVisor may add to its header, and says how long it is
	maxPID     = 1 << 22
)

// The types of messages, as gVisor numbers them.
const (
	messageClone   = 2
	messageExec    = 3
	messageExit    = 4
	messageOpen    = 7
	messageConnect = 10
)

var errBroken = errors.New("not a message")

// A Packet is one that was decoded.
type Packet struct {
	Event  audit.Event // without Time, Sandbox and Dropped
	Lost   uint32      // packets that were lost since the socket was made, modulo 2^32
	Header bool        // Lost was read
}

// Decode reads a packet. The event is clean, and shares no memory with the
// packet. Where the header could be read and the rest not, Header and Lost are set
// beside the error.
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

// readers gives what reads each type of message.
func readers() map[uint16]func([]byte, *audit.Event) error {
	return map[uint16]func([]byte, *audit.Event) error{
		messageClone: readClone, messageExec: readExec, messageExit: readExit,
		messageOpen: readOpen, messageConnect: readConnect,
	}
}

// A field is one of a message. Of number and data only one is set, as the type
// has it.
type field struct {
	id     protowire.Number
	number uint64
	data   []byte
}

// each calls f with every field of a message that has one of the types that are
// used; the others are passed over.
func each(message []byte, f func(field) error) error {
	for len(message) > 0 {
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
		default: // groups nest, and no message has one
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

// pid gives a number of a process, or zero where it cannot be one.
func pid(n uint64) int32 {
	if n > maxPID {
		return 0
	}
	return int32(n)
}

// text gives the beginning of a text, of which only what an event can hold, and
// one byte to tell that it was longer, is copied.
func text(data []byte, limit int) string { return string(data[:min(len(data), limit+1)]) }

// readContext reads who did it, and where that process stood.
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
