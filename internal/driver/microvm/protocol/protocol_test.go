package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/framing"
)

func TestAnAnswerSaysLittleThatIsShown(t *testing.T) {
	a := Answer{Error: "\x1b[2J" + strings.Repeat("x", MaxMessage/2), Kind: paddock.Denied}
	if err := a.Err(); !errors.Is(err, paddock.Denied) || len(err.Error()) > 1100 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%.100q", err)
	}
}

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	for _, want := range []*Request{
		{},
		{Hold: true},
		{Go: true},
		{Archive: &Archive{All: 1, Content: 2, File: 3}},
		{Memory: -1, Inspect: true},
		{Begin: &Begin{
			Again: true, Entropy: []byte("\x00\xff"), Time: 4, Hostname: "box", Machine: "5", Link: true,
			Binds: []boxinit.Bind{{Target: "/a", Write: true}, {Target: "/b", IsFile: true}}, Disk: 6, Memory: 7, UID: 8, GID: 9, Sudo: true, Layer: true,
		}},
	} {
		var b bytes.Buffer
		got := &Request{Begin: &Begin{}, Hold: true, Memory: 5}
		if err := errors.Join(Write(&b, want), Read(&b, got)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, and not %+v", got, err, want)
		}
	}
	var b bytes.Buffer
	want, got := Answer{Error: "no", Kind: paddock.Denied, Kills: 1, Memory: 2, Peak: 3}, Answer{}
	if err := errors.Join(Write(&b, &want), Read(&b, &got)); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	frame := func(m framing.Message) []byte {
		var b bytes.Buffer
		if err := Write(&b, m); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	f.Add(frame(&Answer{Error: "no", Kind: paddock.Denied, Kills: 1}))
	f.Add(frame(&Request{Begin: &Begin{Binds: []boxinit.Bind{{Target: "/a"}}}}))
	f.Add(binary.LittleEndian.AppendUint32(nil, MaxMessage+1))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var a Answer
		if err := Read(bytes.NewReader(data), &a); err == nil {
			if err := a.Err(); err != nil && len(err.Error()) > 1100 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if !bytes.HasPrefix(data, frameOf(t, &a)) {
				t.Errorf("%+v is written otherwise than % x", a, data)
			}
		}
		var r Request
		if err := Read(bytes.NewReader(data), &r); err == nil && !bytes.HasPrefix(data, frameOf(t, &r)) {
			t.Errorf("%+v is written otherwise than % x", r, data)
		}
		if chunk, err := ReadChunk(bytes.NewReader(data)); err == nil && len(chunk) > min(MaxChunk, len(data)) {
			t.Errorf("%d bytes", len(chunk))
		}
	})
}

func frameOf(t *testing.T, m framing.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAMachineAndTheServerOfItsFilesAgree(t *testing.T) {
	init := func(numbers ...uint32) (b []byte) {
		for _, n := range numbers {
			b = binary.NativeEndian.AppendUint32(b, n)
		}
		return b
	}
	for _, c := range []struct {
		what  string
		asks  []byte
		kind  error
		minor uint32
	}{
		{"the same", init(7, 38, 1<<30, 1<<32-1), nil, 38},
		{"an older one", init(7, 31, 0, 0), nil, 31},
		{"a newer one", init(7, 99, 0, 0), nil, 38},
		{"one of another kind, which asks again", init(8, 0, 0, 0), nil, 38},
		{"one that is too old", init(7, 30, 0, 0), paddock.Unsupported, 0},
		{"one of before", init(6, 99, 0, 0), paddock.Unsupported, 0},
		{"half of one", init(7, 38, 0), paddock.Invalid, 0},
	} {
		got, err := AppendInit([]byte("head"), c.asks)
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if err != nil {
			continue
		}
		field := func(i int) uint32 { return binary.NativeEndian.Uint32(got[4+4*i:]) }
		if len(got) != 4+64 || field(0) != 7 || field(1) != c.minor || field(2) > MaxData || field(3)&^binary.NativeEndian.Uint32(c.asks[12:]) != 0 || field(5) != MaxData {
			t.Errorf("%s: % x", c.what, got)
		}
	}
}
