package step

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// A Text is a name or an argument: any bytes. JSON has it as a string if it is UTF-8, and otherwise as
// {"base64": "…"}, so that no byte is lost.
type Text string

// MarshalJSON implements [json.Marshaler].
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(raw{[]byte(t)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var r raw
		err := json.Unmarshal(b, &r)
		*t = Text(r.Bytes)
		return err
	}
	var s string
	err := json.Unmarshal(b, &s)
	*t = Text(s)
	return err
}

type raw struct {
	Bytes []byte `json:"base64"`
}

// A Kind is the kind of a file.
type Kind string

// Kinds of files. The zero Kind means that there is no file.
const (
	Absent  Kind = ""
	File    Kind = "file"
	Dir     Kind = "directory"
	Symlink Kind = "link"
	FIFO    Kind = "fifo"
	Socket  Kind = "socket"
	Device  Kind = "device"
)

// A State is the state of one path. The zero State means that there is nothing.
type State struct {
	Kind   Kind   `json:"kind,omitempty"`
	Mode   uint32 `json:"mode,omitempty"` // permission bits, 07777
	UID    uint32 `json:"uid,omitempty"`
	GID    uint32 `json:"gid,omitempty"`
	Size   int64  `json:"size,omitempty"`   // of a file
	Digest string `json:"digest,omitempty"` // SHA-256 of a file's whole contents in hexadecimal, empty if not computed
	Target Text   `json:"target,omitempty"` // of a link

	ModTime int64 `json:"mtime,omitempty"` // nanoseconds since 1970

	// The identity of the file. Dev is zero if it is that of the root directory, because numbers of devices may change
	// when a machine starts.
	Dev    uint64 `json:"dev,omitempty"`
	Ino    uint64 `json:"ino,omitempty"`
	Change int64  `json:"ctime,omitempty"` // nanoseconds since 1970
	Links  uint64 `json:"links,omitempty"` // names that a file has, if more than one

	// Racy means that the file changed so shortly before the look at it that a later change may have the same Change.
	Racy bool `json:"racy,omitempty"`
}

// Exists reports whether there is a file.
func (s *State) Exists() bool { return s.Kind != Absent }

// A Root is a directory of the host that a sandbox could write.
type Root struct {
	Path   Text `json:"path"`             // absolute, on the host
	Target Text `json:"target,omitempty"` // where the sandbox sees it

	Ino uint64 `json:"ino,omitempty"` // set by Begin
	Dev uint64 `json:"dev,omitempty"` // set by Begin
}

// A Change is the net effect of a step on one path.
//
// A removed file has no After, a new one no Before. A moved file has its present Path and its earlier From. If a file
// was replaced by one that came from elsewhere, there are two changes with the same Path.
type Change struct {
	Root   int   `json:"root,omitempty"` // index in the record's Roots
	Path   Text  `json:"path"`
	Before State `json:"before,omitzero"`
	After  State `json:"after,omitzero"`

	Moved    bool `json:"moved,omitempty"`
	From     Text `json:"from,omitempty"`      // if Moved
	FromRoot int  `json:"from_root,omitempty"` // if Moved

	// Kept is the number of the contents of Before in the snapshot of the record, counting from 1. It is zero if the
	// contents were not kept, or are those of After.
	Kept int `json:"kept,omitempty"`

	// Pack is one more than the offset of the contents of a small file in those with the number zero, or zero if it has
	// contents of its own.
	Pack int64 `json:"pack,omitempty"`

	// BaseKept and BasePack are the same for the contents of After, of a proposal.
	BaseKept int   `json:"base_kept,omitempty"`
	BasePack int64 `json:"base_pack,omitempty"`

	// Seen means that the recorder saw Before under the path that it had when the step began.
	Seen bool `json:"seen,omitempty"`

	Why string `json:"why,omitempty"` // why it cannot be undone, or empty
}

// Was returns the path that the file had before the step.
func (c *Change) Was() (root int, path Text) {
	if c.Moved {
		return c.FromRoot, c.From
	}
	return c.Root, c.Path
}

// A Left is something that was not kept.
type Left struct {
	Root int    `json:"root,omitempty"`
	Path Text   `json:"path,omitempty"`
	Why  string `json:"why"`
}

// A Refusal is an operation that the sandbox was refused.
type Refusal struct {
	Path      Text   `json:"path,omitempty"` // or an address
	Operation string `json:"operation,omitempty"`
	Why       string `json:"why,omitempty"` // such as the rule
}

// A Record tells what a step did.
type Record struct {
	Number  int64        `json:"number"`
	Sandbox string       `json:"sandbox,omitempty"`
	Life    string       `json:"life,omitempty"` // of the sandbox, whose ID may be given again
	Tier    paddock.Tier `json:"tier,omitempty"`
	Kind    string       `json:"kind,omitempty"` // "run", "file", "cell", "background", "undo"
	Command []Text       `json:"command,omitempty"`
	Roots   []Root       `json:"roots,omitempty"`
	Begin   time.Time    `json:"begin"`
	End     time.Time    `json:"end"`
	Exit    int          `json:"exit"`

	Refused    []Refusal `json:"refused,omitempty"`
	Hosts      []string  `json:"hosts,omitempty"`
	Secrets    []string  `json:"secrets,omitempty"`    // names of secrets that were used
	Concurrent []int64   `json:"concurrent,omitempty"` // steps that ran at the same time in the same directories

	Use *paddock.StepUse `json:"use,omitempty"` // nil if nothing was measured

	Protect []string `json:"protect,omitempty"` // names that are protected besides the built-in ones, of a proposal

	// Monitor says who judged the command, of a proposal, in the words of whoever began the review.
	Monitor json.RawMessage `json:"monitor,omitempty"`

	Bytes      int64   `json:"bytes,omitempty"`      // contents that were kept, before deduplication
	Incomplete bool    `json:"incomplete,omitempty"` // the recorder was killed, or could not note everything
	Undoes     []int64 `json:"undoes,omitempty"`     // steps that this one undid

	Snapshot paddock.SnapshotID `json:"snapshot,omitempty"` // of the kept contents in the store of the journal

	Changed int `json:"changed,omitempty"` // how many Changes
	Missed  int `json:"missed,omitempty"`  // how many Left

	// Changes and Left are not filled in by List.
	Changes []Change `json:"-"`
	Left    []Left   `json:"-"`

	// Digest is the SHA-256, in hexadecimal, of the record as it is on the disk. It belongs into the audit chain.
	Digest string `json:"-"`
}

// Bounds of a record and of what is told about a step.
const (
	maxPath    = 4096
	maxName    = 255
	maxCommand = 64 << 10 // bytes of all arguments; the rest is cut off
	maxList    = 1000     // entries of Refused, Hosts, Secrets, Concurrent, Undoes
	maxRoots   = 64
	maxWords   = 1024 // bytes of one text in Refused, Hosts, Secrets
	maxMonitor = 1 << 20
)

// validPath returns what is wrong with a path below a root.
func validPath(p string) error {
	if p == "" || len(p) > maxPath {
		return fmt.Errorf("a path of %d bytes: %w", len(p), paddock.Invalid)
	}
	from := 0
	for i := 0; i <= len(p); i++ {
		switch {
		case i < len(p) && p[i] == 0:
			return fmt.Errorf("the path %q has a NUL: %w", p, paddock.Invalid)
		case i == len(p) || p[i] == '/':
			if n := p[from:i]; n == "" || n == "." || n == ".." || len(n) > maxName {
				return fmt.Errorf("the path %q is not clean and below its root: %w", p, paddock.Invalid)
			}
			from = i + 1
		}
	}
	return nil
}

// Words returns the refusal in one line.
func (r *Refusal) Words() string {
	text := r.Operation
	if r.Path != "" {
		text += " " + string(r.Path)
	}
	if r.Why != "" {
		text += ": " + r.Why
	}
	return text
}
