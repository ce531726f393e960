package guestkernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// castagnoli is a checksum that processors compute as fast as they read. It detects errors
// of disks and crashes. Nobody else can write to the directory.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(f *os.File) (string, int64, error) {
	h := crc32.New(castagnoli)
	buf := make([]byte, 1<<20)
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{io.NewSectionReader(f, 0, 1<<60)}, buf)
	return fmt.Sprintf("%08x", h.Sum32()), n, err
}

// summing returns sumOf or sumSparse.
func summing(sparse bool) func(*os.File) (string, int64, error) {
	if sparse {
		return sumSparse
	}
	return sumOf
}

// sumSparse returns the checksum of a file's blocks that are not zero, with their offsets.
// Holes take no time.
func sumSparse(f *os.File) (string, int64, error) {
	st, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	h := crc32.New(castagnoli)
	const block = 64 << 10
	buf, zero := make([]byte, block), make([]byte, block)
	for at := int64(0); at < st.Size(); {
		next, err := sys.SeekData(f, at)
		if err != nil {
			return "", 0, err
		}
		if at = next / block * block; at >= st.Size() {
			break
		}
		n, err := f.ReadAt(buf[:min(block, st.Size()-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", 0, err
		}
		if !bytes.Equal(buf[:n], zero[:n]) {
			_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(at)))
			_, _ = h.Write(buf[:n])
		}
		at += block
	}
	return fmt.Sprintf("%08x", h.Sum32()), st.Size(), nil
}

// sums caches the checksums of files that have not changed according to their times, so
// that many forks of a snapshot read it once. It does not detect later errors of the disk.
type sums struct {
	mu    sync.Mutex
	known map[unchanged]string // guarded by mu
}

// unchanged are the properties of a file that stay equal if nobody writes to it.
type unchanged struct {
	device, inode    uint64
	size             int64
	changed, written syscall.Timespec
}

// settledTime is the minimum age of a change before times are reliable, because a file
// system's clock advances in steps.
const settledTime = time.Second

// maxSums bounds the number of cached checksums.
const maxSums = 1000

// of returns sum(f), or the cached result. Callers must always use the same sum for a file.
// Without a cache it calls sum.
func (s *sums) of(f *os.File, sum func(*os.File) (string, int64, error)) (string, int64, error) {
	if s == nil {
		return sum(f)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return "", 0, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	key := unchanged{device: st.Dev, inode: st.Ino, size: st.Size, changed: st.Ctim, written: st.Mtim}
	s.mu.Lock()
	is, ok := s.known[key]
	s.mu.Unlock()
	if ok {
		return is, st.Size, nil
	}
	is, n, err := sum(f)
	if err != nil || n != st.Size || time.Since(time.Unix(st.Ctim.Unix())) < settledTime {
		return is, n, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSums {
		s.known = map[unchanged]string{}
	}
	s.known[key] = is
	return is, n, nil
}
