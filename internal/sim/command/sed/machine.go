package sed

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// A buffer is the pattern space or the hold space: a text, and whether a
// delimiter belongs behind it when it is printed.
type buffer struct {
	text    []byte
	ended   bool
	counted int // bytes that the task was charged for
}

// A machine runs a program.
type machine struct {
	t     *kernel.Task
	o     *options
	bytes bool // characters are bytes

	program     []instr
	expressions int // how many -e there were
	scriptFile  string
	scriptLine  int

	in      input
	out     *output // where the pattern space goes
	stdout  *output
	files   []*output // of w
	readers []*lines  // of R
	queue   []addition
	queued  int // bytes of it

	space, hold buffer
	spare       []byte // for what becomes the pattern space
	spares      int    // bytes that the task was charged for
	regs        []int
	latest      *regex.Regexp
	replaced    bool // since t looked last
}

// An addition is what is put out at the end of a cycle.
type addition struct {
	text []byte
	file string // to copy, if it is not empty
}

func newMachine(t *kernel.Task, o *options) *machine {
	m := &machine{t: t, o: o, bytes: t.Bytewise()}
	m.stdout = newStdout(m)
	m.out = m.stdout
	m.hold.ended = true
	m.in.m = m
	return m
}

// close lets go of all files. A task may end inside of any call.
func (m *machine) close() {
	m.in.close()
	for _, o := range m.files {
		o.close()
	}
	for _, r := range m.readers {
		r.close()
	}
}

// die complains and ends the task.
func (m *machine) die(status int, format string, args ...any) {
	m.flush()
	m.t.Errorf(format, args...)
	m.t.Exit(status)
}

// wrong complains about the script while it runs, and ends the task.
func (m *machine) wrong(format string, args ...any) {
	if m.scriptFile != "" {
		m.die(wrong, "file %s line %d: "+format, append([]any{m.scriptFile, m.scriptLine}, args...)...)
	}
	m.die(wrong, "-e expression #%d, char 0: "+format, append([]any{m.expressions}, args...)...)
}

// flush writes out what the files of w are to hold.
func (m *machine) flush() {
	for _, o := range m.files {
		o.w.Flush()
	}
}

// grown charges for what a buffer takes.
func (m *machine) grown(b *buffer) {
	if n := cap(b.text); n > b.counted {
		m.t.Bound("record", int64(len(b.text)), m.t.K.Limits.Record)
		m.t.Grow(n - b.counted)
		b.counted = n
	}
}

// longer makes room for n more bytes of what becomes a line.
func (m *machine) longer(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b
	}
	// Both are in memory while one is copied to the other.
	m.t.Bound("record", int64(need), m.t.K.Limits.Record)
	size := need + need/4
	m.t.Grow(size)
	defer m.t.Shrink(size)
	return slices.Grow(b, size-len(b))
}

// room checks what is about to become a line.
func (m *machine) room(n int) {
	if n > m.spares {
		m.t.Bound("record", int64(n), m.t.K.Limits.Record)
		m.t.Grow(n)
		m.spares += n
	}
}

// What to do after a command.
type order uint8

const (
	goOn    order = iota
	finish        // the cycle ends as at the end of the script
	drop          // the cycle ends without printing
	again         // a cycle begins with what is in the pattern space
	quit          // print and end
	abandon       // end
)

// run edits the files and gives the status.
func (m *machine) run(files []string) int {
	if len(files) == 0 {
		files = []string{"-"}
	}
	m.in.files = files
	status := 0
	for m.in.read(&m.space) {
		code, more := m.cycles()
		if !more {
			status = code
			break
		}
	}
	m.in.finish()
	m.flush()
	if status == 0 {
		status = m.in.status
	}
	return status
}

// cycles runs the program for a line, and again where D says so. It is false
// when it is the end of it all.
func (m *machine) cycles() (status int, more bool) {
	for {
		what, code := m.execute()
		if (what == finish || what == quit) && !m.o.quiet {
			m.out.line(&m.space)
		}
		if what != abandon {
			m.additions()
		}
		if m.o.unbuffered {
			m.out.w.Flush()
		}
		switch what {
		case again:
			continue
		case quit, abandon:
			if what == quit {
				m.out.begin()
			}
			return code, false
		default:
			return 0, true
		}
	}
}

// execute runs the program once.
func (m *machine) execute() (order, int) {
	m.replaced = false
	for pc := 0; pc < len(m.program); {
		m.t.Step(16)
		i := &m.program[pc]
		pc++
		if m.applies(i) == i.not {
			if i.name == '{' {
				pc = i.jump
			}
			continue
		}
		switch i.name {
		case '{', '}', ':':
		case 'b':
			pc = i.jump
		case 't':
			if m.replaced {
				m.replaced = false
				pc = i.jump
			}
		case 'T':
			if !m.replaced {
				pc = i.jump
			}
			m.replaced = false
		case 's':
			m.substitute(i.sub)
		case 'p':
			m.out.line(&m.space)
		case 'q', 'Q':
			what := quit
			if i.name == 'Q' {
				what = abandon
			}
			return what, max(i.number, 0)
		case 'D':
			if n := bytes.IndexByte(m.space.text, m.o.delim); n >= 0 {
				m.passed(m.space.text)
				m.space.text = m.space.text[:copy(m.space.text, m.space.text[n+1:])]
				return again, 0
			}
			return drop, 0
		case 'd':
			return drop, 0
		case 'c':
			if i.second == nil || !i.active {
				m.out.insert(i.text)
			}
			return drop, 0
		case 'n':
			if m.in.last() {
				if m.o.posix {
					return drop, 0
				}
				return finish, 0
			}
			if !m.o.quiet {
				m.out.line(&m.space)
			}
			m.additions()
			if !m.in.read(&m.space) {
				return drop, 0
			}
		case 'N':
			if m.in.last() {
				if m.o.strict {
					return drop, 0
				}
				return finish, 0
			}
			m.additions()
			m.space.text = append(m.space.text, m.o.delim)
			if !m.in.join(&m.space) {
				m.space.text = m.space.text[:len(m.space.text)-1]
				return finish, 0
			}
		default:
			m.simple(i)
		}
	}
	return finish, 0
}

// simple runs the commands after which the next one follows.
func (m *machine) simple(i *instr) {
	switch i.name {
	case '=':
		m.out.begin()
		m.out.record(strconv.AppendInt(m.out.w.Space(), m.in.number, 10))
	case 'a':
		m.add(addition{text: i.text})
	case 'i':
		m.out.insert(i.text)
	case 'F':
		m.out.record([]byte(m.in.name))
	case 'g':
		m.copy(&m.space, &m.hold)
	case 'h':
		m.copy(&m.hold, &m.space)
	case 'G':
		m.append(&m.space, &m.hold)
	case 'H':
		m.append(&m.hold, &m.space)
	case 'x':
		m.space, m.hold = m.hold, m.space
	case 'l':
		width := m.o.width
		if i.number >= 0 {
			width = i.number
		}
		m.list(width)
	case 'P':
		m.out.first(&m.space)
	case 'z':
		m.space.text = m.space.text[:0]
	case 'r':
		if i.begins() {
			m.include(i.name2, m.out.w)
			return
		}
		m.add(addition{file: i.name2})
	case 'R':
		if text, ok := i.reader.next(); ok {
			m.add(addition{text: text})
		}
	case 'w':
		i.file.line(&m.space)
	case 'W':
		i.file.first(&m.space)
	case 'y':
		m.passed(m.space.text)
		m.translate(i.table)
	case 'e':
		m.perform(i.text)
	}
}

// passed counts the work of looking at or copying a text.
func (m *machine) passed(b []byte) { m.t.Step(len(b) >> 4) }

func (m *machine) copy(to, from *buffer) {
	m.passed(from.text)
	to.text = append(to.text[:0], from.text...)
	to.ended = from.ended
	m.grown(to)
}

func (m *machine) append(to, from *buffer) {
	to.text = append(append(m.longer(to.text, 1+len(from.text)), m.o.delim), from.text...)
	to.ended = from.ended
	m.grown(to)
}

// additionSize is what an addition takes besides its text.
const additionSize = 64

func (m *machine) add(a addition) {
	m.t.Grow(len(a.text) + additionSize)
	m.queued += len(a.text) + additionSize
	m.queue = append(m.queue, a)
}

// additions puts out what was added to the cycle.
func (m *machine) additions() {
	if len(m.queue) == 0 {
		return
	}
	for n := range m.queue {
		a := &m.queue[n]
		if a.file == "" {
			m.out.text(a.text)
		} else {
			m.out.begin()
			m.include(a.file, m.out.w)
		}
		*a = addition{}
	}
	m.queue = m.queue[:0]
	m.t.Shrink(m.queued)
	m.queued = 0
}
