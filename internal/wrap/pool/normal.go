package pool

import (
	"reflect"

	"github.com/paddock-sandbox/paddock"
)

// normal returns a copy of a spec that shares nothing with it, with nil for every empty
// list and map. It uses reflection, so that it also handles fields added to paddock.Spec
// later.
func normal(spec paddock.Spec) paddock.Spec {
	normalize(reflect.ValueOf(&spec).Elem())
	return spec
}

// normalize replaces references in v by normalized copies. It leaves kinds that it does not
// know, which are then shared and compared by reference.
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
