package guestinit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

// parts records each write separately, until a failure.
type parts struct {
	list [][]byte
	fail error
}

func (p *parts) Write(b []byte) (int, error) {
	if p.fail != nil {
		return 0, p.fail
	}
	p.list = append(p.list, slices.Clone(b))
	return len(b), nil
}

func headOf(kind byte, length int) []byte {
	head := make([]byte, wholeHead)
	head[1] = kind
	binary.BigEndian.PutUint32(head[8:], uint32(length))
	return head
}

func TestAFrameIsWrittenAtOnce(t *testing.T) {
	p := &parts{}
	w := Whole{Writer: p}
	var all []byte
	write := func(b []byte) {
		t.Helper()
		if n, err := w.Write(b); n != len(b) || err != nil {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
		all = append(all, b...)
	}
	long := bytes.Repeat([]byte("long"), wholeMost)
	write(headOf(wholeData, 5))
	write([]byte("short"))
	write(headOf(1, 7))         // a type without data
	write(headOf(wholeData, 0)) // without data
	write(headOf(wholeData, len(long)))
	write(long)
	var sizes []int
	for _, one := range p.list {
		sizes = append(sizes, len(one))
	}
	if want := []int{wholeHead + 5, wholeHead, wholeHead, wholeHead, len(long)}; !slices.Equal(sizes, want) {
		t.Errorf("writes of %v bytes, not %v", sizes, want)
	}
	if got := bytes.Join(p.list, nil); !bytes.Equal(got, all) {
		t.Error("what was written is not what was given")
	}
}

func TestAFrameThatIsNotWrittenIsTold(t *testing.T) {
	p := &parts{fail: errors.New("closed")}
	w := Whole{Writer: p}
	if n, err := w.Write(headOf(wholeData, 3)); n != wholeHead || err != nil {
		t.Fatal(n, err)
	}
	if n, err := w.Write([]byte("abc")); n != 0 || !errors.Is(err, p.fail) {
		t.Errorf("%d, %v", n, err)
	}
}
