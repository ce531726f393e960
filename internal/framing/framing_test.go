package framing

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A sample is a message of each kind of part.
type sample struct {
	number int64
	yes    bool
	texts  []string
}

func (s *sample) Append(b []byte) []byte {
	b = AppendBool(AppendInt(b, s.number), s.yes)
	b = AppendInt(b, int64(len(s.texts)))
	for _, text := range s.texts {
		b = AppendText(b, text)
	}
	return b
}

func (s *sample) Take(r *Reader) {
	s.number, s.yes = r.Int(), r.Bool()
	for range r.Count(4) {
		s.texts = append(s.texts, r.Text())
	}
}

func TestAMessageIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []sample{{}, {math.MinInt64, true, []string{"", "text", strings.Repeat("x", 1000)}}} {
		var b bytes.Buffer
		var got sample
		err := Write(&b, &want)
		size := b.Len()
		if err = errors.Join(err, Read(&b, &got, uint32(size-headSize))); err != nil || b.Len() > 0 {
			t.Errorf("%v, and %d bytes are left", err, b.Len())
		}
		if got.number != want.number || got.yes != want.yes || strings.Join(got.texts, ",") != strings.Join(want.texts, ",") {
			t.Errorf("%+v, and not %+v", got, want)
		}
		_ = Write(&b, &want)
		if err := Read(&b, &got, uint32(size-headSize-1)); !errors.Is(err, paddock.Invalid) {
			t.Errorf("a message that is longer than it may be: %v", err)
		}
	}
}

func TestAMessageWithoutSenseIsRefused(t *testing.T) {
	whole := (&sample{number: 1, yes: true, texts: []string{"text"}}).Append(nil)
	take := func(data []byte) error {
		r := NewReader(data)
		(&sample{}).Take(r)
		return r.End()
	}
	if err := take(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := take(whole[:n]); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%d bytes of %d: %v", n, len(whole), err)
		}
	}
	count := AppendInt(nil, 0)
	for what, data := range map[string][]byte{
		"more than a message":      append(bytes.Clone(whole), 0),
		"neither yes nor no":       append(append(AppendInt(nil, 1), 2), count...),
		"more texts than bytes":    AppendInt(append(AppendInt(nil, 1), 1), math.MaxInt64),
		"fewer texts than none":    AppendInt(append(AppendInt(nil, 1), 1), -1),
		"a text longer than there": append(AppendInt(append(AppendInt(nil, 1), 1), 1), 0xff, 0xff, 0xff, 0xff),
	} {
		if err := take(data); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add((&sample{}).Append(nil))
	f.Add((&sample{number: -1, yes: true, texts: []string{"a", "b"}}).Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		r := NewReader(data)
		s.Take(r)
		if len(s.texts) > len(data) {
			t.Errorf("%d texts of %d bytes", len(s.texts), len(data))
		}
		if r.End() == nil && !bytes.Equal(s.Append(nil), data) {
			t.Errorf("%+v is written otherwise than % x", s, data)
		}
	})
}
