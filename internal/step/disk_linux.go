package step

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A tree is an open root. All its functions take paths below it, and follow no links.
type tree struct {
	fd       int
	dev, ino uint64
	uid, gid uint32

	holes atomic.Int64 // bytes of holes that were hashed

	mu      sync.Mutex
	refused map[[2]uint64]refusal // files with several names that were not read; guarded by mu
	sought  atomic.Int64          // how often the pieces of a file were looked for
}

// A refusal is a file that was not read for its pieces, or its bytes. To find that out takes many calls, and a file may have
// many names.
type refusal struct {
	change, size int64
	data         int64 // bytes, or -1 of too many pieces
}

// maxRefused bounds how many files that were not read are remembered. Each of them has much room on the disk.
const maxRefused = 10_000

// refuses reports whether a file was not read before, and why, if not more than most bytes of it are wanted.
func (t *tree) refuses(s *State, most int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.refused[[2]uint64{s.Dev, s.Ino}]
	switch {
	case !ok || s.Racy || r.change != s.Change || r.size != s.Size:
		return nil
	case r.data < 0:
		return errPieces
	case r.data > most:
		return errLarge
	}
	return nil
}

// refuse remembers a file that was not read.
func (t *tree) refuse(s *State, data int64) {
	if s.Links < 2 || s.Racy {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused == nil || len(t.refused) >= maxRefused {
		t.refused = map[[2]uint64]refusal{}
	}
	t.refused[[2]uint64{s.Dev, s.Ino}] = refusal{s.Change, s.Size, data}
}

// openTree opens a directory of the host.
func openTree(path string) (*tree, error) {
	fd, err := sys.OpenDirAt(sys.AtCWD, path)
	if err != nil {
		return nil, fmt.Errorf("open the directory %q: %w", path, kinded(err))
	}
	a, err := sys.AttrAt(fd, "")
	if err != nil {
		sys.Close(fd)
		return nil, fmt.Errorf("open the directory %q: %w", path, kinded(err))
	}
	return &tree{fd: fd, dev: a.Dev, ino: a.Ino, uid: a.UID, gid: a.GID}, nil
}

func (t *tree) close() { sys.Close(t.fd) }

// kinded gives an error of a system call the kind that it has.
func kinded(err error) error {
	var kind paddock.Kind
	switch {
	case errors.Is(err, syscall.ENOENT):
		kind = paddock.NotFound
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		kind = paddock.Conflict
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EROFS):
		kind = paddock.Denied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = paddock.Exhausted
	case errors.Is(err, syscall.ENOSYS):
		return fmt.Errorf("%w: openat2 is missing; use Linux 5.6 or newer: %w", err, paddock.Unsupported)
	default:
		return err
	}
	return fmt.Errorf("%w: %w", err, kind)
}

// full reports whether an error means that the disk or a quota is full.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// tick is how long two changes of a file may have the same time: the kernel's clock for files moves a hundred times a
// second or more, and some file systems keep whole or even seconds.
const (
	tick       = 20 * time.Millisecond
	tickCoarse = 2100 * time.Millisecond
)

// longest is how many bytes of a path the kernel resolves at once.
const longest = 4000

// reach calls do with an open directory and the part of a path below it that the kernel resolves at once.
func (t *tree) reach(path string, do func(dir int, rest string) (int, error)) (int, error) {
	dir := t.fd
	for len(path) > longest {
		i := strings.LastIndexByte(path[:longest], '/')
		if i <= 0 {
			break
		}
		next, err := sys.OpenPlaceBeneath(dir, path[:i])
		if dir != t.fd {
			sys.Close(dir)
		}
		if err != nil {
			return -1, err
		}
		dir, path = next, path[i+1:]
	}
	if dir != t.fd {
		defer sys.Close(dir)
	}
	return do(dir, path)
}

// openPlace opens whatever is at a path with O_PATH.
func (t *tree) openPlace(path string) (int, error) { return t.reach(path, sys.OpenPlaceBeneath) }

func (t *tree) openFile(path string, flags int) (int, error) {
	return t.reach(path, func(dir int, rest string) (int, error) { return sys.OpenBeneath(dir, rest, flags, 0) })
}

// stat returns the state of a path, without the digest. What cannot be reached without following a link is absent.
func (t *tree) stat(path string) (State, error) {
	fd, err := t.openPlace(path)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return State{}, nil
	case err != nil:
		return State{}, fmt.Errorf("look at %q: %w", path, kinded(err))
	}
	defer sys.Close(fd)
	return t.state(fd)
}

// state returns the state of an open file, which may be open with O_PATH.
func (t *tree) state(fd int) (State, error) {
	a, err := sys.AttrAt(fd, "")
	if err != nil {
		return State{}, kinded(err)
	}
	s := State{
		Mode: a.Mode & 0o7777, UID: a.UID, GID: a.GID, ModTime: a.Mod.Sec*1e9 + int64(a.Mod.Nsec),
		Ino: a.Ino, Change: a.Change.Sec*1e9 + int64(a.Change.Nsec),
	}
	if a.Dev != t.dev {
		s.Dev = a.Dev
	}
	age := time.Since(time.Unix(0, s.Change))
	s.Racy = age < tick || a.Change.Nsec == 0 && age < tickCoarse
	switch a.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		s.Kind, s.Size = File, int64(a.Size)
	case syscall.S_IFDIR:
		s.Kind = Dir
	case syscall.S_IFLNK:
		s.Kind = Symlink
		target, err := sys.ReadLinkAt(fd, "")
		if err != nil {
			return State{}, kinded(err)
		}
		s.Target = Text(target)
	case syscall.S_IFIFO:
		s.Kind = FIFO
	case syscall.S_IFSOCK:
		s.Kind = Socket
	default:
		s.Kind = Device
	}
	if a.Links > 1 && s.Kind != Dir {
		s.Links = uint64(a.Links)
	}
	return s, nil
}

// open opens a regular file for reading, if it is still the one of a state.
func (t *tree) open(path string, s *State) (*os.File, error) {
	fd, _, err := t.openPlain(path, s)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openPlain opens a regular file for reading, if it is still the one of a state. Nothing else is opened, not even in a race.
func (t *tree) openPlain(path string, s *State) (int, State, error) {
	place, err := t.openPlace(path)
	if err != nil {
		return -1, *s, kinded(err)
	}
	defer sys.Close(place)
	now, err := t.state(place)
	if err != nil {
		return -1, *s, err
	}
	if now.Kind != File || !sameFile(&now, s) {
		return -1, now, errMoving
	}
	fd, err := sys.ReopenFor(place, os.O_RDONLY|syscall.O_NONBLOCK)
	for errors.Is(err, syscall.EINTR) {
		fd, err = sys.ReopenFor(place, os.O_RDONLY|syscall.O_NONBLOCK)
	}
	return fd, now, kinded(err)
}

// Reasons why contents cannot be kept.
var (
	errMoving = errors.New("it changes while it is read")
	errLarge  = errors.New("it is larger than a file may be whose contents are kept")
	errPieces = errors.New("it has more pieces between holes than are kept")
	errNoSwap = errors.New("the file system cannot exchange two names")
)

const maxPieces = 1 << 14 // of one file, between holes

// mostHoles bounds the bytes of holes that are hashed of a tree: they cost no disk, and 2 GiB of them a second of a processor.
const mostHoles = 32 << 30

// contents reads a file, and calls keep with its data, which must read all of it. It returns the state of the file that
// was read, with the digest unless it has more than most bytes with its holes, or the tree more holes than are hashed.
func (t *tree) contents(path string, s State, most int64, keep func(iter.Seq2[snapshot.Extent, error]) error) (State, error) {
	f, err := t.open(path, &s)
	if err != nil {
		return s, err
	}
	defer f.Close()
	s, err = t.state(int(f.Fd()))
	if err != nil {
		return s, err
	}
	if s.Size > snapshot.MaxSize {
		return s, errLarge
	}
	if err := t.refuses(&s, most); err != nil {
		return s, err
	}
	t.sought.Add(1)
	parts, err := sys.Extents(f, s.Size, maxPieces)
	if err != nil {
		return s, err
	}
	if len(parts) == maxPieces {
		t.refuse(&s, -1)
		return s, errPieces
	}
	n := int64(0)
	for _, x := range parts {
		n += x.Length
	}
	if n > most {
		t.refuse(&s, n)
		return s, errLarge
	}
	var sum hash.Hash
	if s.Size <= most && (s.Size == n || t.holes.Add(s.Size-n) <= mostHoles) {
		sum = sha256.New()
	}
	err = keep(func(yield func(snapshot.Extent, error) bool) {
		buf := make([]byte, min(readSize, max(n, 1)))
		end := int64(0)
		for _, x := range parts {
			hole(sum, x.Offset-end)
			for at := x.Offset; at < x.Offset+x.Length; {
				b := buf[:min(int64(len(buf)), x.Offset+x.Length-at)]
				if _, err := f.ReadAt(b, at); err != nil {
					if err == io.EOF {
						err = errMoving
					}
					yield(snapshot.Extent{}, err)
					return
				}
				if sum != nil {
					sum.Write(b)
				}
				if !yield(snapshot.Extent{Offset: at, Bytes: b}, nil) {
					return
				}
				at += int64(len(b))
			}
			end = x.Offset + x.Length
		}
		hole(sum, s.Size-end)
	})
	if err != nil {
		return s, err
	}
	now, err := t.state(int(f.Fd()))
	if err != nil {
		return s, err
	}
	if now.Size != s.Size || now.ModTime != s.ModTime || now.Change != s.Change {
		return s, errMoving
	}
	if sum != nil {
		s.Digest = hex.EncodeToString(sum.Sum(nil))
	}
	return s, nil
}

// small reads a file of at most so many bytes, and returns its state with the digest. It is errMoving if the file is another
// one, or larger, or changes meanwhile.
func (t *tree) small(path string, s State, most int64) ([]byte, State, error) {
	fd, s, err := t.openPlain(path, &s)
	if err != nil {
		return nil, s, err
	}
	defer sys.Close(fd)
	if s.Size > most {
		return nil, s, errMoving
	}
	b := make([]byte, s.Size+1)
	n := 0
	for n < len(b) {
		k, err := syscall.Pread(fd, b[n:], int64(n))
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, s, kinded(err)
		}
		if k == 0 {
			break
		}
		n += k
	}
	now, err := t.state(fd)
	if err != nil {
		return nil, s, err
	}
	if int64(n) != s.Size || now.Size != s.Size || now.ModTime != s.ModTime || now.Change != s.Change {
		return nil, s, errMoving
	}
	sum := sha256.Sum256(b[:n])
	s.Digest = hex.EncodeToString(sum[:])
	return b[:n], s, nil
}

// hole hashes the zeros of a hole.
func hole(sum hash.Hash, n int64) {
	if sum == nil || n <= 0 {
		return
	}
	zero := make([]byte, min(n, readSize))
	for n > 0 {
		k := min(n, int64(len(zero)))
		sum.Write(zero[:k])
		n -= k
	}
}

// digest returns the state of a file with its digest. Files of more than most bytes have none.
func (t *tree) digest(path string, s State, most int64) (State, error) {
	var err error
	for range 3 {
		var now State
		now, err = t.contents(path, s, most, func(data iter.Seq2[snapshot.Extent, error]) error {
			for _, err := range data {
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			return now, nil
		}
		if !errors.Is(err, errMoving) {
			break
		}
		if s, err = t.stat(path); err != nil || s.Kind != File {
			return s, err
		}
	}
	if errors.Is(err, errLarge) || errors.Is(err, errPieces) {
		err = nil
	}
	return s, err
}

// text returns the contents of a file of at most so many bytes.
func (t *tree) text(path string, s State, most int64) ([]byte, State, error) {
	if s.Size > most {
		return nil, s, errLarge
	}
	var b bytes.Buffer
	now, err := t.contents(path, s, most, func(data iter.Seq2[snapshot.Extent, error]) error {
		for x, err := range data {
			if err != nil {
				return err
			}
			b.Write(make([]byte, x.Offset-int64(b.Len())))
			b.Write(x.Bytes)
		}
		return nil
	})
	if err == nil {
		b.Write(make([]byte, max(0, now.Size-int64(b.Len()))))
	}
	return b.Bytes(), now, err
}

// starts reports whether a regular file begins with some bytes.
func (t *tree) starts(path string, with string) bool {
	s, err := t.stat(path)
	if err != nil || s.Kind != File {
		return false
	}
	f, err := t.open(path, &s)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(with))
	_, err = f.ReadAt(b, 0)
	return err == nil && string(b) == with
}

// split divides a path into that of the parent, which is "." for the root, and the last name.
func split(path string) (parent, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return ".", path
}

// in calls do with the open parent directory of a path and the last name.
func (t *tree) in(path string, do func(dir int, name string) error) error {
	parent, name := split(path)
	dir, err := t.openPlace(parent)
	if err != nil {
		return kinded(err)
	}
	defer sys.Close(dir)
	return kinded(do(dir, name))
}

// names calls look with an open directory, to look for names in it. A directory that is not there has none.
func (t *tree) names(path string, look func(has func(string) bool)) {
	dir, err := t.reach(cmp.Or(path, "."), sys.OpenDirBeneath)
	if err != nil {
		return
	}
	defer sys.Close(dir)
	look(func(name string) bool {
		_, err := sys.StatAt(dir, name)
		return err == nil
	})
}

// mayHave is names, where a name that cannot be looked for may be there.
func (t *tree) mayHave(path string, look func(has func(string) bool)) {
	dir, err := t.reach(cmp.Or(path, "."), sys.OpenDirBeneath)
	if err != nil {
		if !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) {
			look(func(string) bool { return true })
		}
		return
	}
	defer sys.Close(dir)
	look(func(name string) bool {
		_, err := sys.StatAt(dir, name)
		return !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR)
	})
}

func (t *tree) mkdir(path string) error {
	return t.in(path, func(dir int, name string) error { return sys.MkdirAt(dir, name, 0o700) })
}

func (t *tree) rmdir(path string) error { return t.in(path, sys.RmdirAt) }

func (t *tree) unlink(path string) error { return t.in(path, sys.UnlinkAt) }

// move renames to a free name.
func (t *tree) move(from string, to *tree, path string) error {
	return t.in(from, func(dir int, name string) error {
		return to.in(path, func(toDir int, toName string) error {
			return moveAt(dir, name, toDir, toName)
		})
	})
}

func moveAt(dir int, name string, toDir int, toName string) error {
	err := sys.MoveAt(dir, name, toDir, toName)
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	// The file system knows no such call. Nobody else is asked to keep away meanwhile.
	if _, err := sys.StatAt(toDir, toName); !errors.Is(err, syscall.ENOENT) {
		return syscall.EEXIST
	}
	return sys.RenameAt(dir, name, toDir, toName)
}

// claim locks directories against the brokers of sandboxes, which lock those in which a name that git obeys is made. An
// empty path is the root itself. Where a file system has no locks, it does nothing. It waits no more than p has.
func (t *tree) claim(ctx context.Context, dirs []string, p *patience) (release func(), err error) {
	var held []int
	release = func() {
		for _, fd := range held {
			sys.Close(fd)
		}
	}
	for _, d := range dirs {
		fd, err := t.openFile(cmp.Or(d, "."), os.O_RDONLY|syscall.O_DIRECTORY)
		if err != nil {
			release()
			return func() {}, kinded(err)
		}
		held = append(held, fd)
		for {
			err := sys.Lock(fd, syscall.LOCK_EX)
			if !errors.Is(err, syscall.EWOULDBLOCK) {
				break
			}
			if p.left--; p.left < 0 {
				release()
				return func() {}, &heldError{d}
			}
			select {
			case <-ctx.Done():
				release()
				return func() {}, context.Cause(ctx)
			case <-time.After(pause):
			}
		}
	}
	return release, nil
}

// stageDir is the name of a directory in which no sandbox can open or make a file, because package protect has the name.
// The broker of a sandbox uses it too, and removes it when it is empty.
const stageDir = ".paddock"

// stagePrefix begins the names of an undo in a stage.
const stagePrefix = "undo-"

// stage makes a directory of its own for one file, in the stage beside a path. It returns the path of that file.
func (t *tree) stage(path string) (temp string, err error) {
	own := stagePrefix + strings.ToLower(rand.Text())
	parent, _ := split(path)
	err = t.in(path, func(dir int, _ string) error {
		for range stageTries {
			if err := sys.MkdirAt(dir, stageDir, 0o700); err != nil && !errors.Is(err, syscall.EEXIST) {
				return err
			}
			at, err := sys.OpenDirAt(dir, stageDir)
			if err == nil {
				err = sys.MkdirAt(at, own, 0o700)
				sys.Close(at)
			}
			if !errors.Is(err, syscall.ENOENT) { // else somebody removed the empty stage
				return err
			}
		}
		return syscall.EBUSY
	})
	return strings.TrimPrefix(parent+"/"+stageDir+"/"+own+"/"+stagedName, "./"), err
}

const (
	stageTries = 100
	stagedName = "f"
)

// unstage removes what stage made, if it is empty.
func (t *tree) unstage(temp string) {
	own, _ := split(temp)
	if t.rmdir(own) == nil {
		all, _ := split(own)
		_ = t.rmdir(all)
	}
}

// land moves a staged file to its path. If something is there, it must be replaced by swap: the file that was there is
// staged then. With over the file that was there goes at once. Both names are in one directory, whatever becomes of the
// path meanwhile.
func (t *tree) land(temp, path string, how landing) error {
	own, file := split(temp)
	all, last := split(own)
	if up, name := split(all); name != stageDir || file != stagedName || up != parentOf(path) {
		return fmt.Errorf("%q is not staged beside %q: %w", temp, path, paddock.Invalid)
	}
	return t.in(path, func(dir int, name string) error {
		at, err := sys.OpenPlaceBeneath(dir, stageDir+"/"+last)
		if err != nil {
			return err
		}
		defer sys.Close(at)
		switch how {
		case landSwap:
			err = sys.ExchangeAt(at, file, dir, name)
			if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EOPNOTSUPP) {
				return fmt.Errorf("%w: %w", errNoSwap, err)
			}
			return err
		case landOver:
			return sys.RenameAt(at, file, dir, name)
		case landTake:
			return moveAt(dir, name, at, file)
		}
		return moveAt(at, file, dir, name)
	})
}

func parentOf(path string) string {
	parent, _ := split(path)
	return parent
}

// settle gives a file the owner, mode and time of a state, if it is still the one that was looked at: what comes to its name
// meanwhile is left alone. The mode comes last, because a change of the owner takes bits away. Set-id bits are left out.
func (t *tree) settle(path string, was, s *State, uid, gid int) error {
	fd, err := t.openPlace(path)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return errMoving
	}
	if err != nil {
		return kinded(err)
	}
	defer sys.Close(fd)
	now, err := t.state(fd)
	if err != nil {
		return err
	}
	if now.Kind != was.Kind || !sameFile(&now, was) {
		return errMoving
	}
	if uid >= 0 && (now.UID != uint32(uid) || now.GID != uint32(gid)) {
		if err := sys.ChownAt(fd, "", uid, gid); err != nil {
			return kinded(err)
		}
	}
	if s.Kind != Symlink && now.Mode != s.Mode&0o1777 {
		if err := sys.ChmodFile(fd, s.Mode&0o1777); err != nil {
			return kinded(err)
		}
	}
	return kinded(sys.TouchAt(fd, "", time.Unix(0, s.ModTime)))
}

// make makes a file of any kind but a device, a socket or a directory, where nothing is.
func (t *tree) make(ctx context.Context, path string, s *State, data iter.Seq2[snapshot.Extent, error], sync bool) error {
	return t.in(path, func(dir int, name string) error {
		switch s.Kind {
		case Symlink:
			return sys.SymlinkAt(string(s.Target), dir, name)
		case FIFO:
			return sys.MakeAt(dir, name, syscall.S_IFIFO|0o600, 0, 0)
		case File:
		default:
			return fmt.Errorf("a %s: %w", s.Kind, paddock.Unsupported)
		}
		fd, err := sys.OpenAt(dir, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), name)
		err = fill(ctx, f, s.Size, data)
		if err == nil && sync {
			err = f.Sync()
		}
		return errors.Join(err, f.Close())
	})
}

// rewrite writes the contents of a file in its place, so that its other names have them too.
func (t *tree) rewrite(ctx context.Context, path string, now *State, size int64, data iter.Seq2[snapshot.Extent, error], sync bool) error {
	fd, err := t.openFile(path, os.O_WRONLY)
	if err != nil {
		return kinded(err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	s, err := t.state(fd)
	if err != nil {
		return err
	}
	if s.Kind != File || s.Ino != now.Ino || s.Dev != now.Dev || s.Change != now.Change {
		return errMoving
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if err := fill(ctx, f, size, data); err != nil {
		return err
	}
	if sync {
		return f.Sync()
	}
	return nil
}

func fill(ctx context.Context, f *os.File, size int64, data iter.Seq2[snapshot.Extent, error]) error {
	if data != nil {
		for x, err := range data {
			if err != nil {
				return err
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if _, err := f.WriteAt(x.Bytes, x.Offset); err != nil {
				return err
			}
		}
	}
	return f.Truncate(size)
}

// discard removes a file that may not be there.
func (t *tree) discard(path string) error {
	if err := t.unlink(path); !errors.Is(err, syscall.ENOENT) {
		return err
	}
	return nil
}

// empty reports whether a directory is empty.
func (t *tree) empty(path string) (bool, error) {
	fd, err := t.openFile(path, os.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return false, kinded(err)
	}
	d := os.NewFile(uintptr(fd), path)
	defer d.Close()
	_, err = d.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}
