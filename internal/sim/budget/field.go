package budget

import (
	"reflect"
	"strings"
	"time"
)

// A Unit is what a limit counts in.
type Unit string

// The units of limits.
const (
	Count Unit = ""      // of things
	Bytes Unit = "bytes" // of memory or data
	Time  Unit = "time"  // in nanoseconds
)

// A Field is one of [Limits].
type Field struct {
	Name  Name   // as messages and people write it
	Go    string // the field's name in Limits
	Unit  Unit
	index int
}

// Fields lists all limits, in their order.
func Fields() []Field {
	t := reflect.TypeFor[Limits]()
	list := make([]Field, t.NumField())
	for i := range list {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		list[i] = Field{Name: Name(name), Go: f.Name, Unit: Unit(f.Tag.Get("unit")), index: i}
		if f.Type == reflect.TypeFor[time.Duration]() {
			list[i].Unit = Time
		}
	}
	return list
}

// In returns the limit's value among l.
func (f Field) In(l Limits) int64 { return reflect.ValueOf(l).Field(f.index).Int() }

// Set sets the limit in l.
func (f Field) Set(l *Limits, v int64) { reflect.ValueOf(l).Elem().Field(f.index).SetInt(v) }
