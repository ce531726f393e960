package guestclient

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

const (
	maxName     = 4095     // bytes of a name that can be asked for: PATH_MAX without its NUL
	maxBase     = 255      // bytes of one component
	maxListName = 64 << 10 // of a name in a listing, which can be deeper than any that can be asked for
	maxUserName = 256
)

// nonsense is an answer that no honest guest gives.
func nonsense(what string) error {
	return fmt.Errorf("the guest answered %s: %w", what, paddock.Internal)
}

// checkName refuses what cannot be a name, before it is sent.
func checkName(op, name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("%s %q…: the name is too long: %d bytes, at most %d: %w", op, name[:64], len(name), maxName, paddock.Invalid)
	case hasNUL(name):
		return fmt.Errorf("%s %q: the name holds a NUL byte: %w", op, name, paddock.Invalid)
	case name == "" || name[0] != '/':
		return fmt.Errorf("%s %q: the name is not absolute: %w", op, name, paddock.Invalid)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxBase {
			return fmt.Errorf("%s %q: a component is too long: %d bytes, at most %d: %w", op, name, len(part), maxBase, paddock.Invalid)
		}
	}
	return nil
}

func checkTarget(target, name string) error {
	switch {
	case target == "":
		return fmt.Errorf("symlink %q: the target is empty: %w", name, paddock.Invalid)
	case len(target) > maxName:
		return fmt.Errorf("symlink %q: the target is too long: %d bytes, at most %d: %w", name, len(target), maxName, paddock.Invalid)
	case hasNUL(target):
		return fmt.Errorf("symlink %q: the target holds a NUL byte: %w", name, paddock.Invalid)
	}
	return nil
}

// tidy is what the guest calls a name in its answers: without empty and "."
// components. ".." stays, because links make it meaningful.
func tidy(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			b.WriteByte('/')
			b.WriteString(part)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// below tells whether name is below the directory dir, at most depth levels.
func below(dir, name string, depth int) bool {
	if dir != "/" {
		var ok bool
		if name, ok = strings.CutPrefix(name, dir); !ok {
			return false
		}
	}
	rest, ok := strings.CutPrefix(name, "/")
	if !ok {
		return false
	}
	levels := 0
	for part := range strings.SplitSeq(rest, "/") {
		if levels++; levels > depth || part == "" || part == "." || part == ".." || len(part) > maxBase {
			return false
		}
	}
	return true
}

// Bits of st_mode, which are the same on every Linux.
const (
	modeType   = 0o170000
	modeSocket = 0o140000
	modeLink   = 0o120000
	modeFile   = 0o100000
	modeBlock  = 0o060000
	modeDir    = 0o040000
	modeChar   = 0o020000
	modeFIFO   = 0o010000
	modeSetUID = 0o4000
	modeSetGID = 0o2000
	modeSticky = 0o1000
)

// fileMode gives st_mode in Go's form.
func fileMode(mode uint32) (fs.FileMode, bool) {
	if mode > 0o177777 {
		return 0, false
	}
	out := fs.FileMode(mode & 0o777)
	switch mode & modeType {
	case modeFile:
	case modeDir:
		out |= fs.ModeDir
	case modeLink:
		out |= fs.ModeSymlink
	case modeFIFO:
		out |= fs.ModeNamedPipe
	case modeSocket:
		out |= fs.ModeSocket
	case modeBlock:
		out |= fs.ModeDevice
	case modeChar:
		out |= fs.ModeDevice | fs.ModeCharDevice
	default:
		out |= fs.ModeIrregular
	}
	if mode&modeSetUID != 0 {
		out |= fs.ModeSetuid
	}
	if mode&modeSetGID != 0 {
		out |= fs.ModeSetgid
	}
	if mode&modeSticky != 0 {
		out |= fs.ModeSticky
	}
	return out, true
}

// permission gives the bits of a mode that may be asked for.
func permission(op, name string, mode fs.FileMode) (uint32, error) {
	switch {
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return 0, fmt.Errorf("%s %q: set-user-id and set-group-id bits may not be set: %w", op, name, paddock.Denied)
	case mode&^(fs.ModePerm|fs.ModeSticky) != 0:
		return 0, fmt.Errorf("%s %q: mode %v holds more than permission bits: %w", op, name, mode, paddock.Invalid)
	}
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= modeSticky
	}
	return bits, nil
}

// fileInfo checks the guest's description of a file.
func fileInfo(m *guestpb.File) (paddock.FileInfo, error) {
	name, link := string(m.GetName()), string(m.GetLink())
	mode, ok := fileMode(m.GetMode())
	switch {
	case name == "" || name[0] != '/' || len(name) > maxListName || hasNUL(name):
		return paddock.FileInfo{}, nonsense("a file with an impossible name")
	case !ok:
		return paddock.FileInfo{}, nonsense("a file with an impossible mode")
	case m.GetSize() < 0:
		return paddock.FileInfo{}, nonsense("a file with a negative size")
	case len(link) > maxName+1 || hasNUL(link) || (link != "" && mode&fs.ModeSymlink == 0):
		return paddock.FileInfo{}, nonsense("a file with an impossible link")
	}
	return paddock.FileInfo{
		Name:    name,
		Size:    m.GetSize(),
		Mode:    mode,
		ModTime: time.Unix(0, m.GetModTime()),
		Link:    link,
		UID:     int(m.GetUid()),
		GID:     int(m.GetGid()),
		User:    text(cut(m.GetUser(), maxUserName)),
		Group:   text(cut(m.GetGroup(), maxUserName)),
	}, nil
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }
