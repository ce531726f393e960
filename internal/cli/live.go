package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// A crowd lets the lines of several runs through as they are written, each with the input of its run before it.
type crowd struct {
	stdout, stderr io.Writer
	broken         func() // called when something cannot be written

	mu   sync.Mutex
	fail error // guarded by mu; of a write
}

func (c *crowd) err() error { c.mu.Lock(); defer c.mu.Unlock(); return c.fail }

// line writes one line. Nothing in it can move the cursor and so imitate a line of another run.
func (c *crowd) line(to io.Writer, name string, text []byte) error {
	parts := strings.Split(string(bytes.TrimSuffix(text, []byte("\r"))), "\t")
	for i, p := range parts {
		parts[i] = OneLineOf(p, longestLine)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	if _, err := fmt.Fprintf(to, "%s: %s\n", name, strings.Join(parts, "\t")); err != nil {
		c.fail = err
		c.broken()
	}
	return c.fail
}

// longestLine bounds what is held back of a line, in bytes. A longer one becomes several.
const longestLine = 64 << 10

// longestName bounds what of an input stands before each line, in runes.
const longestName = 60

// A member is one stream of a run in a crowd. One goroutine at a time uses it.
type member struct {
	c    *crowd
	to   io.Writer
	name string
	held []byte // the beginning of a line
}

// add gives a run its streams.
func (c *crowd) add(input string) (stdout, stderr *member) {
	name := OneLineOf(input, longestName)
	return &member{c: c, to: c.stdout, name: name}, &member{c: c, to: c.stderr, name: name}
}

func (m *member) Write(p []byte) (int, error) {
	m.held = append(m.held, p...)
	for {
		text, rest, whole := bytes.Cut(m.held, []byte("\n"))
		if len(text) > longestLine {
			cut := longestLine
			for cut > longestLine-utf8.UTFMax && !utf8.RuneStart(m.held[cut]) {
				cut--
			}
			text, rest, whole = m.held[:cut], m.held[cut:], true
		}
		if !whole {
			return len(p), nil
		}
		if err := m.c.line(m.to, m.name, text); err != nil {
			return 0, err
		}
		m.held = append(m.held[:0], rest...)
	}
}

// end writes what has no end of line.
func (m *member) end() {
	if len(m.held) > 0 {
		_ = m.c.line(m.to, m.name, m.held) // who cannot write is told at the end
		m.held = nil
	}
}
