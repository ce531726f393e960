package paddock

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// An FS is a sandbox's files, with the rights of its user. Names are absolute
// slash-separated paths inside the sandbox, of bytes without NUL; they need
// not be valid UTF-8. Symbolic links mean what they mean inside. Files are
// streamed: none is ever held in memory whole.
//
// Errors are of kind [NotFound], [Exists], [Denied], [Exhausted] (disk full),
// [Invalid] (a name that is not absolute, holds a NUL or is too long; a
// directory where a file is needed, or the reverse) or [Conflict] (a directory
// that is not empty).
type FS interface {
	// Open reads a file from an offset. ctx bounds only the opening; Close ends
	// the reading.
	Open(ctx context.Context, name string, o OpenOptions) (io.ReadCloser, error)

	// Create creates a file, or truncates an existing one, for writing. It
	// returns when the file is open. Close waits until everything was written,
	// and returns the first error.
	Create(ctx context.Context, name string, o CreateOptions) (io.WriteCloser, error)

	// Stat describes a file. It does not follow a link, but describes it.
	Stat(ctx context.Context, name string) (FileInfo, error)

	// List gives what a directory holds, without "." and "..", in no
	// particular order, itself not included. Depth 1 is the directory's own
	// entries, more goes down into directories (never through links). It
	// ends at the first error, which it yields.
	List(ctx context.Context, name string, depth int) iter.Seq2[FileInfo, error]

	// Mkdir makes a directory, with parents if asked; then one that is there
	// is fine.
	Mkdir(ctx context.Context, name string, o MkdirOptions) error

	// Rename moves a file or directory, over an existing file.
	Rename(ctx context.Context, from, to string) error

	// Remove removes a file or an empty directory; with all, also a full one
	// and one that is not there.
	Remove(ctx context.Context, name string, all bool) error

	// Chmod changes permission bits. Set-id bits are [Denied].
	Chmod(ctx context.Context, name string, mode fs.FileMode) error

	// Symlink makes a link named name that says target.
	Symlink(ctx context.Context, target, name string) error

	// Watch reports changes in a directory, or of one file. It returns when the
	// watch has begun. Events end when the watcher is closed.
	Watch(ctx context.Context, name string, o WatchOptions) (Watcher, error)
}

// OpenOptions says which part of a file to read.
type OpenOptions struct {
	Offset int64 // from the beginning
	Length int64 // zero is to the end
}

// CreateOptions says how a file is made.
type CreateOptions struct {
	Mode      fs.FileMode // permission bits of a new file; zero is 0644
	Append    bool        // write at the end of what is there
	Exclusive bool        // fail with Exists if it is there
	Parents   bool        // make missing directories (0755)
}

// MkdirOptions says how a directory is made.
type MkdirOptions struct {
	Mode    fs.FileMode // zero is 0755
	Parents bool        // make missing parents too
}

// WatchOptions says what to watch.
type WatchOptions struct {
	Recursive bool // directories below too, also ones made later
}

// FileInfo describes a file.
type FileInfo struct {
	Name    string      `json:"name"` // the absolute path
	Size    int64       `json:"size"`
	Mode    fs.FileMode `json:"mode"` // type and permission bits
	ModTime time.Time   `json:"mod_time"`
	Link    string      `json:"link,omitempty"` // of a symbolic link: what it says
	UID     int         `json:"uid"`            // as seen inside
	GID     int         `json:"gid"`
	User    string      `json:"user,omitempty"` // by the sandbox's own /etc/passwd
	Group   string      `json:"group,omitempty"`
}

// A Watcher returns events until it is closed.
type Watcher interface {
	// Next waits for the next event. After Close it returns [Canceled], after
	// the end of the sandbox [Unavailable].
	Next(ctx context.Context) (Event, error)
	Close() error
}

// An Event is one change of a file.
type Event struct {
	Op   EventOp `json:"op"`
	Name string  `json:"name"` // absolute path
	// Lost says that events were dropped before this one because they came
	// faster than they were read: look again yourself.
	Lost bool `json:"lost,omitempty"`
}

// An EventOp says what happened to a file.
type EventOp string

const (
	EventCreate EventOp = "create"
	EventWrite  EventOp = "write"
	EventRemove EventOp = "remove"
	EventRename EventOp = "rename" // Name is the old name; the new one is a create
	EventChmod  EventOp = "chmod"
)
