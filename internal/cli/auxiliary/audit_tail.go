package auxiliary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

// block is how much of a file is read at a time.
const block = 64 << 10

// longestEvent bounds an event on one line of the terminal, in runes.
const longestEvent = 1000

func auditTailCommand(a *cli.App) *cobra.Command {
	var follow, asJSON bool
	n := 10
	c := &cobra.Command{
		Use:   "tail FILE",
		Short: "Show the last events of a record",
		Long: `Show the last lines of a file of paddock run --audit, or of a sandbox's own
audit.jsonl, for people to read. What programs chose to deceive a terminal is
shown as escapes. Nothing is verified: see paddock audit verify.

With -f what is added is shown too, until the record is closed.

Exit status: 0, or 125 if the file cannot be read.`,
		Example: `  paddock audit tail events.jsonl
  paddock audit tail -f -n 100 events.jsonl`,
		Args: cli.OneArgument("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if n < 0 {
				return cli.WithHint(fmt.Errorf("-n %d: there is no such number of lines: %w", n, paddock.Invalid), "it is 0 or more")
			}
			f, size, err := openLog(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			at, err := lastLines(f, size, n)
			if err != nil {
				return fmt.Errorf("%s: %w: %w", args[0], err, paddock.Unavailable)
			}
			t := &tail{name: args[0], file: f, at: at, show: func(line []byte) error { return showEvent(a, line) }}
			if asJSON {
				t.show = func(line []byte) error { return showLine(a, line) }
			}
			return followTail(c.Context(), a, t, follow)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more, and show it, until the record is closed")
	c.Flags().IntVarP(&n, "lines", "n", n, "show this `number` of lines, from the end")
	c.Flags().BoolVar(&asJSON, "json", false, "show the lines themselves, which are JSON")
	return c
}

// lastLines finds where the last n lines begin. A line without its end counts
// as none.
func lastLines(f io.ReaderAt, size int64, n int) (int64, error) {
	buf := make([]byte, block)
	breaks := 0
	for end := size; end > 0; {
		start := max(end-block, 0)
		b := buf[:end-start]
		if _, err := f.ReadAt(b, start); err != nil {
			return 0, err
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != '\n' {
				continue
			}
			if breaks++; breaks > n {
				return start + int64(i) + 1, nil
			}
		}
		end = start
	}
	return 0, nil
}

// A tail reads a file that may grow.
type tail struct {
	name   string
	file   *os.File
	at     int64 // what was read
	half   []byte
	closed bool // a closing head was there
	show   func(line []byte) error
}

func followTail(ctx context.Context, a *cli.App, t *tail, follow bool) error {
	const often = 250 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		if err := t.read(); err != nil {
			return err
		}
		if !follow || t.closed {
			if len(t.half) > 0 {
				fmt.Fprintf(a.Stderr, "paddock: %s: the last line has no end, and is left out (%d bytes)\n", cli.OneLine(t.name), len(t.half))
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// read shows the whole lines up to the end.
func (t *tail) read() error {
	st, err := t.file.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", t.name, err, paddock.Unavailable)
	}
	if st.Size() < t.at {
		return cli.WithHint(fmt.Errorf("%s: it got shorter: %w", t.name, paddock.Conflict), "nothing of Paddock's does that: `paddock audit verify` tells what is left")
	}
	buf := make([]byte, block)
	for {
		n, err := t.file.ReadAt(buf, t.at)
		t.at += int64(n)
		t.half = append(t.half, buf[:n]...)
		for {
			line, rest, ok := bytes.Cut(t.half, []byte("\n"))
			if !ok {
				break
			}
			if err := t.show(line); err != nil {
				return err
			}
			t.closed = closes(line)
			t.half = rest
		}
		t.half = bytes.Clone(t.half) // and not all that was read before it
		if len(t.half) > chain.MaxLine {
			return cli.WithHint(fmt.Errorf("%s: a line is longer than any of a record: %w", t.name, paddock.Invalid), "is it a file of paddock run --audit?")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %w", t.name, err, paddock.Unavailable)
		}
	}
}

// closes tells whether a line says that no other follows.
func closes(line []byte) bool {
	var h logLine
	return json.Unmarshal(line, &h) == nil && h.Kind == chain.Head && h.Closed
}

// showLine prints a line as it is, if it is JSON: without what could drive a
// terminal, which whoever changed the file may have put there.
func showLine(a *cli.App, line []byte) error {
	if !json.Valid(line) {
		fmt.Fprintf(a.Stderr, "paddock: a line is left out, because it is no JSON: %s\n", cli.OneLine(string(line)))
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, bytes.ToValidUTF8(line, []byte("\ufffd"))); err != nil {
		return fmt.Errorf("a line of JSON: %w", err)
	}
	_, err := a.Stdout.Write(append(audit.Escape(b.Bytes()), '\n'))
	return err
}

// showEvent prints an event for people.
func showEvent(a *cli.App, line []byte) error {
	_, err := fmt.Fprintln(a.Stdout, describe(line))
	return err
}

// A logLine is any line of a record.
type logLine struct {
	audit.Event
	Seq         uint64 `json:"seq"`
	Hash        string `json:"hash"`
	Log         string `json:"log"`
	Fingerprint string `json:"fingerprint"`
	Closed      bool   `json:"closed"`
}

// describe gives a line of a record in words, on one line.
func describe(line []byte) string {
	var l logLine
	if err := json.Unmarshal(line, &l); err != nil {
		return "? " + cli.OneLine(string(line))
	}
	text := fmt.Sprintf("%s  %-8s", l.Time.UTC().Format("2006-01-02T15:04:05.000Z"), l.Kind)
	if l.Process.PID != 0 {
		text += fmt.Sprintf(" %d %s:", l.Process.PID, word(l.Process.Name))
	}
	if about := l.about(); about != "" {
		text += " " + about
	}
	if l.Dropped > 0 {
		text += fmt.Sprintf(" (%d lost before it)", l.Dropped)
	}
	return cli.OneLineOf(text, longestEvent)
}

// about says what an event was.
func (l logLine) about() string {
	switch l.Kind {
	case audit.Exec:
		return strings.Join(append([]string{word(l.Path)}, quoted(l.Args)...), " ") + " in " + word(l.Dir)
	case audit.Open:
		text := word(l.Path) + " " + l.Flags
		if l.Error != "" {
			text += ": " + l.Error
		}
		return text
	case audit.Connect:
		return l.Address
	case audit.Clone:
		return "process " + strconv.Itoa(int(l.Child))
	case audit.Exited:
		switch {
		case l.Exit == nil:
			return ""
		case l.Exit.Signal != 0:
			return "signal " + strconv.Itoa(l.Exit.Signal)
		}
		return "status " + strconv.Itoa(l.Exit.Code)
	case audit.Network:
		return flow(l.Network)
	case audit.KeyAgent:
		return keyUse(l.KeyUse)
	case audit.Did:
		return actionInWords(l.Action, l.Args)
	case audit.Started:
		return startInWords(l.Start)
	case audit.Stepped:
		return stepInWords(l.Step, l.Args)
	case chain.Begin:
		return "log " + l.Log + ", signed with " + l.Fingerprint
	case chain.Head:
		text := chain.Point{Seq: l.Seq, Hash: l.Hash}.String()
		if l.Closed {
			text += ", closed"
		}
		return text
	}
	return ""
}

func actionInWords(a *audit.Action, args []string) string {
	if a == nil {
		return ""
	}
	parts := []string{word(a.Who), a.What}
	if a.Target != "" {
		parts = append(parts, word(a.Target))
	}
	text := strings.Join(append(parts, quoted(args)...), " ") + ": " + a.Result
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}

func startInWords(s *audit.Start) string {
	if s == nil {
		return ""
	}
	full := 0
	for _, c := range s.Controls {
		if c.Strength == string(paddock.Full) {
			full++
		}
	}
	return fmt.Sprintf("tier %s, root %s, %d of %s in full, policy %s, paddock %s", word(s.Tier), word(s.Root), full, cli.Plural(len(s.Controls), "control", "controls"), word(s.Policy), word(s.Paddock.Version))
}

func stepInWords(s *audit.Step, args []string) string {
	if s == nil {
		return ""
	}
	text := fmt.Sprintf("%d, %s", s.Number, word(s.Kind))
	if len(args) > 0 {
		text += " " + strings.Join(quoted(args), " ")
	}
	text += fmt.Sprintf(": status %d, %s, %d of them removed", s.Exit, cli.Plural(s.Changed, "path", "paths"), s.Removed)
	if s.Left > 0 {
		text += ", " + cli.Plural(s.Left, "place", "places") + " cannot be undone"
	}
	if s.Incomplete {
		text += ", incomplete"
	}
	return text
}

func keyUse(u *audit.KeyUse) string {
	if u == nil {
		return ""
	}
	parts := []string{u.Verdict, word(u.Agent), u.Request}
	if u.Key != "" {
		parts = append(parts, word(u.Key))
	}
	if u.Comment != "" {
		parts = append(parts, word(u.Comment))
	}
	text := strings.Join(parts, " ")
	if u.Reason != "" {
		text += ": " + u.Reason
	}
	if u.Purpose != "" {
		text += ": " + word(u.Purpose)
	}
	if u.Digest != "" {
		text += ", " + word(u.Digest)
	}
	if u.Count > 1 {
		text += ", " + strconv.FormatInt(u.Count, 10) + " times"
	}
	return text
}

func flow(f *audit.Flow) string {
	if f == nil {
		return ""
	}
	to := word(f.Host)
	if f.Port != 0 {
		to += ":" + strconv.Itoa(int(f.Port))
	}
	parts := []string{f.Verdict, f.Protocol}
	if f.Method != "" {
		parts = append(parts, word(f.Method))
	}
	parts = append(parts, to)
	if f.Path != "" {
		parts = append(parts, word(f.Path))
	}
	if f.Sent > 0 || f.Received > 0 {
		parts = append(parts, fmt.Sprintf("%d bytes out, %d in", f.Sent, f.Received))
	}
	if f.Count > 1 {
		parts = append(parts, fmt.Sprintf("%d times", f.Count))
	}
	text := strings.Join(parts, " ")
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

// word gives text of a program's as one word: in quotes, unless it can be read
// without them.
func word(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || strings.ContainsRune(" \"'`\\", r) }) {
		return strconv.Quote(s)
	}
	return s
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = word(s)
	}
	return out
}
