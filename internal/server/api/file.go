package api

import (
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A File encodes a paddock.FileInfo.
type File struct {
	Name    Bytes     `json:"name"`
	Type    FileType  `json:"type"`
	Size    int64     `json:"size"`
	Mode    Mode      `json:"mode"`
	ModTime time.Time `json:"mod_time"`
	Link    Bytes     `json:"link,omitempty"`
	UID     int       `json:"uid"`
	GID     int       `json:"gid"`
	User    string    `json:"user,omitempty"`
	Group   string    `json:"group,omitempty"`
}

// FromFile encodes a FileInfo.
func FromFile(i paddock.FileInfo) File {
	return File{
		Name: Bytes(i.Name), Type: typeOf(i.Mode), Size: i.Size, Mode: Mode(i.Mode &^ fs.ModeType), ModTime: i.ModTime, Link: Bytes(i.Link),
		UID: i.UID, GID: i.GID, User: i.User, Group: i.Group,
	}
}

// Info decodes the FileInfo.
func (f File) Info() paddock.FileInfo {
	return paddock.FileInfo{
		Name: string(f.Name), Size: f.Size, Mode: fs.FileMode(f.Mode) | f.Type.mode(), ModTime: f.ModTime, Link: string(f.Link),
		UID: f.UID, GID: f.GID, User: f.User, Group: f.Group,
	}
}

// A FileType is the type of a file. Any other than these is "other".
type FileType string

func fileTypes() map[FileType]fs.FileMode {
	return map[FileType]fs.FileMode{
		"file": 0, "directory": fs.ModeDir, "symlink": fs.ModeSymlink, "pipe": fs.ModeNamedPipe, "socket": fs.ModeSocket,
		"block-device": fs.ModeDevice, "character-device": fs.ModeDevice | fs.ModeCharDevice,
	}
}

func typeOf(mode fs.FileMode) FileType {
	for name, bits := range fileTypes() {
		if mode.Type() == bits {
			return name
		}
	}
	return "other"
}

func (t FileType) mode() fs.FileMode {
	bits, ok := fileTypes()[t]
	if !ok {
		return fs.ModeIrregular
	}
	return bits
}

// A Mode is permission bits, with setuid, setgid and sticky. In JSON and in a URL it is
// octal, as chmod has it.
type Mode fs.FileMode

// ParseMode parses up to four octal digits, and a zero before them.
func ParseMode(text string) (Mode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return 0, fmt.Errorf("mode: %q is not up to four octal digits: %w", text, paddock.Invalid)
	}
	mode := fs.FileMode(n & 0o777)
	for bit, flag := range special() {
		if n&bit != 0 {
			mode |= flag
		}
	}
	return Mode(mode), nil
}

func special() map[uint64]fs.FileMode {
	return map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky}
}

func (m Mode) String() string {
	n := uint64(fs.FileMode(m).Perm())
	for bit, flag := range special() {
		if fs.FileMode(m)&flag != 0 {
			n |= bit
		}
	}
	return fmt.Sprintf("%04o", n)
}

// MarshalText implements encoding.TextMarshaler.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Mode) UnmarshalText(text []byte) error {
	mode, err := ParseMode(string(text))
	*m = mode
	return err
}

// A Line is one line of a stream of JSON lines. Exactly one field is set.
type Line struct {
	File   *File  `json:"file,omitempty"`
	Change *Event `json:"change,omitempty"`
	Event  *News  `json:"event,omitempty"`
	Alive  bool   `json:"alive,omitempty"` // the server is alive; also the first line of a watch
	End    bool   `json:"end,omitempty"`   // the last line: the stream is complete
	Error  *Error `json:"error,omitempty"` // the last line: the stream is incomplete
}

// LineType is the content type of a stream of JSON lines.
const LineType = "application/x-ndjson"

// MaxLine bounds the size of one line.
const MaxLine = 1 << 20

// An Event encodes a paddock.Event.
type Event struct {
	Op   paddock.EventOp `json:"op"`
	Name Bytes           `json:"name"`
	Lost bool            `json:"lost,omitempty"`
}
