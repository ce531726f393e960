package vfs_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// What files take in memory is about what is charged for them as disk, however they came to their size.
func TestMemoryOfFilesIsAboutTheirDisk(t *testing.T) {
	const disk = 16 << 20
	full := bytes.Repeat([]byte{1}, 64<<10)
	for what, fill := range map[string]func(f *vfs.File) error{
		"cut": func(f *vfs.File) error {
			if _, err := f.Write(full); err != nil {
				return err
			}
			return f.Truncate(16400)
		},
		"written in pieces": func(f *vfs.File) error {
			for range 36 {
				if _, err := f.Write(full[:1000]); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			fs := vfs.New(vfs.Options{Disk: disk})
			v := root(fs)
			held := func() uint64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := held()
			for i := 0; ; i++ {
				f, err := v.Open(fmt.Sprintf("/f%d", i), linux.O_WRONLY|linux.O_CREAT, 0o644)
				if err == nil {
					err = fill(f)
					_ = f.Close()
				}
				if err == linux.ENOSPC {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if took := held() - before; took > disk*3/2 {
				t.Errorf("files with %d bytes of disk take %d of memory", disk, took)
			}
			runtime.KeepAlive(fs)
		})
	}
}
