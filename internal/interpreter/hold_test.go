package interpreter

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// inPieces returns a message as a kernel sends it.
func inPieces(text string) []byte {
	var b []byte
	for len(text) > maxPiece {
		b = append(b, piece("+", text[:maxPiece])...)
		text = text[maxPiece:]
	}
	return append(b, piece(".", text)...)
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what is in pools goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAResultCountsWithWhatItTakes(t *testing.T) {
	const slack = 1 << 20
	for name, fill := range map[string]string{"text": "aa", "bytes that are no text": "\xffa"} {
		result := `{"t":"result","n":"1","main":true,"data":{"text/plain":"` + strings.Repeat(fill, 7<<19) + `"}}`
		failure := `{"t":"error","n":"1","name":"a","value":"` + strings.Repeat(fill, 3<<19) + `","traceback":"` + strings.Repeat(fill, 3<<19) + `"}`
		for kind, text := range map[string]string{"a result": result, "an error": failure} {
			i := &Interpreter{ctx: t.Context(), room: &budget{most: maxRoom}}
			k := (&session{i: i}).newKernel(aMark)
			c := k.begin(1)
			pieces := inPieces(text)
			before := heap()
			if err := k.take(&k.out, &k.outText, Stdout, onOut, pieces); err != nil {
				t.Fatal(err)
			}
			counted, held := int64(i.room.held), heap()-before
			if held > counted+slack || kind == "an error" && held > maxValue+maxTrace+slack {
				t.Errorf("%s, %s: %d KiB wait, %d KiB are counted", kind, name, held>>10, counted>>10)
			}
			runtime.KeepAlive(pieces)
			var line []byte
			r := &running{k: k, c: c, tell: func(e Event) error {
				var err error
				line, err = json.Marshal(e)
				return err
			}}
			it := <-c.items
			if r.take(t.Context(), it); len(line) < maxValue {
				t.Errorf("%s, %s: a line of %d bytes", kind, name, len(line))
			}
			k.end(c)
			if i.room.held != 0 {
				t.Errorf("%s, %s: %d bytes are counted of nothing", kind, name, i.room.held)
			}
		}
	}
}

func TestAMessageThatBecomesLongerNeedsRoom(t *testing.T) {
	text := []byte(strings.Repeat("\xffa", 1000))
	room := &budget{most: 4000}
	room.held = 2000
	if b, took := whole(text, 2000, room); len(b) != 4000 || took != 4000 || room.held != 4000 {
		t.Errorf("%d bytes, %d and %d are counted", len(b), took, room.held)
	}
	room.most, room.held = 3999, 2000
	if b, took := whole(text, 2000, room); b != nil || took != 0 || room.held != 0 {
		t.Errorf("without room: %d bytes, %d and %d are counted", len(b), took, room.held)
	}
	if b, took := whole(text, 0, room); len(b) != 4000 || took != 0 || room.held != 0 {
		t.Errorf("of one piece: %d bytes, %d and %d are counted", len(b), took, room.held)
	}
}
