package api

import (
	"io/fs"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A File encodes a paddock.FileInfo. Mode has the bits of Go's fs.FileMode: permission bits
// and type bits.
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

// FromFile encodes a FileInfo.
func FromFile(i paddock.FileInfo) File {
	return File{
		Name: Bytes(i.Name), Size: i.Size, Mode: i.Mode, ModTime: i.ModTime, Link: Bytes(i.Link),
		UID: i.UID, GID: i.GID, User: i.User, Group: i.Group,
	}
}

// Info decodes the FileInfo.
func (f File) Info() paddock.FileInfo {
	return paddock.FileInfo{
		Name: string(f.Name), Size: f.Size, Mode: f.Mode, ModTime: f.ModTime, Link: string(f.Link),
		UID: f.UID, GID: f.GID, User: f.User, Group: f.Group,
	}
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
