// Package jsonbody judges JSON from outside. It explains why a body is not the JSON that a request
// needs, in the words of its sender, because the errors of encoding/json name types of Go, which a
// caller cannot know. It estimates the memory that a body takes when it is decoded. And it shortens the
// texts of errors, which quote bodies.
package jsonbody

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Explain returns an error that says the same as an error of encoding/json. It returns any
// other error unchanged.
func Explain(err error) error {
	var (
		kind   *json.UnmarshalTypeError
		syntax *json.SyntaxError
		moment *time.ParseError
		coded  base64.CorruptInputError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		place := "the value"
		if kind.Field != "" {
			place = kind.Field
		}
		return fmt.Errorf("%s must be %s, not %s", place, want(kind.Type), have(kind.Value))
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d: %s", syntax.Offset, syntax.Error())
	case errors.As(err, &moment):
		return fmt.Errorf("%s is not a time such as 2026-01-02T15:04:05Z", strings.Trim(moment.Value, `"`))
	case errors.As(err, &coded):
		return fmt.Errorf("not base64 at byte %d", int64(coded))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends within a JSON value")
	case errors.Is(err, io.EOF):
		return errors.New("it is empty, and must be JSON")
	}
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s", name)
	}
	if strings.HasPrefix(text, "Time.UnmarshalJSON: ") {
		return errors.New("a time is a string such as 2026-01-02T15:04:05Z")
	}
	return err
}

// What a value costs in memory, about: an object is a struct or a map, and a list grows by doubling.
const (
	objectCost = 512
	valueCost  = 48
)

// Cost estimates the memory that decoded JSON takes beside its text, in bytes. Without it, a list of
// empty objects takes a hundred times the memory that its text does. The text may be anything.
func Cost(text []byte) int64 {
	var cost int64
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{':
			cost += objectCost
		case c == ',' || c == '[' || c == ':': // a member of an object has two, and takes more
			cost += valueCost
		}
	}
	return cost
}

// longest is the maximum of an error's text, in bytes.
const longest = 4 << 10

// Short returns the text of an error as valid UTF-8 of at most 4 KiB, in memory of its own. The text may
// quote a field of a body, whose sender chose its length. A text that is cut ends with "…".
func Short(text string) string { return Cut(text, longest) }

// Cut returns a text from outside as valid UTF-8 that has at most this many bytes, in memory of its own. A text
// that is cut ends with "…".
func Cut(text string, most int) string {
	const mark = "…"
	s := strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD") // may be longer
	if len(text) <= most && len(s) <= most {
		return strings.Clone(s)
	}
	end := min(len(s), most-len(mark))
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// want describes the JSON values that fit a type.
func want(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number" + bound(t)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative" + bound(t)
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string of base64"
		}
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "another kind of value"
}

func bound(t reflect.Type) string {
	if t.Bits() < 64 {
		return fmt.Sprintf(" of at most %d bits", t.Bits())
	}
	return ""
}

// have describes a JSON value by the name that encoding/json has for it.
func have(value string) string {
	switch value {
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "string", "number":
		return "a " + value
	}
	return value // "number 1.5"
}
