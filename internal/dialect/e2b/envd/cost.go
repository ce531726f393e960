package envd

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// What a message takes in memory, about. A list of empty arguments takes many times the bytes that
// arrive: a header for each, in the message, in the command, and in the request to the agent.
const (
	objectCost  = 256
	elementCost = 64  // of a list, beside its text
	entryCost   = 320 // of a map, beside its texts
)

// costOfWire estimates the memory that an encoded message takes once it is decoded.
func costOfWire(d protoreflect.MessageDescriptor, b []byte) int64 {
	cost := int64(objectCost)
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return cost
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(number, kind, b)
		if n < 0 {
			return cost
		}
		value := b[:n]
		b = b[n:]
		f := d.Fields().ByNumber(number)
		if f == nil || kind != protowire.BytesType { // it is not kept, or is a part of the object
			continue
		}
		value, _ = protowire.ConsumeBytes(value)
		switch {
		case f.IsMap():
			cost += entryCost + int64(len(value))
		case f.Message() != nil:
			cost += costOfWire(f.Message(), value)
		default:
			cost += elementCost + int64(len(value))
		}
	}
	return cost
}

// costOfMessage estimates the memory that a message takes until its call ends.
func costOfMessage(m protoreflect.Message) int64 {
	cost := int64(objectCost)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				cost += entryCost + int64(len(k.String())) + costOfValue(f.MapValue(), v)
				return true
			})
		case f.IsList():
			list := v.List()
			for i := range list.Len() {
				cost += elementCost + costOfValue(f, list.Get(i))
			}
		default:
			cost += costOfValue(f, v)
		}
		return true
	})
	return cost
}

func costOfValue(f protoreflect.FieldDescriptor, v protoreflect.Value) int64 {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return costOfMessage(v.Message())
	case protoreflect.StringKind:
		return int64(len(v.String()))
	case protoreflect.BytesKind:
		return int64(len(v.Bytes()))
	}
	return 0
}

// A codec decodes messages while there is room for them. Connect decodes some messages before any
// code of a handler runs.
type codec struct {
	b    *Box
	name string
	json bool
}

func codecs(b *Box) []codec {
	return []codec{{b, "proto", false}, {b, "json", true}, {b, "json; charset=utf-8", true}}
}

// refuse marks a message that there was no room for with an unknown field, which no decoded message
// has. An error of a codec would always tell the client that its message is invalid.
func (c codec) refuse(m proto.Message) {
	mark := protowire.AppendTag(nil, protowire.MaxValidNumber, protowire.VarintType)
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(mark, 1))
}

// isRefused reports whether a codec had no room for a message.
func isRefused(m proto.Message) bool { return len(m.ProtoReflect().GetUnknown()) > 0 }

func (c codec) Name() string { return c.name }

func (c codec) IsBinary() bool { return !c.json }

func (c codec) Marshal(v any) ([]byte, error) { return c.MarshalAppend(nil, v) }

// MarshalAppend appends an encoded message.
func (c codec) MarshalAppend(b []byte, v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	if c.json {
		return protojson.MarshalOptions{}.MarshalAppend(b, m)
	}
	return proto.MarshalOptions{}.MarshalAppend(b, m)
}

// Unmarshal decodes a message. What it takes beside its bytes, which are counted as a body, is held
// until the message is decoded.
func (c codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	if c.json && len(data) == 0 {
		return errors.New("it is empty, and must be JSON")
	}
	cost := int64(0)
	if c.json {
		cost = jsonbody.Cost(data)
	} else {
		cost = max(costOfWire(m.ProtoReflect().Descriptor(), data)-int64(len(data)), 0)
	}
	h := held{b: c.b}
	if h.set(cost) != nil {
		c.refuse(m)
		return nil
	}
	defer func() { _ = h.set(0) }() // a smaller count is never refused
	var err error
	if c.json {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, m)
	} else {
		err = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, m)
	}
	if err != nil {
		return fmt.Errorf("unmarshal into %T: %w", v, err)
	}
	return nil
}
