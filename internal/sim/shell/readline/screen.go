package readline

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// show writes to the terminal. After an error the line ends.
func (e *Editor) show(text string) {
	if text == "" || e.failed != nil {
		return
	}
	e.failed = e.o.Write([]byte(text))
}

func (e *Editor) beep() { e.show("\a") }

func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// A place is where the cursor is on the screen, from the prompt on.
type place struct{ row, col int }

// wrap moves the cursor off a full row, on which terminals leave it.
const wrap = " \r"

// draw adds text to what is shown, and gives where the cursor is afterwards on
// a screen of so many columns.
func draw(to []byte, text string, at place, cols int) ([]byte, place) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		shown, width := text[i:i+n], 0
		switch {
		case r == '\n':
			to = append(to, "\r\n"...)
			at = place{at.row + 1, 0}
			i += n
			continue
		case r == utf8.RuneError && n == 1:
			shown, width = "?", 1
		case r < 0x20 || r == 0x7f:
			shown, width = "^"+string(r^0x40), 2
		case r >= 0x80 && r < 0xa0:
			shown, width = "?", 1
		default:
			width = command.RuneWidth(r)
		}
		if at.col+width > cols {
			at = place{at.row + 1, 0}
		}
		to = append(to, shown...)
		if at.col += width; at.col >= cols {
			at = place{at.row + 1, 0}
			to = append(to, wrap...)
		}
		i += n
	}
	return to, at
}

// passed gives where the cursor is after a prompt, in which sequences that
// change colours take no room.
func passed(prompt string, cols int) place {
	var plain strings.Builder
	for i := 0; i < len(prompt); i++ {
		switch c := prompt[i]; {
		case c == 0x1b && i+1 < len(prompt) && prompt[i+1] == '[':
			for i += 2; i < len(prompt) && (prompt[i] < 0x40 || prompt[i] > 0x7e); i++ {
			}
		case c == 0x1b && i+1 < len(prompt) && prompt[i+1] == ']':
			for i += 2; i < len(prompt) && prompt[i] != 7; i++ {
			}
		case c == 0x1b:
			i++
		case c < 0x20:
		default:
			plain.WriteByte(c)
		}
	}
	_, at := draw(nil, plain.String(), place{}, cols)
	return at
}

func (e *Editor) cols() int {
	_, cols := e.o.Size()
	return max(cols, 2)
}

// refresh shows prompt and line anew, over what is shown of them.
func (e *Editor) refresh() { e.paint(e.prompt, string(e.line), e.at) }

func (e *Editor) paint(prompt, line string, cursor int) {
	cols := e.cols()
	out := up0(nil, e.row)
	out = append(out, "\r\x1b[J"...)
	out = append(out, prompt...)
	at := passed(prompt, cols)
	if at.col == 0 && at.row > 0 {
		out = append(out, wrap...)
	}
	out, here := draw(out, line[:cursor], at, cols)
	out, stop := draw(out, line[cursor:], here, cols)
	if stop != here {
		out = up0(out, stop.row-here.row)
		out = append(out, '\r')
		if here.col > 0 {
			out = append(out, "\x1b["+strconv.Itoa(here.col)+"C"...)
		}
	}
	e.row = here.row
	e.show(string(out))
}

func up0(out []byte, rows int) []byte {
	if rows <= 0 {
		return out
	}
	return append(out, "\x1b["+strconv.Itoa(rows)+"A"...)
}

// append shows one more character at the end, where that is all there is to
// do.
func (e *Editor) append(char []byte) bool {
	r, n := utf8.DecodeRune(char)
	if n != len(char) || r == utf8.RuneError || r < 0x20 || r >= 0x7f && r < 0xa0 {
		return false
	}
	cols := e.cols()
	_, before := draw(nil, string(e.line[:len(e.line)-n]), passed(e.prompt, cols), cols)
	if before.col+command.RuneWidth(r) >= cols {
		return false
	}
	e.show(string(char))
	return true
}

// finish leaves the line, with a last word.
func (e *Editor) finish(word string) {
	e.pasting = false
	if e.at != len(e.line) {
		e.at = len(e.line)
		e.refresh()
	}
	e.show(word + "\r\n")
	e.row = 0
}
