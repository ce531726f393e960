package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAnAnswerSaysLittleThatIsShown(t *testing.T) {
	a := Answer{Error: "\x1b[2J" + strings.Repeat("x", MaxMessage/2), Kind: paddock.Denied}
	if err := a.Err(); !errors.Is(err, paddock.Denied) || len(err.Error()) > 1100 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%.100q", err)
	}
}

func FuzzRead(f *testing.F) {
	frame := func(data string) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...)
	}
	f.Add(frame(`{"error":"no","kind":4,"kills":1}`))
	f.Add(frame(`{"memory":99999999999999999999}`))
	f.Add(binary.LittleEndian.AppendUint32(nil, MaxMessage+1))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var a Answer
		if err := Read(bytes.NewReader(data), &a); err == nil {
			if err := a.Err(); err != nil && len(err.Error()) > 1100 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
		if chunk, err := ReadChunk(bytes.NewReader(data)); err == nil && len(chunk) > min(MaxChunk, len(data)) {
			t.Errorf("%d bytes", len(chunk))
		}
	})
}
