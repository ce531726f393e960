package tool

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// A kind is the form of a Go type in JSON and on a command line.
type kind uint8

const (
	kindString  kind = iota
	kindText         // a type that parses itself from text, such as time.Time
	kindBytes        // base64
	kindBoolean      // true, false
	kindInteger      // whole, within the Go type's range
	kindFloat        // rounded to the Go type
	kindExact        // json.Number: any number, as written
	kindAny          // any JSON: interface{} and json.RawMessage
	kindList
	kindMap
	kindStruct
)

// A shape describes a Go type as an argument.
type shape struct {
	kind   kind
	typ    reflect.Type // never a pointer
	elem   *shape       // of lists and maps
	fields []field      // of structs
}

type field struct {
	name     string
	doc      string
	index    int
	optional bool
	shape    *shape
}

// maxNesting bounds types within types. A recursive type exceeds it.
const maxNesting = 16

func shapeOf(t reflect.Type, depth int) (*shape, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if depth > maxNesting {
		return nil, fmt.Errorf("%v contains itself, or is nested deeper than %d", t, maxNesting)
	}
	s := &shape{typ: t}
	switch {
	case t == reflect.TypeFor[json.Number]():
		s.kind = kindExact
		return s, nil
	case t == reflect.TypeFor[json.RawMessage]():
		s.kind = kindAny
		return s, nil
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		s.kind = kindText
		return s, nil
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return nil, fmt.Errorf("%v reads JSON of its own, of which no schema is known", t)
	}
	return s, s.byKind(depth)
}

func (s *shape) byKind(depth int) (err error) {
	switch s.typ.Kind() {
	case reflect.String:
		s.kind = kindString
	case reflect.Bool:
		s.kind = kindBoolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.kind = kindInteger
	case reflect.Float32, reflect.Float64:
		s.kind = kindFloat
	case reflect.Interface:
		s.kind = kindAny
		if s.typ.NumMethod() > 0 {
			return fmt.Errorf("%v: which type to make of an argument is not known", s.typ)
		}
	case reflect.Slice:
		s.kind = kindList
		if s.typ.Elem().Kind() == reflect.Uint8 {
			s.kind = kindBytes
			return nil
		}
		s.elem, err = shapeOf(s.typ.Elem(), depth+1)
	case reflect.Map:
		s.kind = kindMap
		if s.typ.Key().Kind() != reflect.String || reflect.PointerTo(s.typ.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return fmt.Errorf("%v: only maps by strings are arguments", s.typ)
		}
		s.elem, err = shapeOf(s.typ.Elem(), depth+1)
	case reflect.Struct:
		s.kind = kindStruct
		err = s.addFields(depth)
	default:
		return fmt.Errorf("%v cannot be an argument", s.typ)
	}
	return err
}

func (s *shape) addFields(depth int) error {
	taken := map[string]bool{}
	for i := range s.typ.NumField() {
		f := s.typ.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous && (name == "" || !f.IsExported()) {
			return fmt.Errorf("field %s: an embedded struct needs a name in its json tag, and to be exported", f.Name)
		}
		if name == "" {
			name = f.Name
		}
		if err := checkArgument(name, depth); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		if taken[name] {
			return fmt.Errorf("field %s: there are two arguments %q", f.Name, name)
		}
		taken[name] = true
		own := field{name: name, doc: f.Tag.Get("doc"), index: i, optional: f.Type.Kind() == reflect.Pointer}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "omitempty", "omitzero":
				own.optional = true
			default:
				return fmt.Errorf("field %s: option %q of the json tag is not understood", f.Name, option)
			}
		}
		var err error
		if own.shape, err = shapeOf(f.Type, depth+1); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		s.fields = append(s.fields, own)
	}
	return nil
}

// checkArgument rejects names that a command line or a constraint's path could not express.
func checkArgument(name string, depth int) error {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' && i > 0
		if !letter {
			return fmt.Errorf("the argument's name %q is not of letters, digits, _ and -", name)
		}
	}
	if depth == 0 && (name == "help" || name == "json") {
		return fmt.Errorf("--%s means something else on every command line; choose another name", name)
	}
	return nil
}

func (s *shape) field(name string) *field {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// has reports whether there can be an argument at path.
func (s *shape) has(path []string) bool {
	if len(path) == 0 || s.kind == kindAny {
		return true
	}
	switch s.kind {
	case kindStruct:
		if path[0] == "*" {
			for _, f := range s.fields {
				if f.shape.has(path[1:]) {
					return true
				}
			}
			return false
		}
		f := s.field(path[0])
		return f != nil && f.shape.has(path[1:])
	case kindList:
		_, ok := position(path[0])
		return (ok || path[0] == "*") && s.elem.has(path[1:])
	case kindMap:
		return s.elem.has(path[1:])
	default:
		return false
	}
}

// word names the shape for people, as in --amount integer.
func (s *shape) word() string {
	switch s.kind {
	case kindText:
		if s.typ == reflect.TypeFor[time.Time]() {
			return "time"
		}
		return "text"
	case kindBytes:
		return "bytes"
	case kindBoolean:
		return "boolean"
	case kindInteger:
		return "integer"
	case kindFloat, kindExact:
		return "number"
	case kindList:
		return s.elem.word()
	case kindAny, kindMap, kindStruct:
		return "json"
	default:
		return "string"
	}
}

var errNotObject = errors.New("the arguments are not an object")
