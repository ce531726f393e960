package pool

import (
	"reflect"

	"github.com/paddock-sandbox/paddock"
)

// normal gives a copy of a spec that shares nothing with it, in which every
// list and map without elements is nil. It goes by reflection, so that a field
// that is new in paddock.Spec is not forgotten.
func normal(spec paddock.Spec) paddock.Spec {
	normalize(reflect.ValueOf(&spec).Elem())
	return spec
}

// normalize replaces what v refers to by normal copies. A kind of value that it
// does not know is left: shared, and compared by what it refers to.
func normalize(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			normalize(v.Field(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		copied := reflect.New(v.Type().Elem())
		copied.Elem().Set(v.Elem())
		normalize(copied.Elem())
		v.Set(copied)
	case reflect.Slice:
		if v.Len() == 0 {
			v.SetZero()
			return
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			list.Index(i).Set(v.Index(i))
			normalize(list.Index(i))
		}
		v.Set(list)
	case reflect.Map:
		if v.Len() == 0 {
			v.SetZero()
			return
		}
		m := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			normalize(value)
			m.SetMapIndex(key, value)
		}
		v.Set(m)
	}
}
