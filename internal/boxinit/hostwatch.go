package boxinit

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// HostWatchMax is how many files and directories of mounts a guest kernel may have watched on the host.
const HostWatchMax = 16 << 10

// The longest path and name in a message between a guest kernel and the watcher of the host's files.
const (
	watchPathMax = 4096
	watchNameMax = 255
)

// A WatchRequest is a packet of a guest kernel to the watcher of the host's files. It is hostile.
type WatchRequest struct {
	Kind WatchRequestKind
	ID   uint32 // chosen by the guest kernel; of WatchQuiet: that of the WatchBeQuiet
	Path string // of WatchAdd: as commands see it
}

// A WatchRequestKind is the first byte of a request.
type WatchRequestKind byte

const (
	WatchAdd   WatchRequestKind = 1 // report what changes in this file or directory from now on
	WatchDrop  WatchRequestKind = 2 // report no more of it
	WatchQuiet WatchRequestKind = 3 // the answer to WatchBeQuiet
)

// Bytes returns the packet.
func (r WatchRequest) Bytes() []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{byte(r.Kind)}, r.ID), r.Path...)
}

// ParseWatchRequest reads a packet. A path is absolute and clean.
func ParseWatchRequest(data []byte) (r WatchRequest, err error) {
	if len(data) < 5 || len(data) > 5+watchPathMax {
		return r, fmt.Errorf("a request of %d bytes: %w", len(data), paddock.Invalid)
	}
	r = WatchRequest{Kind: WatchRequestKind(data[0]), ID: binary.LittleEndian.Uint32(data[1:]), Path: string(data[5:])}
	switch r.Kind {
	case WatchAdd:
		if !Watchable(r.Path) {
			return r, fmt.Errorf("a path that is not plain: %w", paddock.Invalid)
		}
		return r, nil
	case WatchDrop, WatchQuiet:
		if r.Path == "" {
			return r, nil
		}
	}
	return r, fmt.Errorf("a request of kind %d with %d bytes: %w", r.Kind, len(data), paddock.Invalid)
}

// Watchable reports whether a path can be that of a WatchAdd: it is absolute, without empty components, dots and
// zeros, and not too long.
func Watchable(path string) bool {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok || strings.IndexByte(path, 0) >= 0 || len(path) > watchPathMax {
		return false
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// A WatchReport is a packet of the watcher of the host's files to a guest kernel.
type WatchReport struct {
	Kind   WatchReportKind
	ID     uint32
	Mask   uint32 // of WatchChange: as in an event of inotify
	Cookie uint32 // of WatchChange
	Name   string // of WatchChange: in the watched directory, or empty for the watched file itself
}

// A WatchReportKind is the first byte of a report.
type WatchReportKind byte

const (
	WatchAdded   WatchReportKind = 1 // the answer to WatchAdd: changes are reported from now on
	WatchRefused WatchReportKind = 2 // the answer to WatchAdd: none will be
	WatchChange  WatchReportKind = 3
	WatchLost    WatchReportKind = 4 // the host changed more than could be reported
	WatchBeQuiet WatchReportKind = 5 // nothing in the kernel may change until WatchWake
	WatchWake    WatchReportKind = 6
)

// Bytes returns the packet.
func (r WatchReport) Bytes() []byte {
	b := []byte{byte(r.Kind)}
	for _, n := range []uint32{r.ID, r.Mask, r.Cookie} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return append(b, r.Name...)
}

// ParseWatchReport reads a packet.
func ParseWatchReport(data []byte) (r WatchReport, err error) {
	if len(data) < 13 || len(data) > 13+watchNameMax || data[0] < byte(WatchAdded) || data[0] > byte(WatchWake) {
		return r, fmt.Errorf("a report of %d bytes: %w", len(data), paddock.Invalid)
	}
	return WatchReport{
		Kind: WatchReportKind(data[0]), ID: binary.LittleEndian.Uint32(data[1:]), Mask: binary.LittleEndian.Uint32(data[5:]),
		Cookie: binary.LittleEndian.Uint32(data[9:]), Name: string(data[13:]),
	}, nil
}
