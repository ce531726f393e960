package sys

import (
	"syscall"
	"testing"
)

func TestCountersAreSharedAndKeepTheirSize(t *testing.T) {
	reader, f, err := NewCounters("test")
	if err != nil {
		t.Fatal(err)
	}
	writer, err := OpenCounters(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	writer.Add(0, 3)
	writer.Add(0, 4)
	writer.Add(CountersMax-1, 9)
	if reader.Load(0) != 7 || reader.Load(1) != 0 || reader.Load(CountersMax-1) != 9 {
		t.Errorf("%d, %d, %d", reader.Load(0), reader.Load(1), reader.Load(CountersMax-1))
	}
	if err := f.Truncate(0); err == nil {
		t.Error("the memory can be taken away from under its reader")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if reader.Load(0) != 7 {
		t.Error("what was counted went with who counted it")
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatCouldShrinkIsNoCounters(t *testing.T) {
	var pair [2]int
	if err := syscall.Pipe(pair[:]); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pair[0])
	defer syscall.Close(pair[1])
	if c, err := OpenCounters(pair[0]); err == nil {
		t.Errorf("a pipe: %v", c)
	}
}
