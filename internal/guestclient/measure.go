package guestclient

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// A guest can send a part of a message and then nothing more, and the host holds that part for as
// long as the call lasts. There is a call for each process that is followed, each watch and each
// connection to a port. So a message of a stream has little more room than an honest one needs.
const (
	smallMessage = 64 << 10  // answers of one file or one word, and errors
	outputRoom   = 4 << 10   // of a message beside its data
	exitMessage  = 8 << 10   // events of a process but its output
	listMessage  = 2 << 20   // files of a directory
	watchMessage = 256 << 10 // events of files
)

// silentKey marks the context of a call that follows a process without its output.
type silentKey struct{}

func silently(ctx context.Context) context.Context { return context.WithValue(ctx, silentKey{}, true) }

// room returns the size of the largest message that an honest guest sends in a call.
func room(ctx context.Context, procedure string) int {
	if ctx.Value(silentKey{}) != nil {
		return exitMessage
	}
	switch procedure {
	case guestpb.GuestProcessesProcedure, guestpb.GuestRefusalsProcedure:
		return maxMessage
	case guestpb.GuestListProcedure:
		return listMessage
	case guestpb.GuestWatchProcedure:
		return watchMessage
	case guestpb.GuestReadProcedure:
		return chunk + outputRoom
	case guestpb.GuestStartProcedure, guestpb.GuestAttachProcedure:
		return maxOutput + outputRoom
	case guestpb.GuestDialProcedure:
		return dialChunk + outputRoom
	}
	return smallMessage
}

// maxDecoded bounds the memory of a decoded message. Two bytes on the wire can be a message of some
// hundred bytes in memory.
const maxDecoded = 4 * maxMessage

// What a field costs in memory, about: a message, and anything else besides its bytes.
const (
	messageCost = 256
	fieldCost   = 48
)

// A meteredCodec is the binary format of Protocol Buffers. It refuses a message that would take much
// more memory than an honest one.
type meteredCodec struct{}

var _ connect.Codec = meteredCodec{}

// Name implements connect.Codec. The name replaces that of Connect's own codec.
func (meteredCodec) Name() string { return "proto" }

// Marshal implements connect.Codec.
func (meteredCodec) Marshal(m any) ([]byte, error) { return meteredCodec{}.MarshalAppend(nil, m) }

// MarshalAppend appends to a buffer that Connect uses again.
func (meteredCodec) MarshalAppend(to []byte, m any) ([]byte, error) {
	message, ok := m.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message: %w", m, paddock.Internal)
	}
	return proto.MarshalOptions{}.MarshalAppend(to, message)
}

// Unmarshal implements connect.Codec.
func (meteredCodec) Unmarshal(data []byte, m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a message: %w", m, paddock.Internal)
	}
	if cost(data, message.ProtoReflect().Descriptor(), maxDecoded) > maxDecoded {
		return nonsense("a message that takes too much memory")
	}
	return proto.Unmarshal(data, message)
}

// cost estimates the memory of a decoded message. It stops when that exceeds most. What is no
// message costs nothing, because decoding it fails.
func cost(data []byte, d protoreflect.MessageDescriptor, most int) int {
	sum := messageCost + len(data)
	for len(data) > 0 && sum <= most {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return sum
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return sum
		}
		sum += fieldCost
		if f := d.Fields().ByNumber(number); f != nil && f.Message() != nil && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(data[:n])
			sum += cost(content, f.Message(), most-sum)
		}
		data = data[n:]
	}
	return sum
}
