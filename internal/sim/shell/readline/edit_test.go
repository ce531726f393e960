package readline_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/readline"
)

// A screen is a terminal that shows what is written, as real ones do: a full
// row leaves the cursor on it until the next character.
type screen struct {
	cols     int
	rows     [][]rune
	row, col int
	pending  bool
	bells    int
}

func (s *screen) cell(row, col int) *rune {
	for len(s.rows) <= row {
		s.rows = append(s.rows, nil)
	}
	for len(s.rows[row]) <= col {
		s.rows[row] = append(s.rows[row], ' ')
	}
	return &s.rows[row][col]
}

func (s *screen) Write(p []byte) error {
	text := []rune(string(p))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\a':
			s.bells++
		case c == '\r':
			s.col, s.pending = 0, false
		case c == '\n':
			s.row, s.pending = s.row+1, false
		case c == 0x1b:
			i = s.escape(text, i+1)
		case c < ' ':
			return fmt.Errorf("control character %q on the screen", c)
		default:
			s.put(c)
		}
	}
	return nil
}

func (s *screen) put(c rune) {
	width := command.RuneWidth(c)
	if width == 0 {
		return // it joins the character before it
	}
	if s.pending || s.col+width > s.cols {
		s.row, s.col, s.pending = s.row+1, 0, false
	}
	*s.cell(s.row, s.col) = c
	if width == 2 {
		*s.cell(s.row, s.col+1) = 0
	}
	if s.col += width; s.col == s.cols {
		s.col, s.pending = s.cols-1, true
	}
}

func (s *screen) escape(text []rune, i int) int {
	n, digits := 0, false
	for i++; text[i] >= '0' && text[i] <= '?'; i++ {
		if text[i] >= '0' && text[i] <= '9' {
			n, digits = n*10+int(text[i]-'0'), true
		}
	}
	if !digits {
		n = 1
	}
	s.pending = false
	switch text[i] {
	case 'A':
		s.row = max(0, s.row-n)
	case 'C':
		s.col = min(s.cols-1, s.col+n)
	case 'J':
		if digits && n == 2 {
			s.rows = nil
			break
		}
		s.cell(s.row, s.col)
		s.rows = s.rows[:s.row+1]
		s.rows[s.row] = s.rows[s.row][:s.col]
	case 'H':
		s.row, s.col = 0, 0
	}
	return i
}

func (s *screen) String() string {
	lines := make([]string, len(s.rows))
	for i, r := range s.rows {
		lines[i] = strings.TrimRight(strings.ReplaceAll(string(r), "\x00", ""), " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// A session types keys into an editor.
type session struct {
	*readline.Editor
	screen *screen
	keys   string
}

func newSession(cols int, complete func(string, int) (int, []readline.Choice)) *session {
	s := &session{screen: &screen{cols: cols}}
	s.Editor = readline.New(readline.Options{
		Read: func(p []byte) (int, error) {
			if s.keys == "" {
				return 0, io.EOF
			}
			n := copy(p, s.keys)
			s.keys = s.keys[n:]
			return n, nil
		},
		Write:    s.screen.Write,
		Size:     func() (int, int) { return 24, cols },
		Complete: complete,
	})
	return s
}

func TestKeysEditTheLine(t *testing.T) {
	history := []string{"first entry", "ls -l /tmp", "echo last word"}
	for _, row := range []struct{ name, keys, want string }{
		{"plain text", "echo hi\r", "echo hi"},
		{"backspace", "ab\x7fc\x08d\r", "ad"},
		{"arrows", "ac\x1b[Db\x1b[Cd\r", "abcd"},
		{"arrows of application mode", "ac\x1bODb\r", "abc"},
		{"home and end", "b\x1b[Ha\x1b[Fc\r", "abc"},
		{"their other codes", "b\x1b[1~a\x1b[4~c\r", "abc"},
		{"^A and ^E", "b\x01a\x05c\r", "abc"},
		{"^B and ^F", "ac\x02b\x06d\r", "abcd"},
		{"delete", "abc\x01\x1b[3~\r", "bc"},
		{"^D within a line", "abc\x01\x04\r", "bc"},
		{"^K and ^Y", "one two\x1b[D\x1b[D\x1b[D\x0b\x01\x19\r", "twoone "},
		{"^U", "one two\x15three\r", "three"},
		{"^W", "one two-three  \x17four\r", "one four"},
		{"meta-backspace stops at punctuation", "one two-three\x1b\x7ffour\r", "one two-four"},
		{"meta-b, meta-f, meta-d", "one two three\x1bb\x1bb\x1bd\x1bfX\r", "one  threeX"},
		{"^T", "abdc\x1b[D\x14\r", "abcd"},
		{"characters of several bytes", "né\x7fe日本\x1b[D\x7f\r", "ne本"},
		{"what is no UTF-8", "a\xffb\x1b[D\x1b[D\x7f\r", "\xffb"},
		{"quoted insert", "a\x16\tb\r", "a\tb"},
		{"up is the last entry", "\x1b[A\r", "echo last word"},
		{"up, up, down", "\x1b[A\x1b[A\x1b[B\r", "echo last word"},
		{"^P and ^N come back to what was typed", "new\x10\x10\x0e\x0e\r", "new"},
		{"a changed entry is kept while the line is edited", "\x1b[A!\x1b[A\x1b[B\r", "echo last word!"},
		{"no further than the first", "\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\r", "first entry"},
		{"meta-dot", "x \x1b.\r", "x word"},
		{"^R finds", "\x12ls\r", "ls -l /tmp"},
		{"^R again goes on", "\x12t\x12\x12\r", "first entry"},
		{"^R and ^G gives up", "abc\x12ls\x07d\r", "abcd"},
		{"^R, then an edit", "\x12ls\x05 x\r", "ls -l /tmp x"},
		{"^R finds nothing", "abc\x12zzz\r", "abc"},
		{"paste with newlines and tabs", "\x1b[200~if true\n\tthen :\nfi\x1b[201~\r", "if true\n\tthen :\nfi"},
		{"an unknown sequence is nothing", "a\x1b[99;99Xb\x1bzc\r", "abc"},
		{"a newline ends the line too", "abc\n", "abc"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSession(40, nil)
			s.keys = row.keys
			got, err := s.Line("$ ", history)
			if err != nil || got != row.want {
				t.Errorf("got %q %v, want %q", got, err, row.want)
			}
		})
	}
}

// What the screen shows is what the line is, wherever it wraps.
func TestTheScreenShowsTheLine(t *testing.T) {
	for _, row := range []struct{ name, keys, want string }{
		{"short", "echo hi", "$ echo hi|"},
		{"in the middle", "echo hi\x1b[D", "$ echo h|i"},
		{"a full row", "12345678", "$ 12345678\n|"},
		{"over a row", "123456789abc\x1b[D\x1b[D\x1b[D\x1b[D\x1b[D", "$ 1234567|8\n9abc"},
		{"typed into the first of two rows", "123456789abc\x01XY", "$ XY|123456\n789abc"},
		{"removed over the edge", "123456789\x7f\x7f\x7f", "$ 123456|"},
		{"wide characters", "日本語日本", "$ 日本語日\n本|"},
		{"a wide character does not break", "1日本語日\x1b[D", "$ 1日本語|\n日"},
		{"a control character", "a\x16\x01b", "$ a^Ab|"},
		{"lines", "\x1b[200~ab\ncd\x1b[201~\x1b[D", "$ ab\nc|d"},
		{"a line after a full row", "\x1b[200~12345678\ncd\x1b[201~", "$ 12345678\n\ncd|"},
		{"clear", "abc\x0c", "$ abc|"},
		{"an interrupted line stays", "abc\x03", "$ abc^C\n|"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSession(10, nil)
			s.keys = row.keys
			_, _ = s.Line("$ ", nil)
			at := *s.screen
			// The cursor is shown as a bar.
			rows := strings.Split(at.String(), "\n")
			for len(rows) <= at.row {
				rows = append(rows, "")
			}
			line, col, i := []rune(rows[at.row]), 0, 0
			for ; i < len(line) && col < at.col; i++ {
				col += command.RuneWidth(line[i])
			}
			for col < at.col {
				line, col, i = append(line, ' '), col+1, i+1
			}
			rows[at.row] = string(line[:i]) + "|" + string(line[i:])
			if got := strings.Join(rows, "\n"); got != row.want {
				t.Errorf("shows\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

func TestColoursInThePromptTakeNoRoom(t *testing.T) {
	s := newSession(10, nil)
	s.keys = "12345678\x01X\r"
	if _, err := s.Line("over\n\x1b[1;32m$\x1b[0m ", nil); err != nil {
		t.Fatal(err)
	}
	if got, want := s.screen.String(), "over\n$ X1234567\n8"; got != want {
		t.Errorf("shows\n%s\nwant\n%s", got, want)
	}
}

func TestTabCompletes(t *testing.T) {
	names := []string{"apple", "apricot", "banana", "a b", "a$c"}
	complete := func(line string, at int) (int, []readline.Choice) {
		start := strings.LastIndexByte(line[:at], ' ') + 1
		var list []readline.Choice
		for _, n := range names {
			quoted := strings.NewReplacer(" ", `\ `, "$", `\$`).Replace(n)
			if strings.HasPrefix(quoted, line[start:at]) {
				list = append(list, readline.Choice{Text: quoted, Show: n, End: " "})
			}
		}
		return start, list
	}
	for _, row := range []struct{ name, keys, want, show string }{
		{"the only choice", "x b\t\r", "x banana ", "$ x banana"},
		{"as far as they agree", "x ap\t!\r", "x ap!", "$ x ap!"},
		{"one more letter decides", "x app\t\r", "x apple ", "$ x apple"},
		{"no half of a quoted character", "x a\t\r", "x a", "$ x a"},
		{"no choice", "x q\t\r", "x q", "$ x q"},
		{"the second Tab lists", "ap\t\tr\t\r", "apricot ", "$ ap\napple    apricot\n$ apricot"},
		{"in the middle of the line", "b\x1b[D\x1b[C\t\x01y \r", "y banana ", "$ y banana"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSession(40, complete)
			s.keys = row.keys
			got, err := s.Line("$ ", nil)
			if err != nil || got != row.want || s.screen.String() != row.show {
				t.Errorf("got %q %v, shows\n%s\nwant %q and\n%s", got, err, s.screen, row.want, row.show)
			}
		})
	}
}

func TestALineEndsInOneOfThreeWays(t *testing.T) {
	s := newSession(40, nil)
	s.keys = "abc\x03def\r\x04rest"
	if _, err := s.Line("$ ", nil); !errors.Is(err, readline.ErrInterrupted) {
		t.Errorf("^C: %v", err)
	}
	if got, err := s.Line("$ ", nil); got != "def" || err != nil {
		t.Errorf("then %q %v", got, err)
	}
	if _, err := s.Line("$ ", nil); err != io.EOF {
		t.Errorf("^D: %v", err)
	}
	if s.keys != "rest" {
		t.Errorf("left %q for others, want what follows", s.keys)
	}
}

func TestALineIsBounded(t *testing.T) {
	s := newSession(80, nil)
	s.keys = "\x1b[200~" + strings.Repeat("x", readline.MaxLine+5) + "\x1b[201~\r"
	got, err := s.Line("$ ", nil)
	if err != nil || len(got) != readline.MaxLine || s.screen.bells != 5 {
		t.Errorf("%d bytes, %d bells, %v", len(got), s.screen.bells, err)
	}
}

// No keys make the editor panic, or leave the cursor in a character.
func FuzzKeys(f *testing.F) {
	f.Add("ab\x1b[D\x12a\r", 10)
	f.Add("\x1b[200~日\n\xff\x1b[201~\x1b[A\t\t\x17\x19\r", 3)
	f.Fuzz(func(t *testing.T, keys string, cols int) {
		s := newSession(cols%200, func(_ string, at int) (int, []readline.Choice) {
			return at / 2, []readline.Choice{{Text: "ab", Show: "ab"}, {Text: "abc\n", Show: "a\nb"}}
		})
		s.screen.cols = max(2, cols%200)
		s.keys = keys
		for s.keys != "" {
			line, err := s.Line("$ ", []string{"one", "日本\nx"})
			if err == nil && len(line) > readline.MaxLine {
				t.Errorf("a line of %d bytes", len(line))
			}
			if err != nil && err != io.EOF && !errors.Is(err, readline.ErrInterrupted) {
				t.Fatal(err)
			}
		}
	})
}
