package step

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// The log of a step is text: each line has a CRC-32 in hexadecimal, a space, and an entry in JSON. The first entry is a
// header. A line that is cut off or damaged ends the log, because what follows was not acknowledged.
const (
	logVersion = 1
	maxLine    = 4 << 20 // of an entry: its longest part names the parts of a large file
)

type header struct {
	Version int          `json:"v"`
	Number  int64        `json:"number"`
	Sandbox string       `json:"sandbox,omitempty"`
	Life    string       `json:"life,omitempty"`
	Tier    paddock.Tier `json:"tier,omitempty"`
	Kind    string       `json:"kind,omitempty"`
	Command []Text       `json:"command,omitempty"`
	Roots   []Root       `json:"roots"`
	Start   time.Time    `json:"start"`
	Undoes  []int64      `json:"undoes,omitempty"`
	Protect []string     `json:"protect,omitempty"`

	Monitor json.RawMessage `json:"monitor,omitempty"`
}

// Operations of the log.
const (
	opSave   = "save"   // the state of From was looked at, and its contents were kept
	opCreate = "create" // Path was made
	opLink   = "link"   // Path was made as another name of From
	opRemove = "remove" // Path is about to be removed
	opMove   = "move"   // From is moved to Path
	opLeft   = "left"   // Path is not kept
	opFail   = "fail"   // the last change of Path was not made
)

type entry struct {
	Op       string    `json:"o"`
	Root     int       `json:"r,omitempty"`
	Path     Text      `json:"p,omitempty"`
	FromRoot int       `json:"fr,omitempty"`
	From     Text      `json:"f,omitempty"`
	How      How       `json:"h,omitempty"`
	Inos     [2]uint64 `json:"i,omitzero"`
	Why      string    `json:"why,omitempty"`

	// Of opSave.
	State   State  `json:"s,omitzero"`
	Parts   []byte `json:"c,omitempty"`
	Kept    int    `json:"k,omitempty"`
	Pack    int64  `json:"pk,omitempty"` // one more than the offset of the contents in the pack
	Shared  bool   `json:"sh,omitempty"` // an entry before this one has the parts
	Seen    bool   `json:"seen,omitempty"`
	Partial bool   `json:"partial,omitempty"`
}

// gapMode is the mode of a log in which something is missing, because the disk was full or the log too long. The change
// of a mode needs no room.
const gapMode = 0o400

// A logFile is the log of a living recorder.
type logFile struct {
	f    *os.File
	size int64
	most int64
	room int64                        // it may have so many bytes until it takes more
	more func(need int64) (got int64) // takes room; nil if none is needed
	sync bool
	gap  bool
}

var errLogFull = fmt.Errorf("the log of the step has reached its size: end the step, or raise the limit: %w", paddock.Exhausted)

// line appends a line to a buffer.
func line(b *bytes.Buffer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%08x ", crc32.ChecksumIEEE(text))
	b.Write(text)
	b.WriteByte('\n')
	return nil
}

// add writes lines at once. After an error the log is as before.
func (l *logFile) add(durable bool, lines ...any) error {
	if l.gap {
		return errLogFull
	}
	var b bytes.Buffer
	for _, v := range lines {
		if err := line(&b, v); err != nil {
			return err
		}
	}
	if l.size+int64(b.Len()) > l.most || !l.roomy(int64(b.Len())) {
		return errLogFull
	}
	_, err := l.f.WriteAt(b.Bytes(), l.size)
	if err == nil && durable && l.sync {
		err = l.f.Sync()
	}
	if err != nil {
		return errors.Join(err, l.f.Truncate(l.size))
	}
	l.size += int64(b.Len())
	return nil
}

// share makes the log take room for what comes, from when it is no short one any more.
func (l *logFile) share(more func(int64) int64) { l.room, l.more = max(l.size, logFree), more }

// roomy reports whether there is room for so many bytes more.
func (l *logFile) roomy(n int64) bool {
	if need := l.size + n - l.room; l.more != nil && need > 0 {
		l.room += l.more(need)
	}
	return l.more == nil || l.size+n <= l.room
}

// lose notes that from here on something is missing.
func (l *logFile) lose() error {
	if l.gap {
		return nil
	}
	l.gap = true
	return l.f.Chmod(gapMode)
}

// readLog reads a log, whoever wrote it, and calls each with its entries up to the first damaged one. gap means that
// something is missing. A log without a header is io.EOF.
func readLog(f io.Reader, head func(*header) error, each func(*entry) error) error {
	r := bufio.NewReaderSize(f, 64<<10)
	begun := false
	for {
		text, err := readLine(r, maxLine)
		if err != nil {
			if !begun {
				return io.EOF
			}
			return nil
		}
		sum, body, ok := bytes.Cut(text, []byte{' '})
		n, err := strconv.ParseUint(string(sum), 16, 32)
		if !ok || err != nil || len(sum) != 8 || crc32.ChecksumIEEE(body) != uint32(n) {
			if !begun {
				return io.EOF
			}
			return nil
		}
		if !begun {
			begun = true
			var h header
			if err := json.Unmarshal(body, &h); err != nil {
				return io.EOF
			}
			if h.Version != logVersion {
				return fmt.Errorf("a log of version %d: use a newer paddock: %w", h.Version, paddock.Unsupported)
			}
			if len(h.Roots) > maxRoots || h.Number <= 0 {
				return fmt.Errorf("a log of step %d with %d roots: %w", h.Number, len(h.Roots), paddock.Invalid)
			}
			if err := head(&h); err != nil {
				return err
			}
			continue
		}
		var e entry
		if err := json.Unmarshal(body, &e); err != nil {
			return nil //nolint:nilerr // as a damaged one
		}
		if err := each(&e); err != nil {
			return err
		}
	}
}

// readLine reads a line without its end. One that is too long or has no end is an error.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var all []byte
	for {
		b, err := r.ReadSlice('\n')
		if err == nil && all == nil {
			return b[:len(b)-1], nil // until the next read
		}
		all = append(all, b...)
		if err == nil {
			return all[:len(all)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(all) > most {
			return nil, fmt.Errorf("a line of more than %d bytes: %w", most, paddock.Invalid)
		}
	}
}

// hasGap reports whether something is missing in an open log.
func hasGap(f *os.File) bool {
	i, err := f.Stat()
	return err == nil && i.Mode().Perm()&0o200 == 0
}

// valid checks an entry of a log that somebody may have damaged.
func (e *entry) valid(roots int) error {
	for _, at := range []struct {
		root int
		path Text
		want bool
	}{
		{e.Root, e.Path, e.Op != opSave && e.Path != ""},
		{e.FromRoot, e.From, e.Op == opSave || e.Op == opMove || e.Op == opLink},
	} {
		if at.root < 0 || at.root >= roots {
			return fmt.Errorf("an entry of root %d: %w", at.root, paddock.Invalid)
		}
		if at.want {
			if err := validPath(string(at.path)); err != nil {
				return err
			}
		}
	}
	if e.Path == "" && e.Op != opSave && e.Op != opLeft {
		return fmt.Errorf("an entry without a path: %w", paddock.Invalid)
	}
	if e.Op == opMove && (related(key{e.FromRoot, string(e.From)}, key{e.Root, string(e.Path)})) {
		return fmt.Errorf("%q is moved to %q: %w", e.From, e.Path, paddock.Invalid)
	}
	if e.How > Exchange || e.Kept < 0 || e.Kept > 1<<31-1 || e.Pack < 0 || e.Pack > packRoom+packMost || e.Pack > 0 && e.State.Size > packMost {
		return fmt.Errorf("an entry with invalid numbers: %w", paddock.Invalid)
	}
	return nil
}
