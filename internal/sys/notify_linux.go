package sys

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Changes is the mask of a watch that reports every change of a directory and of what is in it: content,
// attributes, names. Reading is not a change.
const Changes = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_CREATE | unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// Bits of a Change's mask that report the end of a watch, and lost changes.
const (
	ChangeEnds = unix.IN_IGNORED
	ChangeLost = unix.IN_Q_OVERFLOW
)

// A Change is an event of inotify.
type Change struct {
	Watch  int32
	Mask   uint32
	Cookie uint32
	Name   string // empty for the watched file itself
}

// A Notifier is an instance of inotify. A wait does not block a thread.
type Notifier struct{ file *os.File }

// NewNotifier makes an instance, which counts towards fs.inotify.max_user_instances.
func NewNotifier() (*Notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	return &Notifier{os.NewFile(uintptr(fd), "inotify")}, nil
}

// Add watches an open file, which may be open as a path only. The same file has the same watch.
func (n *Notifier) Add(file *os.File) (watch int32, err error) {
	fd, err := Descriptor(n.file)
	if err != nil {
		return 0, err
	}
	at, err := Descriptor(file)
	if err != nil {
		return 0, err
	}
	got, err := WatchFile(fd, at, Changes)
	return int32(got), err
}

// Remove ends a watch.
func (n *Notifier) Remove(watch int32) error {
	fd, err := Descriptor(n.file)
	if err != nil {
		return err
	}
	_, err = unix.InotifyRmWatch(fd, uint32(watch))
	return err
}

// Read waits for changes. buf must have room for one.
func (n *Notifier) Read(buf []byte) ([]Change, error) {
	got, err := n.file.Read(buf)
	if err != nil {
		return nil, err
	}
	return changes(buf[:got]), nil
}

// Close ends all watches, and a wait.
func (n *Notifier) Close() error { return n.file.Close() }

func changes(data []byte) []Change {
	var list []Change
	for len(data) >= unix.SizeofInotifyEvent {
		c := Change{
			Watch: int32(binary.NativeEndian.Uint32(data)), Mask: binary.NativeEndian.Uint32(data[4:]),
			Cookie: binary.NativeEndian.Uint32(data[8:]),
		}
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(data[12:]))
		if end > len(data) {
			break
		}
		name, _, _ := bytes.Cut(data[unix.SizeofInotifyEvent:end], []byte{0})
		c.Name = string(name)
		list = append(list, c)
		data = data[end:]
	}
	return list
}
