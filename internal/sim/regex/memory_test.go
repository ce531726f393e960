package regex

import (
	"bytes"
	"errors"
	"testing"
)

// A scale counts memory, up to a bound.
type scale struct{ now, most, bound int }

var errFull = errors.New("full")

func (*scale) Step(int) error { return nil }

func (s *scale) Grow(n int) error {
	if s.now+n > s.bound {
		return errFull
	}
	s.now += n
	s.most = max(s.most, s.now)
	return nil
}

func TestTheStackOfASearchIsCountedAndGivenBack(t *testing.T) {
	long := bytes.Repeat([]byte("ab"), 200_000)
	s := &scale{bound: 1 << 40}
	r, err := Compile(`(?:(.)\1?)*z`, Options{Flavour: Perl, Meter: s})
	if err != nil {
		t.Fatal(err)
	}
	long = append(long, 'z') // else nothing is tried
	for range 2 {
		if ok, err := r.Match(long); err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		// A repetition puts at least one frame for each character.
		if s.most < len(long)*frameSize/2 || s.now != 0 || cap(r.back.stack) > freeStack || len(r.back.seen.slots) > freeSlots {
			t.Errorf("%d bytes at most for %d, %d left, a stack of %d, %d visits", s.most, len(long), s.now, cap(r.back.stack), len(r.back.seen.slots))
		}
	}
	s.bound = 1 << 20
	if ok, err := r.Match(long); !errors.Is(err, errFull) || ok || s.now != 0 {
		t.Errorf("%v, %v, %d left", ok, err, s.now)
	}
	if ok, err := r.Match([]byte("aabbz")); err != nil || !ok {
		t.Errorf("afterwards: %v, %v", ok, err)
	}
}
