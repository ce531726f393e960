package kernel

import (
	"io"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Modes say what a terminal does by itself, as termios does.
type Modes struct {
	Canonical bool // input comes by the line, and lines can be edited
	Echo      bool // what is typed is shown
	Signals   bool // Ctrl-C, Ctrl-\ and Ctrl-Z are signals
	NewlineIn bool // carriage return is newline
	Output    bool // newline is carriage return and newline
}

func cooked() Modes { return Modes{true, true, true, true, true} }

// A TTY is a terminal. Its input comes from outside; its output goes to a
// File.
type TTY struct {
	out TerminalOutput

	mu         sync.Mutex
	modes      Modes         // guarded by mu
	rows, cols int           // guarded by mu
	foreground int           // guarded by mu: process group
	line       []byte        // guarded by mu: not yet given to readers
	ready      []byte        // guarded by mu
	ends       []int         // guarded by mu: lengths of ready at which there is an end of file
	echo       []byte        // guarded by mu: to be shown by whoever writes next
	hung       bool          // guarded by mu: no more input
	waiting    []*Task       // guarded by mu
	room       chan struct{} // guarded by mu: closed when readers took something
	k          *Kernel
}

// maxTyped is how much input a terminal holds for its readers.
const maxTyped = 64 << 10

// NewTTY makes a terminal of a size, and the Desc by which tasks use it. The
// TTY itself is the outside's end: what is written to it is typed.
func NewTTY(k *Kernel, rows, cols int, out TerminalOutput) (*TTY, *Desc) {
	y := &TTY{k: k, out: out, modes: cooked(), rows: rows, cols: cols, room: make(chan struct{})}
	return y, NewDesc(&ttyFile{y, out}, "/dev/pts/0")
}

// A TerminalOutput is where a terminal's output goes. Show is for what the
// terminal itself shows (the echo); it never waits.
type TerminalOutput interface {
	File
	Show(p []byte)
}

// SetForeground says which process group gets the terminal's signals.
func (y *TTY) SetForeground(pgid int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.foreground = pgid
}

// Foreground returns the process group that has the terminal.
func (y *TTY) Foreground() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.foreground
}

// Modes returns what the terminal does by itself.
func (y *TTY) Modes() Modes {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.modes
}

// SetModes changes that. What was typed and not yet read is taken as if it was
// typed afterwards.
func (y *TTY) SetModes(m Modes) {
	y.mu.Lock()
	ahead := []byte(nil)
	switch {
	case y.modes.Canonical && !m.Canonical:
		y.ready = append(y.ready, y.line...)
		y.line = nil
		y.wakeReaders()
	case !y.modes.Canonical && m.Canonical && len(y.ends) == 0:
		ahead, y.ready = y.ready, nil
	}
	y.modes = m
	var sent []linux.Signal
	for _, c := range ahead {
		if sig := y.typed(c); sig != 0 {
			sent = append(sent, sig)
		}
	}
	shown, pgid := y.echo, y.foreground
	y.echo = nil
	y.mu.Unlock()
	if len(shown) > 0 {
		y.out.Show(shown)
	}
	for _, sig := range sent {
		_ = y.k.SignalGroup(pgid, sig) // nobody may be there
	}
}

// Size tells rows and columns.
func (y *TTY) Size() (rows, cols int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.rows, y.cols
}

// Resize changes the size, and tells the foreground by SIGWINCH.
func (y *TTY) Resize(rows, cols int) {
	y.mu.Lock()
	y.rows, y.cols = rows, cols
	pgid := y.foreground
	y.mu.Unlock()
	_ = y.k.SignalGroup(pgid, linux.SIGWINCH) // nobody may be there
}

// EOF is as if the end-of-file character was typed.
func (y *TTY) EOF() { _, _ = y.Write([]byte{4}) }

// Close is the hang-up: no more input comes.
func (y *TTY) Close() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if !y.hung {
		y.hung = true
		close(y.room)
		y.wakeReaders()
	}
	return nil
}

func (y *TTY) wakeReaders() {
	for _, t := range y.waiting {
		t.wakeUp()
	}
	y.waiting = y.waiting[:0]
}

// Write is what somebody outside types. It waits while there is no room.
func (y *TTY) Write(p []byte) (int, error) {
	for i, c := range p {
		for {
			y.mu.Lock()
			if y.hung {
				y.mu.Unlock()
				return i, linux.EIO
			}
			if len(y.ready)+len(y.line) < maxTyped {
				break
			}
			room := y.room
			y.mu.Unlock()
			<-room
		}
		sig, pgid := y.typed(c), y.foreground
		shown := y.echo
		y.echo = nil
		y.mu.Unlock()
		if len(shown) > 0 {
			y.out.Show(shown)
		}
		if sig != 0 {
			_ = y.k.SignalGroup(pgid, sig) // nobody may be there
		}
	}
	return len(p), nil
}

// typed takes in one character. y is locked.
func (y *TTY) typed(c byte) linux.Signal {
	if y.modes.Signals {
		var sig linux.Signal
		switch c {
		case 3:
			sig = linux.SIGINT
		case 28:
			sig = linux.SIGQUIT
		case 26:
			sig = linux.SIGTSTP
		}
		if sig != 0 {
			y.show(c)
			y.line = nil
			return sig
		}
	}
	if c == '\r' && y.modes.NewlineIn {
		c = '\n'
	}
	if !y.modes.Canonical {
		y.show(c)
		y.ready = append(y.ready, c)
		y.wakeReaders()
		return 0
	}
	switch c {
	case 4:
		y.ready = append(y.ready, y.line...)
		if len(y.line) == 0 {
			y.ends = append(y.ends, len(y.ready))
		}
		y.line = nil
		y.wakeReaders()
	case 127, 8:
		y.rub(1)
	case 21:
		y.rub(len(y.line))
	case 23:
		n := len(y.line)
		for n > 0 && y.line[n-1] == ' ' {
			n--
		}
		for n > 0 && y.line[n-1] != ' ' {
			n--
		}
		y.rub(len(y.line) - n)
	case '\n':
		y.show(c)
		y.ready = append(append(y.ready, y.line...), '\n')
		y.line = nil
		y.wakeReaders()
	default:
		y.show(c)
		y.line = append(y.line, c)
	}
	return 0
}

// rub takes away the last n bytes of the line, and the rest of a character
// that they are a part of.
func (y *TTY) rub(n int) {
	for n > 0 && len(y.line) > 0 {
		last := y.line[len(y.line)-1]
		y.line = y.line[:len(y.line)-1]
		n--
		if last&0xc0 == 0x80 {
			n++
			continue
		}
		if y.modes.Echo {
			y.echo = append(y.echo, "\b \b"...)
		}
	}
}

func (y *TTY) show(c byte) {
	if !y.modes.Echo {
		return
	}
	switch {
	case c == '\n' && y.modes.Output:
		y.echo = append(y.echo, "\r\n"...)
	case c < 32 && c != '\n' && c != '\t':
		y.echo = append(y.echo, '^', c+64)
	default:
		y.echo = append(y.echo, c)
	}
}

// take gives what can be read: in canonical mode one line at most.
func (y *TTY) take(p []byte) (int, error) {
	if len(y.ends) > 0 && y.ends[0] == 0 {
		y.ends = y.ends[1:]
		return 0, io.EOF
	}
	n := min(len(p), len(y.ready))
	if len(y.ends) > 0 {
		n = min(n, y.ends[0])
	}
	if y.modes.Canonical {
		for i, c := range y.ready[:n] {
			if c == '\n' {
				n = i + 1
				break
			}
		}
	}
	copy(p, y.ready[:n])
	y.ready = y.ready[n:]
	for i := range y.ends {
		y.ends[i] -= n
	}
	if n > 0 && !y.hung {
		close(y.room)
		y.room = make(chan struct{})
	}
	return n, nil
}

// A ttyFile is how tasks see a terminal.
type ttyFile struct {
	y   *TTY
	out File
}

// TTY returns the terminal that a descriptor leads to.
func (d *Desc) TTY() (*TTY, bool) {
	f, ok := d.File.(*ttyFile)
	if !ok {
		return nil, false
	}
	return f.y, true
}

func (f *ttyFile) Terminal() (rows, cols int) { return f.y.Size() }

func (f *ttyFile) Read(t *Task, p []byte) (int, error) {
	y := f.y
	for {
		y.mu.Lock()
		if y.foreground != t.PGID() && !y.hung {
			y.mu.Unlock()
			return 0, linux.EIO // as where SIGTTIN is ignored
		}
		n, err := y.take(p)
		if n > 0 || err != nil {
			y.mu.Unlock()
			return n, err
		}
		if y.hung || len(p) == 0 {
			y.mu.Unlock()
			return 0, io.EOF
		}
		y.waiting = append(y.waiting, t)
		y.mu.Unlock()
		if err := t.sleep(); err != nil {
			return 0, err
		}
	}
}

func (f *ttyFile) Write(t *Task, p []byte) (int, error) {
	if !f.y.Modes().Output {
		return f.out.Write(t, p)
	}
	shown := make([]byte, 0, len(p)+8)
	for _, c := range p {
		if c == '\n' {
			shown = append(shown, '\r')
		}
		shown = append(shown, c)
	}
	if _, err := f.out.Write(t, shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *ttyFile) Info() (vfs.Info, error) {
	return vfs.Info{Mode: linux.S_IFCHR | 0o620, Nlink: 1, Rdev: 136 << 8}, nil
}

func (f *ttyFile) Close() {}
