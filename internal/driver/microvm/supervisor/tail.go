package supervisor

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// A tail keeps the end of an output for an error.
type tail struct {
	out  *os.File // the reading end; closed when over is
	mu   sync.Mutex
	data []byte        // guarded by mu
	over chan struct{} // closed when the output has ended
}

// tailSize is the number of bytes kept.
const tailSize = 4 << 10

// Number of lines of QEMU and of the machine's kernel in an error.
const (
	saidLines    = 4
	consoleLines = 12
)

// newTail also returns the writing end, which the caller closes.
func newTail() (*tail, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	t := &tail{out: r, over: make(chan struct{})}
	go func() { // ends with the last writer, or with end
		defer close(t.over)
		defer r.Close()
		_, _ = io.Copy(t, r) // an error ends the output
	}()
	return t, w, nil
}

// lastWords bounds the time to read what is still in the pipe after the writer has ended.
const lastWords = time.Second

// end reads the rest of the output of a process that has ended. The process can have sent the writing
// end over one of its sockets, so the end of the process is not the end of the output.
func (t *tail) end() {
	_ = t.out.SetReadDeadline(time.Now().Add(lastWords)) // it fails only if the output has ended
	<-t.over
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if n := len(t.data) - tailSize; n > 0 {
		t.data = append(t.data[:0], t.data[n:]...)
	}
	return len(p), nil
}

// lines returns at most that many of the last lines as one, with only printable characters.
func (t *tail) lines(most int) string {
	list := t.list()
	return strings.Join(list[max(0, len(list)-most):], "; ")
}

// gaveUp is the start of a kernel's panic message.
const gaveUp = "Kernel panic - not syncing: "

// panic returns a kernel's panic message and the line before it, or "". The lines after it
// only have the location.
func (t *tail) panic() string {
	list := t.list()
	for i, line := range list {
		if _, why, ok := strings.Cut(line, gaveUp); ok {
			if before := list[max(0, i-saidLines):i]; len(before) > 0 {
				why += "; before it: " + strings.Join(before, "; ")
			}
			return why
		}
	}
	return ""
}

// list returns the non-empty lines.
func (t *tail) list() []string {
	t.mu.Lock()
	text := string(t.data)
	t.mu.Unlock()
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r <= '~' {
			return r
		}
		return -1
	}, text)
	var list []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}
