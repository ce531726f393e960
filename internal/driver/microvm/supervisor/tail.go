package supervisor

import (
	"io"
	"os"
	"strings"
	"sync"
)

// A tail keeps the end of what somebody says, for an error.
type tail struct {
	mu   sync.Mutex
	data []byte        // guarded by mu
	over chan struct{} // closed when no more will come
}

// tailSize is how much, in bytes.
const tailSize = 4 << 10

// Complaints of QEMU and of the machine's kernel in an error are so many lines.
const (
	saidLines    = 4
	consoleLines = 12
)

// newTail gives the end to write to as well. It is the caller's to close.
func newTail() (*tail, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	t := &tail{over: make(chan struct{})}
	go func() { // ends with the last writer
		defer close(t.over)
		defer r.Close()
		_, _ = io.Copy(t, r) // what was said until then is what there is
	}()
	return t, w, nil
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

// lines gives the last ones, at most so many, in one, without anything that a
// terminal would not show.
func (t *tail) lines(most int) string {
	list := t.list()
	return strings.Join(list[max(0, len(list)-most):], "; ")
}

// gaveUp begins a kernel's last word.
const gaveUp = "Kernel panic - not syncing: "

// panic gives why a kernel gave up, if it did, and what was said just before. What
// it says afterwards is about where it was.
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

// list gives the lines that are not empty.
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
