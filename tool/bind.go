package tool

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
)

// bind sets dst to v and returns v in the form that dst now has: a float rounded, an
// integer in integer form, absent arguments omitted. Constraints are checked against that
// form, so they judge what the function sees.
func (s *shape) bind(v any, dst reflect.Value, path string) (any, error) {
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	switch s.kind {
	case kindAny:
		s.bindAny(v, dst)
		return v, nil
	case kindStruct:
		return s.bindStruct(v, dst, path)
	case kindList:
		return s.bindList(v, dst, path)
	case kindMap:
		return s.bindMap(v, dst, path)
	default:
		bound, err := s.bindScalar(v, dst)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", path, err)
		}
		return bound, nil
	}
}

func (s *shape) bindAny(v any, dst reflect.Value) {
	if s.typ.Kind() == reflect.Interface {
		if v != nil {
			dst.Set(reflect.ValueOf(plain(v)))
		}
		return
	}
	dst.SetBytes(encode(v))
}

// plain converts v to the types that encoding/json decodes into, with numbers as
// json.Number.
func plain(v any) any {
	switch v := v.(type) {
	case number:
		return json.Number(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, e := range v {
			object[name] = plain(e)
		}
		return object
	default:
		return v
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

func (s *shape) bindStruct(v any, dst reflect.Value, path string) (any, error) {
	members, ok := v.(map[string]any)
	if !ok && path == "" {
		return nil, errNotObject
	}
	if !ok {
		return nil, fmt.Errorf("argument %s: an object is expected, not %s", path, show(v))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if s.field(name) == nil {
			return nil, fmt.Errorf("argument %s: there is none of this name%s", shortPath(join(path, name)), s.suggest(name))
		}
	}
	bound := make(map[string]any, len(members))
	for _, f := range s.fields {
		own := join(path, f.name)
		member, given := members[f.name]
		// Models write null for omitted arguments.
		if member == nil && f.shape.kind != kindAny && f.optional {
			given = false
		}
		if !given {
			if !f.optional {
				return nil, fmt.Errorf("argument %s: it is required", own)
			}
			continue
		}
		var err error
		if bound[f.name], err = f.shape.bind(member, dst.Field(f.index), own); err != nil {
			return nil, err
		}
	}
	return bound, nil
}

// suggest returns the argument that differs from name only in case or in dashes for
// underscores.
func (s *shape) suggest(name string) string {
	for _, f := range s.fields {
		if loose(f.name) == loose(name) {
			return ", but there is " + f.name
		}
	}
	return ""
}

func loose(name string) string {
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case c == '-' || c == '_':
		case c >= 'A' && c <= 'Z':
			b = append(b, c|0x20)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

func (s *shape) bindList(v any, dst reflect.Value, path string) (any, error) {
	elements, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("argument %s: a list is expected, not %s", shortPath(path), show(v))
	}
	list := reflect.MakeSlice(dst.Type(), len(elements), len(elements))
	bound := make([]any, len(elements))
	for i, e := range elements {
		var err error
		if bound[i], err = s.elem.bind(e, list.Index(i), join(path, strconv.Itoa(i))); err != nil {
			return nil, err
		}
	}
	dst.Set(list)
	return bound, nil
}

func (s *shape) bindMap(v any, dst reflect.Value, path string) (any, error) {
	members, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("argument %s: an object is expected, not %s", shortPath(path), show(v))
	}
	object := reflect.MakeMapWithSize(dst.Type(), len(members))
	bound := make(map[string]any, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		e := reflect.New(dst.Type().Elem()).Elem()
		var err error
		if bound[name], err = s.elem.bind(members[name], e, join(path, name)); err != nil {
			return nil, err
		}
		object.SetMapIndex(reflect.ValueOf(name).Convert(dst.Type().Key()), e)
	}
	dst.Set(object)
	return bound, nil
}

func (s *shape) bindScalar(v any, dst reflect.Value) (any, error) {
	switch s.kind {
	case kindBoolean:
		b, ok := v.(bool)
		if !ok {
			return nil, fmt.Errorf("true or false is expected, not %s", show(v))
		}
		dst.SetBool(b)
		return b, nil
	case kindInteger, kindFloat, kindExact:
		n, ok := v.(number)
		if !ok {
			return nil, fmt.Errorf("a number is expected, not %s", show(v))
		}
		return s.bindNumber(n, dst)
	}
	text, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("a string is expected, not %s", show(v))
	}
	switch s.kind {
	case kindText:
		return bindText(text, dst)
	case kindBytes:
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("base64 is expected, not %s", show(v))
		}
		dst.SetBytes(data)
		return base64.StdEncoding.EncodeToString(data), nil
	default:
		dst.SetString(text)
		return text, nil
	}
}

func (s *shape) bindNumber(n number, dst reflect.Value) (any, error) {
	switch s.kind {
	case kindExact:
		dst.SetString(string(n))
		return n, nil
	case kindFloat:
		f, err := strconv.ParseFloat(string(n), s.typ.Bits())
		if err != nil {
			return nil, fmt.Errorf("%s does not fit", show(n))
		}
		dst.SetFloat(f)
		return number(strconv.FormatFloat(f, 'g', -1, s.typ.Bits())), nil
	}
	i, whole := n.integer()
	if !whole {
		return nil, fmt.Errorf("a whole number is expected, not %s", show(n))
	}
	if !setInteger(i, dst) {
		return nil, fmt.Errorf("%s does not fit in %v", show(n), s.typ.Kind())
	}
	return number(i.String()), nil
}

func setInteger(i *big.Int, dst reflect.Value) bool {
	if dst.CanInt() {
		if !i.IsInt64() || dst.OverflowInt(i.Int64()) {
			return false
		}
		dst.SetInt(i.Int64())
		return true
	}
	if !i.IsUint64() || dst.OverflowUint(i.Uint64()) {
		return false
	}
	dst.SetUint(i.Uint64())
	return true
}

// bindText lets the type parse the text. If the type also writes text, it returns that
// spelling, so that two spellings of one address are one value to a constraint.
func bindText(text string, dst reflect.Value) (any, error) {
	reader, ok := dst.Addr().Interface().(encoding.TextUnmarshaler)
	if !ok {
		return nil, errors.New("the type does not read text")
	}
	if err := reader.UnmarshalText([]byte(text)); err != nil {
		return nil, fmt.Errorf("%s is no %v", short(text), dst.Type())
	}
	writer, ok := dst.Addr().Interface().(encoding.TextMarshaler)
	if !ok {
		return text, nil
	}
	own, err := writer.MarshalText()
	if err != nil {
		return nil, fmt.Errorf("%s is no %v", short(text), dst.Type())
	}
	return string(own), nil
}

// shortPath shortens a path that a guest chose.
func shortPath(path string) string {
	if len(path) <= maxShown {
		return strconv.Quote(path)
	}
	return short(path)
}
