package encoding

import (
	"errors"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// everything is what the two sides of the wall tell each other.
type everything struct {
	Spec   paddock.Spec
	Limits budget.Limits
	Update paddock.Update
	Status *paddock.Status
	Kind   paddock.Kind
}

// room is enough memory for a message of these tests.
const room = 1 << 20

// fill gives every field that can be reached a value of its own.
func fill(v reflect.Value, next *int64) {
	*next++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(*next - 60)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*next))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*next) / 3)
	case reflect.String:
		v.SetString("text \xff\x00" + string(rune('a'+*next%26)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), next)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), next)
		fill(v.Index(1), next)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, next)
		fill(value, next)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if isTime(v.Type()) {
			v.Set(reflect.ValueOf(time.Unix(0, *next)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	default:
		panic("a kind that no message has: " + v.Type().String())
	}
}

// A field that is added to a spec must arrive, or the child would make a
// sandbox that allows more than was asked.
func TestEveryFieldArrives(t *testing.T) {
	var full everything
	fill(reflect.ValueOf(&full).Elem(), new(int64))
	for _, want := range []everything{{}, full} {
		b, err := Append(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		var got everything
		if err := Parse(b, &got, room); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("sent %+v\nreceived %+v", want, got)
		}
		for n := range b {
			if err := Parse(b[:n], &everything{}, room); err == nil {
				t.Fatalf("the first %d of %d bytes are taken for a message", n, len(b))
			}
		}
		if err := Parse(append(b, 0), &everything{}, room); err == nil {
			t.Error("a byte too many is taken for part of a message")
		}
	}
}

func TestWhatCannotBeSent(t *testing.T) {
	for _, v := range []any{
		struct{ A any }{3}, struct{ a int }{3}, struct{ F func() }{}, struct{ C chan int }{},
	} {
		if _, err := Append(nil, v); err == nil {
			t.Errorf("%T is sent", v)
		}
	}
}

func TestHostileLength(t *testing.T) {
	// A slice of 2⁶³ names, and one of more than there are bytes.
	for _, b := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x05\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		var names []string
		if err := Parse([]byte(b), &names, room); err == nil {
			t.Errorf("%q is %d names", b, len(names))
		}
	}
	var small int8
	if err := Parse([]byte("\x80\x04"), &small, room); err == nil {
		t.Errorf("256 is the int8 %d", small)
	}
}

// rows is a message of which each byte can be an element that takes far more than a byte.
type rows struct {
	Names map[int]bool
	List  []paddock.Refusal
	Deep  [][]*paddock.Limits
}

func TestAValueTakesNoMoreMemoryThanThereMayBe(t *testing.T) {
	const many = 100_000
	names := map[int]bool{}
	deep := make([][]*paddock.Limits, many/10)
	for i := range many {
		names[i] = true
		deep[i%len(deep)] = append(deep[i%len(deep)], &paddock.Limits{})
	}
	for name, v := range map[string]rows{"a map": {Names: names}, "a list": {List: make([]paddock.Refusal, many)}, "pointers": {Deep: deep}} {
		t.Run(name, func(t *testing.T) {
			b, err := Append(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			var got rows
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err = Parse(b, &got, room)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, errLarge) {
				t.Errorf("of %d bytes: %v", len(b), err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 2*room {
				t.Errorf("%d bytes of memory were taken, and %d are allowed", took, room)
			}
			if err := Parse(b, &got, 100*room); err != nil || !reflect.DeepEqual(got, v) {
				t.Errorf("with more room: %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	var full everything
	fill(reflect.ValueOf(&full).Elem(), new(int64))
	b, err := Append(nil, full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var v everything
		if err := Parse(b, &v, room); err != nil {
			return
		}
		again, err := Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		var w everything
		if err := Parse(again, &w, 2*room); err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
	})
}
