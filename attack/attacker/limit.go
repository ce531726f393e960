//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// fillDisk is A17. The brief has the limit.
func fillDisk() []probe {
	fill := func(dir func(*protocol.Brief) string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			name := fmt.Sprintf("%s/%s-fill", dir(b), b.Marker)
			f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
			if err != nil {
				return refused(err)
			}
			defer os.Remove(name)
			defer f.Close()
			return pour(b.Disk*3, func(chunk []byte) error { _, err := f.Write(chunk); return err })
		}
	}
	allocate := func(dir func(*protocol.Brief) string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			name := fmt.Sprintf("%s/%s-alloc", dir(b), b.Marker)
			fd, err := unix.Open(name, creat|unix.O_EXCL, 0o600)
			if err != nil {
				return refused(err)
			}
			defer os.Remove(name)
			defer unix.Close(fd)
			if err := unix.Fallocate(fd, 0, 0, b.Disk*3); err != nil {
				return refused(err)
			}
			return reached("allocated three times the limit")
		}
	}
	at := func(d string) func(*protocol.Brief) string { return func(*protocol.Brief) string { return d } }
	return []probe{
		{"bytes in /tmp", fill(at("/tmp"))},
		{"bytes in /var/tmp", fill(at("/var/tmp"))},
		{"bytes in /dev/shm", fill(at("/dev/shm"))},
		{"bytes in the home", fill(func(b *protocol.Brief) string { return b.Home })},
		{"bytes in /run", fill(at("/run"))},
		{"bytes in /dev", fill(at("/dev"))},
		{"allocate in /tmp", allocate(at("/tmp"))},
		{"all places together", func(b *protocol.Brief) protocol.Try {
			var total int64
			var last error
			for _, d := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/dev", b.Home} {
				name := fmt.Sprintf("%s/%s-sum", d, b.Marker)
				f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
				if err != nil {
					last = err
					continue
				}
				defer os.Remove(name)
				defer f.Close()
				for total < b.Disk*4 {
					n, err := f.Write(block())
					total += int64(n)
					if err != nil {
						last = err
						break
					}
				}
			}
			if total > b.Disk*2+b.Memory {
				return reached("wrote %d bytes with a limit of %d", total, b.Disk)
			}
			if last == nil {
				return inside("wrote %d bytes", total)
			}
			return refused(last)
		}},
		{"inodes in /tmp", func(b *protocol.Brief) protocol.Try {
			dir := "/tmp/" + b.Marker + "-inodes"
			if err := os.Mkdir(dir, 0o700); err != nil {
				return refused(err)
			}
			defer os.RemoveAll(dir)
			// A file takes a kibibyte of kernel memory, so half as many files as the limit
			// has kibibytes is too many.
			most := int(b.Disk / 2048)
			if b.Kernel {
				// A sandbox with its own kernel keeps them in memory that the host counts,
				// and has no other bound: at least two kibibytes each.
				most = int(b.Memory / 2048)
			}
			for i := range most {
				if err := unix.Mknod(fmt.Sprintf("%s/%d", dir, i), unix.S_IFREG|0o600, 0); err != nil {
					return refused(err)
				}
			}
			return reached("made %d files", most)
		}},
		{"unlimited: allocate in the workspace", allocate(func(b *protocol.Brief) string { return b.Work })},
	}
}

func block() []byte { return make([]byte, 1<<20) }

// pour writes until total is reached.
func pour(total int64, w func([]byte) error) protocol.Try {
	chunk := block()
	for i := range chunk {
		chunk[i] = byte(i)
	}
	for n := int64(0); n < total; n += int64(len(chunk)) {
		if err := w(chunk); err != nil {
			return refused(err)
		}
	}
	return reached("wrote %d bytes, three times the limit", total)
}

// exhaust is P22.
func exhaust() []probe {
	return []probe{
		{"fork bomb", func(b *protocol.Brief) protocol.Try {
			want := b.PIDs * 3
			var made []*exec.Cmd
			var last error
			var hold []*os.File
			defer func() {
				for _, f := range hold {
					_ = f.Close()
				}
				for _, c := range made {
					_ = c.Process.Kill()
					_ = c.Wait()
				}
			}()
			for range want {
				r, w, err := os.Pipe()
				if err != nil {
					last = err
					break
				}
				hold = append(hold, w)
				c := exec.Command("/proc/self/exe", "idle")
				c.Stdin = r
				err = c.Start()
				_ = r.Close()
				if err != nil {
					last = err
					break
				}
				made = append(made, c)
			}
			if last == nil {
				return reached("%d processes with a limit of %d", len(made), b.PIDs)
			}
			return refused(last)
		}},
		{"threads", func(b *protocol.Brief) protocol.Try {
			// Go's runtime ends a program that cannot make a thread, so make the threads by
			// clone.
			made := 0
			defer func() { reapAll() }()
			for range b.PIDs * 3 {
				if err := pausedChild(); err != nil {
					return refused(err)
				}
				made++
			}
			return reached("%d tasks with a limit of %d", made, b.PIDs)
		}},
		{"memory balloon", func(b *protocol.Brief) protocol.Try {
			m, err := unix.Mmap(-1, 0, int(b.Memory*3), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			if err != nil {
				return refused(err)
			}
			for i := 0; i < len(m); i += 4096 {
				m[i] = 1
			}
			return reached("touched three times the limit")
		}},
		{"memory files", func(b *protocol.Brief) protocol.Try {
			fd, err := unix.MemfdCreate("balloon", 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return pour(b.Memory*3, func(c []byte) error { _, err := unix.Write(fd, c); return err })
		}},
		{"shared memory segments", func(b *protocol.Brief) protocol.Try {
			id, err := unix.SysvShmGet(0, int(b.Memory*3), ipcCreat|0o600)
			if err != nil {
				return refused(err)
			}
			defer func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }()
			m, err := unix.SysvShmAttach(id, 0, 0)
			if err != nil {
				return refused(err)
			}
			_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			for i := 0; i < len(m); i += 4096 {
				m[i] = 1
			}
			return reached("touched three times the limit")
		}},
		{"descriptors", func(b *protocol.Brief) protocol.Try {
			for i := range b.Files * 3 {
				if _, err := unix.Dup(0); err != nil {
					return refused(err)
				}
				_ = i
			}
			return reached("%d descriptors with a limit of %d", b.Files*3, b.Files)
		}},
		{"pipes", func(b *protocol.Brief) protocol.Try {
			var p [2]int
			for range b.Files * 2 {
				if err := unix.Pipe2(p[:], unix.O_NONBLOCK); err != nil {
					return refused(err)
				}
			}
			return reached("pipes beyond the limit")
		}},
		{"processor", func(b *protocol.Brief) protocol.Try {
			if b.CPUs >= float64(runtime.NumCPU()) {
				return absent("the limit is as large as the machine")
			}
			const wall = 2 * time.Second
			var wg sync.WaitGroup
			end := time.Now().Add(wall)
			for range runtime.NumCPU() {
				wg.Go(func() {
					for n := 0; ; n++ {
						if n%100000 == 0 && time.Now().After(end) {
							return
						}
					}
				})
			}
			wg.Wait()
			var ru unix.Rusage
			if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
				return refused(err)
			}
			used := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
			if most := time.Duration(b.CPUs * float64(wall) * 1.5); used > most && b.Slow {
				return inside("used %v of processor time in %v, by a clock that goes on while the host lets it wait; the host counts as well", used.Round(time.Millisecond), wall)
			} else if used > most {
				return reached("used %v of processor time in %v with %v processors", used.Round(time.Millisecond), wall, b.CPUs)
			}
			return protocol.Try{Outcome: protocol.Denied, Errno: "throttled", Detail: "got no more than its share"}
		}},
	}
}
