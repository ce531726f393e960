package pool_test

import (
	"math"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// A leaf is a field of a spec, however deep, and how to get at it.
type leaf struct {
	name string
	of   func(root reflect.Value) reflect.Value
}

// leaves finds every field of a type. A list, a map or a pointer is a leaf itself,
// and has those of its first element, or of what it leads to.
func leaves(name string, typ reflect.Type, of func(reflect.Value) reflect.Value) []leaf {
	switch typ.Kind() {
	case reflect.Struct:
		var all []leaf
		for i := range typ.NumField() {
			all = append(all, leaves(name+"."+typ.Field(i).Name, typ.Field(i).Type, func(root reflect.Value) reflect.Value {
				return of(root).Field(i)
			})...)
		}
		return all
	case reflect.Slice:
		return append(leaves(name+"[0]", typ.Elem(), func(root reflect.Value) reflect.Value {
			list := of(root)
			if list.Len() == 0 {
				list.Set(reflect.MakeSlice(typ, 1, 1))
			}
			return list.Index(0)
		}), leaf{name, of})
	case reflect.Pointer:
		return append(leaves(name, typ.Elem(), func(root reflect.Value) reflect.Value {
			to := of(root)
			if to.IsNil() {
				to.Set(reflect.New(typ.Elem()))
			}
			return to.Elem()
		}), leaf{name, of})
	default:
		return []leaf{{name, of}}
	}
}

// fill sets a leaf to something that is not zero.
func fill(t *testing.T, l leaf, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint16:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf("y"))
	default:
		t.Fatalf("%s is of a kind, %s, that normal and this test do not know", l.name, v.Kind())
	}
}

// kept tells whether a shelf of one spec serves a Create of another.
func kept(t *testing.T, have, asked paddock.Spec) bool {
	t.Helper()
	var sb paddock.Sandbox
	synctest.Test(t, func(t *testing.T) {
		r := set(t, &fake{}, pool.Shelf{Spec: have, Size: 1})
		r.wait(t)
		sb = r.create(t, asked)
	})
	return ready(sb)
}

func TestOnlyTheSameSpecIsServedFromAShelf(t *testing.T) {
	all := leaves("Spec", reflect.TypeFor[paddock.Spec](), func(root reflect.Value) reflect.Value { return root })
	if len(all) < 30 {
		t.Fatalf("only %d fields were found", len(all))
	}
	for _, l := range all {
		asked := paddock.Spec{Ephemeral: true}
		v := l.of(reflect.ValueOf(&asked).Elem())
		if l.name == "Spec.Ephemeral" {
			v.SetBool(false)
		} else {
			fill(t, l, v)
		}
		if got, want := kept(t, paddock.Spec{Ephemeral: true}, asked), l.name == "Spec.Labels"; got != want {
			t.Errorf("%s differs from the shelf's: served %v, want %v", l.name, got, want)
		}
		if l.name == "Spec.ID" || l.name == "Spec.Ephemeral" {
			continue // there is no such shelf
		}
		same := paddock.Spec{Ephemeral: true}
		fill(t, l, l.of(reflect.ValueOf(&same).Elem()))
		if !kept(t, asked, same) {
			t.Errorf("%s is as the shelf's, but not served", l.name)
		}
		if l.name != "Spec.Labels" && kept(t, asked, paddock.Spec{Ephemeral: true}) {
			t.Errorf("%s is the shelf's only: served", l.name)
		}
	}
}

func TestNoElementsAndNilAreTheSame(t *testing.T) {
	for _, l := range leaves("Spec", reflect.TypeFor[paddock.Spec](), func(root reflect.Value) reflect.Value { return root }) {
		empty, none := paddock.Spec{Ephemeral: true}, paddock.Spec{Ephemeral: true}
		v := l.of(reflect.ValueOf(&empty).Elem())
		switch v.Kind() {
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
		default:
			continue
		}
		l.of(reflect.ValueOf(&none).Elem()).SetZero()
		if !kept(t, empty, none) || !kept(t, none, empty) {
			t.Errorf("%s without elements is not as nil", l.name)
		}
	}
}

func TestSpecsThatLookAlikeAreNotTheSame(t *testing.T) {
	spec := func(change func(*paddock.Spec)) paddock.Spec {
		s := paddock.Spec{Ephemeral: true}
		change(&s)
		return s
	}
	mounts := func(m ...paddock.Mount) paddock.Spec { return spec(func(s *paddock.Spec) { s.Mounts = m }) }
	a, b := paddock.Mount{Source: "/a"}, paddock.Mount{Source: "/b"}
	for name, pair := range map[string][2]paddock.Spec{
		"the order of mounts": {mounts(a, b), mounts(b, a)},
		"one more mount":      {mounts(a), mounts(a, b)},
		"bytes that are no text": {
			spec(func(s *paddock.Spec) { s.Env = map[string]string{"A": "\xff"} }),
			spec(func(s *paddock.Spec) { s.Env = map[string]string{"A": "\ufffd"} }),
		},
		"a variable without value": {
			spec(func(s *paddock.Spec) { s.Env = map[string]string{"A": ""} }),
			spec(func(s *paddock.Spec) { s.Env = map[string]string{"B": ""} }),
		},
		"what is not a number": {
			spec(func(s *paddock.Spec) { s.Limits.CPUs = math.NaN() }),
			spec(func(s *paddock.Spec) { s.Limits.CPUs = math.NaN() }),
		},
	} {
		if kept(t, pair[0], pair[1]) {
			t.Errorf("%s: served", name)
		}
	}
}

func TestAShelfSharesNothingWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := func() paddock.Spec {
			return paddock.Spec{
				Ephemeral: true, Env: map[string]string{"A": "b"}, Mounts: []paddock.Mount{{Source: "/a"}},
				Policy: paddock.Policy{Network: paddock.NetworkPolicy{Rules: []paddock.NetworkRule{{Host: "a", Ports: []uint16{1}}}}},
			}
		}
		spoil := func(s paddock.Spec) {
			s.Env["A"], s.Mounts[0].Source = "spoilt", "/spoilt"
			s.Policy.Network.Rules[0].Ports[0] = 9
		}
		given := mine()
		r := set(t, &fake{}, pool.Shelf{Spec: given, Size: 1})
		spoil(given)
		for range 3 {
			r.wait(t)
			r.f.mu.Lock()
			spoil(r.f.calls[len(r.f.calls)-1].spec) // as a driver might
			r.f.mu.Unlock()
			if sb := r.create(t, mine()); !ready(sb) {
				t.Error("the shelf's spec has changed")
			}
		}
	})
}
