package attestation

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of a workspace, whose files a hostile program may have made.
const (
	maxEntries = 1 << 22
	maxPath    = 4096    // bytes
	maxBytes   = 1 << 40 // of all files
)

// gitName is what a manifest leaves out at the top of a workspace: git changes it at every look, and commits are
// subjects of their own.
const gitName = ".git"

// An entry is a file, directory, link or other object of a workspace.
type entry struct {
	path string
	info fs.FileInfo
}

// WriteManifest writes the manifest of a directory: the kind, mode, digest and path of each file below it, sorted by the
// bytes of the paths, with a zero byte behind each. It leaves out .git at the top. docs/security/attestation.md defines
// the format. WriteManifest follows no link. It returns Conflict if a file changes meanwhile.
func WriteManifest(w io.Writer, dir *os.Root) error {
	var all []entry
	if err := walk(dir, ".", &all); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	out := bufio.NewWriter(w)
	left := int64(maxBytes)
	for _, e := range all {
		if e.info.Mode().IsRegular() {
			if left -= e.info.Size(); left < 0 {
				return fmt.Errorf("its files have more than %d bytes: %w", int64(maxBytes), paddock.Exhausted)
			}
		}
		digest, err := digestEntry(dir, e)
		if err != nil {
			return fmt.Errorf("%q: %w", e.path, err)
		}
		kind, mode := describe(e.info.Mode())
		if _, err := fmt.Fprintf(out, "%c %o %s %s\x00", kind, mode, digest, e.path); err != nil {
			return err
		}
	}
	return out.Flush()
}

// DigestWorkspace returns the SHA-256 of the manifest of a directory, in hexadecimal digits.
func DigestWorkspace(dir *os.Root) (string, error) {
	h := sha256.New()
	if err := WriteManifest(h, dir); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// walk finds what is below a directory.
func walk(dir *os.Root, at string, found *[]entry) error {
	before, err := dir.Lstat(at)
	if err != nil {
		return notRead(at, err)
	}
	names, err := list(dir, at, before, maxEntries-len(*found))
	if err != nil {
		return err
	}
	for _, name := range names {
		if at == "." && name == gitName {
			continue
		}
		p := path.Join(at, name)
		if len(p) > maxPath {
			return fmt.Errorf("it has a path of more than %d bytes: %w", maxPath, paddock.Exhausted)
		}
		info, err := dir.Lstat(p)
		if err != nil {
			return notRead(p, err)
		}
		*found = append(*found, entry{p, info})
		if info.IsDir() {
			if err := walk(dir, p, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// list gives the names in a directory, of which there may be most.
func list(dir *os.Root, at string, before fs.FileInfo, most int) ([]string, error) {
	f, err := dir.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, notRead(at, err)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !now.IsDir() || !os.SameFile(before, now) {
		return nil, fmt.Errorf("%q was replaced meanwhile: %w", at, paddock.Conflict)
	}
	var names []string
	for {
		some, err := f.Readdirnames(4096)
		names = append(names, some...)
		switch {
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, notRead(at, err)
		case len(names) > most:
			return nil, fmt.Errorf("it has more than %d files: %w", maxEntries, paddock.Exhausted)
		}
	}
}

func notRead(name string, err error) error {
	kind := paddock.Denied
	if errors.Is(err, fs.ErrNotExist) {
		kind = paddock.Conflict
	}
	return fmt.Errorf("read %q: %w: %w", name, err, kind)
}

// digestEntry returns the digest of a file's bytes or of a link's text, and "-" for all else.
func digestEntry(dir *os.Root, e entry) (string, error) {
	h := sha256.New()
	switch {
	case e.info.Mode()&fs.ModeSymlink != 0:
		text, err := dir.Readlink(e.path)
		if err != nil {
			return "", notRead(e.path, err)
		}
		_, _ = io.WriteString(h, text) // a hash takes all
	case e.info.Mode().IsRegular():
		f, err := dir.OpenFile(e.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return "", notRead(e.path, err)
		}
		defer f.Close()
		if now, err := f.Stat(); err != nil || !os.SameFile(e.info, now) {
			return "", fmt.Errorf("it was replaced meanwhile: %w", paddock.Conflict)
		}
		if n, err := io.Copy(h, io.LimitReader(f, e.info.Size()+1)); err != nil {
			return "", notRead(e.path, err)
		} else if n != e.info.Size() {
			return "", fmt.Errorf("it changed meanwhile: %w", paddock.Conflict)
		}
	default:
		return "-", nil
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// describe gives the kind and mode of a file as find(1) prints them with %y and %m.
func describe(m fs.FileMode) (kind byte, mode uint32) {
	mode = uint32(m.Perm())
	for bit, octal := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			mode |= octal
		}
	}
	switch {
	case m&fs.ModeSymlink != 0:
		return 'l', 0o777 // no system heeds another
	case m.IsDir():
		return 'd', mode
	case m.IsRegular():
		return 'f', mode
	case m&fs.ModeNamedPipe != 0:
		return 'p', mode
	case m&fs.ModeSocket != 0:
		return 's', mode
	case m&fs.ModeCharDevice != 0:
		return 'c', mode
	case m&fs.ModeDevice != 0:
		return 'b', mode
	}
	return 'U', mode
}
