package qemu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestRunsOfPages(t *testing.T) {
	const (
		none    = 0
		file    = pagePresent | pageOfFile
		own     = pagePresent
		swapped = pageSwapped
		shmem   = pageSwapped | pageOfFile // may be ours, so it is read
	)
	for _, c := range []struct {
		name    string
		entries []uint64
		runs    []run
	}{
		{"nothing", nil, nil},
		{"one", []uint64{own}, []run{{0, 1, true}}},
		{"kinds of the template's", []uint64{none, file, none}, []run{{0, 3, false}}},
		{"kinds of its own", []uint64{own, swapped, shmem}, []run{{0, 3, true}}},
		{"mixed", []uint64{file, own, own, none, swapped}, []run{{0, 1, false}, {1, 2, true}, {3, 1, false}, {4, 1, true}}},
	} {
		var data []byte
		for _, e := range c.entries {
			data = binary.NativeEndian.AppendUint64(data, e)
		}
		if got := slices.Collect(runs(data)); !slices.Equal(got, c.runs) {
			t.Errorf("%s: %v, not %v", c.name, got, c.runs)
		}
	}
}

// memory returns a memory in which each page has one repeated byte.
func memory(pages string) []byte {
	var b []byte
	for _, c := range []byte(pages) {
		if c == '0' {
			c = 0
		}
		b = append(b, bytes.Repeat([]byte{c}, pageSize)...)
	}
	return b
}

// A ledger records the writes to it.
type ledger struct {
	data   []byte
	writes int
}

func (l *ledger) WriteAt(b []byte, off int64) (int, error) {
	l.writes++
	return copy(l.data[off:], b), nil
}

func TestPagesThatAreZeroAreNotWritten(t *testing.T) {
	for _, c := range []struct {
		pages  string
		limit  int64
		writes int
		err    error
	}{
		{"", 0, 0, nil},
		{"000", 0, 0, nil},
		{"a", 1, 1, nil},
		{"0ab0c00", 3, 2, nil},
		{"abc", 2, 0, paddock.Exhausted},
		{"a0b", 1, 1, paddock.Exhausted},
	} {
		from := memory(c.pages)
		l := &ledger{data: make([]byte, len(from))}
		s := newSheet(l, c.limit*pageSize)
		err := s.copy(func(b []byte, off int64) error {
			copy(b, from[off:])
			return nil
		}, 0, int64(len(from)))
		if !errors.Is(err, c.err) || l.writes != c.writes {
			t.Errorf("%s: %v after %d writes", c.pages, err, l.writes)
		}
		if err == nil && !bytes.Equal(l.data, from) {
			t.Errorf("%s: not what it was", c.pages)
		}
	}
}

func TestALargeMemoryIsCopiedInParts(t *testing.T) {
	from := bytes.Repeat([]byte("0123456789abcdef"), 600*pageSize/16)
	l := &ledger{data: make([]byte, len(from))}
	read := func(b []byte, off int64) error {
		copy(b, from[off:])
		return nil
	}
	if err := newSheet(l, int64(len(from))).copy(read, pageSize, int64(len(from))); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(l.data[pageSize:], from[pageSize:]) || l.writes != 3 {
		t.Fatal(l.writes)
	}
}

func TestDataOfASparseFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 64 << 20
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{0, 20<<20 + 1, size - 1} {
		if _, err := f.WriteAt([]byte{1}, off); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for off, last := int64(0), int64(-1); off < size; {
		start, stop := nextData(f, off, size)
		if start < off || stop <= last || stop > size || start%pageSize != 0 || stop%pageSize != 0 {
			t.Fatalf("after %d: %d, %d", off, start, stop)
		}
		for _, written := range []int64{0, 20<<20 + 1, size - 1} {
			if written >= start && written < stop {
				seen++
			}
		}
		off, last = stop, stop
	}
	if seen != 3 {
		t.Errorf("saw %d of 3 places with data", seen)
	}
}
