package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxLine is the longest result of [Line], in bytes: an escape may turn each byte of a text into six.
const MaxLine = 6*(4*MaxPath+MaxArgs+3*MaxWhy+(34+MaxNames)*MaxWord+(3*MaxRows+1)*maxName) + 4*(MaxCount+MaxNames) + 64*MaxRows + 2048

// A Sink keeps events. Record copies the event, is safe for concurrent use, and waits for no disk and no network. An
// event that cannot be kept is counted, and the next one reports the count.
type Sink interface {
	Record(Event)
}

// A Keeper is a Sink that can also wait until an event is kept; see [Lines.Keep].
type Keeper interface {
	Sink
	Keep(ctx context.Context, e Event) error
}

// Line returns the cleaned event as one line of JSON with its line break. It escapes all characters that could drive a
// terminal, break a line or change the direction of text.
func Line(e Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it is not for a page, and would hide what was typed
	if err := enc.Encode(e.Clean()); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return Escape(b.Bytes()), nil
}

// Escape escapes the runes in a line of JSON that unicode does not call printable. In JSON such runes occur in texts
// only. The encoder itself escapes bytes below 0x7f.
func Escape(line []byte) []byte {
	plain := func(r rune) bool { return r < 0x7f || unicode.IsPrint(r) }
	if bytes.IndexFunc(line, func(r rune) bool { return !plain(r) }) < 0 {
		return line
	}
	out := make([]byte, 0, len(line)+64)
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		switch {
		case plain(r):
			out = append(out, line[:n]...)
		case r > 0xffff: // two halves, as JSON has it
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		line = line[n:]
	}
	return out
}
