package kernel

import (
	"io"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// rlimit bounds one task and what it forks, below what the machine allows.
// Each is one more than the bound: 0 is none.
type rlimit struct{ files, size, tasks int64 }

// LimitFiles bounds the numbers of descriptors; below zero is no bound of the
// task's own.
func (t *Task) LimitFiles(n int64) { t.rlimit.files = max(n, -1) + 1 }

// LimitFileSize bounds how many bytes files can be made to hold; below zero is
// no bound. Writing beyond kills by SIGXFSZ.
func (t *Task) LimitFileSize(n int64) { t.rlimit.size = max(n, -1) + 1 }

// LimitTasks bounds how many tasks there may be on the computer when this one
// forks; below zero is no bound of the task's own.
func (t *Task) LimitTasks(n int64) { t.rlimit.tasks = max(n, -1) + 1 }

// maxFDs is how many descriptors the task may have.
func (t *Task) maxFDs() int64 {
	n := t.K.maxFDs.Load()
	if own := t.rlimit.files; own > 0 {
		n = min(n, own-1)
	}
	return n
}

// fit cuts p to what the bound on the size of files leaves.
func (f *diskFile) fit(t *Task, p []byte) ([]byte, error) {
	at := int64(0)
	if f.f.Flags()&linux.O_APPEND != 0 {
		i, err := f.f.Info()
		if err != nil {
			return nil, err
		}
		at = i.Size
	} else {
		var err error
		if at, err = f.f.Seek(0, io.SeekCurrent); err != nil {
			return nil, err
		}
	}
	room := t.rlimit.size - 1 - at
	switch {
	case len(p) == 0:
		return p, nil
	case room <= 0:
		return nil, linux.EFBIG
	}
	return p[:min(room, int64(len(p)))], nil
}
