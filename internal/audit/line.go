package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxLine bounds what [Line] gives, in bytes: every byte of every text may take
// six as an escape.
const MaxLine = 6*(4*MaxPath+MaxArgs+2*MaxWhy+(18+MaxNames)*MaxWord) + 4*(MaxCount+MaxNames) + 2048

// A Sink keeps events. Record takes the event as it is at the call, may be called
// by many goroutines, and does not wait for a disk or a network: an event that
// cannot be kept now is counted, and the next one tells it.
type Sink interface {
	Record(Event)
}

// Line gives the event, cleaned, as one line of JSON with its line break. All that
// could drive a terminal, break a line or turn its direction is an escape.
func Line(e Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it is not for a page, and would hide what was typed
	if err := enc.Encode(e.Clean()); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return Escape(b.Bytes()), nil
}

// Escape writes what unicode does not call printable in a line of JSON as escapes. In JSON such
// runes stand in texts only. The bytes below 0x7f are the encoder's own care.
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
