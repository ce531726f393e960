package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

func TestErrorsSurviveWithTheirKind(t *testing.T) {
	start := &paddock.StartError{Path: "\xff", Code: 127, Err: paddock.NotFound}
	missing := &paddock.MissingError{Finding: paddock.Finding{Control: paddock.ControlLandlock, Strength: paddock.Absent, Cause: "old"}}
	for _, err := range []error{start, missing, paddock.Exhausted, paddock.Canceled, errors.New("plain")} {
		data, bad := json.Marshal(FromError(err))
		if bad != nil {
			t.Fatal(bad)
		}
		var e Error
		if bad := json.Unmarshal(data, &e); bad != nil {
			t.Fatal(bad)
		}
		got := e.Err()
		if paddock.KindOf(got) != paddock.KindOf(err) || !errors.Is(got, paddock.KindOf(err)) {
			t.Errorf("%v: kind %v", err, paddock.KindOf(got))
		}
		if want := strings.ToValidUTF8(err.Error(), "�"); got.Error() != want {
			t.Errorf("%q, want %q", got, want)
		}
		var s *paddock.StartError
		if errors.As(err, &s) && (!errors.As(got, &s) || s.Code != 127 || s.Path != "\xff") {
			t.Errorf("%v: %+v", err, s)
		}
		var m *paddock.MissingError
		if errors.As(err, &m) && (!errors.As(got, &m) || m.Finding.Cause != "old") {
			t.Errorf("%v: %+v", err, m)
		}
	}
}

func TestBytesSurvive(t *testing.T) {
	for _, want := range []Bytes{"", "text", "\x00", "\xff\xfe", "é", "{\"base64\":1}", "\ufffd"} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Bytes
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Errorf("%q came back as %q: %v", want, got, err)
		}
	}
}

func TestOutputThatWasCutInAFrameIsGivenAsFarAsItCame(t *testing.T) {
	whole := AppendFrame(AppendFrame(nil, Stdout, []byte("abc")), Stderr, []byte("defgh"))
	r := NewFrameReader(bytes.NewReader(whole[:len(whole)-2]))
	for _, want := range []string{"abc", "def"} {
		if _, got, err := r.Next(); err != nil || string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(AppendFrame(AppendFrame(nil, Stdout, []byte("x")), End, []byte("{}")))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, total := NewFrameReader(bytes.NewReader(data)), 0
		for {
			k, payload, err := r.Next()
			if err != nil {
				return
			}
			if k < Begin || k > Alive || len(payload) > MaxFrame {
				t.Fatalf("kind %d, %d bytes", k, len(payload))
			}
			if total += len(payload); total > len(data) {
				t.Fatal("more came out than went in")
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"args":["a",{"base64":"/w=="}],"env":{"A":"b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Command
		if err := Decode(bytes.NewReader(data), 1<<16, &c, nil); err != nil {
			return
		}
		again, err := json.Marshal(FromCmd(c.Cmd()))
		if err != nil {
			t.Fatal(err)
		}
		var d Command
		if err := Decode(bytes.NewReader(again), 1<<20, &d, nil); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

func FuzzError(f *testing.F) {
	f.Add([]byte(`{"kind":"not_found","message":"x","start":{"path":"p","code":127,"message":"y"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Error
		if json.Unmarshal(data, &e) != nil {
			return
		}
		if err := e.Err(); err.Error() == "" || !errors.Is(err, paddock.KindOf(err)) {
			t.Errorf("%q", err)
		}
	})
}

func TestErrorsHaveShortTexts(t *testing.T) {
	const most = 4 << 10
	long := strings.Repeat("\x7f", 1<<20)
	start := &paddock.StartError{Path: long, Code: 127, Err: fmt.Errorf("%q: %w", long, paddock.NotFound)}
	missing := &paddock.MissingError{Finding: paddock.Finding{Control: paddock.ControlMemory, Strength: paddock.Weak, How: long, Cause: long, Remedy: long}}
	for _, row := range []struct {
		err  error
		kind paddock.Kind
	}{
		{fmt.Errorf("id %q: %w", long, paddock.Exists), paddock.Exists}, {start, paddock.NotFound}, {missing, paddock.Unsupported},
	} {
		e, kept := FromError(row.err), Keep(row.err)
		if len(e.Message) > most || !utf8.ValidString(e.Message) {
			t.Errorf("%v: the text has %d bytes", row.kind, len(e.Message))
		}
		if s := e.Start; s != nil && (len(s.Path) > most || len(s.Message) > most) {
			t.Errorf("the path has %d bytes, the reason %d", len(s.Path), len(s.Message))
		}
		if f := e.Missing; f != nil && len(f.How)+len(f.Cause)+len(f.Remedy) > 3*most {
			t.Errorf("the finding has %d, %d and %d bytes", len(f.How), len(f.Cause), len(f.Remedy))
		}
		if paddock.KindOf(kept) != row.kind || kept.Error() != e.Message || !reflect.DeepEqual(FromError(kept), e) {
			t.Errorf("kept of %v: %v, %.40q", row.kind, paddock.KindOf(kept), kept)
		}
	}
	if Keep(nil) != nil {
		t.Error("an error is kept of none")
	}
}
