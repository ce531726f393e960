package sort

import (
	"bytes"
	"crypto/rand"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var shufSpec = command.Spec{
	Name: "shuf", Synopsis: "[OPTION]... [FILE]",
	About: "Write a random permutation of the input lines to standard output.",
	Options: []command.Option{
		{Short: 'e', Long: "echo", Help: "treat each ARG as an input line"},
		{Short: 'i', Long: "input-range", Arg: command.Required, Name: "LO-HI", Help: "treat each number LO through HI as an input line"},
		{Short: 'n', Long: "head-count", Arg: command.Required, Name: "COUNT", Help: "output at most COUNT lines"},
		{Short: 'o', Long: "output", Arg: command.Required, Name: "FILE", Help: "write result to FILE instead of standard output"},
		{Long: "random-source", Arg: command.Required, Name: "FILE", Help: "get random bytes from FILE"},
		{Short: 'r', Long: "repeat", Help: "output lines can be repeated"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
}

// A chooser draws numbers from random bytes, as GNU's tools do, so that the
// same bytes give the same choice. It keeps what randomness is left over.
type chooser struct {
	t        *kernel.Task
	file     *command.Reader // nil is true randomness
	name     string
	buf      []byte
	num, max uint64 // num is a random number from 0 to max
}

func (c *chooser) byte() byte {
	if c.file == nil {
		if len(c.buf) == 0 {
			c.buf = make([]byte, 512)
			_, _ = rand.Read(c.buf) // it does not fail
		}
		b := c.buf[0]
		c.buf = c.buf[1:]
		return b
	}
	b, err := c.file.ReadByte()
	if err != nil {
		if c.file.Err() != nil {
			c.t.Errorf("%s: read error: %s", command.Quote(c.name), message(err))
		} else {
			c.t.Errorf("%s: end of file", command.Quote(c.name))
		}
		c.t.Exit(1)
	}
	return b
}

// choose gives a number from 0 to most.
func (c *chooser) choose(most uint64) uint64 {
	c.t.Step(16)
	for {
		for c.max < most {
			c.num = c.num<<8 + uint64(c.byte())
			c.max = c.max<<8 + 255
		}
		if c.max == most {
			n := c.num
			c.num, c.max = 0, 0
			return n
		}
		excess := c.max - most
		choices := most + 1
		unusable := excess % choices
		last := c.max - unusable
		if c.num <= last {
			n := c.num % choices
			c.num, c.max = c.num/choices, excess/choices
			return n
		}
		c.num = c.num - last - 1
		c.max = unusable - 1
	}
}

type shuffle struct {
	t     *kernel.Task
	w     *command.Writer
	c     *chooser
	lines [][]byte
	low   uint64 // of a range; lines is nil then
	n     uint64 // how many there are
	end   byte
}

func runShuf(t *kernel.Task) int {
	a, status, ok := shufSpec.Parse(t)
	if !ok {
		return status
	}
	s := &shuffle{t: t, end: command.Delimiter(a), c: &chooser{t: t}}
	count := uint64(math.MaxUint64)
	output, ranged := "", false
	for _, f := range a.Flags {
		switch f.Key {
		case "n":
			n, err := command.ParseUint(f.Value, "")
			if err != nil && !errors.Is(err, command.ErrLarge) {
				t.Errorf("invalid line count: %s", command.Quote(f.Value))
				return 1
			}
			count = min(count, n)
		case "o":
			if output != "" && output != f.Value {
				t.Errorf("multiple output files specified")
				return 1
			}
			output = f.Value
		case "random-source":
			if s.c.name != "" && s.c.name != f.Value {
				t.Errorf("multiple random sources specified")
				return 1
			}
			s.c.name = f.Value
		case "i":
			if ranged {
				t.Errorf("multiple -i options specified")
				return 1
			}
			if ranged = true; !s.span(f.Value) {
				return 1
			}
		}
	}
	echo, repeat := a.Has("e"), a.Has("r")
	switch {
	case echo && ranged:
		return shufSpec.Usage(t, "cannot combine -e and -i options")
	case ranged && len(a.Operands) > 0:
		return shufSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[0]))
	case !echo && len(a.Operands) > 1:
		return shufSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[1]))
	}
	if s.c.name != "" {
		r, err := command.OpenReader(t, s.c.name)
		if err != nil {
			command.FailFile(t, s.c.name, err)
			return 1
		}
		defer r.Close()
		s.c.file = r
	}
	switch {
	case ranged:
	case echo:
		for _, arg := range a.Operands {
			s.lines = append(s.lines, []byte(arg))
		}
		s.n = uint64(len(s.lines))
	case count == 0 && !repeat:
	default:
		if status := s.read(command.InputNames(a.Operands)[0], count, repeat); status != 0 {
			return status
		}
	}
	if repeat && count > 0 && s.n == 0 {
		t.Errorf("no lines to repeat")
		return 1
	}
	return s.write(output, func() { s.run(count, repeat) })
}

func (s *shuffle) span(text string) bool {
	low, high, dash := strings.Cut(text, "-")
	a, err := command.ParseUint(low, "")
	b, err2 := command.ParseUint(high, "")
	switch {
	case !dash:
		s.t.Errorf("invalid input range: %s", command.Quote(text))
		return false
	case err != nil:
		command.BadNumber(s.t, "invalid input range", low, err)
		return false
	case err2 != nil:
		command.BadNumber(s.t, "invalid input range", high, err2)
		return false
	case b-a+1 == 0 && a == 0 || b+1 < a:
		s.t.Errorf("invalid input range: %s", command.Quote(text))
		return false
	}
	s.low, s.n = a, b-a+1
	return true
}

// read reads the lines: all, or of a pipe a choice of as many as are needed.
func (s *shuffle) read(name string, count uint64, repeat bool) int {
	r, err := command.OpenReader(s.t, name)
	if err != nil {
		command.FailFile(s.t, name, err)
		return 1
	}
	defer r.Close()
	const small = 8192 * 1024
	if f, ok := r.Desc().VFS(); !repeat && count != math.MaxUint64 && ok {
		if i, err := f.Info(); err == nil && i.Size > small {
			return s.reservoir(r, count)
		}
	} else if !repeat && count != math.MaxUint64 {
		return s.reservoir(r, count)
	}
	b, err := r.All()
	if err != nil {
		s.t.Errorf("read error: %s", message(err))
		return 1
	}
	if n := len(b); n > 0 && b[n-1] == s.end {
		b = b[:n-1]
	} else if n == 0 {
		return 0
	}
	s.t.Grow(24 * (1 + bytes.Count(b, []byte{s.end})))
	s.lines = bytes.Split(b, []byte{s.end})
	s.n = uint64(len(s.lines))
	return 0
}

// reservoir keeps count lines, each with the same chance.
func (s *shuffle) reservoir(r *command.Reader, count uint64) int {
	for {
		var place uint64
		full := uint64(len(s.lines)) >= count
		if full {
			place = s.c.choose(s.n)
		}
		line, _, ok := r.Line(s.end)
		if !ok {
			break
		}
		s.n++
		switch {
		case !full:
			s.t.Grow(len(line) + 24)
			s.lines = append(s.lines, bytes.Clone(line))
		case place < count:
			s.t.Grow(len(line))
			s.t.Shrink(len(s.lines[place]))
			s.lines[place] = bytes.Clone(line)
		}
	}
	s.n = uint64(len(s.lines))
	if err := r.Err(); err != nil {
		s.t.Errorf("read error: %s", message(err))
		return 1
	}
	return 0
}

func (s *shuffle) show(i uint64) {
	if s.lines != nil {
		s.w.Line(s.lines[i], s.end)
		return
	}
	s.w.Bytes(append(strconv.AppendUint(s.w.Space(), s.low+i, 10), s.end))
}

func (s *shuffle) run(count uint64, repeat bool) {
	if repeat {
		for range count {
			s.show(s.c.choose(s.n - 1))
		}
		return
	}
	count = min(count, s.n)
	// Only places that have changed are kept: a few numbers of a great range
	// cost little.
	moved := map[uint64]uint64{}
	var chosen []uint64
	at := func(i uint64) uint64 {
		if v, ok := moved[i]; ok {
			return v
		}
		return i
	}
	for i := range count {
		k := i + s.c.choose(s.n-i-1)
		x, y := at(i), at(k)
		s.t.Grow(40)
		moved[k] = x
		delete(moved, i)
		if k == i {
			delete(moved, k)
		}
		chosen = append(chosen, y)
	}
	for _, i := range chosen {
		s.show(i)
	}
	s.t.Shrink(40 * int(count))
}

// write makes s.w the output for do.
func (s *shuffle) write(output string, do func()) int {
	if output == "" {
		s.w = command.Stdout(s.t)
		do()
		return 0
	}
	o, err := command.Create(s.t, output, linux.O_TRUNC)
	if err != nil {
		command.FailFile(s.t, output, err)
		return 1
	}
	defer func() { _ = o.Close() }()
	s.w = command.NewWriter(o, func(err error) {
		s.t.Errorf("write error: %s", message(err))
		s.t.Exit(1)
	})
	do()
	s.w.Flush()
	return 0
}
