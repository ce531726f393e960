package container

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// castagnoli is a sum that processors compute as fast as they read. It finds
// what a disk or a crash did; nobody else can write to the directory.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(f *os.File) (string, int64, error) {
	h := crc32.New(castagnoli)
	buf := make([]byte, 1<<20)
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{io.NewSectionReader(f, 0, 1<<60)}, buf)
	return fmt.Sprintf("%08x", h.Sum32()), n, err
}

// sums remembers the sums of files that have not changed since, as far as their
// times tell: who forks a snapshot many times reads it once. What a disk does to
// a file afterwards is not found.
type sums struct {
	mu    sync.Mutex
	known map[unchanged]string // guarded by mu
}

// unchanged is what a file has kept if nobody wrote to it.
type unchanged struct {
	device, inode    uint64
	size             int64
	changed, written syscall.Timespec
}

// settledTime is how old a change must be for the times to tell the next one: a
// file system's clock goes in steps.
const settledTime = time.Second

// maxSums bounds how many are remembered.
const maxSums = 1000

// of is sumOf, or what it would be. Without a memory it is sumOf.
func (s *sums) of(f *os.File) (string, int64, error) {
	if s == nil {
		return sumOf(f)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return "", 0, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	key := unchanged{device: st.Dev, inode: st.Ino, size: st.Size, changed: st.Ctim, written: st.Mtim}
	s.mu.Lock()
	sum, ok := s.known[key]
	s.mu.Unlock()
	if ok {
		return sum, st.Size, nil
	}
	sum, n, err := sumOf(f)
	if err != nil || n != st.Size || time.Since(time.Unix(st.Ctim.Unix())) < settledTime {
		return sum, n, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSums {
		s.known = map[unchanged]string{}
	}
	s.known[key] = sum
	return sum, n, nil
}
