package tool

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// schema returns the JSON Schema of s. Properties have the order of the fields, because
// models read them in order.
func (s *shape) schema() json.RawMessage { return s.appendSchema(nil, "") }

func (s *shape) appendSchema(b []byte, doc string) []byte {
	b = append(b, '{')
	b = append(b, s.schemaType()...)
	if doc != "" {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = appendString(append(b, `"description":`...), doc)
	}
	switch s.kind {
	case kindList:
		b = s.elem.appendSchema(append(b, `,"items":`...), "")
	case kindMap:
		b = s.elem.appendSchema(append(b, `,"additionalProperties":`...), "")
	case kindStruct:
		b = s.appendProperties(b)
	}
	return append(b, '}')
}

func (s *shape) appendProperties(b []byte) []byte {
	b = append(b, `,"properties":{`...)
	for i, f := range s.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, f.name), ':')
		b = f.shape.appendSchema(b, f.doc)
	}
	b = append(b, `},"required":[`...)
	first := true
	for _, f := range s.fields {
		if f.optional {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendString(b, f.name)
	}
	return append(b, `],"additionalProperties":false`...)
}

func (s *shape) schemaType() string {
	switch s.kind {
	case kindText:
		if s.typ == reflect.TypeFor[time.Time]() {
			return `"type":"string","format":"date-time"`
		}
		return `"type":"string"`
	case kindBytes:
		return `"type":"string","contentEncoding":"base64"`
	case kindBoolean:
		return `"type":"boolean"`
	case kindInteger:
		return `"type":"integer"` + s.schemaRange()
	case kindFloat, kindExact:
		return `"type":"number"`
	case kindAny:
		return ""
	case kindList:
		return `"type":"array"`
	case kindMap, kindStruct:
		return `"type":"object"`
	default:
		return `"type":"string"`
	}
}

// schemaRange bounds integers that are smaller than JSON readers expect. It omits the
// limits of 64 bits, because many readers store them as floats and round.
func (s *shape) schemaRange() string {
	bits := s.typ.Bits()
	switch s.typ.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if bits == 64 {
			return `,"minimum":0`
		}
		return `,"minimum":0,"maximum":` + strconv.FormatUint(1<<bits-1, 10)
	}
	if bits == 64 {
		return ""
	}
	return `,"minimum":` + strconv.FormatInt(-1<<(bits-1), 10) + `,"maximum":` + strconv.FormatInt(1<<(bits-1)-1, 10)
}
