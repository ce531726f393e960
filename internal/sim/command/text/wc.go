package text

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var wcSpec = command.Spec{
	Name: "wc", Synopsis: "[OPTION]... [FILE]...",
	About: "Print newline, word, and byte counts for each FILE, and a total line if more than one FILE is specified.",
	Options: []command.Option{
		{Short: 'c', Long: "bytes", Help: "print the byte counts"},
		{Short: 'm', Long: "chars", Help: "print the character counts"},
		{Short: 'l', Long: "lines", Help: "print the newline counts"},
		{Long: "files0-from", Arg: command.Required, Name: "F", Help: "read input from the files specified by NUL-terminated names in file F"},
		{Short: 'L', Long: "max-line-length", Help: "print the maximum display width"},
		{Short: 'w', Long: "words", Help: "print the word counts"},
	},
}

// A tally is what wc counts, in the order in which it is shown.
type tally struct{ lines, words, chars, bytes, width int64 }

type wc struct {
	lines, words, chars, bytes, width bool
	columns                           int  // of a number
	bytewise                          bool // characters are bytes
	w                                 *command.Writer
}

func runWC(t *kernel.Task) int {
	a, status, ok := wcSpec.Parse(t)
	if !ok {
		return status
	}
	c := &wc{lines: a.Has("l"), words: a.Has("w"), chars: a.Has("m"), bytes: a.Has("c"), width: a.Has("L"), bytewise: t.Bytewise(), w: command.Stdout(t)}
	if !c.lines && !c.words && !c.chars && !c.bytes && !c.width {
		c.lines, c.words, c.bytes = true, true, true
	}
	names, named := a.Operands, len(a.Operands) > 0
	from, ok := a.Value("files0-from")
	if ok {
		if named {
			t.Errorf("extra operand %s", command.QuoteAlways(names[0]))
			_, _ = t.Write(2, []byte("file operands cannot be combined with --files0-from\nTry 'wc --help' for more information.\n"))
			return 1
		}
		var piped bool
		names, piped, ok = listed(t, from)
		if !ok {
			return 1
		}
		named = true
		if c.columns = 1; !piped {
			c.columns = c.measure(t, names)
		}
	} else {
		names = command.InputNames(names)
		c.columns = c.measure(t, names)
	}
	var total tally
	for i, name := range names {
		if name == "" {
			if from == "" {
				t.Errorf("invalid zero-length file name")
			} else {
				t.Errorf("%s:%d: invalid zero-length file name", command.QuoteFile(from), i+1)
			}
			status = 1
			continue
		}
		r, err := command.OpenReader(t, name)
		if err != nil {
			command.FailFile(t, name, err)
			status = 1
			continue
		}
		if !c.one(t, r, name, named, &total) {
			status = 1
		}
	}
	if len(names) > 1 {
		c.show(total, "total", true)
	}
	return status
}

// listed reads names that NULs end. Those that come from no regular file are
// piped: wc looks at the files one by one then, and does not align columns.
func listed(t *kernel.Task, from string) (names []string, piped, ok bool) {
	r, err := command.OpenReader(t, from)
	if err != nil {
		t.Errorf("cannot open %s for reading: %s", command.QuoteAlways(from), reason(err))
		return nil, false, false
	}
	defer r.Close()
	i, err := r.Desc().File.Info()
	piped = err != nil || !i.IsRegular()
	for {
		name, _, ok := r.Line(0)
		if !ok {
			break
		}
		t.Grow(len(name) + 16)
		names = append(names, string(name))
	}
	if err := r.Err(); err != nil {
		t.Errorf("%s: read error: %s", command.QuoteAlways(from), reason(err))
		return nil, piped, false
	}
	return names, piped, true
}

func (c *wc) one(t *kernel.Task, r *command.Reader, name string, named bool, total *tally) bool {
	defer r.Close()
	n := c.count(r)
	if c.bytewise {
		n.chars = n.bytes
	}
	if err := r.Err(); err != nil {
		command.FailFile(t, name, err)
	}
	c.show(n, name, named)
	total.lines += n.lines
	total.words += n.words
	total.chars += n.chars
	total.bytes += n.bytes
	total.width = max(total.width, n.width)
	return r.Err() == nil
}

// measure finds how wide the columns are: as wide as the sum of the sizes, if
// they are known.
func (c *wc) measure(t *kernel.Task, names []string) int {
	columns := 0
	for _, on := range []bool{c.lines, c.words, c.chars, c.bytes, c.width} {
		if on {
			columns++
		}
	}
	if len(names) == 0 || len(names) == 1 && columns == 1 {
		return 1
	}
	least, total := 1, int64(0)
	for _, name := range names {
		i, err := t.View.Stat(name)
		if name == "-" {
			d := t.FD(0)
			if d == nil {
				continue
			}
			i, err = d.File.Info()
		}
		switch {
		case err != nil:
		case i.IsRegular():
			total += i.Size
		default:
			least = 7
		}
	}
	return max(least, len(strconv.FormatInt(total, 10)))
}

func (c *wc) show(n tally, name string, named bool) {
	b := c.w.Space()
	column := func(on bool, n int64) {
		if !on {
			return
		}
		if len(b) > 0 {
			b = append(b, ' ')
		}
		digits := strconv.FormatInt(n, 10)
		for i := len(digits); i < c.columns; i++ {
			b = append(b, ' ')
		}
		b = append(b, digits...)
	}
	column(c.lines, n.lines)
	column(c.words, n.words)
	column(c.chars, n.chars)
	column(c.bytes, n.bytes)
	column(c.width, n.width)
	if named {
		b = append(b, ' ')
		b = append(b, lines(name)...)
	}
	c.w.Line(b, '\n')
}

// lines gives a name quoted if it holds a newline.
func lines(name string) string {
	for i := range len(name) {
		if name[i] == '\n' {
			return command.QuoteFile(name)
		}
	}
	return name
}

func (c *wc) count(r *command.Reader) tally {
	switch {
	case !c.lines && !c.words && !c.chars && !c.width:
		return sizeOf(r)
	case !c.words && !c.chars && !c.width:
		var n tally
		for b, ok := r.Piece(); ok; b, ok = r.Piece() {
			n.lines += int64(bytes.Count(b, []byte{'\n'}))
			n.bytes += int64(len(b))
		}
		return n
	case !c.words && !c.width:
		return chars(r)
	}
	return c.wordsOf(r)
}

// sizeOf counts bytes, by asking if there is somebody to ask.
func sizeOf(r *command.Reader) tally {
	var n tally
	if f, ok := r.Desc().VFS(); ok {
		if i, err := f.Info(); err == nil && i.IsRegular() && i.Size > 0 {
			if at, err := f.Seek(0, io.SeekCurrent); err == nil && at < i.Size {
				_, _ = f.Seek(0, io.SeekEnd)
				n.bytes = i.Size - at
				return n
			}
		}
	}
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		n.bytes += int64(len(b))
	}
	return n
}

// chars counts characters and lines; bytes that are none do not count.
func chars(r *command.Reader) tally {
	var n tally
	for b, ok := r.Text(); ok; b, ok = r.Text() {
		n = n.add(b)
	}
	return n
}

func (n tally) add(b []byte) tally {
	n.lines += int64(bytes.Count(b, []byte{'\n'}))
	n.bytes += int64(len(b))
	if utf8.Valid(b) {
		n.chars += int64(utf8.RuneCount(b))
		return n
	}
	for len(b) > 0 {
		c, size := utf8.DecodeRune(b)
		if c != utf8.RuneError || size > 1 {
			n.chars++
		}
		b = b[size:]
	}
	return n
}

// kinds of bytes for counting words.
const (
	other = iota // shows nothing and ends nothing
	solid
	blank // ends a word
	high  // a part of a longer character
)

func kindOf() (kinds [256]uint8) {
	for i := range 256 {
		switch {
		case i == ' ' || i >= '\t' && i <= '\r':
			kinds[i] = blank
		case i > ' ' && i < 127:
			kinds[i] = solid
		case i >= 128:
			kinds[i] = high
		}
	}
	return kinds
}

// wordsOf counts everything.
func (c *wc) wordsOf(r *command.Reader) tally {
	var n tally
	var column int64
	kinds := kindOf()
	inside := false
	for b, ok := r.Text(); ok; b, ok = r.Text() {
		if !c.width && !c.chars && !c.bytewise && quick(b, &n, &inside, &kinds) {
			continue
		}
		for i := 0; i < len(b); {
			x := b[i]
			switch kinds[x] {
			case solid:
				inside = true
				column++
				n.chars++
				i++
			case blank:
				if inside {
					n.words++
					inside = false
				}
				n.chars++
				i++
				switch x {
				case '\n':
					n.lines++
					n.width = max(n.width, column)
					column = 0
				case '\r', '\f':
					n.width = max(n.width, column)
					column = 0
				case '\t':
					column += 8 - column%8
				case ' ':
					column++
				}
			case high:
				if c.bytewise { // a byte that cannot be printed
					i++
					continue
				}
				ch, size := utf8.DecodeRune(b[i:])
				i += size
				if ch == utf8.RuneError && size == 1 {
					continue
				}
				n.chars++
				switch {
				case space(ch):
					if inside {
						n.words++
						inside = false
					}
					if ch != 0x85 && ch != 0x2028 && ch != 0x2029 {
						column += int64(command.RuneWidth(ch))
					}
				case command.IsPrintable(ch):
					inside = true
					column += int64(command.RuneWidth(ch))
				}
			default:
				n.chars++
				i++
			}
		}
		n.bytes += int64(len(b))
	}
	if inside {
		n.words++
	}
	n.width = max(n.width, column)
	return n
}

// quick counts the words and lines of a piece that is all ASCII.
func quick(b []byte, n *tally, inside *bool, kinds *[256]uint8) bool {
	in := *inside
	words := int64(0)
	for _, x := range b {
		switch kinds[x] {
		case solid:
			in = true
		case blank:
			if in {
				words++
				in = false
			}
		case high:
			return false
		}
	}
	n.words += words
	n.bytes += int64(len(b))
	n.lines += int64(bytes.Count(b, []byte{'\n'}))
	*inside = in
	return true
}

// space tells the characters that end a word beyond ASCII.
func space(c rune) bool {
	return command.IsSpace(c) || c == 0xa0 || c == 0x2007 || c == 0x202f || c == 0x2060
}
