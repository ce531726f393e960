package segment

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

const (
	first   = "actions-"
	last    = ".jsonl"
	part    = ".part" // behind the name of what is being written
	sentDir = "sent"  // where what was uploaded is kept

	stamp     = "20060102T150405.000000000Z" // in a name
	continues = "record.continue"            // the first event of each

	// MaxSize is the largest Options.Size.
	MaxSize = 64 << 20
)

// Options configure a Writer.
type Options struct {
	Dir *os.Root
	Key *chain.Key

	// Size is the approximate size of a segment in bytes; the default is 16 MiB. Age is the time after which a smaller
	// segment is finished; the default is an hour. A segment without events is not finished because of its age.
	Size int64
	Age  time.Duration
}

// A Writer is an [audit.Sealer] that writes segments. The goroutine of one [audit.Lines] uses it.
type Writer struct {
	o        Options
	finished chan struct{} // has one where there is a new finished one
	before   string        // the name of the segment before
	point    string        // its last line, where that is known

	name  string
	file  *os.File
	chain *chain.Writer
	size  int64
	began uint64 // events of the chain that are the segment's own
	old   *time.Timer
	err   error // the first; nothing is written after it
}

// NewWriter finishes a segment that a crash left, and begins a new one.
func NewWriter(o Options) (*Writer, error) {
	if o.Size < 0 || o.Size > MaxSize || o.Age < 0 {
		return nil, fmt.Errorf("segments of %d bytes and %v: %w", o.Size, o.Age, paddock.Invalid)
	}
	if o.Size == 0 {
		o.Size = 16 << 20
	}
	if o.Age == 0 {
		o.Age = time.Hour
	}
	if err := o.Dir.Mkdir(sentDir, 0o700); err != nil && !os.IsExist(err) {
		return nil, fmt.Errorf("make a directory of segments: %w", err)
	}
	w := &Writer{o: o, finished: make(chan struct{}, 1)}
	at := "" // where the one before is
	for _, dir := range []string{sentDir, "."} {
		names, err := list(o.Dir, dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			whole := strings.TrimSuffix(name, part)
			if whole != name {
				if err := o.Dir.Rename(name, whole); err != nil {
					return nil, fmt.Errorf("finish a segment: %w", err)
				}
			}
			if whole > w.before {
				w.before, at = whole, path.Join(dir, whole)
			}
		}
	}
	if at != "" {
		w.point = reached(o.Dir, at, o.Key)
	}
	return w, w.begin()
}

// list gives the names of segments in a directory, oldest first.
func list(dir *os.Root, sub string) ([]string, error) {
	all, err := fs.ReadDir(dir.FS(), sub)
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	var names []string
	for _, e := range all {
		name := e.Name()
		whole := strings.TrimSuffix(name, part)
		if strings.HasPrefix(whole, first) && strings.HasSuffix(whole, last) && e.Type().IsRegular() && (sub == "." || whole == name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// later is a time for the name of a segment behind another, also where the clock
// was set back meanwhile: the order of names is the order of segments.
func later(now time.Time, before string) time.Time {
	text, _, _ := strings.Cut(strings.TrimPrefix(before, first), "-")
	if at, err := time.Parse(stamp, text); err == nil && !now.After(at) {
		return at.Add(1)
	}
	return now
}

// begin makes the next segment.
func (w *Writer) begin() error {
	salt := make([]byte, 4)
	if _, err := rand.Read(salt); err != nil {
		return fmt.Errorf("name a segment: %w", err)
	}
	now := time.Now().UTC()
	w.name = first + later(now, w.before).Format(stamp) + "-" + hex.EncodeToString(salt) + last
	f, err := w.o.Dir.OpenFile(w.name+part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("begin a segment: %w", err)
	}
	w.file, w.size = f, 0
	if w.chain, err = chain.NewWriter(f, w.o.Key); err != nil {
		return fmt.Errorf("begin a segment: %w", err)
	}
	line, err := audit.Line(audit.Event{Time: now, Kind: audit.Did, Action: &audit.Action{
		Who: "paddock", What: continues, Target: w.before, Result: "ok", Reason: w.point,
	}})
	if err == nil {
		_, err = w.chain.Write(line)
	}
	if err != nil {
		return fmt.Errorf("begin a segment: %w", err)
	}
	w.began = w.chain.Events()
	w.old = time.NewTimer(w.o.Age)
	return nil
}

// finish closes the segment, and has it on the disk before it gets its name.
func (w *Writer) finish() error {
	w.old.Stop()
	if err := w.chain.Close(); err != nil {
		return err
	}
	w.before, w.point = w.name, w.chain.Point().String()
	if err := w.file.Sync(); err != nil {
		return err
	}
	if err := w.file.Close(); err != nil {
		return err
	}
	if err := w.o.Dir.Rename(w.name+part, w.name); err != nil {
		return fmt.Errorf("finish a segment: %w", err)
	}
	select {
	case w.finished <- struct{}{}:
	default: // who waits was told, and has not looked yet
	}
	return nil
}

// turn finishes a segment and begins the next.
func (w *Writer) turn() error {
	if err := w.finish(); err != nil {
		return err
	}
	return w.begin()
}

// Write adds whole lines of events. They may go into several segments.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	for rest := p; len(rest) > 0; {
		if w.size >= w.o.Size {
			if w.err = w.turn(); w.err != nil {
				return len(p) - len(rest), w.err
			}
		}
		n := int(min(int64(len(rest)), w.o.Size-w.size))
		if end := bytes.IndexByte(rest[n-1:], '\n'); end >= 0 {
			n += end
		} else {
			n = len(rest)
		}
		if _, w.err = w.chain.Write(rest[:n]); w.err != nil {
			return len(p) - len(rest), w.err
		}
		w.size += int64(n)
		rest = rest[n:]
	}
	return len(p), nil
}

// Due implements [audit.Sealer].
func (w *Writer) Due() <-chan time.Time {
	if w.err != nil {
		return nil
	}
	if due := w.chain.Due(); due != nil {
		return due
	}
	if w.chain.Events() > w.began {
		return w.old.C
	}
	return nil
}

// Seal signs the lines written, or finishes a segment that has reached its age.
func (w *Writer) Seal() error {
	if w.err != nil {
		return w.err
	}
	if w.chain.Due() != nil {
		w.err = w.chain.Seal()
	} else if w.chain.Events() > w.began {
		w.err = w.turn()
	}
	return w.err
}

// Finished returns a channel that receives after segments were finished.
func (w *Writer) Finished() <-chan struct{} { return w.finished }

// Close finishes the last segment. No line is written after it.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.err = fmt.Errorf("the record is closed: %w", paddock.Conflict)
	return w.finish()
}
