package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// words says an error to a model.
func words(err error) string {
	text := plain([]byte(err.Error()))
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, paddock.Canceled):
		return "canceled: what the call had started was killed"
	case errors.Is(err, paddock.Exhausted):
		text += " (a limit: remove what is not needed, or ask for less)"
	}
	return clip(text, 4000)
}

// plain makes text of what may be no text: each byte that is no UTF-8, and each control character but tabs and ends of
// lines, is shown as a replacement character. So no model and no terminal behind it gets what its user cannot see.
func plain(data []byte) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return r
		case unicode.IsControl(r), r == '\u061c', r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u200e', r == '\u200f':
			return utf8.RuneError // also those that turn the direction of text
		case r >= 0xe0000 && r <= 0xe007f:
			return utf8.RuneError // tags, which nobody sees
		}
		return r
	}, strings.ToValidUTF8(string(data), string(utf8.RuneError)))
}

// oneLine is plain for a name, on one line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return utf8.RuneError
		}
		return r
	}, clip(plain([]byte(text)), 500))
}

// clip cuts a text that is too long, between two characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// binary reports whether data is not meant to be read.
func binary(data []byte) bool {
	if bytes.IndexByte(data, 0) >= 0 {
		return true
	}
	bad := 0
	for _, r := range string(data) {
		if r == utf8.RuneError {
			bad++
		}
	}
	return bad > 8 && bad > len(data)/20
}

// Ends keeps the beginning and the end of what is written to it.
type ends struct {
	first, last int // bytes that are kept

	mu    sync.Mutex
	head  []byte // guarded by mu
	tail  []byte // guarded by mu; a ring once it is full
	at    int    // guarded by mu; where the ring goes on
	total int64  // guarded by mu
}

func (e *ends) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(p)
	e.total += int64(n)
	room := min(e.first-len(e.head), len(p))
	e.head = append(e.head, p[:room]...)
	p = p[room:]
	if len(p) > e.last {
		p = p[len(p)-e.last:]
	}
	grow := min(e.last-len(e.tail), len(p))
	if grow > 0 { // it is not full, so it begins at its beginning
		e.tail = append(e.tail, p[:grow]...)
		p = p[grow:]
		if len(e.tail) < e.last {
			return n, nil
		}
		e.at = 0
	}
	for len(p) > 0 {
		c := copy(e.tail[e.at:], p)
		p, e.at = p[c:], (e.at+c)%len(e.tail)
	}
	return n, nil
}

// size is the number of bytes that were written.
func (e *ends) size() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.total
}

// text gives what was kept, and how many bytes in the middle were not.
func (e *ends) text() (text string, cut int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tail := append(append([]byte{}, e.tail[e.at:]...), e.tail[:e.at]...)
	cut = e.total - int64(len(e.head)+len(tail))
	switch {
	case binary(e.head):
		return fmt.Sprintf("(%d bytes that are no text)", e.total), cut
	case cut == 0:
		return plain(append(append([]byte{}, e.head...), tail...)), 0
	}
	return fmt.Sprintf("%s\n[… %d bytes are left out …]\n%s", plain(e.head), cut, plain(tail)), cut
}

// lastLine is the last line of what was kept.
func (e *ends) lastLine() string {
	e.mu.Lock()
	tail := append(append(append([]byte{}, e.head...), e.tail[e.at:]...), e.tail[:e.at]...)
	e.mu.Unlock()
	lines := strings.Split(strings.TrimRight(string(tail[max(0, len(tail)-2000):]), "\r\n"), "\n")
	return clip(oneLine(lines[len(lines)-1]), 200)
}
