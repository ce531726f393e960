package interpreter

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

var aMark = strings.Repeat("a1", markSize/2)

func piece(kind, payload string) string {
	return fmt.Sprintf("\x1e%s%s%04x%s", aMark, kind, len(payload), payload)
}

// split takes a stream apart that arrives in pieces of n bytes.
func split(data string, n int) (text string, messages []string, err error) {
	s := stream{mark: aMark}
	for p := []byte(data); len(p) > 0 && err == nil; {
		n := min(n, len(p))
		err = s.write(bytes.Clone(p[:n]), func(b []byte) error { text += string(b); return nil }, func(b []byte, took int) error {
			messages = append(messages, string(b))
			s.room.give(took)
			return nil
		})
		p = p[n:]
	}
	return text, messages, err
}

func TestMessagesAreFoundBetweenTheUsersBytes(t *testing.T) {
	data := "one" + piece(".", "{}") + "two\x1e" + aMark[:5] + "three" + piece("+", "ab") + "\x1e!" + piece(".", "cd") + "four"
	for n := 1; n <= len(data); n++ {
		text, messages, err := split(data, n)
		if err != nil || text != "onetwo\x1e"+aMark[:5]+"three\x1e!four" || fmt.Sprint(messages) != "[{} abcd]" {
			t.Fatalf("in pieces of %d: %q, %q, %v", n, text, messages, err)
		}
	}
}

func TestAMessageWhoseSenderWasInterruptedIsForgotten(t *testing.T) {
	data := piece("+", "ab") + "one" + piece("!", "") + piece("+", "cd") + piece(".", "ef") + piece("!", "") + piece(".", "{}")
	for n := 1; n <= len(data); n++ {
		if text, messages, err := split(data, n); err != nil || text != "one" || fmt.Sprint(messages) != "[cdef {}]" {
			t.Fatalf("in pieces of %d: %q, %q, %v", n, text, messages, err)
		}
	}
	room := &budget{most: maxPiece}
	s := stream{mark: aMark, room: room}
	lost := 0
	much := piece("+", strings.Repeat("x", maxPiece))
	err := s.write([]byte(much+much+piece("!", "")+piece(".", "{}")), func([]byte) error { return nil }, func(b []byte, _ int) error {
		if b == nil {
			lost++
		} else if string(b) != "{}" {
			t.Errorf("a message of %d bytes", len(b))
		}
		return nil
	})
	if err != nil || lost != 1 || room.held != 0 || s.skip {
		t.Errorf("%v, %d lost, %d bytes held, the next is passed over: %v", err, lost, room.held, s.skip)
	}
}

func TestAKernelThatBreaksTheFormIsFound(t *testing.T) {
	for name, data := range map[string]string{
		"kind":   piece("x", ""),
		"number": "\x1e" + aMark + ".00G0",
		"long":   "\x1e" + aMark + ".ffff",
		"whole":  strings.Repeat(piece("+", strings.Repeat("x", maxPiece)), maxParts/maxPiece+1),
	} {
		if _, _, err := split(data, 64<<10); paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessagesThatAreNotTakenHaveABound(t *testing.T) {
	room := &budget{most: 3 * maxPiece}
	one, two := stream{mark: aMark, room: room}, stream{mark: aMark, room: room}
	var got []string
	held := 0
	write := func(s *stream, data string) {
		t.Helper()
		err := s.write([]byte(data), func(b []byte) error { got = append(got, string(b)); return nil }, func(b []byte, took int) error {
			got, held = append(got, fmt.Sprint(b != nil, len(b), took)), held+took
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	much := piece("+", strings.Repeat("x", maxPiece))
	write(&one, much+much)
	write(&two, much+much)
	write(&two, piece("+", "y")+"text"+piece(".", "z"))
	write(&two, piece(".", "{}"))
	write(&one, piece(".", "z"))
	if want := fmt.Sprint([]string{"false 0 0", "text", "true 2 0", fmt.Sprint(true, 2*maxPiece+1, 2*maxPiece+1)}); fmt.Sprint(got) != want || room.held != held {
		t.Errorf("%v, %d bytes are held, want %v, %d", got, room.held, want, held)
	}
	room.give(held)
	got = nil
	write(&one, much)
	one.drop()
	if room.held != 0 || one.part != nil {
		t.Errorf("%d bytes are held of a message that was dropped", room.held)
	}
	write(&one, much+piece(".", "rest"))
	write(&one, piece(".", "{}"))
	if fmt.Sprint(got) != fmt.Sprint([]string{"true 2 0"}) || room.held != 0 {
		t.Errorf("%v, %d bytes are held", got, room.held)
	}
}

func TestATurnThatIsOverHoldsNothing(t *testing.T) {
	i := &Interpreter{ctx: t.Context(), room: &budget{most: 100}}
	k := (&session{i: i}).newKernel(aMark)
	c := k.begin(1)
	put := func() {
		t.Helper()
		if !i.room.take(10) {
			t.Fatal("there is no room")
		}
		if err := k.put(item{took: 10}); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if err := k.take(&k.out, &k.outText, Stdout, onOut, []byte(piece("+", "0123456789"))); err != nil || i.room.held != 20 {
		t.Errorf("%d bytes are held, %v", i.room.held, err)
	}
	k.end(c)
	if put(); i.room.held != 0 {
		t.Errorf("%d bytes are held", i.room.held)
	}
}

func TestAMessageIsCheckedAndCut(t *testing.T) {
	for _, bad := range []string{
		"", "[]", "{}", `{"t":"other"}`, `{"t":"result"}`, `{"t":"result","data":{"text/plain":1}}`, `{"t":"result","data":{"text":"x"}}`,
		`{"t":"result","data":{"a/b\n":"x"}}`, `{"t":"end","n":5}`, `{"t":"end","n":"x"}`,
	} {
		if m, err := parseMessage([]byte(bad)); err == nil {
			t.Errorf("%s is %+v", bad, m)
		}
	}
	m, err := parseMessage([]byte(`{"t":"error","n":"1","name":"` + strings.Repeat("é", maxName) + `"}`))
	if err != nil || len(m.Name) > maxName || strings.ContainsRune(m.Name, 0xFFFD) {
		t.Errorf("%d bytes, %v", len(m.Name), err)
	}
}

func TestACharacterThatIsCutWaitsForItsRest(t *testing.T) {
	var d decoder
	var got string
	for _, b := range []byte("aé€😀\xffb\xe2") {
		got += d.text([]byte{b})
	}
	if got += d.rest(); got != "aé€😀\uFFFDb\uFFFD" {
		t.Errorf("%q", got)
	}
}

func TestTagsOfOthersAreNotTaken(t *testing.T) {
	want := tag{Python, random(), random(), true}
	if got, ok := parseTag([]string{"python3", want.String()}); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, bad := range []string{"", "paddock-kernel:1:python:a:b:made", strings.Replace(want.String(), "python", "cobol", 1), want.String() + ":x", strings.ToUpper(want.String())} {
		if got, ok := parseTag([]string{bad}); ok {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("one"+piece(".", `{"t":"end","n":"1"}`)+"two"), uint8(3))
	f.Add([]byte(piece("+", "a")+"\x1e"+piece(".", "b")), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		text, messages, err := split(string(data), int(n)+1)
		whole, all, failed := split(string(data), len(data)+1)
		if (err == nil) != (failed == nil) || (err == nil && (text != whole || fmt.Sprint(messages) != fmt.Sprint(all))) {
			t.Errorf("in pieces of %d: %q %q %v, at once %q %q %v", int(n)+1, text, messages, err, whole, all, failed)
		}
		for _, m := range messages {
			if got, err := parseMessage([]byte(m)); err == nil && len(got.Data) > maxForms {
				t.Errorf("%d forms", len(got.Data))
			}
		}
	})
}

func FuzzTag(f *testing.F) {
	f.Add(tag{Python, strings.Repeat("0", 32), strings.Repeat("f", 32), false}.String())
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := parseTag([]string{text}); ok && got.String() != text {
			t.Errorf("%q is %+v", text, got)
		}
	})
}

func TestAResultWithManyFormsIsRefusedBeforeItIsDecoded(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"t":"error","data":{`)
	for i := range 300_000 {
		fmt.Fprintf(&text, `"%x":1,`, i)
	}
	text.WriteString(`"a/b":1}}`)
	b := []byte(text.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := parseMessage(b)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes of text take %d", len(b), took)
	}
	if len(m.Data) > maxForms+1 {
		t.Errorf("%d forms, %v", len(m.Data), err)
	}
	if m, err := parseMessage([]byte(`{"t":"result","n":"1","data":null}`)); err == nil {
		t.Errorf("a result without a form: %+v", m)
	}
}
