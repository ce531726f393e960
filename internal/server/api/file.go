package api

import (
	"io/fs"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A File is a paddock.FileInfo. Mode is what Go has: the permission bits below,
// and kinds above them.
type File struct {
	Name    Bytes       `json:"name"`
	Size    int64       `json:"size"`
	Mode    fs.FileMode `json:"mode"`
	ModTime time.Time   `json:"mod_time"`
	Link    Bytes       `json:"link,omitempty"`
	UID     int         `json:"uid"`
	GID     int         `json:"gid"`
	User    string      `json:"user,omitempty"`
	Group   string      `json:"group,omitempty"`
}

// FromFile says what is known of a file.
func FromFile(i paddock.FileInfo) File {
	return File{
		Name: Bytes(i.Name), Size: i.Size, Mode: i.Mode, ModTime: i.ModTime, Link: Bytes(i.Link),
		UID: i.UID, GID: i.GID, User: i.User, Group: i.Group,
	}
}

// Info makes it again.
func (f File) Info() paddock.FileInfo {
	return paddock.FileInfo{
		Name: string(f.Name), Size: f.Size, Mode: f.Mode, ModTime: f.ModTime, Link: string(f.Link),
		UID: f.UID, GID: f.GID, User: f.User, Group: f.Group,
	}
}

// A Line is one line of a stream in JSON lines. Exactly one field is set.
type Line struct {
	File   *File  `json:"file,omitempty"`
	Change *Event `json:"change,omitempty"`
	Event  *News  `json:"event,omitempty"`
	Alive  bool   `json:"alive,omitempty"` // the other side is there; the first line of a stream that waits
	End    bool   `json:"end,omitempty"`   // all was said
	Error  *Error `json:"error,omitempty"` // the last line: why not all was said
}

// LineType is the content type of a stream of lines.
const LineType = "application/x-ndjson"

// MaxLine bounds one line.
const MaxLine = 1 << 20

// An Event is a paddock.Event.
type Event struct {
	Op   paddock.EventOp `json:"op"`
	Name Bytes           `json:"name"`
	Lost bool            `json:"lost,omitempty"`
}
