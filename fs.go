package paddock

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// An FS is the file system of a sandbox, with the rights of its user. Names are absolute
// slash-separated paths inside the sandbox. They may hold any byte but NUL, and need not be
// valid UTF-8. Symbolic links are resolved inside the sandbox. Contents are streamed: no
// file is ever held in memory whole.
//
// Errors are of kind [NotFound], [Exists], [Denied], [Exhausted] (disk full), [Invalid] (a
// name that is not absolute, holds a NUL or is too long; a directory where a file is
// needed, or the reverse) or [Conflict] (a directory that is not empty).
type FS interface {
	// Open reads a file from an offset. ctx bounds only the opening. Close ends the
	// reading.
	Open(ctx context.Context, name string, o OpenOptions) (io.ReadCloser, error)

	// Create creates a file, or truncates an existing one, and returns when the file is
	// open for writing. Close waits until everything is written, and returns the first
	// error.
	Create(ctx context.Context, name string, o CreateOptions) (io.WriteCloser, error)

	// Stat describes a file. It describes a symbolic link itself and does not follow it.
	Stat(ctx context.Context, name string) (FileInfo, error)

	// List returns the entries below a directory in no particular order, without "." and
	// "..". A depth of 1 returns the directory's own entries. A greater depth descends into
	// directories, never through links. List ends at the first error, which it yields.
	List(ctx context.Context, name string, depth int) iter.Seq2[FileInfo, error]

	// Mkdir makes a directory. With Parents it also makes missing parents, and an existing
	// directory is not an error.
	Mkdir(ctx context.Context, name string, o MkdirOptions) error

	// Rename moves a file or directory. It replaces an existing file.
	Rename(ctx context.Context, from, to string) error

	// Remove removes a file or an empty directory. With all, it also removes a directory
	// with its contents, and a name that does not exist is not an error.
	Remove(ctx context.Context, name string, all bool) error

	// Chmod changes permission bits. Setting a set-id bit is [Denied].
	Chmod(ctx context.Context, name string, mode fs.FileMode) error

	// Symlink makes a symbolic link called name that points to target.
	Symlink(ctx context.Context, target, name string) error

	// Watch reports changes in a directory, or of one file. It returns when the watch is
	// active. Events end when the watcher is closed.
	Watch(ctx context.Context, name string, o WatchOptions) (Watcher, error)
}

// OpenOptions selects the part of a file to read.
type OpenOptions struct {
	Offset int64 // from the beginning
	Length int64 // zero reads to the end
}

// CreateOptions are the options of [FS.Create].
type CreateOptions struct {
	Mode      fs.FileMode // permission bits of a new file; zero is 0644
	Append    bool        // write at the end of an existing file
	Exclusive bool        // fail with Exists if the file exists
	Parents   bool        // make missing parent directories (0755)
}

// MkdirOptions are the options of [FS.Mkdir].
type MkdirOptions struct {
	Mode    fs.FileMode // zero is 0755
	Parents bool        // make missing parents too
}

// WatchOptions are the options of [FS.Watch].
type WatchOptions struct {
	Recursive bool // also watch subdirectories, including later ones
}

// FileInfo describes a file.
type FileInfo struct {
	Name    string      `json:"name"` // the absolute path
	Size    int64       `json:"size"`
	Mode    fs.FileMode `json:"mode"` // type and permission bits
	ModTime time.Time   `json:"mod_time"`
	Link    string      `json:"link,omitempty"` // target of a symbolic link
	UID     int         `json:"uid"`            // as seen inside
	GID     int         `json:"gid"`
	User    string      `json:"user,omitempty"` // according to the sandbox's /etc/passwd
	Group   string      `json:"group,omitempty"`
}

// A Watcher returns events until it is closed.
type Watcher interface {
	// Next waits for the next event. It returns [Canceled] after Close, and [Unavailable]
	// after the end of the sandbox.
	Next(ctx context.Context) (Event, error)
	Close() error
}

// An Event is one change of a file.
type Event struct {
	Op   EventOp `json:"op"`
	Name string  `json:"name"` // absolute path
	// Lost reports that events before this one were dropped because they were not read fast
	// enough. The caller must look at the files again.
	Lost bool `json:"lost,omitempty"`
}

// An EventOp says what happened to a file.
type EventOp string

const (
	EventCreate EventOp = "create"
	EventWrite  EventOp = "write"
	EventRemove EventOp = "remove"
	EventRename EventOp = "rename" // Name is the old name; an EventCreate reports the new one
	EventChmod  EventOp = "chmod"
)
