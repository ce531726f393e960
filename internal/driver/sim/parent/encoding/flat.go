// Package encoding writes Go values as bytes and reads them again, for messages
// between two processes of one program: fields have no names and types are not
// described, so that the first message costs no more than any other. Strings
// are bytes; nothing is changed in them.
package encoding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
)

// errShort says that bytes end within a value.
var errShort = errors.New("the message ends too early")

// Append adds the bytes of v to b. It refuses a type that holds what cannot be
// sent: an interface, a channel, a function, a field that is not exported.
func Append(b []byte, v any) ([]byte, error) {
	return put(b, reflect.ValueOf(v))
}

// Parse fills the value that v points to from all of b, whose bytes may be
// hostile. A message of one byte an element can stand for many times as much
// memory, so room bounds what v takes beside itself, in bytes.
func Parse(b []byte, v any, room int64) error {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("parse into %T, which is no pointer", v)
	}
	r := reader{b, room}
	if err := r.value(p.Elem()); err != nil {
		return err
	}
	if len(r.rest) > 0 {
		return fmt.Errorf("%d bytes follow the message", len(r.rest))
	}
	return nil
}

func isTime(t reflect.Type) bool { return t == reflect.TypeFor[time.Time]() }

func put(b []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float())), nil
	case reflect.String:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		return append(b, v.String()...), nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0), nil
		}
		return put(append(b, 1), v.Elem())
	case reflect.Slice:
		return putSlice(b, v)
	case reflect.Map:
		return putMap(b, v)
	case reflect.Struct:
		return putStruct(b, v)
	default:
		return nil, fmt.Errorf("a %s cannot be sent", v.Type())
	}
}

func putStruct(b []byte, v reflect.Value) ([]byte, error) {
	if isTime(v.Type()) {
		t, ok := v.Interface().(time.Time)
		if !ok || t.IsZero() {
			return append(b, 0), nil
		}
		return binary.AppendVarint(append(b, 1), t.UnixNano()), nil
	}
	var err error
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.IsExported() {
			return nil, fmt.Errorf("field %s of %s cannot be sent", f.Name, v.Type())
		}
		if b, err = put(b, v.Field(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// A length is one more than it is, so that nil is another than empty.
func putSlice(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, 0), nil
	}
	b = binary.AppendUvarint(b, uint64(v.Len())+1)
	var err error
	for i := range v.Len() {
		if b, err = put(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func putMap(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, 0), nil
	}
	b = binary.AppendUvarint(b, uint64(v.Len())+1)
	var err error
	for key, value := range v.Seq2() {
		if b, err = put(b, key); err != nil {
			return nil, err
		}
		if b, err = put(b, value); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// A reader holds what is left of a message, and of the memory for its value.
type reader struct {
	rest []byte
	room int64
}

// errLarge says that a value takes more memory than there may be for it.
var errLarge = errors.New("the message is of too much")

// take accounts for memory before it is allocated. Neither factor is larger than a message.
func (r *reader) take(count int, each uintptr) error {
	r.room -= int64(count) * int64(each)
	if r.room < 0 {
		return errLarge
	}
	return nil
}

func (r *reader) unsigned() (uint64, error) {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		return 0, errShort
	}
	r.rest = r.rest[size:]
	return n, nil
}

func (r *reader) signed() (int64, error) {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		return 0, errShort
	}
	r.rest = r.rest[size:]
	return n, nil
}

func (r *reader) flag() (bool, error) {
	if len(r.rest) == 0 {
		return false, errShort
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	if c > 1 {
		return false, fmt.Errorf("%d is neither true nor false", c)
	}
	return c == 1, nil
}

// length reads how many things follow, each of a byte at least; -1 is nil.
func (r *reader) length() (int, error) {
	n, err := r.unsigned()
	if err != nil {
		return 0, err
	}
	if n > uint64(len(r.rest))+1 {
		return 0, errShort
	}
	return int(n) - 1, nil
}

func (r *reader) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool:
		is, err := r.flag()
		v.SetBool(is)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := r.signed()
		if err == nil && v.OverflowInt(n) {
			return fmt.Errorf("%d is too large for %s", n, v.Type())
		}
		v.SetInt(n)
		return err
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := r.unsigned()
		if err == nil && v.OverflowUint(n) {
			return fmt.Errorf("%d is too large for %s", n, v.Type())
		}
		v.SetUint(n)
		return err
	case reflect.Float32, reflect.Float64:
		if len(r.rest) < 8 {
			return errShort
		}
		v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(r.rest)))
		r.rest = r.rest[8:]
		return nil
	case reflect.String:
		n, err := r.unsigned()
		if err != nil {
			return err
		}
		if n > uint64(len(r.rest)) {
			return errShort
		}
		if err := r.take(int(n), 1); err != nil {
			return err
		}
		v.SetString(string(r.rest[:n]))
		r.rest = r.rest[n:]
		return nil
	case reflect.Pointer:
		if is, err := r.flag(); err != nil || !is {
			return err
		}
		if err := r.take(1, v.Type().Elem().Size()); err != nil {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		return r.value(v.Elem())
	case reflect.Slice:
		return r.slice(v)
	case reflect.Map:
		return r.pairs(v)
	case reflect.Struct:
		return r.fields(v)
	default:
		return fmt.Errorf("a %s cannot be received", v.Type())
	}
}

func (r *reader) fields(v reflect.Value) error {
	if isTime(v.Type()) {
		if is, err := r.flag(); err != nil || !is {
			return err
		}
		n, err := r.signed()
		v.Set(reflect.ValueOf(time.Unix(0, n)))
		return err
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.IsExported() {
			return fmt.Errorf("field %s of %s cannot be received", f.Name, v.Type())
		}
		if err := r.value(v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) slice(v reflect.Value) error {
	n, err := r.length()
	if err != nil || n < 0 {
		return err
	}
	if err := r.take(n, v.Type().Elem().Size()); err != nil {
		return err
	}
	s := reflect.MakeSlice(v.Type(), n, n)
	for i := range n {
		if err := r.value(s.Index(i)); err != nil {
			return err
		}
	}
	v.Set(s)
	return nil
}

func (r *reader) pairs(v reflect.Value) error {
	n, err := r.length()
	if err != nil || n < 0 {
		return err
	}
	// A map has places without an element, which are half of all at the most, and
	// while it grows it exists twice.
	const places = 4
	if err := r.take(places*n, v.Type().Key().Size()+v.Type().Elem().Size()); err != nil {
		return err
	}
	m := reflect.MakeMap(v.Type())
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if err := r.value(key); err != nil {
			return err
		}
		if err := r.value(value); err != nil {
			return err
		}
		m.SetMapIndex(key, value)
	}
	v.Set(m)
	return nil
}
