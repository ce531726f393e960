package readline

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// askFrom is how many choices are listed only after a question.
const askFrom = 100

// complete completes the word before the cursor: as far as the choices agree,
// and at the second Tab they are listed.
func (e *Editor) complete(again bool) {
	start, choices := e.o.Complete(string(e.line), e.at)
	if len(choices) == 0 || start < 0 || start > e.at {
		e.beep()
		return
	}
	text := choices[0].Text
	for _, c := range choices[1:] {
		text = common(text, c.Text)
	}
	if len(choices) == 1 {
		text += choices[0].End
	}
	if text != string(e.line[start:e.at]) && len(text) >= e.at-start {
		rest := string(e.line[e.at:])
		if len(e.line)+len(text) > MaxLine {
			e.beep()
			return
		}
		e.line = append(append(e.line[:start], text...), rest...)
		e.at = start + len(text)
		e.refresh()
		return
	}
	if !again || len(choices) == 1 {
		e.beep()
		return
	}
	e.list(choices)
}

// common gives what two texts begin with, in whole characters.
func common(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	if n < len(a) || n < len(b) {
		// A backslash belongs to what follows it.
		if slashes := n - len(strings.TrimRight(a[:n], `\`)); slashes%2 == 1 {
			n--
		}
	}
	return a[:n]
}

// list shows the choices below the line, in columns.
func (e *Editor) list(choices []Choice) {
	at := e.at
	e.at = len(e.line)
	e.refresh()
	e.show("\r\n")
	e.row = 0
	defer func() {
		e.at = at
		e.refresh()
	}()
	if len(choices) >= askFrom {
		e.show("Display all " + strconv.Itoa(len(choices)) + " possibilities? (y or n)")
		k, err := e.key()
		e.show("\r\n")
		if err != nil || k != 'y' && k != 'Y' && k != ' ' {
			return
		}
	}
	widest := 0
	shown := make([]string, len(choices))
	widths := make([]int, len(choices))
	for i, c := range choices {
		var b []byte
		var end place
		b, end = draw(b, strings.ReplaceAll(c.Show, "\n", "?"), place{}, 1<<30)
		shown[i], widths[i] = string(b), end.col
		widest = max(widest, end.col)
	}
	columns := max(1, e.cols()/(widest+2))
	rows := (len(choices) + columns - 1) / columns
	var out strings.Builder
	for row := range rows {
		for i := row; i < len(shown); i += rows {
			out.WriteString(shown[i])
			if i+rows < len(shown) {
				out.WriteString(strings.Repeat(" ", widest+2-widths[i]))
			}
		}
		out.WriteString("\r\n")
	}
	e.show(out.String())
}
