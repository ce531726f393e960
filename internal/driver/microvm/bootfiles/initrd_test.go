package bootfiles

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTheInitrdIsWhatKernelsUnpack(t *testing.T) {
	modules := []Module{{"virtio_ring", []byte("one")}, {"virtio", []byte("three")}}
	var b, again bytes.Buffer
	for _, w := range []*bytes.Buffer{&b, &again} {
		if err := Initrd(w, []byte("program"), modules); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("the same input made other bytes")
	}
	type entry struct {
		name, data string
		mode       int
	}
	var got []entry
	for rest := b.Bytes(); len(rest) > 0; {
		number := func(i int) int {
			n, err := strconv.ParseUint(string(rest[6+8*i:14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		if string(rest[:6]) != "070701" {
			t.Fatalf("after %v: %q", got, rest[:6])
		}
		mode, size, name := number(1), number(6), number(11)
		data := (110 + name + 3) &^ 3
		got = append(got, entry{string(rest[110 : 110+name-1]), string(rest[data : data+size]), mode})
		rest = rest[(data+size+3)&^3:]
	}
	want := []entry{
		{"dev", "", 0o40755}, {"modules", "", 0o40755}, {"proc", "", 0o40755}, {"proc/sys", "", 0o40755}, {"proc/sys/vm", "", 0o40755}, {"root", "", 0o40755}, {"run", "", 0o40755}, {"sys", "", 0o40755}, {"tmp", "", 0o40755},
		{"dev/console", "", 0o20600}, {"dev/null", "", 0o20666}, {"proc/sys/vm/mmap_min_addr", "65536\n", 0o100444},
		{"modules/00-virtio_ring.ko", "one", 0o100644}, {"modules/01-virtio.ko", "three", 0o100644},
		{"init", "program", 0o100755}, {"TRAILER!!!", "", 0},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A full disk accepts some bytes and then fails.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

func TestAnInitrdThatCannotBeWrittenIsAnError(t *testing.T) {
	f := full(500)
	if err := Initrd(&f, []byte(strings.Repeat("p", 1000)), nil); err == nil {
		t.Error("no error")
	}
}
