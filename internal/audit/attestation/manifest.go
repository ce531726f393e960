package attestation

import (
	"bufio"
	"context"
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
	maxPath    = 4096      // bytes
	maxPaths   = 256 << 20 // bytes of all paths, which are held to be sorted
	maxDepth   = 512       // each directory above an entry is open
	maxBytes   = 1 << 40   // of all files
	maxHoles   = 256 << 30 // of these, bytes that take no room on the disk, and time all the same
)

// gitName is what a manifest leaves out at the top of a workspace: git changes it at every look, and commits are
// subjects of their own.
const gitName = ".git"

// An entry is a file, directory, link or other object of a workspace.
type entry struct {
	path   string
	mode   fs.FileMode
	digest [sha256.Size]byte // of a file's bytes or of a link's text
}

// A survey collects the entries of a workspace. Its numbers are what is left of the bounds.
type survey struct {
	ctx     context.Context
	entries int
	paths   int64
	depth   int
	bytes   int64
	holes   int64

	all []entry
}

func newSurvey(ctx context.Context) *survey {
	return &survey{ctx: ctx, entries: maxEntries, paths: maxPaths, depth: maxDepth, bytes: maxBytes, holes: maxHoles}
}

// WriteManifest writes the manifest of a directory: the kind, mode, digest and path of each file below it, sorted by the
// bytes of the paths, with a zero byte behind each. It leaves out .git at the top. docs/security/attestation.md defines
// the format. WriteManifest follows no link. It returns Conflict if a file changes meanwhile, and ends with ctx.
func WriteManifest(ctx context.Context, w io.Writer, dir *os.Root) error {
	return newSurvey(ctx).write(w, dir)
}

func (s *survey) write(w io.Writer, dir *os.Root) error {
	if err := s.walk(dir, ""); err != nil {
		return err
	}
	slices.SortFunc(s.all, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	out := bufio.NewWriter(w)
	for _, e := range s.all {
		kind, mode := describe(e.mode)
		digest := "-"
		if kind == 'f' || kind == 'l' {
			digest = hex.EncodeToString(e.digest[:])
		}
		if _, err := fmt.Fprintf(out, "%c %o %s %s\x00", kind, mode, digest, e.path); err != nil {
			return err
		}
	}
	return out.Flush()
}

// DigestWorkspace returns the SHA-256 of the manifest of a directory, in hexadecimal digits.
func DigestWorkspace(ctx context.Context, dir *os.Root) (string, error) {
	h := sha256.New()
	if err := WriteManifest(ctx, h, dir); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ended returns the error of a context that has ended.
func (s *survey) ended() error {
	switch err := s.ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("read the workspace: %w: %w", err, paddock.Timeout)
	default:
		return fmt.Errorf("read the workspace: %w: %w", err, paddock.Canceled)
	}
}

// walk takes up what is in a directory, whose path is at. What is below it is found by names relative to it, so that an
// entry takes no longer where it is deep.
func (s *survey) walk(dir *os.Root, at string) error {
	names, err := s.list(dir, at)
	if err != nil {
		return err
	}
	for _, name := range names {
		if at == "" && name == gitName {
			continue
		}
		if err := s.add(dir, name, path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

// list gives the names in a directory.
func (s *survey) list(dir *os.Root, at string) ([]string, error) {
	f, err := dir.OpenFile(".", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, notRead(at, err)
	}
	defer f.Close()
	var names []string
	for {
		if err := s.ended(); err != nil {
			return nil, err
		}
		some, err := f.Readdirnames(4096)
		for _, name := range some {
			s.paths -= int64(len(at) + len("/") + len(name))
		}
		s.entries -= len(some)
		names = append(names, some...)
		switch {
		case s.entries < 0:
			return nil, fmt.Errorf("it has more than %d files: %w", maxEntries, paddock.Exhausted)
		case s.paths < 0:
			return nil, fmt.Errorf("its paths have more than %d MiB: %w", maxPaths>>20, paddock.Exhausted)
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, notRead(at, err)
		}
	}
}

// add takes up an entry, and what is below it.
func (s *survey) add(dir *os.Root, name, at string) error {
	if err := s.ended(); err != nil {
		return err
	}
	if len(at) > maxPath {
		return fmt.Errorf("it has a path of more than %d bytes: %w", maxPath, paddock.Exhausted)
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return notRead(at, err)
	}
	e := entry{path: at, mode: info.Mode()}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		text, err := dir.Readlink(name)
		if err != nil {
			return notRead(at, err)
		}
		e.digest = sha256.Sum256([]byte(text))
	case info.Mode().IsRegular():
		if e.digest, err = s.digest(dir, name, info); err != nil {
			return fmt.Errorf("%q: %w", at, err)
		}
	}
	s.all = append(s.all, e)
	if info.IsDir() {
		return s.below(dir, name, at, info)
	}
	return nil
}

// below takes up what is below a directory.
func (s *survey) below(dir *os.Root, name, at string, info fs.FileInfo) error {
	if s.depth--; s.depth < 0 {
		return fmt.Errorf("it has more than %d directories in each other: %w", maxDepth, paddock.Exhausted)
	}
	defer func() { s.depth++ }()
	sub, err := openBelow(dir, name)
	if err != nil {
		return notRead(at, err)
	}
	defer sub.Close()
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) {
		return fmt.Errorf("%q was replaced meanwhile: %w", at, paddock.Conflict)
	}
	return s.walk(sub, at)
}

func notRead(name string, err error) error {
	kind := paddock.Denied
	if errors.Is(err, fs.ErrNotExist) {
		kind = paddock.Conflict
	}
	return fmt.Errorf("read %q: %w: %w", name, err, kind)
}

var (
	errReplaced = fmt.Errorf("it was replaced meanwhile: %w", paddock.Conflict)
	errChanged  = fmt.Errorf("it changed meanwhile: %w", paddock.Conflict)
)

// digest returns the digest of a file's bytes.
func (s *survey) digest(dir *os.Root, name string, info fs.FileInfo) (sum [sha256.Size]byte, err error) {
	if s.bytes -= info.Size(); s.bytes < 0 {
		return sum, fmt.Errorf("the files have more than %d bytes: %w", int64(maxBytes), paddock.Exhausted)
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return sum, notRead(name, err)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return sum, errReplaced
	}
	h := sha256.New()
	if err := s.hash(h, f, info.Size()); err != nil {
		return sum, err
	}
	if now, err := f.Stat(); err != nil || now.Size() != info.Size() {
		return sum, errChanged
	}
	h.Sum(sum[:0])
	return sum, nil
}

// hash writes the bytes of a file to a hash. Holes are not read.
func (s *survey) hash(h io.Writer, f *os.File, size int64) error {
	for at := int64(0); at < size; {
		from, to := extent(f, at, size)
		if s.holes -= from - at; s.holes < 0 {
			return fmt.Errorf("the files have holes of more than %d GiB: %w", int64(maxHoles)>>30, paddock.Exhausted)
		}
		if _, err := io.Copy(h, s.reader(io.LimitReader(zeros{}, from-at))); err != nil {
			return err
		}
		n, err := io.Copy(h, s.reader(io.NewSectionReader(f, from, to-from)))
		switch {
		case s.ended() != nil:
			return s.ended()
		case err != nil:
			return notRead(f.Name(), err)
		case n != to-from:
			return errChanged
		}
		at = to
	}
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// reader returns a reader that ends with the survey's context.
func (s *survey) reader(r io.Reader) io.Reader { return surveyed{s, r} }

type surveyed struct {
	s *survey
	r io.Reader
}

func (r surveyed) Read(p []byte) (int, error) {
	if err := r.s.ended(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
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
