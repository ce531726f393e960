package vfs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A history is a persistent structure and what it should hold.
type trieState struct {
	t    trie[int]
	want map[uint64]int
	o    *token
}

func (s *trieState) check(t *testing.T) {
	t.Helper()
	got := map[uint64]int{}
	last := int64(-1)
	s.t.each(func(k uint64, v *int) bool {
		if int64(k) <= last {
			t.Fatalf("key %d after %d", k, last)
		}
		last = int64(k)
		got[k] = *v
		return true
	})
	if !maps.Equal(got, s.want) {
		t.Fatalf("got %v, want %v", got, s.want)
	}
	for k, v := range s.want {
		if p := s.t.get(k); p == nil || *p != v {
			t.Fatalf("get %d is %v, want %d", k, p, v)
		}
	}
}

func TestTriesOfOneOriginNeverShowEachOthersChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	states := []*trieState{{want: map[uint64]int{}, o: &token{}}}
	for i := range 20_000 {
		s := states[r.IntN(len(states))]
		key := uint64(r.IntN(1 << (1 + r.IntN(14))))
		switch r.IntN(20) {
		case 0:
			s.o = &token{} // a snapshot: what was owned is shared now
			fork := &trieState{t: s.t, want: maps.Clone(s.want), o: &token{}}
			if len(states) < 6 {
				states = append(states, fork)
			} else {
				states[r.IntN(len(states))] = fork
			}
		case 1, 2, 3, 4, 5, 6:
			s.t.remove(s.o, key)
			delete(s.want, key)
		case 7:
			if r.IntN(10) > 0 {
				continue
			}
			gone := 0
			s.t.cut(s.o, key, func(*int) { gone++ })
			for k := range s.want {
				if k >= key {
					delete(s.want, k)
					gone--
				}
			}
			if gone != 0 {
				t.Fatalf("cut told %d too many", gone)
			}
		default:
			v := i
			s.t.set(s.o, key, &v)
			s.want[key] = i
		}
		if i%100 == 0 {
			for _, s := range states {
				s.check(t)
			}
			a, b := states[0], states[len(states)-1]
			checkDiffer(t, a, b)
		}
	}
}

func checkDiffer(t *testing.T, a, b *trieState) {
	t.Helper()
	want := map[uint64]bool{}
	for k := range maps.Keys(a.want) {
		if v, ok := b.want[k]; !ok || v != a.want[k] {
			want[k] = true
		}
	}
	for k := range maps.Keys(b.want) {
		if _, ok := a.want[k]; !ok {
			want[k] = true
		}
	}
	got := map[uint64]bool{}
	differ(&a.t, &b.t, func(k uint64, x, y *int) { got[k] = true })
	if !maps.Equal(got, want) {
		t.Fatalf("differ told %v, want %v", got, want)
	}
}

type namesState struct {
	t    names
	want map[string]Ino
	o    *token
}

func (s *namesState) check(t *testing.T) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(s.want))
	var got []string
	s.t.after("", func(name string, ino Ino) bool {
		got = append(got, name)
		if s.want[name] != ino {
			t.Fatalf("%q is %d, want %d", name, ino, s.want[name])
		}
		return true
	})
	if !slices.Equal(got, keys) || s.t.n != len(keys) {
		t.Fatalf("got %d %q, want %q", s.t.n, got, keys)
	}
	for name, ino := range s.want {
		if x, ok := s.t.get(name); !ok || x != ino {
			t.Fatalf("get %q is %d %v, want %d", name, x, ok, ino)
		}
	}
	for i, name := range keys {
		next := ""
		s.t.after(name, func(x string, _ Ino) bool {
			next = x
			return false
		})
		if i+1 < len(keys) && next != keys[i+1] {
			t.Fatalf("after %q comes %q, want %q", name, next, keys[i+1])
		}
	}
}

func TestDirectoriesOfOneOriginNeverShowEachOthersChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	states := []*namesState{{want: map[string]Ino{}, o: &token{}}}
	for i := range 40_000 {
		s := states[r.IntN(len(states))]
		name := fmt.Sprint(r.IntN(1 << (1 + r.IntN(12))))
		grow := i/5000%2 == 0
		switch x := r.IntN(20); {
		case x == 0:
			s.o = &token{}
			fork := &namesState{t: s.t, want: maps.Clone(s.want), o: &token{}}
			if len(states) < 5 {
				states = append(states, fork)
			} else {
				states[r.IntN(len(states))] = fork
			}
		case grow && x < 4 || !grow && x < 17:
			_, ok := s.want[name]
			if s.t.remove(s.o, name) != ok {
				t.Fatalf("removing %q tells %v", name, !ok)
			}
			delete(s.want, name)
		default:
			_, ok := s.want[name]
			if s.t.set(s.o, name, Ino(i)) == ok {
				t.Fatalf("setting %q tells %v", name, ok)
			}
			s.want[name] = Ino(i)
		}
		if i%200 == 0 {
			for _, s := range states {
				s.check(t)
			}
			checkDifferNames(t, states[0], states[len(states)-1])
		}
	}
}

func checkDifferNames(t *testing.T, a, b *namesState) {
	t.Helper()
	want := map[string][2]Ino{}
	for k, v := range a.want {
		if w, ok := b.want[k]; !ok || w != v {
			want[k] = [2]Ino{v, w}
		}
	}
	for k, w := range b.want {
		if _, ok := a.want[k]; !ok {
			want[k] = [2]Ino{0, w}
		}
	}
	got := map[string][2]Ino{}
	differNames(&a.t, &b.t, func(name string, x, y Ino, _, _ bool) { got[name] = [2]Ino{x, y} })
	if !maps.Equal(got, want) {
		t.Fatalf("differNames told %v, want %v", got, want)
	}
}
