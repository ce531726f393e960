// Package readline is the line editor of an interactive shell: the common keys
// of readline's Emacs mode, history, search, completion and paste. It knows no
// shell: the caller passes functions that read, show and complete.
//
// A line is bytes. What is no UTF-8 is kept as it is, and shown as "?".
package readline

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// ErrInterrupted is Ctrl-C: the line is given up.
var ErrInterrupted = errors.New("interrupted")

// MaxLine is how long a line may become, in bytes; what is typed after that is
// dropped with a beep.
const MaxLine = 1 << 20

// A Choice is one way to complete a word.
type Choice struct {
	Text string // what stands in place of the word
	Show string // what the list of choices says
	End  string // what follows where it is the only choice: a space or a slash
}

// Options are what an editor works with.
type Options struct {
	// Read gives what is typed, of a terminal that does nothing by itself.
	Read func(p []byte) (int, error)
	// Write shows something.
	Write func(p []byte) error
	// Size tells the terminal's rows and columns.
	Size func() (rows, cols int)
	// Complete gives what line[start:at] can be completed to. It may be nil.
	Complete func(line string, at int) (start int, choices []Choice)
}

// An Editor edits one line after another. Make one with [New].
type Editor struct {
	o Options

	prompt  string // its last line
	line    []byte
	at      int // the cursor, in bytes
	row     int // of the cursor, from the row of the prompt
	pasting bool

	history []string
	entry   int            // that is shown; len(history) is the new line
	edits   map[int]string // entries that were changed, and the new line

	kill   []byte
	tabbed bool // the key before was Tab
	failed error
}

// New makes an editor.
func New(o Options) *Editor { return &Editor{o: o} }

// Line lets a line be typed, and gives it without the newline. io.EOF is the
// end of input: Ctrl-D on an empty line, or a terminal that is gone.
func (e *Editor) Line(prompt string, history []string) (string, error) {
	e.line, e.at, e.row, e.pasting, e.tabbed, e.failed = e.line[:0], 0, 0, false, false, nil
	e.history, e.entry, e.edits = history, len(history), nil
	if i := strings.LastIndexByte(prompt, '\n'); i >= 0 {
		e.show(crlf(prompt[:i+1]))
		prompt = prompt[i+1:]
	}
	e.prompt = prompt
	e.show(pasteOn)
	e.refresh()
	text, err := e.edit()
	e.show(pasteOff)
	if err == nil {
		err = e.failed
	}
	return text, err
}

// Terminals bracket what is pasted while this is on.
const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
)

func (e *Editor) edit() (string, error) {
	for {
		k, err := e.key()
		if err != nil {
			return "", err
		}
		if k == ctrl('R') {
			if k, err = e.search(); err != nil {
				return "", err
			}
		}
		if done, err := e.press(k); done || err != nil {
			return string(e.line), err
		}
		if e.failed != nil {
			return "", e.failed
		}
	}
}

// press does what a key says; done is the end of the line.
func (e *Editor) press(k key) (done bool, err error) {
	tabbed := e.tabbed
	e.tabbed = false
	switch k {
	case none:
	case '\r', '\n':
		if e.pasting {
			e.insert('\n')
			break
		}
		e.finish("")
		return true, nil
	case ctrl('C'):
		e.finish("^C")
		return true, ErrInterrupted
	case ctrl('D'):
		if len(e.line) == 0 {
			return true, io.EOF
		}
		e.remove(e.at, e.next(e.at))
	case ctrl('I'):
		if e.pasting || e.o.Complete == nil {
			e.insert('\t')
			break
		}
		e.complete(tabbed)
		e.tabbed = true
	case ctrl('V'):
		if b, err := e.byte(); err == nil {
			e.insert(b)
		}
	case pasteBegin:
		e.pasting = true
	case pasteEnd:
		e.pasting = false
		e.refresh()
	default:
		if k > 0 && k < 256 && (k >= ' ' && k != 127 || e.pasting) {
			e.insert(byte(k))
		} else {
			e.motion(k)
		}
	}
	return false, nil
}

// motion is keys that move, remove and recall.
func (e *Editor) motion(k key) {
	switch k {
	case ctrl('A'), home:
		e.move(0)
	case ctrl('E'), end:
		e.move(len(e.line))
	case ctrl('B'), left:
		e.move(e.before(e.at))
	case ctrl('F'), right:
		e.move(e.next(e.at))
	case wordLeft:
		e.move(e.word(-1, letter))
	case wordRight:
		e.move(e.word(1, letter))
	case ctrl('H'), 127:
		e.remove(e.before(e.at), e.at)
	case del:
		e.remove(e.at, e.next(e.at))
	case ctrl('K'):
		e.cut(e.at, len(e.line))
	case ctrl('U'):
		e.cut(0, e.at)
	case ctrl('W'):
		e.cut(e.word(-1, ink), e.at)
	case wordBack:
		e.cut(e.word(-1, letter), e.at)
	case wordDel:
		e.cut(e.at, e.word(1, letter))
	case ctrl('Y'):
		e.insertAll(string(e.kill))
	case ctrl('T'):
		e.swap()
	case ctrl('L'):
		e.show("\x1b[H\x1b[2J")
		e.row = 0
		e.refresh()
	case ctrl('P'), up:
		e.recall(e.entry - 1)
	case ctrl('N'), down:
		e.recall(e.entry + 1)
	case first:
		e.recall(0)
	case last:
		e.recall(len(e.history))
	case lastWord:
		if n := len(e.history); n > 0 {
			words := bytes.Fields([]byte(e.history[n-1]))
			if len(words) > 0 {
				e.insertAll(string(words[len(words)-1]))
			}
		}
	default:
		e.beep()
	}
}

// insert puts a byte where the cursor is. A character is shown when its last
// byte is there, and what is pasted when all is.
func (e *Editor) insert(b byte) {
	if len(e.line) >= MaxLine {
		e.beep()
		return
	}
	e.line = append(e.line, 0)
	copy(e.line[e.at+1:], e.line[e.at:])
	e.line[e.at] = b
	e.at++
	if e.pasting {
		return
	}
	start := e.at - 1
	for start > 0 && e.at-start < utf8.UTFMax && !utf8.RuneStart(e.line[start]) {
		start--
	}
	char := e.line[start:e.at]
	if !utf8.FullRune(char) {
		return
	}
	if e.at == len(e.line) && e.append(char) {
		return
	}
	e.refresh()
}

func (e *Editor) insertAll(text string) {
	if len(e.line)+len(text) > MaxLine {
		e.beep()
		return
	}
	e.line = append(e.line[:e.at:e.at], append([]byte(text), e.line[e.at:]...)...)
	e.at += len(text)
	e.refresh()
}

func (e *Editor) move(to int) {
	if to == e.at {
		return
	}
	e.at = to
	e.refresh()
}

func (e *Editor) remove(from, to int) {
	if from == to {
		e.beep()
		return
	}
	e.line = append(e.line[:from], e.line[to:]...)
	e.at = from
	e.refresh()
}

// cut is remove, for Ctrl-Y.
func (e *Editor) cut(from, to int) {
	if from != to {
		e.kill = append(e.kill[:0], e.line[from:to]...)
	}
	e.remove(from, to)
}

// swap exchanges the characters around the cursor.
func (e *Editor) swap() {
	at := e.at
	if at == len(e.line) {
		at = e.before(at)
	}
	a := e.before(at)
	b := e.next(at)
	if a == at || at == b {
		e.beep()
		return
	}
	both := append(append([]byte(nil), e.line[at:b]...), e.line[a:at]...)
	copy(e.line[a:b], both)
	e.at = b
	e.refresh()
}

// next gives where the character at i ends.
func (e *Editor) next(i int) int {
	if i >= len(e.line) {
		return i
	}
	_, n := utf8.DecodeRune(e.line[i:])
	return i + n
}

// before gives where the character before i begins.
func (e *Editor) before(i int) int {
	if i <= 0 {
		return 0
	}
	_, n := utf8.DecodeLastRune(e.line[:i])
	return i - n
}

func letter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b >= 0x80
}

func ink(b byte) bool { return b != ' ' && b != '\t' && b != '\n' }

// word gives where a word ends, backwards or forwards.
func (e *Editor) word(dir int, in func(byte) bool) int {
	i := e.at
	if dir < 0 {
		for i > 0 && !in(e.line[i-1]) {
			i--
		}
		for i > 0 && in(e.line[i-1]) {
			i--
		}
		return i
	}
	for i < len(e.line) && !in(e.line[i]) {
		i++
	}
	for i < len(e.line) && in(e.line[i]) {
		i++
	}
	return i
}

// recall shows another entry of the history; changes to this one are kept
// until the line ends.
func (e *Editor) recall(entry int) {
	if entry < 0 || entry > len(e.history) || entry == e.entry {
		e.beep()
		return
	}
	if e.edits == nil {
		e.edits = map[int]string{}
	}
	e.edits[e.entry] = string(e.line)
	e.entry = entry
	text, changed := e.edits[entry]
	if !changed && entry < len(e.history) {
		text = e.history[entry]
	}
	e.set(text)
}

func (e *Editor) set(text string) {
	e.line = append(e.line[:0], text...)
	e.at = len(e.line)
	e.refresh()
}
